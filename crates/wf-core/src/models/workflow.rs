//! The state of one workflow, as `evolve` builds it and a backend stores it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wf_idempotency::{Fingerprint, IdempotencyKey};

use super::{
    Actor, AssetId, AssetRole, BlockId, Digest, OpenDeadline, Person, ProcedureId, Reading,
    ReasonCode, ResultId, StepId, TenantId, Text, Timestamp, WorkflowId,
};

/// The four states there are. There is no failed state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Phase {
    /// Started, nothing acknowledged or recorded yet.
    Created,
    /// Steps are being worked on.
    Running,
    /// At least one block is open.
    Blocked,
    /// Over, with a result; terminal.
    Completed,
}

impl Phase {
    /// Every phase, in order.
    pub const ALL: [Self; 4] = [Self::Created, Self::Running, Self::Blocked, Self::Completed];

    /// The name in results and storage.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "CREATED",
            Self::Running => "RUNNING",
            Self::Blocked => "BLOCKED",
            Self::Completed => "COMPLETED",
        }
    }

    /// True for every phase but the terminal one.
    #[must_use]
    pub const fn is_open(self) -> bool {
        match self {
            Self::Created | Self::Running | Self::Blocked => true,
            Self::Completed => false,
        }
    }
}

/// Which definition a workflow runs, pinned by digest for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcedureRef {
    /// The procedure.
    pub id: ProcedureId,
    /// Its version, as written in the definition.
    pub version: u32,
    /// SHA-256 of the RFC 8785 form of the definition document.
    pub digest: Digest,
}

/// An asset of a workflow and the fence under which it was acquired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldAsset {
    /// The part it plays.
    pub role: AssetRole,
    /// Which thing it is, canonical.
    pub id: AssetId,
    /// How it is called in speech.
    pub say: Text,
    /// Grows by one each time the asset changes hands.
    pub fence: u64,
}

/// What caused an event: the ledger key and the fingerprint of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The key of the ledger row written in the same commit.
    pub key: IdempotencyKey,
    /// Fingerprint of the operation and its arguments.
    pub fingerprint: Fingerprint,
    /// The same without free texts and observation time: what a repeat without a key is known by.
    pub natural: Fingerprint,
}

impl Cause {
    /// What the chain says of a call with a sensitive value: both fingerprints under the salt that stands beside its event,
    /// so that nobody finds a short value by trying once the salt is erased.
    #[must_use]
    pub fn blinded(&self, salt: &str) -> Self {
        Self {
            key: self.key.clone(),
            fingerprint: self.fingerprint.blinded(salt),
            natural: self.natural.blinded(salt),
        }
    }
}

/// The newest event on a target, kept so that a repeat without a key is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Touch {
    /// Its event.
    pub seq: u64,
    /// Who caused it.
    pub actor: Actor,
    /// What caused it.
    pub cause: Cause,
}

/// Where a touched step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// To be done again: a decision sent it back.
    Reopened,
    /// Recorded, and to be confirmed again because a value it depended on was corrected.
    Recheck,
    /// Recorded.
    Recorded,
    /// Skipped with a reason, or without one where the policy asks none.
    Skipped,
}

/// What is known of a step that somebody touched. Untouched steps have no record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRecord {
    /// Where it stands.
    pub status: StepStatus,
    /// How many values were recorded for it so far.
    pub attempt: u32,
    /// The current value; absent when skipped or sent back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reading: Option<Reading>,
    /// The current value is outside what the policy accepts.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub out_of_range: bool,
    /// When the current value was recorded.
    pub at: Timestamp,
    /// Who recorded it.
    pub by: Person,
    /// The newest event on it.
    pub touch: Touch,
}

impl StepRecord {
    /// True when nothing more is to be done for it.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        match self.status {
            StepStatus::Recorded | StepStatus::Skipped => true,
            StepStatus::Reopened | StepStatus::Recheck => false,
        }
    }
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth writing down; blocks nothing.
    Note,
    /// Blocks, not urgent.
    Low,
    /// Blocks, urgent.
    High,
}

impl Severity {
    /// The name in arguments, results and storage.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Low => "low",
            Self::High => "high",
        }
    }
}

