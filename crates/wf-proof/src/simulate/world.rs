//! One simulation: servers and callers on one thread, in time that passes only while nobody has anything to do, through
//! kills, standstills, clocks that are off and bad weather; then calm, until everything that was due is done, and the audit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::runtime::{Builder, Handle};
use tokio::time::{Instant, sleep};
use wf_core::engine::Engine;
use wf_core::models::{Actor, Principal, Scopes, Timestamp};
use wf_core::ports::{
    ClockPort as _, ListQuery, OutboxQuery, OutboxState, ReadError, StorageBackendPort,
};
use wf_procedure::Compiler;
use wf_testkit::ids::SequentialIds;
use wf_testkit::model::ModelStore;
use wf_testkit::mutants::MutantStore;

use super::Broken;
use super::line::Network;
use super::outside::Outside;
use super::replica::{Common, Replica, policy};
use super::sea::{Sea, Weather};
use super::sink::Sink;
use super::verdict;
use crate::fault::Fault;
use crate::harness::record::Recorder;
use crate::harness::workload::{Callers, Plan, Someone};

/// Calls of one simulation, and how long it may take in its own time.
const CALLS: u64 = 20;
const LONGEST: Duration = Duration::from_secs(600);
/// How often, when all is calm, what is due is looked for before it counts as never done.
const ROUNDS_MAX: u32 = 400;
/// Everything is listed at once: a simulation is small.
const ALL: u32 = 10_000;
/// One seed of so many has an orchestrator outside its servers. There callers think before they call, so that executions
/// come to something in between, and so much happens at least.
pub(super) const OUTSIDE: u64 = 4;
const THINKS_MS: u64 = 4_000;
const EVENTS: u32 = 20;
/// Furthest that a clock may be off, in milliseconds, either way.
const OFF_MAX_MS: i64 = 3_000;

/// What came of one simulation.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// What happened, in order: the same for the same seed.
    pub(super) trace: Vec<String>,
    /// Calls of callers, kills of servers, faults of everything else, commits, messages.
    pub(super) calls: u64,
    pub(super) kills: u64,
    pub(super) faults: u64,
    pub(super) commits: u64,
    pub(super) messages: u64,
    /// Passes of reconcilers, and executions that began.
    pub(super) passes: u64,
    pub(super) executions: u64,
    /// What must not be.
    pub(super) found: Vec<String>,
}

/// Runs the simulation of a seed, as it must be or with something that is broken on purpose.
pub(super) fn run(seed: u64, broken: Option<Broken>) -> Result<Seen, Fault> {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(Fault::io("the thread of a simulation"))?;
    let handle = runtime.handle().clone();
    // So that the first look at the time is at that of the simulation, too.
    let _inside = runtime.enter();
    runtime.block_on(World::new(seed, broken)?.play(&handle))
}

struct World {
    seed: u64,
    sea: Sea,
    /// What befalls the servers; a stream of its own, so that it stays the same whatever they do.
    random: StdRng,
    /// What befalls executions.
    mischief: StdRng,
    common: Common,
    replicas: Vec<Replica>,
    recorder: Arc<Recorder>,
    seen: Seen,
}

impl World {
    fn new(seed: u64, broken: Option<Broken>) -> Result<Self, Fault> {
        let sea = Sea::new(seed);
        let sink = Sink::new(&sea);
        let (store, is_outside): (Arc<dyn StorageBackendPort>, bool) = match broken {
            Some(Broken::Store(mutation)) => (Arc::new(MutantStore::new(Some(mutation))), false),
            Some(_) => (Arc::new(ModelStore::numbered(seed)), true),
            None => (Arc::new(ModelStore::numbered(seed)), seed.is_multiple_of(OUTSIDE)),
        };
        let begun = Instant::now();
        let outside = is_outside.then(|| Outside::new(broken, begun));
        let ids = Arc::new(SequentialIds::new());
        let (policy, sea_of) = (policy()?, sea.clone());
        let common = Common { begun, sea: sea_of, store, policy, ids, sink, outside };
        let mut random = StdRng::seed_from_u64(seed ^ 0x5eed);
        let mischief = StdRng::seed_from_u64(seed ^ 0x0dd);
        let count = random.random_range(1..=2).max(if is_outside { 2 } else { 1 });
        let replicas = (0..count).map(|n| Replica::new(n, &common)).collect();
        let recorder = Arc::default();
        let seen = Seen::default();
        Ok(Self { seed, sea, random, mischief, common, replicas, recorder, seen })
    }

    async fn play(mut self, handle: &Handle) -> Result<Seen, Fault> {
        for replica in &self.replicas {
            replica.start();
        }
        let callers = self.callers(handle);
        let begun = Instant::now();
        let mut least = if self.common.outside.is_some() { EVENTS } else { 0 };
        while (self.recorder.calls() < CALLS || least > 0) && begun.elapsed() < LONGEST {
            self.something_happens().await;
            self.executions_suffer();
            least = least.saturating_sub(1);
        }
        self.sea.set(Weather::Calm);
        for replica in &self.replicas {
            replica.still.set(false);
            replica.clock.set(0);
        }
        callers.finish().await?;
        for replica in &self.replicas {
            replica.kill().await;
            // Half of what is still on its way never arrives.
            if self.random.random_bool(0.5) {
                replica.land().await;
            }
        }
        if self.random.random_bool(0.5) {
            self.outside_lands();
        }
        self.settle().await?;
        self.examine().await?;
        Ok(self.seen)
    }

