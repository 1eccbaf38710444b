//! What callers ask. Time, ids, salts, secrets and lock rows are data in the command, never looked up by a decision.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::models::{
    AssetId, BlockId, Cause, DecisionId, Person, Principal, ReasonCode, ResultId, Severity, StepId,
    Timestamp, WorkflowId,
};
use crate::policy::DomainPolicyPort;

use super::event::ConfirmedBy;

/// One request to change one workflow.
#[derive(Debug, Clone)]
pub struct Command {
    /// Who asks.
    pub principal: Principal,
    /// Ledger key and fingerprint of the call.
    pub cause: Cause,
    /// What was asked.
    pub kind: CommandKind,
}

/// What was asked.
#[derive(Debug, Clone)]
pub enum CommandKind {
    /// Begin a workflow.
    Start {
        /// The id it will have.
        workflow_id: WorkflowId,
        /// Role → id as the caller said it.
        assets: BTreeMap<String, String>,
        /// Inputs of the procedure.
        inputs: Map<String, Value>,
    },
    /// The orchestrator knows the workflow.
    AcknowledgeOrchestration {
        /// The fence of the acknowledging execution.
        fence: u64,
    },
    /// Record a value.
    SubmitStep {
        /// The step.
        step_id: StepId,
        /// The value and how it is confirmed.
        value: SubmittedValue,
    },
    /// Replace a recorded value.
    CorrectStep {
        /// The step.
        step_id: StepId,
        /// The value and how it is confirmed.
        value: SubmittedValue,
        /// Why.
        reason_code: Option<ReasonCode>,
    },
    /// Leave a step out.
    SkipStep {
        /// The step.
        step_id: StepId,
        /// Why.
        reason_code: Option<ReasonCode>,
        /// Free text.
        note: Option<String>,
    },
    /// Tell that something is wrong.
    ReportProblem {
        /// What is wrong.
        summary: String,
        /// How bad.
        severity: Severity,
        /// The step it is about.
        step_id: Option<StepId>,
    },
    /// Decide on a block.
    ResolveBlock {
        /// The block.
        block_id: BlockId,
        /// The decision.
        decision: DecisionId,
        /// The decider's words.
        comment: String,
    },
    /// Say that one knows of a block.
    AcknowledgeBlock {
        /// The block.
        block_id: BlockId,
    },
    /// A deadline is due.
    DeadlineReached {
        /// Its id; also the idempotency key.
        deadline_id: String,
    },
    /// Change who drives it.
    Transfer(Transfer),
    /// Free an asset by hand.
    ReleaseLock {
        /// The asset.
        asset_id: AssetId,
        /// Why.
        reason: String,
    },
    /// End the workflow.
    Finish {
        /// How it ended.
        result: ResultId,
        /// Free text.
        note: Option<String>,
        /// A confirm token, when one was asked for.
        confirm_token: Option<String>,
        /// How it came back; as an argument of the call when absent.
        confirmed_by: Option<ConfirmedBy>,
    },
}

impl CommandKind {
    /// The command's name in error details and the grid.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Start { .. } => "start",
            Self::AcknowledgeOrchestration { .. } => "acknowledge_orchestration",
            Self::SubmitStep { .. } => "submit_step",
            Self::CorrectStep { .. } => "correct_step",
            Self::SkipStep { .. } => "skip_step",
            Self::ReportProblem { .. } => "report_problem",
            Self::ResolveBlock { .. } => "resolve_block",
            Self::AcknowledgeBlock { .. } => "acknowledge_block",
            Self::DeadlineReached { .. } => "deadline_reached",
            Self::Transfer(_) => "transfer",
            Self::ReleaseLock { .. } => "release_lock",
            Self::Finish { .. } => "finish",
        }
    }
}

/// One way to change who drives a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transfer {
    /// Offer it. A new offer replaces the old one.
    Offer {
        /// The name or subject as said; anybody when absent.
        to: Option<String>,
    },
    /// Take the offer back.
    Withdraw,
    /// Refuse the offer.
    Decline,
    /// Take what is offered.
    Accept,
    /// Take it without an offer.
    TakeOver {
        /// Why.
        reason_code: Option<ReasonCode>,
    },
}

/// A value with what came along.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubmittedValue {
    /// The value as the caller said it; absent counts as empty.
    pub value: Option<String>,
    /// The unit as the caller said it.
    pub unit: Option<String>,
    /// Free text.
    pub note: Option<String>,
    /// A confirm token, when one was asked for.
    pub confirm_token: Option<String>,
    /// How the token came back; as an argument of the call when absent.
    pub confirmed_by: Option<ConfirmedBy>,
}

/// What the engine looked up for a decision.
#[derive(Debug)]
pub struct Facts<'a> {
    /// Now, by the deciding replica.
    pub at: Timestamp,
    /// The policy of the pinned definition.
    pub policy: &'a dyn DomainPolicyPort,
    /// Lock rows of the assets that the workflow holds or asks for.
    pub locks: BTreeMap<AssetId, LockFact>,
    /// Keys of the store that sign confirm tokens, newest first.
    pub secrets: &'a [Secret],
    /// 32 random hexadecimal digits for sensitive values.
    pub salt: &'a str,
    /// Open workflows of the caller, counted where one more would be theirs.
    pub open_workflows: u32,
    /// People of the tenant among whom the name of an offer is looked for.
    pub people: &'a [Person],
    /// The orchestrator acknowledges inside the start commit.
    pub acknowledge_at_start: bool,
}

/// A lock row as it was read: an asset that was never held has fence 0 and no holder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockFact {
    /// The fence of the last time it changed hands.
    pub fence: u64,
    /// The workflow that holds it.
    pub workflow_id: Option<WorkflowId>,
    /// Who drives that workflow, where the caller may know.
    pub owner: Option<Person>,
}

/// A key of the store, never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Wraps key bytes.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The key bytes, for signing and storing only.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}
