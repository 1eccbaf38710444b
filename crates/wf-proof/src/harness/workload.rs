//! Callers that work one pump inspection after another, against a server that may vanish and come back.
//!
//! They start on assets of their own and on contended ones, submit, confirm what was read back, correct, skip, report
//! problems, decide on blocks, finish or give up; now and then they repeat a call, send a used key with another payload,
//! read, or carry on with somebody else's work. Everything random follows from the seed of the [`Plan`]. They judge
//! nothing: every attempt goes into the recorder, and the audit judges.
//!
//! Where the plan names people, each caller is one of them, and work changes hands too.
//!
//! Files: `caller` is one caller and how it makes a call, `work` what it does next, `hand_over` what of that is about whose
//! work it is, `values` what a person answers, `procedure` what they work.

mod caller;
mod hand_over;
mod procedure;
mod values;
mod work;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use wf_testkit::audit::history::{Attempt, Outcome};

use super::client::Client;
use super::gate::Gate;
use super::line::{Http, Line};
use super::record::Recorder;
use crate::fault::Fault;

use caller::Caller;
pub use procedure::{hurried, talkative};

/// What a caller does about a call whose outcome it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// Waits for the server and sends the same call again, with the same key, until it knows.
    Settle,
    /// Leaves it unknown and goes on with what the server says the workflow is like.
    Leave,
}

/// What the callers do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many there are.
    pub callers: u32,
    /// Everything random follows from it.
    pub seed: u64,
    /// What they do about unknown outcomes.
    pub unknown: Unknown,
    /// Half of the starts are on one of so many assets; the other half on an asset of its own.
    pub contended: u32,
    /// How long a call may be repeated before it is left unknown after all.
    pub patience: Duration,
    /// Who the callers are, in turns; the one principal of a server without authentication when there are none.
    pub people: Vec<Someone>,
    /// How often a caller leaves an order in the middle, of one.
    pub walks_away: f64,
}

/// One of the people that callers are.
#[derive(Debug, Clone)]
pub struct Someone {
    /// As whom the server knows them: `user:<subject>`.
    pub subject: String,
    /// What they send to be known.
    pub token: String,
}

impl Plan {
    /// So many callers that settle what they do not know, four contended assets, two minutes of patience.
    #[must_use]
    pub fn new(callers: u32, seed: u64) -> Self {
        Self {
            callers,
            seed,
            unknown: Unknown::Settle,
            contended: 4,
            patience: Duration::from_secs(120),
            people: Vec::new(),
            walks_away: 0.0,
        }
    }

    /// Who the caller of this number is.
    fn person(&self, number: u32) -> Option<&Someone> {
        let number = usize::try_from(number).ok()?;
        self.people.get(number.checked_rem(self.people.len())?)
    }
}

/// What the callers are to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Work,
    /// Bring the call in hand to its end, then stop.
    Finish,
    /// Stop now; what is in flight stays unknown.
    Leave,
}

/// Tells the callers of one workload. No `watch` channel: that wakes those who wait in an order of chance, which a
/// simulation could not repeat.
#[derive(Debug, Clone)]
struct Orders {
    phase: Arc<Mutex<Phase>>,
    leave: Arc<Notify>,
}

impl Orders {
    fn new() -> Self {
        Self { phase: Arc::new(Mutex::new(Phase::Work)), leave: Arc::default() }
    }

    fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, phase: Phase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
        if phase == Phase::Leave {
            self.leave.notify_waiters();
        }
    }

    /// Waits until they are to leave.
    async fn leave(&self) {
        loop {
            let leave = self.leave.notified();
            if self.phase() == Phase::Leave {
                return;
            }
            leave.await;
        }
    }
}

/// Callers at work on a runtime, which must outlive them.
#[derive(Debug)]
pub struct Callers {
    plan: Plan,
    recorder: Arc<Recorder>,
    running: JoinSet<()>,
    orders: Orders,
    acknowledged: Arc<AtomicU64>,
}

impl Callers {
    /// None yet.
    #[must_use]
    pub fn new(plan: &Plan, recorder: &Arc<Recorder>) -> Self {
        Self {
            plan: plan.clone(),
            recorder: Arc::clone(recorder),
            running: JoinSet::new(),
            orders: Orders::new(),
            acknowledged: Arc::default(),
        }
    }

