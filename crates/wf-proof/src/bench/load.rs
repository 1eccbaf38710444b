//! A closed loop of callers: each sends its next call when the last one is answered.
//!
//! Durable steps are measured in phases, because one person may own a hundred open workflows and a workflow has only so
//! many steps. Before a phase every caller starts workflows, after it it finishes them; neither counts. A phase counts
//! until the first caller has nothing left or the time is over, so that all callers are at work all the time.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::plan::Plan;
use super::process::processor_time;
use super::samples::{Quantiles, Samples};
use super::tokens::Shown;
use super::wire::{Call, Connection};
use super::work::{Form, Names, OPEN_MAX, Round, expect, is_duplicate, is_list};
use crate::fault::Fault;

/// What a load measured.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Measured {
    /// How many callers.
    pub callers: usize,
    /// Answered calls a second.
    pub rate: f64,
    /// Times of calls.
    pub times: Quantiles,
    /// Processor time of the server for one call, in microseconds.
    pub server_cpu_us: f64,
    /// Processor time of the callers for one call, in microseconds.
    pub client_cpu_us: f64,
    /// Memory of the server afterwards, in bytes.
    pub resident: u64,
    /// The most memory of the server so far, in bytes.
    pub resident_most: u64,
    /// Times of the same calls sent again, when asked for.
    pub replays: Option<Quantiles>,
}

/// One caller.
#[derive(Debug)]
struct Caller {
    place: usize,
    connection: Connection,
    shown: Shown,
    names: Names,
    rounds: Vec<Round>,
}

/// The end of a phase, with what it cost up to then; set by the first caller that is done.
type End = Arc<OnceLock<Moment>>;

/// A moment of a phase: when, and how much processor time the server and the callers had used.
#[derive(Debug, Clone, Copy)]
struct Moment {
    at: Instant,
    server: Duration,
    client: Duration,
}

impl Moment {
    fn now(plan: &Plan) -> Result<Self, Fault> {
        let server = plan.processor_time()?;
        let client = processor_time(std::process::id())?;
        Ok(Self { at: Instant::now(), server, client })
    }
}

/// Sums over phases.
#[derive(Debug, Default)]
struct Sum {
    samples: Samples,
    time: Duration,
    server: Duration,
    client: Duration,
}

impl Sum {
    fn add(&mut self, phase: Self) {
        self.samples.extend(phase.samples);
        self.time += phase.time;
        self.server += phase.server;
        self.client += phase.client;
    }

    fn measured(&self, plan: &Plan) -> Result<Measured, Fault> {
        let times = self.samples.quantiles();
        #[expect(clippy::cast_precision_loss, reason = "a count of calls is far below 2^52")]
        let calls = self.samples.len().max(1) as f64;
        let (resident, resident_most) = plan.resident()?;
        Ok(Measured {
            callers: plan.callers,
            rate: calls / self.time.as_secs_f64().max(1e-9),
            times,
            server_cpu_us: self.server.as_secs_f64() * 1e6 / calls,
            client_cpu_us: self.client.as_secs_f64() * 1e6 / calls,
            resident,
            resident_most,
            replays: None,
        })
    }
}

/// Puts durable steps on a server.
///
/// # Errors
/// When a call is not answered as it must be, or the server is gone.
pub async fn steps(plan: &Plan) -> Result<Measured, Fault> {
    steps_by(plan, &Shown::Nothing).await
}

/// Puts durable steps on a server that wants to know who calls.
///
/// # Errors
/// When a call is not answered as it must be, or the server is gone.
pub async fn steps_by(plan: &Plan, shown: &Shown) -> Result<Measured, Fault> {
    let mut callers = open(plan, shown).await?;
    let each = workflows_each(plan);
    let (mut sum, mut again) = (Sum::default(), Samples::default());
    // The first phase warms up the server's connections and statements.
    let mut warm = false;
    while !warm || sum.time < plan.time {
        let form = plan.form;
        callers = together(callers, move |caller| start(form, caller, each)).await?;
        let calls: Vec<Vec<Call>> = callers
            .iter()
            .map(|caller| caller.rounds.iter().flat_map(|round| round.steps.clone()).collect())
            .collect();
        let left = plan.time.saturating_sub(sum.time);
        let measured;
        let until = Until { wanted: Wanted::Outcome("recorded"), left, rest: true };
        (callers, measured) = phase(plan, callers, &calls, until).await?;
        if warm {
            sum.add(measured);
            if plan.replays {
                let replayed;
                let until = Until { wanted: Wanted::Duplicate, left: Duration::MAX, rest: true };
                (callers, replayed) = phase(plan, callers, &calls, until).await?;
                again.extend(replayed.samples);
            }
        }
        callers = together(callers, finish).await?;
        warm = true;
    }
    let mut measured = sum.measured(plan)?;
    measured.replays = plan.replays.then(|| again.quantiles());
    Ok(measured)
}

