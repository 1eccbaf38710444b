//! An execution: where it is, what it waits for, and its history. How it goes on is in `run`.

use std::sync::Arc;

use serde_json::{Value, json};
use wf_core::models::Timestamp;

use super::definition::{Definition, State, Task};

/// Events of a history. The last of a full one is the end of its execution.
pub(super) const EVENTS_MAX: usize = 25_000;
/// Bytes of an input or an output.
pub(super) const DATA_BYTES_MAX: usize = 262_144;
/// How long an execution may run, in milliseconds: a year.
pub(super) const LIFE_MS: i64 = 365 * 24 * 60 * 60 * 1_000;

/// How an execution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It runs.
    Running,
    /// It came to its end.
    Succeeded,
    /// A state failed.
    Failed,
    /// It ran for too long.
    TimedOut,
    /// It was stopped.
    Aborted,
}

impl Status {
    /// As the API writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::TimedOut => "TIMED_OUT",
            Self::Aborted => "ABORTED",
        }
    }
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) status: Status,
    pub(super) at: Timestamp,
    pub(super) output: Option<String>,
    pub(super) error: Option<String>,
    pub(super) cause: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Execution {
    pub(super) arn: String,
    pub(super) name: String,
    pub(super) machine: String,
    pub(super) role: String,
    /// As it was when the execution started: a later definition is not its own.
    pub(super) definition: Arc<Definition>,
    /// As it was sent, and as it is read.
    pub(super) input: String,
    pub(super) data: Value,
    pub(super) started_at: Timestamp,
    pub(super) end: Option<End>,
    pub(super) history: Vec<&'static str>,
    /// When it was redriven, and by which tokens of the client.
    pub(super) redriven: Vec<(Option<String>, Timestamp)>,
    pub(super) place: Place,
}

/// The state that it is in.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) state: String,
    pub(super) input: Value,
    pub(super) entered_at: Timestamp,
    /// How often each retrier of the state was used.
    pub(super) retries: Vec<u32>,
    pub(super) phase: Phase,
}

/// What it does there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// It comes there.
    Enter,
    /// Its task begins, or begins again.
    Attempt,
    /// Its task is called, and the answer is not there yet.
    Called { call: u64, token: Option<String>, until: Option<Timestamp> },
    /// Its task was called and waits for its token to be answered.
    Waits { token: String, until: Option<Timestamp> },
    /// It is called again then.
    Pauses { until: Timestamp },
}

impl Place {
    pub(super) fn new(state: String, input: Value, now: Timestamp) -> Self {
        Self { state, input, entered_at: now, retries: Vec::new(), phase: Phase::Enter }
    }
}

impl Execution {
    pub(super) fn is_running(&self) -> bool {
        self.end.is_none()
    }

    pub(super) fn status(&self) -> Status {
        self.end.as_ref().map_or(Status::Running, |end| end.status)
    }

    /// The token that can be answered.
    pub(super) fn token(&self) -> Option<&str> {
        if self.end.is_some() {
            return None;
        }
        match &self.place.phase {
            Phase::Called { token, .. } => token.as_deref(),
            Phase::Waits { token, .. } => Some(token),
            Phase::Enter | Phase::Attempt | Phase::Pauses { .. } => None,
        }
    }

    /// When something happens by itself.
    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        if self.end.is_some() {
            return None;
        }
        let life = self.last_start().plus_ms(LIFE_MS);
        let own = match self.place.phase {
            Phase::Called { until, .. } | Phase::Waits { until, .. } => until,
            Phase::Pauses { until } => Some(until),
            Phase::Enter | Phase::Attempt => None,
        };
        Some(own.map_or(life, |own| own.min(life)))
    }

    /// When it started, or was redriven last.
    pub(super) fn last_start(&self) -> Timestamp {
        self.redriven.last().map_or(self.started_at, |(_, at)| *at)
    }

    pub(super) fn state(&self) -> Option<&State> {
        self.definition.states.get(&self.place.state)
    }

    pub(super) fn task(&self) -> Option<Task> {
        match self.state()? {
            State::Task(task) => Some((**task).clone()),
            State::Pass(_) | State::Choice(_) | State::Succeed(_) | State::Fail(_) => None,
        }
    }

    /// What `$$` sees.
    pub(super) fn context(&self, token: Option<&str>) -> Value {
        let retries: u32 = self.place.retries.iter().sum();
        let mut context = json!({
            "Execution": {
                "Id": self.arn,
                "Input": self.data,
                "Name": self.name,
                "RoleArn": self.role,
                "StartTime": self.started_at.to_string(),
                "RedriveCount": self.redriven.len(),
            },
            "State": {
                "EnteredTime": self.place.entered_at.to_string(),
                "Name": self.place.state,
                "RetryCount": retries,
            },
            "StateMachine": {
                "Id": self.machine,
                "Name": self.machine.rsplit(':').next().unwrap_or_default(),
            },
        });
        if let Some(token) = token {
            context["Task"] = json!({ "Token": token });
        }
        context
    }

    /// Writes an event. The last that there is room for is the end: it fails.
    pub(super) fn note(&mut self, event: &'static str, now: Timestamp) {
        if self.end.is_some() {
            return;
        }
        if self.history.len() + 1 >= EVENTS_MAX {
            let cause = "the execution reached the maximum number of history events (25000)";
            self.fails("States.Runtime", cause, now);
            return;
        }
        self.history.push(event);
    }

    pub(super) fn fails(&mut self, error: &str, cause: &str, now: Timestamp) {
        let said = (Some(error.to_owned()), Some(cause.to_owned()));
        self.ends(Status::Failed, None, said, now);
    }

    /// Ends it, once.
    pub(super) fn ends(
        &mut self,
        status: Status,
        output: Option<String>,
        (error, cause): (Option<String>, Option<String>),
        now: Timestamp,
    ) {
        if self.end.is_some() {
            return;
        }
        self.history.push(match status {
            Status::Running => "ExecutionStarted",
            Status::Succeeded => "ExecutionSucceeded",
            Status::Failed => "ExecutionFailed",
            Status::TimedOut => "ExecutionTimedOut",
            Status::Aborted => "ExecutionAborted",
        });
        self.end = Some(End { status, at: now, output, error, cause });
    }
}