    fn callers(&mut self, handle: &Handle) -> Callers {
        let people = ["ann", "bob", "eve"];
        let someone = |subject: &str| Someone { subject: subject.to_owned(), token: String::new() };
        let count = self.random.random_range(2..=4);
        let plan = Plan {
            contended: 2,
            people: people.map(someone).to_vec(),
            walks_away: 0.2,
            ..Plan::new(count, self.seed)
        };
        let mut callers = Callers::new(&plan, &self.recorder);
        for number in 0..count {
            let subject = usize::try_from(number).ok().and_then(|n| people.get(n % people.len()));
            let actor = Actor::User(subject.copied().unwrap_or("ann").to_owned());
            let who = Principal { actor, scopes: Scopes::ALL, ..Principal::local() };
            let network = Network {
                number,
                sea: self.sea.clone(),
                replicas: self.replicas.clone(),
                who,
                recorder: Arc::clone(&self.recorder),
                thinks_ms: if self.common.outside.is_some() { THINKS_MS } else { 0 },
                chosen: None,
            };
            callers.spawn(number, Box::new(network), handle);
        }
        callers
    }

    /// Some time passes, and then something befalls the servers, or nothing.
    async fn something_happens(&mut self) {
        let longest_ms = if self.common.outside.is_some() { 4_000 } else { 400 };
        sleep(Duration::from_millis(self.random.random_range(5..longest_ms))).await;
        let weather = match self.random.random_range(0..100_u8) {
            0..20 => Some(Weather::Rough),
            20..32 => Some(Weather::Calm),
            32..35 => Some(Weather::Down),
            _ => None,
        };
        if let Some(weather) = weather {
            self.sea.set(weather);
        }
        let one = self.random.random_range(0..self.replicas.len());
        let Some(replica) = self.replicas.get(one).cloned() else { return };
        let outside = self.common.outside.is_some();
        match self.random.random_range(0..100_u8) {
            0..5 => {
                replica.kill().await;
                self.seen.kills += 1;
                sleep(Duration::from_millis(self.random.random_range(0..3_000))).await;
                replica.start();
            }
            5..8 => self.stands_still(replica),
            8..11 => replica.clock.set(self.random.random_range(-OFF_MAX_MS..=OFF_MAX_MS)),
            11..26 => {
                replica.land().await;
                self.outside_lands();
            }
            // Longer than a lease lasts: another takes over, and then this one goes on.
            26..32 if outside => self.stands_still(replica),
            _ => {}
        }
    }

    fn stands_still(&mut self, replica: Replica) {
        replica.still.set(true);
        let after = Duration::from_millis(self.random.random_range(100..60_000));
        tokio::spawn(async move {
            sleep(after).await;
            replica.still.set(false);
        });
    }

    fn outside_lands(&self) {
        let landed = self.common.outside.as_ref().map_or(0, Outside::land);
        if landed > 0 {
            self.sea.note(format_args!("landed outside {landed}"));
        }
    }

    /// Somebody ends an execution by hand, or its machine is deleted; somebody takes a name; one is worn.
    fn executions_suffer(&mut self) {
        let Some(outside) = &self.common.outside else { return };
        let (chance, which) =
            (self.mischief.random_range(0..100_u8), self.mischief.random::<u64>());
        let mut state = outside.lock();
        let running = state.executions.iter().enumerate().filter(|(_, one)| one.ended.is_none());
        let running: Vec<usize> = running.map(|(number, _)| number).collect();
        let some = |count: usize| {
            let count = u64::try_from(count).ok().filter(|count| *count > 0)?;
            usize::try_from(which % count).ok()
        };
        let one = some(running.len()).and_then(|place| running.get(place).copied());
        let row = some(state.rows.len()).and_then(|place| state.rows.iter().nth(place));
        let row = row.map(|(id, row)| (id.clone(), row.binding.fence));
        match (chance, one, row) {
            (0..16, Some(number), _) => state.end(number),
            (16..24, Some(number), _) => state.vanish(number),
            // A name is taken once.
            (24..27, _, Some((workflow, fence))) if state.named(&workflow, fence + 1).is_none() => {
                state.begin(&workflow, fence + 1, true);
            }
            (27..32, _, Some((workflow, _))) => state.wear(&workflow),
            _ => return,
        }
        self.sea.note(format_args!("mischief {chance} {which}"));
    }

