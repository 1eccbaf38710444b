//! A server's way to the orchestrator, as Step Functions is one: calls are throttled, lose their answers, are done twice or
//! arrive late, and what is described may be seconds out of date.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use wf_core::ports::{Answered, Execution, ExecutionPort, Told, UnclearCall};
use wf_core::reconcile::Run;

use super::Broken;
use super::life;
use super::outside::{Answer, Execution as Named, Outside, State};
use super::sea::{Fate, Sea};
use super::wire::Wire;

/// How far out of date a description may be, in milliseconds; the rules count with a minute.
const LAG_MAX_MS: u64 = 20_000;

/// One server's way. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Executions {
    pub(super) wire: Wire,
    pub(super) outside: Outside,
}

fn unclear(kind: &'static str) -> UnclearCall {
    UnclearCall { kind, why: "the orchestrator of the simulation".to_owned() }
}

impl Executions {
    fn sea(&self) -> &Sea {
        &self.wire.sea
    }

    /// A call that changes something: once, twice, later, or not at all. Done twice, the answer is the second.
    async fn call<T>(
        &self,
        what: &str,
        fence: u64,
        call: impl Fn(&mut State) -> T + Send + 'static,
    ) -> Result<T, UnclearCall> {
        self.wire.pass().await;
        let answer = match self.wire.fate(format_args!("{what} {fence}")) {
            Fate::Fine => {
                let first = call(&mut self.outside.lock());
                let doubled = self.sea().loses();
                Ok(if doubled { call(&mut self.outside.lock()) } else { first })
            }
            Fate::Before => Err(unclear("throttled")),
            Fate::After => {
                call(&mut self.outside.lock());
                Err(unclear("silent"))
            }
            Fate::Later => {
                let arrives = move |state: &mut State| {
                    call(state);
                };
                self.outside.lock().late(arrives);
                Err(unclear("silent"))
            }
        };
        self.wire.pass().await;
        answer
    }
}

#[async_trait]
impl ExecutionPort for Executions {
    async fn start(&self, execution: &Execution<'_>) -> Result<Run, UnclearCall> {
        let (workflow, fence) = (execution.workflow_id.clone(), execution.fence);
        let (sea, outside) = (self.sea().clone(), self.outside.clone());
        let new = move |state: &mut State| {
            let taken = state.named(&workflow, fence).map(Named::run);
            if let Some(run) = taken
                && !state.is(Broken::NamesReused)
            {
                return run;
            }
            state.changes += 1;
            let number = state.executions.len();
            state.begin(&workflow, fence, false);
            if let Some(new) = state.executions.get(number) {
                life::begins(sea.clone(), outside.clone(), number, new);
            }
            Run::Running
        };
        self.call("start", fence, new).await
    }

    async fn describe(&self, execution: &Execution<'_>) -> Result<Run, UnclearCall> {
        let fence = execution.fence;
        self.wire.pass().await;
        let fate = self.wire.fate(format_args!("describe {fence}"));
        let lag = if self.sea().loses() { self.sea().below(LAG_MAX_MS) } else { 0 };
        let at = Instant::now().checked_sub(Duration::from_millis(lag));
        let seen = self.outside.lock().seen(execution.workflow_id, fence, at);
        self.wire.pass().await;
        if fate == Fate::Fine { Ok(seen) } else { Err(unclear("throttled")) }
    }

    async fn stop(&self, execution: &Execution<'_>, _: &str) -> Result<(), UnclearCall> {
        let (workflow, fence) = (execution.workflow_id.clone(), execution.fence);
        let stop = move |state: &mut State| {
            state.changes += 1;
            state.stop(&workflow, fence);
        };
        self.call("stop", fence, stop).await
    }

    async fn answer(&self, token: &str, told: &Told<'_>) -> Result<Answered, UnclearCall> {
        let (token, revision) = (token.to_owned(), told.revision);
        let answer = Answer { ends: told.ends, revision, timeout_s: told.timeout_s };
        let tell = move |state: &mut State| {
            state.changes += 1;
            if state.tell(&token, answer) { Answered::Taken } else { Answered::Dead }
        };
        self.call("answer", revision, tell).await
    }
}
