//! One caller: how it makes a call, what it writes down, and when it sends a call again. `work` decides what to call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};
use wf_testkit::audit::history::Outcome;

use crate::harness::line::Line;
use crate::harness::record::{Call, Recorder};

use super::{Orders, Phase, Plan, Unknown, is_definite_result, is_recorded, values};

/// First and longest pause before a call is sent again.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(2);
pub(super) const PAUSE_MAX: Duration = Duration::from_millis(200);
/// How often a call is confirmed: a token is good for the value it was given for, so once is enough.
const CONFIRMS_MAX: u32 = 3;

/// The workload was told to leave.
#[derive(Debug)]
pub(super) struct Gone;

/// What is known of a call: its definite result, or nothing.
pub(super) type Known = Result<Option<Value>, Gone>;

/// One caller.
pub(super) struct Caller {
    pub(super) plan: Plan,
    pub(super) number: u32,
    pub(super) random: StdRng,
    /// Inspections begun so far.
    pub(super) worked: u64,
    line: Box<dyn Line>,
    orders: Orders,
    recorder: Arc<Recorder>,
    acknowledged: Arc<AtomicU64>,
}

impl Caller {
    pub(super) fn new(
        plan: &Plan,
        number: u32,
        line: Box<dyn Line>,
        orders: Orders,
        recorder: Arc<Recorder>,
        acknowledged: Arc<AtomicU64>,
    ) -> Self {
        // A stream of its own for each caller, whatever the others do.
        let random = StdRng::seed_from_u64(plan.seed ^ (u64::from(number) << 40));
        let plan = plan.clone();
        Self { plan, number, random, worked: 0, line, orders, recorder, acknowledged }
    }

    pub(super) async fn run(mut self) {
        while !self.is_over() {
            // Being told to leave is a way to end.
            if self.one_order().await.is_err() {
                return;
            }
        }
    }

    /// Told to stop, one way or the other.
    pub(super) fn is_over(&self) -> bool {
        self.orders.phase() != Phase::Work
    }

    pub(super) fn chance(&mut self, of: f64) -> bool {
        self.random.random_bool(of)
    }

    /// A text that no other call of the recorder has.
    pub(super) fn unique(&self) -> String {
        format!("{:x}-{}", self.plan.seed, self.recorder.next_call())
    }

    /// A call of a tool that only reads.
    pub(super) async fn read(
        &mut self,
        tool: &'static str,
        arguments: Map<String, Value>,
    ) -> Known {
        let call = Call { number: self.recorder.next_call(), tool, arguments };
        self.settle(&call).await
    }

    /// A call of a tool that writes, under a key of its own or the one given, confirmed as often as it is asked for;
    /// sometimes repeated, or its key used for something else, afterwards.
    pub(super) async fn write(
        &mut self,
        tool: &'static str,
        mut arguments: Map<String, Value>,
        key: Option<String>,
    ) -> Known {
        let number = self.recorder.next_call();
        let key = key.unwrap_or_else(|| format!("{:x}-{number}", self.plan.seed));
        arguments.insert("idempotency_key".to_owned(), Value::from(key));
        let mut call = Call { number, tool, arguments };
        let mut result = self.settle(&call).await?;
        for _ in 0..CONFIRMS_MAX {
            let token = result.as_ref().and_then(|r| r.pointer("/confirm/token"));
            let Some(token) = token else { break };
            call.arguments.insert("confirm_token".to_owned(), token.clone());
            result = self.settle(&call).await?;
        }
        if result.as_ref().is_some_and(is_recorded) {
            self.acknowledged.fetch_add(1, Ordering::Relaxed);
            self.misbehave(&call).await?;
        }
        Ok(result)
    }

    /// What clients do to a call that was answered: repeat it, or use its key for something else.
    async fn misbehave(&mut self, call: &Call) -> Result<(), Gone> {
        if self.chance(0.08) {
            self.settle(call).await?;
        }
        if self.chance(0.04) {
            let arguments = values::other_payload(call.tool, &call.arguments);
            let other = Call { number: self.recorder.next_call(), tool: call.tool, arguments };
            self.settle(&other).await?;
        }
        Ok(())
    }

    /// Attempts until the outcome is definite, or as many as the plan wants.
    async fn settle(&mut self, call: &Call) -> Known {
        let end = Instant::now() + self.plan.patience;
        let mut pause = PAUSE_MIN;
        loop {
            let outcome = self.attempt(call).await?;
            let result = outcome.result().filter(is_definite_result);
            if result.is_some() {
                return Ok(result);
            }
            let sent = outcome != Outcome::NotSent;
            if (sent && self.plan.unknown == Unknown::Leave) || Instant::now() > end {
                return Ok(None);
            }
            unless_gone(&self.orders, sleep(pause)).await?;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// One attempt, written down, once there is somebody to call.
    async fn attempt(&mut self, call: &Call) -> Result<Outcome, Gone> {
        unless_gone(&self.orders, self.line.ready()).await?;
        let sent_ns = self.recorder.now_ns();
        let outcome = unless_gone(&self.orders, self.line.call(call))
            .await
            .unwrap_or_else(|Gone| Outcome::Unknown { why: "the caller went away".to_owned() });
        let actor = self.actor();
        self.recorder.attempted_by(&actor, self.number, call, sent_ns, outcome.clone());
        self.line.over();
        Ok(outcome)
    }
}

/// Waits for it, unless the workload is told to leave.
async fn unless_gone<T>(orders: &Orders, work: impl Future<Output = T>) -> Result<T, Gone> {
    tokio::select! {
        biased;
        () = orders.leave() => Err(Gone),
        done = work => Ok(done),
    }
}