/// Puts the same call on a server again and again.
///
/// # Errors
/// When a call is not answered as it must be, or the server is gone.
pub async fn repeated(plan: &Plan, body: &Bytes, wanted: Wanted) -> Result<Measured, Fault> {
    let mut callers = open(plan, &Shown::Nothing).await?;
    let mut sum = Sum::default();
    let mut calls = 50;
    let mut warm = false;
    while !warm || sum.time < plan.time {
        let calls_each = vec![vec![Call::from(body.clone()); calls]; plan.callers];
        let left = plan.time.saturating_sub(sum.time);
        let measured;
        let until = Until { wanted, left, rest: false };
        (callers, measured) = phase(plan, callers, &calls_each, until).await?;
        if warm {
            sum.add(measured);
        }
        (warm, calls) = (true, 1_000);
    }
    sum.measured(plan)
}

/// Workflows that each caller starts for a phase: fewer in a short load, which would be over before they are.
fn workflows_each(plan: &Plan) -> usize {
    const A_SECOND: u128 = 16;
    let wanted = usize::try_from(plan.time.as_millis() * A_SECOND / 1_000).unwrap_or(usize::MAX);
    wanted.clamp(1, 32).min(OPEN_MAX / plan.callers).max(1)
}

/// What a call must be answered with.
#[derive(Debug, Clone, Copy)]
pub enum Wanted {
    /// A result with this outcome.
    Outcome(&'static str),
    /// The first answer to the same call.
    Duplicate,
    /// The list of tools.
    Tools,
}

impl Wanted {
    fn check(self, answer: &[u8]) -> Result<(), Fault> {
        let right = match self {
            Self::Outcome(outcome) => return expect(answer, outcome),
            Self::Duplicate => is_duplicate(answer),
            Self::Tools => is_list(answer),
        };
        if right {
            return Ok(());
        }
        let said: String = String::from_utf8_lossy(answer).chars().take(300).collect();
        Err(Fault::Run(format!("a call was not answered as it must be ({self:?}): {said}")))
    }
}

async fn open(plan: &Plan, shown: &Shown) -> Result<Vec<Caller>, Fault> {
    if plan.callers == 0 || plan.callers > OPEN_MAX {
        return Err(Fault::Run(format!("the number of callers is 1 to {OPEN_MAX}")));
    }
    let mut callers = Vec::with_capacity(plan.callers);
    for place in 0..plan.callers {
        let mut connection = Connection::open(plan.address).await?;
        if let Some(token) = shown.first() {
            connection.shows(token);
        }
        let (shown, names) = (shown.clone(), Names::new()?);
        callers.push(Caller { place, connection, shown, names, rounds: Vec::new() });
    }
    Ok(callers)
}

/// Lets every caller do something, all at once.
async fn together<F, W>(callers: Vec<Caller>, what: F) -> Result<Vec<Caller>, Fault>
where
    F: Fn(Caller) -> W,
    W: Future<Output = Result<Caller, Fault>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for caller in callers {
        tasks.spawn(what(caller));
    }
    let mut back = Vec::new();
    while let Some(done) = tasks.join_next().await {
        back.push(done.map_err(|error| died(&error))??);
    }
    back.sort_by_key(|caller| caller.place);
    Ok(back)
}

fn died(error: &tokio::task::JoinError) -> Fault {
    Fault::Run(format!("a caller died: {error}"))
}