    /// The caller of this number begins to work, over this line.
    pub fn spawn(&mut self, number: u32, line: Box<dyn Line>, on: &Handle) {
        let caller = Caller::new(
            &self.plan,
            number,
            line,
            self.orders.clone(),
            Arc::clone(&self.recorder),
            Arc::clone(&self.acknowledged),
        );
        self.running.spawn_on(caller.run(), on);
    }

    /// Lets every caller finish the call in hand, and waits for them: somebody must be there to call.
    ///
    /// # Errors
    /// When a caller broke.
    pub async fn finish(self) -> Result<(), Fault> {
        self.end(Phase::Finish).await
    }

    async fn end(mut self, how: Phase) -> Result<(), Fault> {
        self.orders.give(how);
        while let Some(ended) = self.running.join_next().await {
            ended.map_err(|error| Fault::Run(format!("a caller broke: {error}")))?;
        }
        Ok(())
    }
}

/// Callers at work, on threads of their own. Dropping it leaves what is in flight unknown, as [`Workload::leave`] does.
#[derive(Debug)]
pub struct Workload {
    // Declared before the runtime: aborted by its drop, and that needs a runtime.
    callers: Callers,
    runtime: Runtime,
}

impl Workload {
    /// Starts the callers; they wait while the gate is closed. Keys are unique within a recorder: use one recorder for
    /// all workloads on one database.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn start(plan: &Plan, gate: &Gate, recorder: &Arc<Recorder>) -> Result<Self, Fault> {
        Self::over(plan, recorder, |_, token| Box::new(Http::new(gate.clone(), token)))
    }

    /// The same where each caller has its own way: `line` makes it, of the number of a caller and its token.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn over(
        plan: &Plan,
        recorder: &Arc<Recorder>,
        line: impl Fn(u32, Option<String>) -> Box<dyn Line>,
    ) -> Result<Self, Fault> {
        let runtime = runtime()?;
        let mut callers = Callers::new(plan, recorder);
        for number in 0..plan.callers {
            let token = plan.person(number).map(|person| person.token.clone());
            callers.spawn(number, line(number, token), runtime.handle());
        }
        Ok(Self { callers, runtime })
    }

    /// Calls that something was recorded for, as far as the callers know; each key once.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.callers.acknowledged.load(Ordering::Relaxed)
    }

    /// Lets every caller finish the call in hand, and waits for them: the server must be there, or come back.
    ///
    /// # Errors
    /// When a caller broke.
    pub fn finish(self) -> Result<(), Fault> {
        let Self { callers, runtime } = self;
        runtime.block_on(callers.finish())
    }

    /// Ends the callers now. Calls in flight stay unknown.
    ///
    /// # Errors
    /// When a caller broke.
    pub fn leave(self) -> Result<(), Fault> {
        let Self { callers, runtime } = self;
        runtime.block_on(callers.end(Phase::Leave))
    }
}

fn runtime() -> Result<Runtime, Fault> {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Fault::io("the threads of the callers"))
}

/// True if the outcome says what became of the call: done, or refused for good. An answer that asks for the same call
/// again says neither.
#[must_use]
pub fn is_definite(outcome: &Outcome) -> bool {
    outcome.result().is_some_and(|result| is_definite_result(&result))
}

fn is_definite_result(result: &Value) -> bool {
    result.pointer("/error/retry").and_then(Value::as_str) != Some("same_call")
}

/// True if the result of a tool that writes says that something was recorded under the key of the call.
#[must_use]
pub fn is_recorded(result: &Value) -> bool {
    let outcome = result.get("outcome").and_then(Value::as_str).unwrap_or_default();
    result.get("ok") == Some(&Value::Bool(true))
        && !matches!(outcome, "needs_confirmation" | "needs_input" | "joined")
}

/// The last attempt of every call that is not known to be done or refused, in the order of the calls.
#[must_use]
pub fn unknown(attempts: &[Attempt]) -> Vec<Attempt> {
    let mut last: BTreeMap<u64, &Attempt> = BTreeMap::new();
    for attempt in attempts {
        let newest = last.entry(attempt.call).or_insert(attempt);
        if newest.sent_ns < attempt.sent_ns {
            *newest = attempt;
        }
    }
    last.into_values()
        .filter(|attempt| {
            attempt.arguments.contains_key("idempotency_key") && !is_definite(&attempt.outcome)
        })
        .cloned()
        .collect()
}

