//! What happened: versioned, append-only, chained by hash.
//!
//! `hash` is the lowercase hexadecimal SHA-256 of the RFC 8785 form of the event without `hash` and without
//! `sensitive`. `prev_hash` of the first event is SHA-256 of `checkpoint/v1`, the tenant and the workflow id.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::models::{
    Actor, BlockId, Cause, DecisionId, Digest, HeldAsset, Person, ProcedureRef, Reading,
    ReasonCode, Recipient, ResultId, Severity, StartDeadline, StepId, TenantId, Text, Timestamp,
    WorkflowId,
};
use crate::policy::Effect;

use super::beside::SensitiveValue;

/// The version of the form in which this build writes events, and the newest that it reads.
pub const EVENT_VERSION: u16 = 1;

/// Whoever reads an event as far as it knows it would compute another hash, and call whole history damaged.
fn known_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let found = u16::deserialize(deserializer)?;
    if (1..=EVENT_VERSION).contains(&found) {
        return Ok(found);
    }
    Err(D::Error::custom(format!(
        "an event of version {found}, and this build knows up to {EVENT_VERSION}: use the build that wrote it or a newer one"
    )))
}

/// One thing that happened to a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Version of the event's form: [`EVENT_VERSION`]. One of a newer build is refused, never read as far as it goes.
    #[serde(deserialize_with = "known_version")]
    pub v: u16,
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// Position in the workflow's history, gapless from 1.
    pub seq: u64,
    /// max(now, `at` of the event before).
    pub at: Timestamp,
    /// Who caused it.
    pub actor: Actor,
    /// Their name at the time, when known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub actor_name: Option<String>,
    /// What happened: `kind` and `data`.
    #[serde(flatten)]
    pub body: EventBody,
    /// The ledger key and fingerprint of the call.
    pub cause: Cause,
    /// `hash` of the event before.
    pub prev_hash: Digest,
    /// Hash of this event.
    pub hash: Digest,
    /// Sensitive values beside the chain, which holds only their salted digests; erasable.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub sensitive: Vec<SensitiveValue>,
}

/// How a read-back was confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmedBy {
    /// A confirm token came back with the same call.
    Token,
    /// The client asked its user through an elicitation.
    Elicitation,
}

/// A recorded value with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// The step.
    pub step_id: StepId,
    /// 1 for the first value of the step.
    pub attempt: u32,
    /// The value; withheld when sensitive.
    pub reading: Reading,
    /// Salted digest of a sensitive value.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sensitive_digest: Option<Digest>,
    /// Outside what the policy accepts.
    pub out_of_range: bool,
    /// What the policy calls a deviation that does not block; a block has its own code.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub deviation: Option<ReasonCode>,
    /// Warnings of the policy.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<Text>,
    /// The caller's note.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
    /// How the read-back was confirmed, when one was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub confirmed_by: Option<ConfirmedBy>,
    /// What was signed, where the step is a signature.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signed: Option<Signature>,
}

/// What a signature is for: everything that is known after an event (module `signature`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The event up to which the history is signed.
    pub seq: u64,
    /// Digest of what is signed.
    pub digest: Digest,
}

