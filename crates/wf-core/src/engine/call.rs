//! What a transport hands to the engine, typed, and what it gets back.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use wf_idempotency::IdempotencyKey;

use crate::errors::ErrorCode;
use crate::models::{
    AssetId, BlockId, DecisionId, Locale, ReasonCode, ResultId, Severity, StepId, WorkflowId,
};
use crate::state_machine::command::SubmittedValue;
use crate::state_machine::event::ConfirmedBy;
use crate::state_machine::{CommandKind, Outcome, Transfer};

/// Request metadata that is no argument.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallMeta {
    /// Language of the answer.
    pub locale: Option<Locale>,
    /// Refuse when the workflow has another revision.
    pub expected_revision: Option<u64>,
}

/// One mutating call.
#[derive(Debug, Clone)]
pub struct Call {
    /// The operation's name: the tool's.
    pub operation: &'static str,
    /// The arguments as the client sent them, for the fingerprint.
    pub arguments: Map<String, Value>,
    /// The key, when the client sent one.
    pub key: Option<IdempotencyKey>,
    /// The same, typed.
    pub request: Request,
    /// Metadata.
    pub meta: CallMeta,
}

/// What a mutating call asks.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// `start_workflow`
    Start {
        /// The procedure, as said.
        procedure_id: String,
        /// Role → id as said.
        assets: BTreeMap<String, String>,
        /// Inputs.
        inputs: Map<String, Value>,
    },
    /// `submit_step`
    SubmitStep {
        /// The workflow.
        workflow_id: WorkflowId,
        /// The step.
        step_id: StepId,
        /// The value.
        value: SubmittedValue,
    },
    /// `correct_step`
    CorrectStep {
        /// The workflow.
        workflow_id: WorkflowId,
        /// The step.
        step_id: StepId,
        /// The value.
        value: SubmittedValue,
        /// Why; asked for when absent.
        reason_code: Option<ReasonCode>,
    },
    /// `skip_step`
    SkipStep {
        /// The workflow.
        workflow_id: WorkflowId,
        /// The step.
        step_id: StepId,
        /// Why.
        reason_code: Option<ReasonCode>,
        /// Free text.
        note: Option<String>,
    },
    /// `report_problem`
    ReportProblem {
        /// The workflow.
        workflow_id: WorkflowId,
        /// What is wrong.
        summary: String,
        /// How bad; `low` when absent.
        severity: Option<Severity>,
        /// The step it is about.
        step_id: Option<StepId>,
    },
    /// `resolve_block`
    ResolveBlock {
        /// The workflow.
        workflow_id: WorkflowId,
        /// The block.
        block_id: BlockId,
        /// The decision.
        decision: DecisionId,
        /// The decider's words.
        comment: String,
    },
    /// The page of a link in an escalation, or `ack` at the command line
    AcknowledgeBlock {
        /// The workflow.
        workflow_id: WorkflowId,
        /// The block.
        block_id: BlockId,
    },
    /// The clock; the call's key is the deadline's id
    DeadlineReached {
        /// The workflow.
        workflow_id: WorkflowId,
        /// The deadline.
        deadline_id: String,
    },
    /// The orchestrator, when an execution of the workflow runs
    AcknowledgeOrchestration {
        /// The workflow.
        workflow_id: WorkflowId,
        /// The fence of the execution.
        fence: u64,
    },
    /// `transfer_workflow`
    Transfer {
        /// The workflow.
        workflow_id: WorkflowId,
        /// How.
        transfer: Transfer,
    },
    /// `locks release` at the command line
    ReleaseLock {
        /// The workflow that holds it.
        workflow_id: WorkflowId,
        /// The asset.
        asset_id: AssetId,
        /// Why.
        reason: String,
    },
    /// `finish_workflow`
    Finish {
        /// The workflow.
        workflow_id: WorkflowId,
        /// How it ended.
        result: ResultId,
        /// Free text.
        note: Option<String>,
        /// A confirm token.
        confirm_token: Option<String>,
        /// How it came back; as an argument of the call when absent.
        confirmed_by: Option<ConfirmedBy>,
    },
}

