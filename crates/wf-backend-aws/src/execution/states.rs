//! The client of Step Functions: starts, asks, stops and answers executions, and says what came of it in the words of the
//! rules ([`wf_core::reconcile`]).
//!
//! Each call is sent once. One that was throttled, or of which nothing is known, is [`Trouble`], and trouble is always
//! [`Observation::Unclear`]: the reconciler does nothing now and looks again later. Neighbours: `name` (names and inputs of
//! executions), `trouble` (the mapping of errors), `pass`, which calls.

mod name;
#[cfg(test)]
mod tests;
mod trouble;

use std::num::NonZeroU32;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sfn::Client;
use aws_sdk_sfn::operation::describe_execution::DescribeExecutionError;
use aws_sdk_sfn::operation::start_execution::StartExecutionError;
use aws_sdk_sfn::operation::stop_execution::StopExecutionError;
use aws_sdk_sfn::types::ExecutionStatus;
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use serde_json::{Value, json};
use tokio::time::Instant;
use wf_core::engine::pass::in_words;
use wf_core::ports::{Answered, Execution, ExecutionPort, Told, UnclearCall};
use wf_core::reconcile::Run;

use super::definition::COMPLETED;
use crate::client;
use crate::config::AwsConfig;
use crate::fault::Cause;

pub(crate) use name::Machine;
pub(crate) use trouble::Trouble;

/// Executions of one page of a list.
const PAGE: i32 = 1_000;
/// DescribeExecution refills at 15 calls a second in most regions, for all that run in the account
/// ([quotas](https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html)): we take a third of it.
const LOOKS_PER_SECOND: NonZeroU32 = NonZeroU32::MIN.saturating_add(4);
/// How many looks may follow each other at once.
const LOOKS_BURST: NonZeroU32 = NonZeroU32::MIN.saturating_add(29);
/// How long a look waits for our allowance.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);

/// A state machine, and how to talk about its executions. Cheap to share; one for each process, so that its looks are
/// counted together.
#[derive(Debug)]
pub(crate) struct States {
    client: Client,
    machine: Machine,
    looks: DefaultDirectRateLimiter,
}

/// An execution of the state machine that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) arn: String,
    pub(crate) name: String,
}

