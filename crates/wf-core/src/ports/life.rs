//! The end of data: sensitive values that are erased, workflows that are purged. What asks for it is `engine::erase` and
//! `engine::purge`.

use serde::{Deserialize, Serialize};

use crate::models::{
    Actor, Digest, ProcedureRef, ResultId, TenantId, Timestamp, Workflow, WorkflowId,
};
use crate::state_machine::SensitiveValue;

/// What takes the place of everything that stands beside one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The tenant.
    pub tenant: TenantId,
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// The event.
    pub seq: u64,
    /// What stands beside it, as it was read; never empty.
    pub was: Vec<SensitiveValue>,
    /// What is left of that.
    pub becomes: Vec<SensitiveValue>,
}

/// What is left of a workflow that was purged, for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// The tenant.
    pub tenant: TenantId,
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// What it ran.
    pub procedure: ProcedureRef,
    /// `seq` of its last event.
    pub revision: u64,
    /// `hash` of its last event: a document of evidence that was taken before is compared with it.
    pub last_hash: Digest,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<ResultId>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub completed_at: Option<Timestamp>,
    /// When it was purged.
    pub purged_at: Timestamp,
    /// By whom.
    pub purged_by: Actor,
    /// Why, if that was said.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

impl Tombstone {
    /// What will be left of `workflow`.
    #[must_use]
    pub fn of(workflow: &Workflow, at: Timestamp, by: Actor, reason: Option<String>) -> Self {
        Self {
            tenant: workflow.tenant.clone(),
            workflow_id: workflow.id.clone(),
            procedure: workflow.procedure.clone(),
            revision: workflow.revision,
            last_hash: workflow.last_hash.clone(),
            result: workflow.result.clone(),
            started_at: workflow.started_at,
            completed_at: workflow.completed_at,
            purged_at: at,
            purged_by: by,
            reason,
        }
    }
}

/// A workflow to be deleted with all that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purge {
    /// Which, and what will be left of it; `purged_at` is now.
    pub tombstone: Tombstone,
    /// How long a ledger row that no sweep has given an expiry counts after the end of the workflow.
    pub retention_ms: i64,
    /// Messages that were not delivered go, too.
    pub undelivered_too: bool,
    /// Only say whether it could be.
    pub check_only: bool,
}

impl Purge {
    /// When a ledger row of the workflow expires that no sweep has given an expiry, in ms since the epoch.
    #[must_use]
    pub fn expiry_ms(&self) -> i64 {
        self.tombstone
            .completed_at
            .map_or(i64::MAX, |end| end.as_ms().saturating_add(self.retention_ms))
    }
}

/// What became of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purged {
    /// It is gone, or would be; its tombstone is there unless it was only asked.
    Done,
    /// The tombstone is there, and some of it is left: the same again goes on.
    More,
    /// It is not completed at the revision of the tombstone, or there is none such. Nothing was deleted.
    Changed,
    /// A ledger row of it counts still, so that a repeat of its call could be done again. Nothing was deleted.
    KeysCount,
    /// So many messages are pending or were given up. Nothing was deleted.
    Undelivered(u64),
}