    /// One more server, in calm weather, does what is due until nothing is.
    async fn settle(&mut self) -> Result<(), Fault> {
        let last = Replica::new(self.replicas.len(), &self.common);
        let engine = last.open().await?;
        for _ in 0..ROUNDS_MAX {
            match self.round(&last, &engine).await {
                Ok(Some(wait)) => sleep(wait).await,
                Ok(None) => return self.executions_settle(&last, &engine).await,
                // A store that is broken on purpose may answer anything.
                Err(error) => {
                    self.seen
                        .found
                        .push(format!("the store does not answer in calm weather: {error}"));
                    return Ok(());
                }
            }
        }
        self.seen.found.push("something is due for ever".to_owned());
        Ok(())
    }

    /// And what concerns executions, if there are any.
    async fn executions_settle(&mut self, last: &Replica, engine: &Engine) -> Result<(), Fault> {
        let (Some(outside), Some(mut reconciler)) =
            (self.common.outside.clone(), last.reconciler())
        else {
            return Ok(());
        };
        let wrong = verdict::settles(&outside, &mut reconciler, engine, &last.clock).await;
        self.seen.found.extend(wrong.map_err(|error| unread(&error))?);
        let mut state = outside.lock();
        self.seen.passes = state.passes;
        self.seen.executions = u64::try_from(state.executions.len()).unwrap_or(u64::MAX);
        self.seen.found.append(&mut state.found);
        Ok(())
    }

    /// Does what is due; how long to wait for the next, or nothing when nothing is to come.
    async fn round(&self, last: &Replica, engine: &Engine) -> Result<Option<Duration>, ReadError> {
        engine.fire_due(ALL).await?;
        engine.dispatch_once().await?;
        let due = engine.next_due().await?.at.map(|at| at.since_ms(last.clock.now()));
        let pending = self.pending().await?;
        let wait = due.into_iter().chain(pending.map(|at| at.since_ms(last.clock.now()))).min();
        Ok(wait.map(|ms| Duration::from_millis(ms.clamp(1_000, 3_600_000).unsigned_abs())))
    }

    /// When the next message may be tried.
    async fn pending(&self) -> Result<Option<Timestamp>, ReadError> {
        let query = OutboxQuery { state: Some(OutboxState::Pending), after: None, limit: ALL };
        let page = self.common.store.list_outbox(&query).await?;
        Ok(page.items.iter().map(|row| row.status.next_attempt_at).min())
    }

    /// Holds what the callers and the sink saw against the store.
    async fn examine(&mut self) -> Result<(), Fault> {
        let attempts = self.recorder.attempts();
        let audit =
            wf_testkit::audit::audit(self.common.store.as_ref(), &attempts, Some(&Compiler))
                .await
                .map_err(|error| unread(&error))?;
        self.seen.found.extend(audit.violations.iter().map(ToString::to_string));
        self.deadlines().await?;
        self.messages().await?;
        (self.seen.trace, self.seen.faults) = self.sea.told();
        self.seen.calls = audit.keys;
        self.seen.commits = audit.commits;
        self.seen.messages = audit.messages;
        Ok(())
    }

    /// Nothing is due any more, so no workflow may have a deadline.
    async fn deadlines(&mut self) -> Result<(), Fault> {
        let query = ListQuery { tenant: None, phase: None, after: None, limit: ALL };
        let all = self.common.store.list(&query).await.map_err(|error| unread(&error))?.items;
        for workflow in all.iter().filter(|workflow| !workflow.deadlines.is_empty()) {
            self.seen.found.push(format!("{}: a deadline never passed", workflow.id));
        }
        Ok(())
    }

    /// Every message reached the sink, in its order, and nothing else did.
    async fn messages(&mut self) -> Result<(), Fault> {
        let query = OutboxQuery { state: None, after: None, limit: ALL };
        let page = self.common.store.list_outbox(&query).await.map_err(|error| unread(&error))?;
        let taken = self.common.sink.first_taken();
        let mut rows: Vec<_> = page.items.iter().map(|row| &row.message).collect();
        rows.sort_by_key(|message| message.seq);
        let mut last = BTreeMap::new();
        for message in &rows {
            let Some(place) = taken.get(&message.id) else {
                self.seen.found.push(format!("message {} reached nobody", message.id));
                continue;
            };
            let stream = (&message.tenant, &message.workflow_id, &message.recipient);
            if last.insert(stream, *place).is_some_and(|before| before > *place) {
                self.seen.found.push(format!("message {} overtook one before it", message.id));
            }
        }
        for id in taken.keys().filter(|id| rows.iter().all(|message| message.id != **id)) {
            self.seen.found.push(format!("message {id} was delivered, and no commit wrote it"));
        }
        Ok(())
    }
}

fn unread(error: &ReadError) -> Fault {
    Fault::Run(format!("the store after a simulation: {error}"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::simulate::wire::Wire;

    /// Does it with one server in calm weather, and its way to whatever is outside.
    pub(in crate::simulate) fn alone(does: impl AsyncFnOnce(&Replica, Wire)) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a thread");
        let _inside = runtime.enter();
        let world = World::new(2, None).expect("a world");
        let last = Replica::new(0, &world.common);
        let wire = last.wire.clone();
        runtime.block_on(does(&last, wire));
    }
}