impl States {
    /// The state machine of the configuration, for the store with this id; none when none is configured.
    ///
    /// # Errors
    /// [`Trouble::Refused`] when its ARN is none.
    pub(crate) async fn connect(
        config: &AwsConfig,
        store_id: &str,
    ) -> Result<Option<Self>, Trouble> {
        let Some(arn) = &config.state_machine_arn else { return Ok(None) };
        let machine = Machine::parse(arn, store_id, &config.table);
        let machine = machine.ok_or_else(|| {
            Trouble::Refused(Cause::said(format!("not the ARN of a state machine: {arn}")))
        })?;
        let looks =
            RateLimiter::direct(Quota::per_second(LOOKS_PER_SECOND).allow_burst(LOOKS_BURST));
        Ok(Some(Self { client: client::connect_states(config).await, machine, looks }))
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Starts an execution under its own name, and tells how it is: running, whether this call started it or one before;
    /// or what has the name.
    ///
    /// # Errors
    /// [`Trouble`]: nothing is known.
    pub(crate) async fn start(&self, execution: &Execution<'_>) -> Result<Run, Trouble> {
        let request = self
            .client
            .start_execution()
            .state_machine_arn(self.machine.arn())
            .name(self.machine.name(execution))
            .input(self.machine.input(execution).to_string());
        let sent = counted("StartExecution", request.send().await);
        let Err(error) = sent else { return Ok(Run::Running) };
        if !error.as_service_error().is_some_and(StartExecutionError::is_execution_already_exists) {
            return Err(Trouble::of(error));
        }
        match self.describe(execution).await? {
            // It cannot be there and not be there.
            Run::Absent => {
                Err(Trouble::contradictory("an execution of the name exists, and does not"))
            }
            run @ (Run::Running | Run::Foreign | Run::Closed) => Ok(run),
        }
    }

    /// Asks how an execution is.
    ///
    /// # Errors
    /// [`Trouble`]: nothing is known, or our allowance of looks is used up for now.
    pub(crate) async fn describe(&self, execution: &Execution<'_>) -> Result<Run, Trouble> {
        let arn = self.machine.execution_arn(&self.machine.name(execution));
        let Some(looked) = self.look(&arn).await? else { return Ok(Run::Absent) };
        run(&looked, &self.machine.input(execution))
    }

    /// The input of an execution that runs; none when there is none, or it ended.
    ///
    /// # Errors
    /// As [`describe`](Self::describe).
    pub(crate) async fn input_of(&self, listed: &Listed) -> Result<Option<Value>, Trouble> {
        let Some(looked) = self.look(&listed.arn).await? else { return Ok(None) };
        Ok(if looked.status == ExecutionStatus::Running { looked.input } else { None })
    }

    async fn look(&self, arn: &str) -> Result<Option<Looked>, Trouble> {
        self.allowed().await?;
        let request = self.client.describe_execution().execution_arn(arn);
        match counted("DescribeExecution", request.send().await) {
            Ok(answer) => Ok(Some(Looked {
                input: answer.input().and_then(|input| serde_json::from_str(input).ok()),
                status: answer.status().clone(),
            })),
            Err(error) => {
                let gone = DescribeExecutionError::is_execution_does_not_exist;
                if error.as_service_error().is_some_and(gone) {
                    Ok(None)
                } else {
                    Err(Trouble::of(error))
                }
            }
        }
    }

    /// Waits until a look is allowed, but not for long.
    async fn allowed(&self) -> Result<(), Trouble> {
        let until = Instant::now() + LOOK_PATIENCE;
        while let Err(not_until) = self.looks.check() {
            let wait = not_until.wait_time_from(DefaultClock::default().now());
            if Instant::now() + wait > until {
                return Err(Trouble::spent());
            }
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }

    /// Stops an execution; what is over or was never there counts as stopped.
    ///
    /// # Errors
    /// [`Trouble`]: nothing is known.
    pub(crate) async fn stop(&self, execution: &Execution<'_>, cause: &str) -> Result<(), Trouble> {
        let arn = self.machine.execution_arn(&self.machine.name(execution));
        self.stop_arn(&arn, cause).await
    }

    /// As [`stop`](Self::stop).
    pub(crate) async fn stop_arn(&self, arn: &str, cause: &str) -> Result<(), Trouble> {
        let request = self.client.stop_execution().execution_arn(arn);
        let request = request.error("Checkpoint.Stopped").cause(cause);
        let sent = counted("StopExecution", request.send().await);
        let Err(error) = sent else { return Ok(()) };
        if error.as_service_error().is_some_and(StopExecutionError::is_execution_does_not_exist) {
            return Ok(());
        }
        match Trouble::of(error) {
            // What a stop of an execution that is over answers is not documented: look.
            trouble @ Trouble::Refused(_) => match self.look(arn).await? {
                Some(looked) if looked.status == ExecutionStatus::Running => Err(trouble),
                Some(_) | None => Ok(()),
            },
            trouble @ (Trouble::Throttled(_)
            | Trouble::Silent(_)
            | Trouble::Contradictory(_)
            | Trouble::NoMachine(_)
            | Trouble::Denied(_)) => Err(trouble),
        }
    }

    /// Answers a token.
    ///
    /// # Errors
    /// [`Trouble`]: nothing is known; the answer may have arrived.
    pub(crate) async fn answer(&self, token: &str, told: &Told<'_>) -> Result<Answered, Trouble> {
        let state = if told.ends { COMPLETED } else { told.state };
        let output = json!({
            "timeout": told.timeout_s,
            "state": state,
            "revision": told.revision,
        });
        let request = self.client.send_task_success().task_token(token).output(output.to_string());
        let sent = counted("SendTaskSuccess", request.send().await);
        let Err(error) = sent else { return Ok(Answered::Taken) };
        let dead = error.as_service_error().is_some_and(|error| {
            error.is_task_timed_out() || error.is_task_does_not_exist() || error.is_invalid_token()
        });
        if dead { Ok(Answered::Dead) } else { Err(Trouble::of(error)) }
    }

    /// Executions of the state machine that run, a page of them, and where the next page begins.
    ///
    /// # Errors
    /// [`Trouble`].
    pub(crate) async fn list(
        &self,
        after: Option<String>,
    ) -> Result<(Vec<Listed>, Option<String>), Trouble> {
        let request = self
            .client
            .list_executions()
            .state_machine_arn(self.machine.unqualified_arn())
            .status_filter(ExecutionStatus::Running)
            .max_results(PAGE)
            .set_next_token(after);
        let answer = counted("ListExecutions", request.send().await).map_err(Trouble::of)?;
        let next = answer.next_token.filter(|token| !token.is_empty());
        let listed = |one: aws_sdk_sfn::types::ExecutionListItem| Listed {
            arn: one.execution_arn,
            name: one.name,
        };
        Ok((answer.executions.into_iter().map(listed).collect(), next))
    }
}

#[async_trait]
impl ExecutionPort for States {
    async fn start(&self, execution: &Execution<'_>) -> Result<Run, UnclearCall> {
        Self::start(self, execution).await.map_err(|trouble| nothing_known(&trouble))
    }

    async fn describe(&self, execution: &Execution<'_>) -> Result<Run, UnclearCall> {
        Self::describe(self, execution).await.map_err(|trouble| nothing_known(&trouble))
    }

    async fn stop(&self, execution: &Execution<'_>, cause: &str) -> Result<(), UnclearCall> {
        Self::stop(self, execution, cause).await.map_err(|trouble| nothing_known(&trouble))
    }

    async fn answer(&self, token: &str, told: &Told<'_>) -> Result<Answered, UnclearCall> {
        Self::answer(self, token, told).await.map_err(|trouble| nothing_known(&trouble))
    }
}

fn nothing_known(trouble: &Trouble) -> UnclearCall {
    UnclearCall { kind: trouble.kind(), why: in_words(trouble) }
}

/// Tells the metrics of a call.
fn counted<T, E>(operation: &'static str, answer: Result<T, E>) -> Result<T, E> {
    let outcome = if answer.is_ok() { "ok" } else { "error" };
    let labels = [("operation", operation), ("outcome", outcome)];
    metrics::counter!("checkpoint_reconciler_calls_total", &labels).increment(1);
    answer
}

/// What DescribeExecution said.
struct Looked {
    input: Option<Value>,
    status: ExecutionStatus,
}

/// How an execution is that must have this input.
fn run(looked: &Looked, input: &Value) -> Result<Run, Trouble> {
    // Statuses are compared one by one: those that AWS adds later are not known to mean anything.
    let closed = [
        ExecutionStatus::Succeeded,
        ExecutionStatus::Failed,
        ExecutionStatus::Aborted,
        ExecutionStatus::TimedOut,
    ];
    if closed.contains(&looked.status) {
        return Ok(Run::Closed);
    }
    if looked.status != ExecutionStatus::Running {
        let what = format!("an execution has the status {}", looked.status.as_str());
        return Err(Trouble::contradictory(&what));
    }
    match &looked.input {
        Some(its) if its == input => Ok(Run::Running),
        Some(_) => Ok(Run::Foreign),
        None => Err(Trouble::contradictory("an execution runs, and its input is not shown")),
    }
}
