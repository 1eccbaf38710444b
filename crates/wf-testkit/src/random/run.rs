//! Gives the commands to both stores, one by one, and compares the answers.

use std::fmt::Debug;

use wf_core::models::{TenantId, Workflow, WorkflowId};
use wf_core::ports::{
    Claim, ClaimedDeadline, ClaimedStream, Commit, LeaseToken, LoadQuery, NextDeadline, ReadError,
    SettleError, Settled, Settlement, StorageBackendPort, Swept,
};

use super::answer::{self, Answer, Class, said};
use super::command::{Base, Command, Outcome};
use super::commits::{actor, nothing, pick, tenants, with_change, workflow_ids};
use crate::build::{CommitBuilder, at, definition};

const LEASE_MS: i64 = 10_500;
const AHEAD_MS: i64 = 50_000_000;
const DECADE_MS: i64 = 10 * 365 * 24 * 3_600_000;

/// Where two stores gave different answers.
#[derive(Debug, thiserror::Error)]
#[error("command {index}, {command}, was answered differently\nmodel: {model}\nstore: {store}")]
pub struct Disagreement {
    /// Which command of the list, from 0; the length of the list for the reads after it.
    pub index: usize,
    /// The command.
    pub command: String,
    /// What the model said.
    pub model: String,
    /// What the store said.
    pub store: String,
}

/// Two answers that differ, or an error of the model, which must not have any.
#[derive(Debug)]
pub(super) struct Differ {
    pub(super) model: Answer,
    pub(super) store: Answer,
}

impl From<ReadError> for Differ {
    fn from(error: ReadError) -> Self {
        Self { model: format!("could not be asked: {error:?}"), store: "was not asked".to_owned() }
    }
}

pub(super) type Same = Result<(), Differ>;

/// Compares two answers; makes text of them only when they differ.
pub(super) fn same<T: PartialEq + Debug, E: Class>(
    model: &Result<T, E>,
    store: &Result<T, E>,
) -> Same {
    let equal = match (model, store) {
        (Ok(model), Ok(store)) => model == store,
        (Err(model), Err(store)) => model.class() == store.class(),
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    };
    if equal {
        return Ok(());
    }
    let (model, store) = (said(model), said(store));
    Err(Differ { model, store })
}

/// One of the last few: older leases are mostly over.
fn recent(choice: u8, len: usize) -> Option<usize> {
    let back = usize::from(choice).checked_rem(len.min(6))?;
    Some(len - 1 - back)
}

/// Something that was claimed, and until when by the claimer's clock.
#[derive(Debug)]
struct Held<T> {
    what: T,
    from_ms: i64,
    settled: bool,
}

impl<T> Held<T> {
    /// The lease is neither live nor anybody else's: whether it may settle is left open.
    fn is_adrift(&self, now_ms: i64, claimed_again: bool) -> bool {
        let live = self.from_ms <= now_ms && now_ms < self.from_ms + LEASE_MS;
        !self.settled && !claimed_again && !live
    }
}

/// What is known while a list runs.
pub(super) struct Runner<'a> {
    pub(super) model: &'a dyn StorageBackendPort,
    pub(super) store: &'a dyn StorageBackendPort,
    /// Milliseconds since the epoch of tests; grows by a second with every command.
    pub(super) now_ms: i64,
    /// Every commit that was sent, taken or not.
    pub(super) commits: Vec<Commit>,
    /// Every state that was committed, in order.
    states: Vec<Workflow>,
    streams: Vec<Held<ClaimedStream>>,
    due: Vec<Held<ClaimedDeadline>>,
}

/// Gives a list of commands to the reference model and to a store, both empty, and compares every answer. After the
/// list everything that can be read is compared.
///
/// # Errors
/// [`Disagreement`] at the first command that is answered differently.
pub async fn run_against(
    model: &dyn StorageBackendPort,
    store: &dyn StorageBackendPort,
    commands: &[Command],
) -> Result<(), Disagreement> {
    let mut runner = Runner {
        model,
        store,
        now_ms: 0,
        commits: Vec::new(),
        states: Vec::new(),
        streams: Vec::new(),
        due: Vec::new(),
    };
    let disagreement = |index, command, differ: Differ| Disagreement {
        index,
        command,
        model: differ.model,
        store: differ.store,
    };
    for (index, command) in commands.iter().enumerate() {
        runner.now_ms += 1_000;
        let answer = runner.run(command).await;
        answer.map_err(|differ| disagreement(index, format!("{command:?}"), differ))?;
    }
    let end = runner.look_everywhere().await;
    end.map_err(|differ| disagreement(commands.len(), "a look at everything".to_owned(), differ))
}