/// What happened, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
pub enum EventBody {
    /// A workflow began and holds its assets.
    WorkflowStarted {
        /// The tenant.
        tenant: TenantId,
        /// What it runs.
        procedure: ProcedureRef,
        /// How it is called.
        label: Text,
        /// What it acquired.
        assets: Vec<HeldAsset>,
        /// Inputs without sensitive ones.
        inputs: Map<String, Value>,
        /// Sensitive inputs: name → salted digest.
        #[serde(skip_serializing_if = "Map::is_empty", default)]
        sensitive_inputs: Map<String, Value>,
        /// Who drives it.
        owner: Person,
        /// Time limits on the whole, counted from now.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        deadlines: Vec<StartDeadline>,
    },
    /// The orchestrator knows of it.
    OrchestrationAcknowledged {
        /// The orchestration fence of the acknowledging execution.
        fence: u64,
    },
    /// A value was recorded for a step.
    StepRecorded(Recording),
    /// A recorded value was replaced; the original stays in the history.
    StepCorrected {
        /// The new value; its attempt counts on from the value that is replaced.
        #[serde(flatten)]
        recording: Recording,
        /// Why.
        reason_code: ReasonCode,
    },
    /// A later step used a value that was corrected: it is open again.
    RecheckRequired {
        /// The step to confirm again.
        step_id: StepId,
        /// The step whose value changed.
        because_of: StepId,
    },
    /// A value was recorded for a step that is no longer to be done because another value changed. It is open again, to be
    /// confirmed, should the step apply once more.
    StepNotNeeded {
        /// The step.
        step_id: StepId,
        /// The step whose value changed.
        because_of: StepId,
    },
    /// The step of a wait opened: its time runs.
    WaitStarted {
        /// The step.
        step_id: StepId,
        /// When the wait is over.
        until: Timestamp,
    },
    /// A step was skipped.
    StepSkipped {
        /// The step.
        step_id: StepId,
        /// Why, where the policy asks.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason_code: Option<ReasonCode>,
        /// The caller's note.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        note: Option<String>,
    },
    /// The workflow is blocked (further).
    WorkflowBlocked {
        /// The block.
        block_id: BlockId,
        /// Why.
        code: ReasonCode,
        /// The step it is about.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        step_id: Option<StepId>,
        /// A report made it, rather than a value.
        reported: bool,
        /// The reporter's words.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        summary: Option<String>,
        /// How bad.
        severity: Severity,
        /// Who is told.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        escalated_to: Option<String>,
        /// How long they have to respond, in milliseconds: sets a deadline.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        respond_within_ms: Option<i64>,
        /// Who is told when they do not, in order.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        then: Vec<Recipient>,
    },
    /// A problem that does not block.
    ProblemNoted {
        /// The step it is about.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        step_id: Option<StepId>,
        /// The reporter's words.
        summary: String,
    },
    /// A block is over.
    BlockResolved {
        /// The block.
        block_id: BlockId,
        /// The decision, or `corrected`.
        decision: DecisionId,
        /// What it leads to.
        effect: Effect,
        /// The step it was about.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        step_id: Option<StepId>,
        /// The decider's words.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        comment: Option<String>,
    },
    /// Somebody who was told said that they know.
    BlockAcknowledged {
        /// The block.
        block_id: BlockId,
        /// Who.
        by: Person,
    },
    /// The owner offered the workflow.
    OwnershipOffered {
        /// To whom; anybody when absent.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        to: Option<Person>,
    },
    /// The offer is gone.
    OfferWithdrawn {
        /// The offeree declined, rather than the owner withdrew.
        declined: bool,
    },
    /// Somebody else drives it now.
    OwnershipTransferred {
        /// The new owner.
        to: Person,
        /// Taken over, rather than accepted.
        taken_over: bool,
        /// Why, when taken over.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason_code: Option<ReasonCode>,
        /// The assets with their fences.
        assets: Vec<HeldAsset>,
    },
    /// An operator freed an asset by hand.
    LockReleased {
        /// The asset.
        asset_id: crate::models::AssetId,
        /// Why.
        reason: String,
    },
    /// The workflow is over.
    WorkflowCompleted {
        /// How it ended.
        result: ResultId,
        /// The caller's note.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        note: Option<String>,
        /// How it was confirmed, when that was asked for.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        confirmed_by: Option<ConfirmedBy>,
    },
    /// A deadline passed.
    DeadlinePassed {
        /// Its id.
        deadline_id: String,
        /// Its name in the definition, when it is about the whole workflow.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        name: Option<String>,
        /// The block that nobody responded to, when it is about one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        block_id: Option<BlockId>,
    },
    /// The next recipient was told.
    Escalated {
        /// The block it is about; the whole workflow when absent.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        block_id: Option<BlockId>,
        /// Who is told.
        to: String,
        /// How long they have to respond, in milliseconds: sets a deadline.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        respond_within_ms: Option<i64>,
        /// Who is told when they do not, in order.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        then: Vec<Recipient>,
    },
}

impl EventBody {
    /// The value that the event records, first or corrected.
    #[must_use]
    pub const fn recording(&self) -> Option<&Recording> {
        if let Self::StepRecorded(recording) | Self::StepCorrected { recording, .. } = self {
            Some(recording)
        } else {
            None
        }
    }

    /// The kind, as written in `kind`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::WorkflowStarted { .. } => "workflow_started",
            Self::OrchestrationAcknowledged { .. } => "orchestration_acknowledged",
            Self::StepRecorded(_) => "step_recorded",
            Self::StepCorrected { .. } => "step_corrected",
            Self::RecheckRequired { .. } => "recheck_required",
            Self::StepNotNeeded { .. } => "step_not_needed",
            Self::WaitStarted { .. } => "wait_started",
            Self::StepSkipped { .. } => "step_skipped",
            Self::WorkflowBlocked { .. } => "workflow_blocked",
            Self::ProblemNoted { .. } => "problem_noted",
            Self::BlockResolved { .. } => "block_resolved",
            Self::BlockAcknowledged { .. } => "block_acknowledged",
            Self::OwnershipOffered { .. } => "ownership_offered",
            Self::OfferWithdrawn { .. } => "offer_withdrawn",
            Self::OwnershipTransferred { .. } => "ownership_transferred",
            Self::LockReleased { .. } => "lock_released",
            Self::WorkflowCompleted { .. } => "workflow_completed",
            Self::DeadlinePassed { .. } => "deadline_passed",
            Self::Escalated { .. } => "escalated",
        }
    }
}