/// An open block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Its id.
    pub id: BlockId,
    /// Why, as a code of the policy.
    pub code: ReasonCode,
    /// The step whose value caused it, or that the report named.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step_id: Option<StepId>,
    /// The report made it, rather than a value.
    pub reported: bool,
    /// The reporter's words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub summary: Option<String>,
    /// How bad.
    pub severity: Severity,
    /// Who was told last.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub escalated_to: Option<String>,
    /// When they were told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub escalated_at: Option<Timestamp>,
    /// Until when whoever was told last had to answer; set when that passed and nobody else is told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unanswered_since: Option<Timestamp>,
    /// Who said that they know.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub acknowledged_by: Option<Person>,
    /// When they said so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub acknowledged_at: Option<Timestamp>,
    /// Since when.
    pub at: Timestamp,
    /// Who caused it.
    pub by: Person,
    /// The newest event on it.
    pub touch: Touch,
}

/// A block that is over: only what recognises a repeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedBlock {
    /// Its id.
    pub id: BlockId,
    /// The event that closed it.
    pub touch: Touch,
}

/// A wait that began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Since when: the event that opened its step.
    pub since: Timestamp,
    /// Until when.
    pub until: Timestamp,
}

/// A workflow offered to somebody else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// To whom; anybody when absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<Person>,
    /// Since when.
    pub at: Timestamp,
}

/// Everything that decisions about one workflow need; the fold of its events.
///
/// A field that this build does not know is refused: whoever dropped it would write the state back without it.
///
/// Its size is bounded by the limits on steps, assets and blocks, never by the number of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// The tenant it belongs to.
    pub tenant: TenantId,
    /// Its id.
    pub id: WorkflowId,
    /// What it runs.
    pub procedure: ProcedureRef,
    /// How it is called in lists and speech.
    pub label: Text,
    /// Where it stands.
    pub phase: Phase,
    /// How it ended; set exactly when completed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<ResultId>,
    /// `seq` of the last event.
    pub revision: u64,
    /// `hash` of the last event.
    pub last_hash: Digest,
    /// Who drives it.
    pub owner: Person,
    /// An open offer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offer: Option<Offer>,
    /// What it holds while open. Kept after completion, for the record.
    pub assets: Vec<HeldAsset>,
    /// Inputs as validated at the start, without sensitive ones.
    pub inputs: Map<String, Value>,
    /// Names of sensitive inputs that were given.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub withheld_inputs: Vec<String>,
    /// Steps that somebody touched.
    pub steps: BTreeMap<StepId, StepRecord>,
    /// Waits that began, kept when they are over: step → since when and until when. A step that is sent back has none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub waits: BTreeMap<StepId, Wait>,
    /// Who recorded, corrected or skipped a step, signatures apart; nobody is forgotten when a value is replaced.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub performers: BTreeSet<Actor>,
    /// Open blocks, oldest first.
    pub blocks: Vec<Block>,
    /// The newest blocks that are over, oldest first, bounded.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub closed_blocks: Vec<ClosedBlock>,
    /// The newest note that did not block.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_note: Option<Touch>,
    /// The event that started it.
    pub start_touch: Touch,
    /// The newest event on who owns it, or holds its assets.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ownership_touch: Option<Touch>,
    /// The event that completed it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome_touch: Option<Touch>,
    /// The step recorded last, for "where was I".
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_recorded: Option<StepId>,
    /// When it started.
    pub started_at: Timestamp,
    /// `at` of the last event.
    pub updated_at: Timestamp,
    /// Time of the last commit by a person.
    pub last_activity: Timestamp,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub completed_at: Option<Timestamp>,
    /// Orchestration fence; writes on behalf of an older execution are refused.
    pub fence: u64,
    /// Deadlines that are set, by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub deadlines: BTreeMap<String, OpenDeadline>,
}

impl Workflow {
    /// The open block with this id.
    #[must_use]
    pub fn block(&self, id: &BlockId) -> Option<&Block> {
        self.blocks.iter().find(|b| &b.id == id)
    }

    /// Somebody who worked on it, other than on this step: recorded, corrected or skipped another, or signed another.
    #[must_use]
    pub fn worked_on(&self, actor: &Actor, besides: &StepId) -> bool {
        let others = self.steps.iter().filter(|(id, _)| *id != besides);
        self.performers.contains(actor) || others.map(|(_, s)| &s.by.id).any(|by| by == actor)
    }

    /// The current reading of a recorded step.
    #[must_use]
    pub fn reading(&self, step: &StepId) -> Option<&Reading> {
        self.steps.get(step).and_then(|s| s.reading.as_ref())
    }
}
