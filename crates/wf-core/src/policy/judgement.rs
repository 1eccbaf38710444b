//! What the policy says to values, blocks and results.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::errors::ErrorCode;
use crate::models::{
    DecisionId, Reading, ReasonCode, Recipient, ResultId, Severity, StepId, Text, Timestamp,
};

/// A value to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered<'a> {
    /// The step.
    pub step_id: &'a StepId,
    /// The value as the caller said it; empty when absent.
    pub value: &'a str,
    /// The unit as the caller said it.
    pub unit: Option<&'a str>,
    /// Now.
    pub at: Timestamp,
}

/// What the policy says to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// Record it.
    Accept(Accepted),
    /// Record it and block.
    Block(Accepted, BlockCause),
    /// Lawfully not recorded: the caller said no.
    Decline,
    /// Not recorded; ask again.
    Reject(Refusal),
}

/// A value to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// As given and as understood.
    pub reading: Reading,
    /// Outside what is accepted.
    pub out_of_range: bool,
    /// What a deviation that does not block is called.
    pub deviation: Option<ReasonCode>,
    /// Warnings to show and keep.
    pub warnings: Vec<Text>,
    /// What must be read back and confirmed before it is recorded.
    pub read_back: Option<Text>,
    /// The value and its unit in words, for speech.
    pub spoken: Text,
}

/// Why a value blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockCause {
    /// Why.
    pub code: ReasonCode,
    /// How bad.
    pub severity: Severity,
    /// Who is told, one after another while nobody responds; at most
    /// [`ESCALATION_MAX`](crate::limits::ESCALATION_MAX). Nobody when empty.
    pub escalation: Vec<Recipient>,
}

/// Why a value is not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// `VALIDATION_ERROR`, `IMPLAUSIBLE_VALUE`, `UNIT_MISMATCH` or `TOO_EARLY`.
    pub code: ErrorCode,
    /// For the developer: what was wrong and what would be right.
    pub message: String,
    /// What to say to the person.
    pub say: Text,
    /// Facts for programs.
    pub details: Map<String, Value>,
    /// When the same call may succeed, in milliseconds.
    pub after_ms: Option<i64>,
}

/// What a block is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSource<'a> {
    /// The step, when there is one.
    pub step_id: Option<&'a StepId>,
    /// A report made it, rather than a value.
    pub reported: bool,
}

/// How a block is escalated and decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRule {
    /// The code of a reported problem.
    pub code: ReasonCode,
    /// What is asked of the decider.
    pub question: Text,
    /// What may be decided.
    pub decisions: Vec<DecisionOption>,
    /// Who is told, one after another while nobody responds; at most
    /// [`ESCALATION_MAX`](crate::limits::ESCALATION_MAX). Nobody when empty.
    pub escalation: Vec<Recipient>,
    /// How bad, unless the report says.
    pub severity: Severity,
}

/// One way to resolve a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionOption {
    /// What a call sends.
    pub id: DecisionId,
    /// How it is called.
    pub say: Text,
    /// What it leads to.
    pub effect: Effect,
}

/// What a decision leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Go on with the value as it is.
    Continue,
    /// The step opens again.
    Redo,
    /// The workflow is abandoned.
    Abort,
}

/// A way to finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultOption {
    /// What a call sends.
    pub id: ResultId,
    /// How it is called.
    pub say: Text,
    /// Its condition holds now.
    pub available: bool,
}