/// Sends every call whose outcome is unknown again, with its key, until it is known. For after the callers are gone; the
/// server must be up. Answers how many calls there were, and how many of them turn out to have been done before.
///
/// # Errors
/// When a call does not become definite within the patience.
pub fn resolve(gate: &Gate, recorder: &Recorder, patience: Duration) -> Result<Resolved, Fault> {
    let open = unknown(&recorder.attempts());
    runtime()?.block_on(async {
        let mut resolved = Resolved { calls: open.len(), done_before: 0 };
        for attempt in open {
            let work = again(gate, recorder, &attempt);
            let result = tokio::time::timeout(patience, work).await.map_err(|_| {
                Fault::Run(format!("call {} of {} stays unknown", attempt.call, attempt.tool))
            })?;
            let before =
                is_recorded(&result) && result.get("duplicate") == Some(&Value::Bool(true));
            resolved.done_before += usize::from(before);
        }
        Ok(resolved)
    })
}

/// What [`resolve`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    /// Calls whose outcome was unknown.
    pub calls: usize,
    /// Those of them that had been committed without being acknowledged.
    pub done_before: usize,
}

/// Repeats one call until it is definite; the result.
async fn again(gate: &Gate, recorder: &Recorder, open: &Attempt) -> Value {
    let mut pause = caller::PAUSE_MIN;
    loop {
        let pass = gate.pass().await;
        let mut client = Client::new(pass.address);
        let sent_ns = recorder.now_ns();
        let outcome = client.call(&open.tool, &open.arguments).await;
        let result = outcome.result().filter(is_definite_result);
        recorder.keep(Attempt { sent_ns, over_ns: recorder.now_ns(), outcome, ..open.clone() });
        drop(pass);
        if let Some(result) = result {
            return result;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(caller::PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wf_testkit::audit::history::{Attempt, Outcome};

    use super::{is_definite, is_recorded, unknown};

    fn answered(result: &serde_json::Value) -> Outcome {
        Outcome::Answered { text: result.to_string() }
    }

    fn attempt(call: u64, sent_ns: u64, outcome: Outcome) -> Attempt {
        let arguments = json!({ "idempotency_key": format!("k{call}") });
        Attempt {
            call,
            caller: 0,
            tenant: "default".to_owned(),
            actor: "user:local".to_owned(),
            tool: "submit_step".to_owned(),
            arguments: arguments.as_object().cloned().unwrap_or_default(),
            sent_ns,
            over_ns: sent_ns + 1,
            outcome,
        }
    }

    #[test]
    fn an_answer_that_asks_for_the_same_call_is_not_definite() {
        let again = json!({ "ok": false, "error": { "code": "INTERNAL", "retry": "same_call" } });
        let refused = json!({ "ok": false, "error": { "retry": "changed_call" } });
        assert!(!is_definite(&answered(&again)));
        assert!(is_definite(&answered(&refused)));
        assert!(!is_definite(&Outcome::Shed { status: 503 }));
        assert!(!is_definite(&Outcome::NotSent));
    }

    #[test]
    fn asking_to_confirm_records_nothing() {
        assert!(is_recorded(&json!({ "ok": true, "outcome": "recorded" })));
        for outcome in ["needs_confirmation", "needs_input", "joined"] {
            assert!(!is_recorded(&json!({ "ok": true, "outcome": outcome })), "{outcome}");
        }
        assert!(!is_recorded(&json!({ "ok": false, "outcome": "error" })));
    }

    #[test]
    fn a_call_is_unknown_until_its_last_attempt_says_something() {
        let lost = || Outcome::Unknown { why: "reset".to_owned() };
        let done = answered(&json!({ "ok": true, "outcome": "recorded" }));
        let attempts = [
            attempt(1, 10, lost()),
            attempt(2, 15, done.clone()),
            attempt(1, 20, done),
            attempt(3, 30, lost()),
        ];
        let open: Vec<u64> = unknown(&attempts).iter().map(|attempt| attempt.call).collect();
        assert_eq!(open, [3]);
    }
}