impl Runner<'_> {
    async fn run(&mut self, command: &Command) -> Same {
        match command {
            Command::Start { .. } => self.start(command).await,
            Command::Next { .. } => self.next(command).await,
            Command::Again(choice) => match pick(&self.commits, *choice).cloned() {
                Some(commit) => self.send(commit).await,
                None => Ok(()),
            },
            Command::PutDefinition { id, version, says } => {
                let name = format!("procedure-{id}");
                let one = definition(&name, u32::from(*version), &format!("says {says}"));
                let answers = (self.model.put_definition(&one), self.store.put_definition(&one));
                same(&answers.0.await, &answers.1.await)
            }
            Command::ClaimOutbox { ahead } => self.claim_outbox(*ahead).await,
            Command::SettleOutbox { claim, outcomes } => self.settle(*claim, outcomes).await,
            Command::Revive(choice) => self.revive(*choice).await,
            Command::ClaimDeadlines { ahead, limit } => self.claim_deadlines(*ahead, *limit).await,
            Command::SettleDeadline(choice) => self.settle_deadline(*choice).await,
            Command::Sweep { keep } => self.sweep(*keep).await,
            Command::Pass(seconds) => {
                self.now_ms += i64::from(*seconds) * 1_000;
                Ok(())
            }
            Command::Look { tenant, limit } => {
                let tenants = tenants();
                match pick(&tenants, *tenant) {
                    Some(tenant) => self.look(tenant, u32::from(*limit)).await,
                    None => Ok(()),
                }
            }
        }
    }

    /// Sends a commit to both.
    async fn send(&mut self, commit: Commit) -> Same {
        let model = self.model.commit(commit.clone()).await;
        let store = self.store.commit(commit.clone()).await;
        if model.is_ok() {
            self.states.push(commit.next.clone());
        }
        self.commits.push(commit);
        same(&model, &store)
    }

    async fn start(&mut self, command: &Command) -> Same {
        let Command::Start { tenant, actor: who, workflow, assets, key, extras } = command else {
            return Ok(());
        };
        let (tenants, ids) = (tenants(), workflow_ids());
        let (Some(tenant), Some(id)) = (pick(&tenants, *tenant), pick(&ids, *workflow)) else {
            return Ok(());
        };
        let builder = CommitBuilder::start(tenant, id, &actor(*who), at(self.now_ms));
        let builder = self.with_assets(builder, tenant, assets).await?;
        let builder = self.with_key(builder, *key).await?;
        let commit = self.with_extras(builder, tenant, id, *extras).build();
        self.send(commit).await
    }

    async fn next(&mut self, command: &Command) -> Same {
        let Command::Next { workflow, by, change, base, key, locks, extras } = command else {
            return Ok(());
        };
        let Some(one) = pick(&self.states, *workflow) else {
            return Ok(());
        };
        let Some(current) = self.current(&one.tenant, &one.id).await? else {
            return Ok(());
        };
        let (tenant, id) = (current.tenant.clone(), current.id.clone());
        let decided_on = match base {
            Base::Current => current,
            Base::Earlier(choice) => {
                let mine = |w: &&Workflow| w.tenant == tenant && w.id == id;
                let earlier: Vec<&Workflow> = self.states.iter().filter(mine).collect();
                pick(&earlier, *choice).map_or(current, |w| (*w).clone())
            }
        };
        let mut builder = CommitBuilder::next(&decided_on, at(self.now_ms));
        if let Some(by) = by {
            builder = builder.by(&actor(*by));
        }
        let builder = with_change(builder, &decided_on, *change);
        let builder = self.with_locks(builder, &decided_on, *locks).await?;
        let builder = self.with_key(builder, *key).await?;
        let mut builder = self.with_extras(builder, &tenant, &id, *extras);
        if let Some(deadline) = decided_on.deadlines.keys().next().filter(|_| extras.clear) {
            builder = builder.clear_deadline(deadline);
        }
        self.send(builder.build()).await
    }

    async fn current(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
    ) -> Result<Option<Workflow>, ReadError> {
        let query = LoadQuery { workflow: Some(id.clone()), ..nothing(tenant) };
        Ok(self.model.load(&query).await?.workflow)
    }

    fn claim(&self, ahead: bool, limit: u32) -> Claim {
        let now_ms = self.now_ms + if ahead { AHEAD_MS } else { 0 };
        Claim {
            now: at(now_ms),
            lease_ms: LEASE_MS,
            token: LeaseToken(format!("token-{}", self.now_ms)),
            limit,
        }
    }

    async fn claim_outbox(&mut self, ahead: bool) -> Same {
        // Which streams a claim with a smaller limit brings is left open.
        let claim = self.claim(ahead, 1_000);
        let model = self.model.claim_outbox(&claim).await.map(answer::streams);
        let store = self.store.claim_outbox(&claim).await.map(answer::streams);
        let from_ms = claim.now.since_ms(at(0));
        let held = |what| Held { what, from_ms, settled: false };
        self.streams.extend(model.iter().flatten().cloned().map(held));
        same(&model, &store)
    }

    async fn settle(&mut self, choice: u8, outcomes: &[Outcome]) -> Same {
        let Some(index) = recent(choice, self.streams.len()) else {
            return Ok(());
        };
        let (until, later) = self.streams.split_at_mut(index + 1);
        let Some(held) = until.last_mut() else {
            return Ok(());
        };
        let key =
            |s: &ClaimedStream| (s.tenant.clone(), s.workflow_id.clone(), s.recipient.clone());
        let again = later.iter().any(|other| key(&other.what) == key(&held.what));
        if held.is_adrift(self.now_ms, again) {
            return Ok(());
        }
        let now = at(self.now_ms);
        let settled = |outcome: &Outcome| match outcome {
            Outcome::Unnamed => None,
            Outcome::Delivered => Some(Settled::Delivered),
            Outcome::Retry => {
                Some(Settled::Retry { at: now.plus_ms(9_500), error: "busy".to_owned() })
            }
            Outcome::Dead => Some(Settled::Dead { error: "gone".to_owned() }),
        };
        let results = held.what.rows.iter().zip(outcomes).filter_map(|(row, outcome)| {
            settled(outcome).map(|settled| (row.message.id.clone(), settled))
        });
        let settlement = Settlement {
            tenant: held.what.tenant.clone(),
            workflow_id: held.what.workflow_id.clone(),
            recipient: held.what.recipient.clone(),
            token: held.what.token.clone(),
            now,
            results: results.collect(),
        };
        let model = self.model.settle_outbox(&settlement).await;
        held.settled |= model.is_ok();
        let store = self.store.settle_outbox(&settlement).await;
        same(&model, &store)
    }

    async fn revive(&self, choice: u8) -> Same {
        let messages: Vec<_> = self.commits.iter().flat_map(|c| &c.outbox).collect();
        let Some(message) = pick(&messages, choice) else {
            return Ok(());
        };
        let now = at(self.now_ms);
        let model = self.model.revive_outbox(&message.id, now).await;
        let store = self.store.revive_outbox(&message.id, now).await;
        same(&model, &store)
    }

    async fn claim_deadlines(&mut self, ahead: bool, limit: u8) -> Same {
        let claim = self.claim(ahead, u32::from(limit.max(1)));
        let model = self.model.claim_deadlines(&claim).await;
        let store = self.store.claim_deadlines(&claim).await;
        let from_ms = claim.now.since_ms(at(0));
        let held = |what| Held { what, from_ms, settled: false };
        self.due.extend(model.iter().flatten().cloned().map(held));
        same(&model, &store)?;
        let next = |next: Result<NextDeadline, ReadError>| next.map(|next| next.at);
        let (now, lease_ms) = (at(self.now_ms), claim.lease_ms);
        let model = next(self.model.next_deadline(now, lease_ms).await);
        let store = next(self.store.next_deadline(now, lease_ms).await);
        same(&model, &store)
    }

    async fn settle_deadline(&mut self, choice: u8) -> Same {
        let Some(index) = recent(choice, self.due.len()) else {
            return Ok(());
        };
        let Some(what) = self.due.get(index).map(|held| held.what.clone()) else {
            return Ok(());
        };
        let same_deadline = |other: &Held<ClaimedDeadline>| {
            other.what.deadline.id == what.deadline.id && other.what.tenant == what.tenant
        };
        // What settling a deadline that is gone answers is left open.
        let settled = self.due.iter().any(|other| same_deadline(other) && other.settled);
        let workflow = self.current(&what.tenant, &what.workflow_id).await?;
        let set = workflow.is_some_and(|w| w.deadlines.contains_key(&what.deadline.id));
        let again = self.due.iter().skip(index + 1).any(same_deadline);
        let now_ms = self.now_ms;
        let Some(held) = self.due.get_mut(index) else {
            return Ok(());
        };
        if settled || !set || held.is_adrift(now_ms, again) {
            return Ok(());
        }
        let model = self.model.settle_deadline(&what).await;
        held.settled |= model.is_ok();
        let store = self.store.settle_deadline(&what).await;
        same(&model, &store)
    }

    async fn sweep(&self, keep: bool) -> Same {
        let retention_ms = if keep { DECADE_MS } else { 0 };
        let model = self.sweep_all(self.model, retention_ms).await;
        let store = self.sweep_all(self.store, retention_ms).await;
        same(&model, &store)
    }

    /// Sweeps until nothing is left, and adds up. What a single call takes of it is left open.
    async fn sweep_all(
        &self,
        store: &dyn StorageBackendPort,
        retention_ms: i64,
    ) -> Result<Swept, SettleError> {
        let mut total = Swept::default();
        for _ in 0..500 {
            let swept = store.sweep(at(self.now_ms), retention_ms, 3).await?;
            if swept == Swept::default() {
                break;
            }
            total.expiries_set += swept.expiries_set;
            total.ledger_deleted += swept.ledger_deleted;
            total.outbox_deleted += swept.outbox_deleted;
        }
        Ok(total)
    }
}
