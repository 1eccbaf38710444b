//! How the steps of a procedure stand, and what each asks.

use serde::{Deserialize, Serialize};

use crate::models::{ReasonCode, StepId, Text, Timestamp};

use super::Choice;

/// A whole procedure as it stands for one workflow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// All steps, in the definition's order.
    pub steps: Vec<PlannedStep>,
}

/// One step as it stands for one workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// The step.
    pub id: StepId,
    /// It is to be done in this workflow (its condition holds).
    pub applies: bool,
    /// Its condition cannot be evaluated: the code to block with.
    pub broken: Option<ReasonCode>,
    /// The workflow cannot pass without it.
    pub required: bool,
    /// Nothing more is to be done for it.
    pub settled: bool,
    /// It may be submitted now.
    pub open: bool,
    /// It is a wait of so many milliseconds, counted from the event that opens it.
    pub wait_ms: Option<i64>,
}

impl PlannedStep {
    /// It may be submitted or skipped now. So may a step whose condition cannot be evaluated: submitting it blocks, so
    /// that somebody decides, where nobody could go on otherwise.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open || (self.broken.is_some() && !self.settled)
    }
}

impl Plan {
    /// The step that is asked next.
    #[must_use]
    pub fn next(&self) -> Option<&PlannedStep> {
        self.steps.iter().find(|s| s.is_open())
    }

    /// Steps that may be submitted now.
    pub fn open(&self) -> impl Iterator<Item = &PlannedStep> {
        self.steps.iter().filter(|s| s.is_open())
    }

    /// Required steps that are not settled.
    pub fn unsettled(&self) -> impl Iterator<Item = &PlannedStep> {
        self.steps.iter().filter(|s| s.applies && s.required && !s.settled)
    }

    /// Required steps that apply: how many are settled, and how many there are.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        let required = || self.steps.iter().filter(|s| s.applies && s.required);
        (required().filter(|s| s.settled).count(), required().count())
    }

    /// The step, if there is one with this id.
    #[must_use]
    pub fn step(&self, id: &StepId) -> Option<&PlannedStep> {
        self.steps.iter().find(|s| &s.id == id)
    }
}

/// When a step may be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipRule {
    /// Never.
    Never,
    /// With a reason of the policy's list.
    Reason,
    /// With a reason, by a supervisor.
    Supervisor,
    /// Without a reason: the step is optional.
    Free,
}

impl SkipRule {
    /// The word in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Reason => "reason",
            Self::Supervisor => "supervisor",
            Self::Free => "free",
        }
    }
}

/// A unit with the words for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitWords {
    /// As written.
    pub symbol: String,
    /// As spoken for one.
    pub one: Text,
    /// As spoken for several.
    pub many: Text,
}

/// What a step asks, as it stands for one workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDescription {
    /// The step.
    pub id: StepId,
    /// 1 for the first step of the definition.
    pub position: usize,
    /// How many steps the definition has.
    pub of: usize,
    /// How it is called.
    pub say: Text,
    /// The question.
    pub prompt: Text,
    /// The kind's name in results.
    pub kind: String,
    /// The unit values are meant in.
    pub unit: Option<UnitWords>,
    /// How many decimals a value may have.
    pub decimals: Option<u32>,
    /// Accepted from here, in `unit`, as a decimal.
    pub min: Option<String>,
    /// Accepted up to here.
    pub max: Option<String>,
    /// What may be chosen.
    pub choices: Vec<Choice>,
    /// How long to wait, in seconds.
    pub wait_seconds: Option<u64>,
    /// When the wait is over.
    pub due_at: Option<Timestamp>,
    /// When it may be skipped.
    pub skip: SkipRule,
    /// The workflow cannot pass without it.
    pub required: bool,
    /// Its values are never shown.
    pub sensitive: bool,
    /// Only somebody with this role may do it.
    pub role: Option<String>,
    /// Doing it signs what is recorded so far.
    pub signs: bool,
    /// It is for a second person: nobody who recorded what is signed may do it.
    pub not_performer: bool,
}
