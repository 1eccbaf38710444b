//! What a pass did, or would do: for the log, for metrics, and for whoever has it done by hand.

use std::error::Error;
use std::fmt;

use crate::errors::ErrorCode;
use crate::models::{TenantId, Timestamp, WorkflowId};
use crate::ports::Attention;
use crate::reconcile::{Action, Rule, Run};

/// One workflow that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// Its tenant.
    pub tenant: TenantId,
    /// Which.
    pub workflow_id: WorkflowId,
    /// The steps, in order.
    pub steps: Vec<Taken>,
    /// How the pass ended.
    pub end: End,
}

/// A step of the rules, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Why.
    pub rule: Rule,
    /// What.
    pub action: Action,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// It would be done; it was only to be said.
    WouldBe,
    /// The execution is so.
    Seen(Run),
    /// The token is settled, timed out or unknown.
    TokenDead,
    /// The rows moved on, or a later reconciler wrote: nothing was written.
    Overtaken,
    /// The command was refused.
    Refused(ErrorCode),
    /// The orchestrator did not do it, or nothing is known. In one word, and in words.
    Unclear(&'static str, String),
}

/// How a pass ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Nothing is left to do.
    Settled,
    /// It is looked at again then.
    Again(Timestamp),
    /// The rows moved on: whoever moved them looks, or we do at once.
    Overtaken,
    /// Something would be done; it was only to be said.
    Proposed,
    /// The store did not answer, or what it holds cannot be read.
    Failed {
        /// It may pass.
        may_pass: bool,
        /// Why.
        why: String,
    },
}

/// A rule by its name, for example `R5`.
#[must_use]
pub const fn rule(rule: Rule) -> &'static str {
    match rule {
        Rule::R1 => "R1",
        Rule::R2 => "R2",
        Rule::R3 => "R3",
        Rule::R4 => "R4",
        Rule::R5 => "R5",
        Rule::R6 => "R6",
        Rule::R7 => "R7",
        Rule::R8 => "R8",
    }
}

/// An action in one word.
#[must_use]
pub const fn action(action: &Action) -> &'static str {
    match action {
        Action::Acknowledge { .. } => "acknowledge",
        Action::Fire => "fire",
        Action::Start { .. } => "start",
        Action::Describe { .. } => "describe",
        Action::Record => "record",
        Action::Tell { .. } => "tell",
        Action::ForgetToken => "forget_token",
        Action::Replace(_) => "replace",
        Action::Stop { .. } => "stop",
        Action::Close => "close",
        Action::Later => "later",
        Action::Settled => "settled",
    }
}

impl Looked {
    pub(super) fn new(attention: &Attention) -> Self {
        let (tenant, workflow_id) = (attention.tenant.clone(), attention.workflow_id.clone());
        Self { tenant, workflow_id, steps: Vec::new(), end: End::Settled }
    }
}

impl Outcome {
    /// In one word.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::WouldBe => "would_be",
            Self::Seen(Run::Running) => "running",
            Self::Seen(Run::Foreign) => "foreign",
            Self::Seen(Run::Closed) => "closed",
            Self::Seen(Run::Absent) => "absent",
            Self::TokenDead => "token_dead",
            Self::Overtaken => "overtaken",
            Self::Refused(_) => "refused",
            Self::Unclear(kind, _) => kind,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::WouldBe => f.write_str("would be done"),
            Self::Seen(Run::Running) => f.write_str("it runs"),
            Self::Seen(Run::Foreign) => f.write_str("it runs with another input"),
            Self::Seen(Run::Closed) => f.write_str("it has ended"),
            Self::Seen(Run::Absent) => f.write_str("there is none"),
            Self::TokenDead => f.write_str("the token is dead"),
            Self::Overtaken => f.write_str("overtaken, nothing was written"),
            Self::Refused(code) => write!(f, "refused: {}", code.as_str()),
            Self::Unclear(_, why) => write!(f, "unclear: {why}"),
        }
    }
}

/// One line, for example `R2 start fence 1: it runs`.
impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", rule(self.rule), action(&self.action))?;
        match &self.action {
            Action::Acknowledge { fence }
            | Action::Start { fence }
            | Action::Describe { fence }
            | Action::Stop { fence } => write!(f, " fence {fence}")?,
            Action::Replace(by) => write!(f, " by fence {}", by.fence)?,
            Action::Tell { revision, ends, timeout_s } => {
                let ends = if *ends { ", it ends" } else { "" };
                write!(f, " revision {revision}, wake in {timeout_s} s{ends}")?;
            }
            Action::Fire
            | Action::Record
            | Action::ForgetToken
            | Action::Close
            | Action::Later
            | Action::Settled => {}
        }
        write!(f, ": {}", self.outcome)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settled => f.write_str("nothing is left to do"),
            Self::Again(at) => write!(f, "looked at again at {at}"),
            Self::Overtaken => f.write_str("overtaken: looked at again"),
            Self::Proposed => f.write_str("nothing was done: only looked at"),
            Self::Failed { why, .. } => write!(f, "failed: {why}"),
        }
    }
}

/// An error with what stands behind it.
#[must_use]
pub fn in_words(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        words.push_str(": ");
        words.push_str(&error.to_string());
        source = error.source();
    }
    words
}
