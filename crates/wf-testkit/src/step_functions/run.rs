//! How an execution goes on from state to state, until it waits for an answer, a token or a time.

use std::time::Duration;

use serde_json::{Value, json};
use wf_core::models::Timestamp;

use super::TableError;
use super::definition::{Choice, Fail, OPERATION, Pass, Retrier, State};
use super::execution::{DATA_BYTES_MAX, Execution, LIFE_MS, Phase, Place, Status};
use super::path::{self, Expression, Failure, Scope};

/// A call to the table that an execution waits for.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) number: u64,
    pub(super) operation: &'static str,
    pub(super) request: Value,
    /// The token that it hands on.
    pub(super) token: Option<String>,
}

/// Errors that no state catches.
const UNCATCHABLE: [&str; 2] = ["States.Runtime", "States.DataLimitExceeded"];

impl Execution {
    /// Goes on until it waits or has ended; a call that it makes on its way is returned, to be answered with
    /// [`Execution::answered`]. `dying`: its state machine is deleted, so its next transition is its end.
    pub(super) fn goes_on(&mut self, now: Timestamp, dying: bool, number: u64) -> Option<Call> {
        while self.is_running() {
            if now >= self.last_start().plus_ms(LIFE_MS) {
                self.ends(Status::TimedOut, None, (None, None), now);
                break;
            }
            let over = |until: Option<Timestamp>| until.is_some_and(|until| now >= until);
            match self.place.phase.clone() {
                Phase::Enter if dying => self.ends(Status::Aborted, None, (None, None), now),
                Phase::Enter => self.enters(now),
                Phase::Attempt => match self.calls(now, number) {
                    Ok(call) => {
                        self.note("TaskScheduled", now);
                        self.note("TaskStarted", now);
                        return self.is_running().then_some(call);
                    }
                    Err(failure) => self.failed(&failure, now),
                },
                Phase::Called { until, .. } | Phase::Waits { until, .. } if over(until) => {
                    self.note("TaskTimedOut", now);
                    self.failed(&Failure::new("States.Timeout", ""), now);
                }
                Phase::Pauses { until } if now >= until => self.place.phase = Phase::Attempt,
                Phase::Called { .. } | Phase::Waits { .. } | Phase::Pauses { .. } => break,
            }
        }
        None
    }

    fn enters(&mut self, now: Timestamp) {
        let Some(state) = self.state().cloned() else {
            self.fails("States.Runtime", "there is no such state", now);
            return;
        };
        match state {
            State::Pass(pass) => {
                self.note("PassStateEntered", now);
                match self.passed(&pass) {
                    Ok(output) => self.leaves("PassStateExited", pass.next, output, now),
                    Err(failure) => self.failed(&failure, now),
                }
            }
            State::Choice(choice) => {
                self.note("ChoiceStateEntered", now);
                match self.chosen(&choice) {
                    Ok(next) => {
                        let output = self.place.input.clone();
                        self.leaves("ChoiceStateExited", Some(next), output, now);
                    }
                    Err(failure) => self.failed(&failure, now),
                }
            }
            State::Task(task) => {
                self.note("TaskStateEntered", now);
                self.place.retries = vec![0; task.retry.len()];
                self.place.phase = Phase::Attempt;
            }
            State::Succeed(_) => {
                self.note("SucceedStateEntered", now);
                let output = self.place.input.clone();
                self.leaves("SucceedStateExited", None, output, now);
            }
            State::Fail(fail) => {
                self.note("FailStateEntered", now);
                let said = self.said(&fail);
                self.ends(Status::Failed, None, said, now);
            }
        }
    }

    fn passed(&self, pass: &Pass) -> Result<Value, Failure> {
        let context = self.context(None);
        let scope = Scope { input: &self.place.input, context: &context };
        let result = match (&pass.result, &pass.parameters) {
            (Some(result), _) => result.clone(),
            (None, Some(parameters)) => path::fill(parameters, scope)?,
            (None, None) => self.place.input.clone(),
        };
        path::put(&self.place.input, pass.result_path.as_deref(), result)
    }

    fn chosen(&self, choice: &Choice) -> Result<String, Failure> {
        for rule in &choice.choices {
            if self.look(&rule.variable)? == json!(rule.string_equals) {
                return Ok(rule.next.clone());
            }
        }
        let none = || Failure::new("States.NoChoiceMatched", "no choice matched");
        choice.default.clone().ok_or_else(none)
    }

    /// A path that is not there is an error that nothing catches: of a choice, and of a time-out.
    fn look(&self, text: &str) -> Result<Value, Failure> {
        let context = self.context(None);
        let scope = Scope { input: &self.place.input, context: &context };
        let found = Expression::parse(text).ok().and_then(|path| path.value(scope).ok());
        found.ok_or_else(|| Failure::new("States.Runtime", format!("nothing is found at {text}")))
    }

    fn said(&self, fail: &Fail) -> (Option<String>, Option<String>) {
        let at = |path: &Option<String>| {
            let found = self.look(path.as_deref()?).ok()?;
            Some(found.as_str().map_or_else(|| found.to_string(), str::to_owned))
        };
        let error = fail.error.clone().or_else(|| at(&fail.error_path));
        (error, fail.cause.clone().or_else(|| at(&fail.cause_path)))
    }