/// Which work to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FindScope {
    /// The caller's open workflows.
    Mine,
    /// What may be started, and workflows offered to the caller.
    Available,
    /// Blocked workflows of the tenant.
    Blocked,
}

/// `find_work`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FindWork {
    /// Words to look for.
    pub query: Option<String>,
    /// An asset, as said.
    pub asset_id: Option<String>,
    /// Where to look; everywhere when absent.
    pub scope: Option<FindScope>,
}

/// How much to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Detail {
    /// What is needed to go on.
    #[default]
    Brief,
    /// With the last events.
    Full,
}

/// `get_status`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GetStatus {
    /// The workflow.
    pub workflow_id: Option<WorkflowId>,
    /// An asset, as said.
    pub asset_id: Option<String>,
    /// How much to tell.
    pub detail: Detail,
}

/// `check_value`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckValue {
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// The step.
    pub step_id: StepId,
    /// The value as said.
    pub value: String,
    /// The unit as said.
    pub unit: Option<String>,
}

/// The answer: the whole result object of mcp.md.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Its `outcome`.
    pub outcome: Outcome,
    /// Its error code, when not ok.
    pub error: Option<ErrorCode>,
    /// Its `duplicate`.
    pub duplicate: bool,
    /// Its `speech`.
    pub speech: String,
    /// The object, RFC 8785 order.
    pub body: Value,
    /// The canonical text of `body`, where it was written already: for what was committed.
    pub text: Option<String>,
}

impl Request {
    /// The workflow that the call names; none for a start.
    #[must_use]
    pub const fn workflow_id(&self) -> Option<&WorkflowId> {
        match self {
            Self::Start { .. } => None,
            Self::SubmitStep { workflow_id, .. }
            | Self::CorrectStep { workflow_id, .. }
            | Self::SkipStep { workflow_id, .. }
            | Self::ReportProblem { workflow_id, .. }
            | Self::ResolveBlock { workflow_id, .. }
            | Self::AcknowledgeBlock { workflow_id, .. }
            | Self::DeadlineReached { workflow_id, .. }
            | Self::AcknowledgeOrchestration { workflow_id, .. }
            | Self::Transfer { workflow_id, .. }
            | Self::ReleaseLock { workflow_id, .. }
            | Self::Finish { workflow_id, .. } => Some(workflow_id),
        }
    }

    /// The command that it asks for.
    pub(super) fn command(&self, id: &WorkflowId) -> CommandKind {
        match self.clone() {
            Self::Start { assets, inputs, .. } => {
                CommandKind::Start { workflow_id: id.clone(), assets, inputs }
            }
            Self::SubmitStep { step_id, value, .. } => CommandKind::SubmitStep { step_id, value },
            Self::CorrectStep { step_id, value, reason_code, .. } => {
                CommandKind::CorrectStep { step_id, value, reason_code }
            }
            Self::SkipStep { step_id, reason_code, note, .. } => {
                CommandKind::SkipStep { step_id, reason_code, note }
            }
            Self::ReportProblem { summary, severity, step_id, .. } => CommandKind::ReportProblem {
                summary,
                severity: severity.unwrap_or(Severity::Low),
                step_id,
            },
            Self::ResolveBlock { block_id, decision, comment, .. } => {
                CommandKind::ResolveBlock { block_id, decision, comment }
            }
            Self::AcknowledgeBlock { block_id, .. } => CommandKind::AcknowledgeBlock { block_id },
            Self::DeadlineReached { deadline_id, .. } => {
                CommandKind::DeadlineReached { deadline_id }
            }
            Self::AcknowledgeOrchestration { fence, .. } => {
                CommandKind::AcknowledgeOrchestration { fence }
            }
            Self::Transfer { transfer, .. } => CommandKind::Transfer(transfer),
            Self::ReleaseLock { asset_id, reason, .. } => {
                CommandKind::ReleaseLock { asset_id, reason }
            }
            Self::Finish { result, note, confirm_token, confirmed_by, .. } => {
                CommandKind::Finish { result, note, confirm_token, confirmed_by }
            }
        }
    }
}
