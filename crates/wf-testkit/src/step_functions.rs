//! AWS Step Functions as a strict double: the control plane of STANDARD state machines, in virtual time, in the process.
//!
//! It speaks the JSON protocol: a target (`AWSStepFunctions.StartExecution`) and a body in, a status and a body out. What
//! it executes are the states that the product's definition uses; anything else is refused when the definition arrives.
//! Where the documentation leaves room it takes the reading that is harder for a client. The rules, each with a test in
//! `tests/it/step_functions*.rs`:
//!
//! - Names have 1 to 80 characters of those that are allowed, and are unique in a state machine until 90 days after the end.
//! - A start under the name of an execution that runs with the same input, byte for byte, is answered with that execution;
//!   any other start under a name that is taken is `ExecutionAlreadyExists`.
//! - A token counts until it is answered, its attempt is over or its execution has ended: `TaskTimedOut` afterwards. Each
//!   attempt has a new one. A text that never was a token is `InvalidToken`.
//! - A task that waits for longer than its time-out fails with `States.Timeout`. A time-out that is missing, or no positive
//!   whole number, is an error that no state catches.
//! - Event 25,000 of a history is its end; an execution runs for a year at most; data has 262,144 bytes at most.
//! - What Describe and List see may be old ([`StepFunctions::lags`]), and they are refused when they come too often.
//! - Executions go on after the answer to the call that moved them ([`StepFunctions::run`]), not before.
//! - An execution keeps the definition that it started with. Deleting a state machine ends its executions at their next
//!   transition, and makes them unknown.
//!
//! Sources: the [API reference](https://docs.aws.amazon.com/step-functions/latest/apireference/), the
//! [quotas](https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html) and the
//! [states language](https://states-language.net/spec.html).

mod api;
mod buckets;
mod definition;
mod execution;
mod path;
mod plane;
mod requests;
mod run;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use wf_core::ports::ClockPort as _;

use crate::clock::ManualClock;
use plane::Plane;

pub use api::Answer;
pub use execution::Status;

/// The table that state machines write to.
#[async_trait]
pub trait Table: Debug + Send + Sync {
    /// Performs an operation of DynamoDB (`UpdateItem`) with a request in its JSON form.
    async fn call(&self, operation: &str, request: &Value) -> Result<Value, TableError>;
}

/// An error of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableError {
    /// Its name: `ConditionalCheckFailedException`.
    pub code: String,
    /// What is said about it.
    pub message: String,
}

/// An execution as a test sees it, without lag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// How it is.
    pub status: Status,
    /// Its input, as it was sent.
    pub input: String,
    /// Why it ended, if somebody said so.
    pub cause: Option<String>,
}

/// The control plane. A clone is the same one.
#[derive(Debug, Clone)]
pub struct StepFunctions {
    clock: ManualClock,
    table: Arc<dyn Table>,
    plane: Arc<Mutex<Plane>>,
    /// Executions go on for one caller at a time.
    running: Arc<tokio::sync::Mutex<()>>,
}

impl StepFunctions {
    /// An account without state machines, with this clock, that writes to this table.
    #[must_use]
    pub fn new(clock: ManualClock, table: Arc<dyn Table>) -> Self {
        Self { clock, table, plane: Arc::default(), running: Arc::default() }
    }

    fn plane(&self) -> MutexGuard<'_, Plane> {
        self.plane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request: `target` is the header `x-amz-target`, with or without the name of the service.
    #[must_use]
    pub fn call(&self, target: &str, body: &Value) -> Answer {
        let action = target.rsplit('.').next().unwrap_or_default();
        api::call(&mut self.plane(), action, body, self.clock.now())
    }

    /// Executions go on until each of them waits or has ended.
    pub async fn run(&self) {
        let _alone = self.running.lock().await;
        loop {
            let call = self.plane().next_call(self.clock.now());
            let Some(call) = call else { return };
            let answer = self.table.call(call.operation, &call.request).await;
            self.plane().answered(call.number, answer, self.clock.now());
        }
    }

    /// Lets time pass, from timer to timer: at each, executions go on.
    pub async fn pass_time(&self, ms: i64) {
        self.run().await;
        let until = self.clock.now().plus_ms(ms);
        loop {
            let timer = self.plane().next_timer();
            let next = timer.filter(|timer| *timer <= until);
            let step = next.unwrap_or(until).since_ms(self.clock.now()).max(0);
            self.clock.advance(u64::try_from(step).unwrap_or_default());
            if next.is_none() {
                return;
            }
            self.run().await;
        }
    }

    /// The next `calls` of Describe and List see executions as they are now.
    pub fn lags(&self, calls: u32) {
        self.plane().lags(calls);
    }

    /// All executions, by name.
    #[must_use]
    pub fn executions(&self) -> Vec<Seen> {
        let seen = |execution: &execution::Execution| Seen {
            name: execution.name.clone(),
            status: execution.status(),
            input: execution.input.clone(),
            cause: execution.end.as_ref().and_then(|end| end.cause.clone()),
        };
        self.plane().executions.values().map(seen).collect()
    }

    /// The names of executions that run.
    #[must_use]
    pub fn running(&self) -> Vec<String> {
        let all = self.executions().into_iter();
        all.filter(|seen| seen.status == Status::Running).map(|seen| seen.name).collect()
    }

    /// The events of the execution with this name; none of one that is not there.
    #[must_use]
    pub fn history(&self, name: &str) -> Vec<&'static str> {
        let plane = self.plane();
        let found = plane.executions.values().find(|execution| execution.name == name);
        found.map(|execution| execution.history.clone()).unwrap_or_default()
    }

    /// How often each API was called since the last time.
    #[must_use]
    pub fn take_calls(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.plane().took)
    }
}