/// Starts so many workflows, each on its own unit.
async fn start(form: Form, mut caller: Caller, each: usize) -> Result<Caller, Fault> {
    caller.rounds.clear();
    for n in 0..each {
        let unit = 1 + caller.place * each + n;
        let round = Round::start_as(form, &mut caller.connection, unit, &mut caller.names).await?;
        caller.rounds.push(round);
    }
    Ok(caller)
}

async fn finish(mut caller: Caller) -> Result<Caller, Fault> {
    for round in &caller.rounds {
        round.finish(&mut caller.connection).await?;
    }
    Ok(caller)
}

/// How the calls of a phase end.
#[derive(Debug, Clone, Copy)]
struct Until {
    /// What each must be answered with.
    wanted: Wanted,
    /// The phase is over after this time.
    left: Duration,
    /// Send the rest when it is over: a workflow has to be finished.
    rest: bool,
}

/// Lets every caller send its calls, all at once, and counts those that were answered before the first caller was done.
async fn phase(
    plan: &Plan,
    callers: Vec<Caller>,
    calls: &[Vec<Call>],
    until: Until,
) -> Result<(Vec<Caller>, Sum), Fault> {
    let end: End = Arc::default();
    let gate = Arc::new(Barrier::new(callers.len() + 1));
    let mut tasks = JoinSet::new();
    for (caller, calls) in callers.into_iter().zip(calls.iter().cloned()) {
        let stop = Stop { end: Arc::clone(&end), until, plan: *plan };
        let gate = Arc::clone(&gate);
        tasks.spawn(async move {
            gate.wait().await;
            call_all(caller, calls, stop).await
        });
    }
    let begun = Moment::now(plan)?;
    gate.wait().await;
    let (mut back, mut sum) = (Vec::new(), Sum::default());
    while let Some(done) = tasks.join_next().await {
        let (caller, samples) = done.map_err(|error| died(&error))??;
        back.push(caller);
        sum.samples.extend(samples);
    }
    back.sort_by_key(|caller| caller.place);
    if let Some(end) = end.get() {
        sum.time = end.at.saturating_duration_since(begun.at);
        sum.server = end.server.saturating_sub(begun.server);
        sum.client = end.client.saturating_sub(begun.client);
    }
    Ok((back, sum))
}

/// When a phase is over.
#[derive(Debug)]
struct Stop {
    end: End,
    until: Until,
    plan: Plan,
}

impl Stop {
    fn is_over(&self) -> bool {
        self.end.get().is_some()
    }

    /// Ends the phase, unless somebody has.
    fn end(&self) -> Result<(), Fault> {
        if !self.is_over() {
            // An error means that somebody was faster.
            let _ = self.end.set(Moment::now(&self.plan)?);
        }
        Ok(())
    }
}

async fn call_all(
    mut caller: Caller,
    calls: Vec<Call>,
    stop: Stop,
) -> Result<(Caller, Samples), Fault> {
    let (begun, mut samples) = (Instant::now(), Samples::default());
    let Until { wanted, left, rest } = stop.until;
    for call in calls {
        if stop.is_over() && !rest {
            break;
        }
        if let Some(token) = caller.shown.next() {
            caller.connection.shows(token);
        }
        let sent = Instant::now();
        let answer = caller.connection.call(call).await?;
        let time = sent.elapsed();
        wanted.check(&answer)?;
        if !stop.is_over() {
            samples.push(time);
            if begun.elapsed() >= left {
                stop.end()?;
            }
        }
    }
    stop.end()?;
    Ok((caller, samples))
}

#[cfg(test)]
mod tests {
    use super::Wanted;

    #[test]
    fn an_answer_that_is_another_ends_the_load() {
        let list = br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}]}}"#;
        let again = br#"{"result":{"structuredContent":{"duplicate":true,"outcome":"recorded"}}}"#;
        for (wanted, right, wrong) in [
            (Wanted::Tools, &list[..], &again[..]),
            (Wanted::Duplicate, &again[..], &list[..]),
            (Wanted::Outcome("recorded"), &again[..], &list[..]),
        ] {
            assert!(wanted.check(right).is_ok(), "{wanted:?}");
            assert!(wanted.check(wrong).is_err(), "{wanted:?}");
        }
    }
}