    /// Calls the task of its state. Each attempt has a token of its own.
    fn calls(&mut self, now: Timestamp, number: u64) -> Result<Call, Failure> {
        let task = self.task();
        let missing = || Failure::new("States.Runtime", "no task that is known here");
        let task = task.ok_or_else(missing)?;
        let resource = task.target().ok_or_else(missing)?;
        let token = resource.waits.then(|| format!("AQB4-{number:08}-{}", self.name));
        let seconds = match (&task.timeout_seconds_path, task.timeout_seconds) {
            (Some(path), _) => Some(seconds(&self.look(path)?)?),
            (None, seconds) => seconds,
        };
        let until = seconds.map(|seconds| {
            now.plus_ms(i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX))
        });
        let context = self.context(token.as_deref());
        let scope = Scope { input: &self.place.input, context: &context };
        let request = path::fill(&task.parameters, scope)?;
        self.place.phase = Phase::Called { call: number, token: token.clone(), until };
        Ok(Call { number, operation: OPERATION, request, token })
    }

    /// The table answered a call. An answer that nobody waits for any more changes nothing.
    pub(super) fn answered(
        &mut self,
        number: u64,
        answer: Result<Value, TableError>,
        now: Timestamp,
    ) {
        let Phase::Called { call, token, until } = self.place.phase.clone() else { return };
        if call != number || !self.is_running() {
            return;
        }
        match (answer, token) {
            (Ok(_), Some(token)) => {
                self.note("TaskSubmitted", now);
                self.place.phase = Phase::Waits { token, until };
            }
            (Ok(result), None) => self.succeeds(result, now),
            (Err(error), token) => {
                let service = self.task().and_then(|task| task.target());
                let prefix = service.map_or("DynamoDb", |resource| resource.errors);
                self.note(if token.is_some() { "TaskSubmitFailed" } else { "TaskFailed" }, now);
                let name = format!("{prefix}.{}", error.code);
                self.failed(&Failure::new(&name, error.message), now);
            }
        }
    }

    /// Its task has a result.
    pub(super) fn succeeds(&mut self, result: Value, now: Timestamp) {
        let Some(task) = self.task() else { return };
        self.note("TaskSucceeded", now);
        match path::put(&self.place.input, task.result_path.as_deref(), result) {
            Ok(output) => self.leaves("TaskStateExited", task.next, output, now),
            Err(failure) => self.failed(&failure, now),
        }
    }

    /// Its state failed: again, on another way, or not at all.
    pub(super) fn failed(&mut self, failure: &Failure, now: Timestamp) {
        let catchable = !UNCATCHABLE.contains(&failure.error.as_str());
        let Some(task) = self.task().filter(|_| catchable) else {
            self.fails(&failure.error, &failure.cause, now);
            return;
        };
        let retrier = task.retry.iter().position(|r| matches(&r.error_equals, &failure.error));
        if let Some((n, retrier)) = retrier.and_then(|n| Some((n, task.retry.get(n)?)))
            && let Some(used) = self.place.retries.get_mut(n)
            && *used < retrier.max_attempts
        {
            let until = now.plus_ms(pause_ms(retrier, *used));
            *used += 1;
            self.place.phase = Phase::Pauses { until };
            return;
        }
        let catcher = task.catch.iter().find(|c| matches(&c.error_equals, &failure.error));
        let Some(catcher) = catcher else {
            self.fails(&failure.error, &failure.cause, now);
            return;
        };
        let said = json!({ "Error": failure.error, "Cause": failure.cause });
        match path::put(&self.place.input, catcher.result_path.as_deref(), said) {
            Ok(output) => self.leaves("TaskStateExited", Some(catcher.next.clone()), output, now),
            Err(failure) => self.fails(&failure.error, &failure.cause, now),
        }
    }

    /// Goes to the next state, or ends.
    fn leaves(&mut self, event: &'static str, next: Option<String>, output: Value, now: Timestamp) {
        let written = output.to_string();
        if written.len() > DATA_BYTES_MAX {
            self.fails("States.DataLimitExceeded", "more than 262144 bytes", now);
            return;
        }
        self.note(event, now);
        match next {
            Some(next) => self.place = Place::new(next, output, now),
            None => self.ends(Status::Succeeded, Some(written), (None, None), now),
        }
    }
}

/// Whether one of these names is that of the error.
fn matches(names: &[String], error: &str) -> bool {
    names.iter().any(|name| match name.as_str() {
        "States.ALL" => true,
        // Any error of a task but its time-out.
        "States.TaskFailed" => error != "States.Timeout",
        name => name == error,
    })
}

/// A time-out in seconds: a positive whole number, or an error that nothing catches.
fn seconds(value: &Value) -> Result<u64, Failure> {
    let wrong = || Failure::new("States.Runtime", format!("a time-out of {value} seconds"));
    value.as_u64().filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

/// How long until the next attempt. Jitter shortens it at random; here it takes its longest.
fn pause_ms(retrier: &Retrier, used: u32) -> i64 {
    let mut seconds = f64::from(retrier.interval_seconds);
    for _ in 0..used.min(64) {
        seconds *= retrier.backoff_rate;
    }
    let most = retrier.max_delay_seconds.map_or(f64::MAX, f64::from);
    let pause = Duration::try_from_secs_f64(seconds.min(most)).unwrap_or(Duration::MAX);
    i64::try_from(pause.as_millis()).unwrap_or(i64::MAX)
}
