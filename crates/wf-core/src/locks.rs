//! Asset locks: what a commit does to them. Pure data and the rules that decide it.

use serde::{Deserialize, Serialize};

use crate::models::{AssetId, HeldAsset, Person, TenantId, Timestamp, Workflow, WorkflowId};

/// A lock row. It stays when the asset is free, so that a fence is never used twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRow {
    /// The tenant.
    pub tenant: TenantId,
    /// The asset.
    pub asset_id: AssetId,
    /// Grows by one each time the asset changes hands.
    pub fence: u64,
    /// Who holds it; `None` when it is free.
    pub holder: Option<LockHolder>,
}

/// Who holds an asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// The person who drives it.
    pub owner: Person,
    /// Since when.
    pub acquired_at: Timestamp,
}

impl LockRow {
    /// `workflow` still holds the row's asset as it acquired it.
    #[must_use]
    pub fn is_of(&self, workflow: &Workflow, asset: &HeldAsset) -> bool {
        self.asset_id == asset.id
            && self.fence == asset.fence
            && self.holder.as_ref().is_some_and(|holder| holder.workflow_id == workflow.id)
    }
}

/// The first asset that an open workflow no longer holds; `rows` are the lock rows of its assets.
#[must_use]
pub fn lost<'w>(workflow: &'w Workflow, rows: &[LockRow]) -> Option<&'w HeldAsset> {
    let lost = |asset: &&HeldAsset| !rows.iter().any(|row| row.is_of(workflow, asset));
    workflow.assets.iter().filter(|_| workflow.phase.is_open()).find(lost)
}

/// One change or condition of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockChange {
    /// The row is free (or absent, which is fence 0) with fence `fence - 1`: this workflow holds it with `fence`.
    /// Else `Conflict::Asset`.
    Acquire {
        /// The asset.
        asset_id: AssetId,
        /// The fence it will have.
        fence: u64,
    },
    /// The row is free (or absent, which is fence 0) or this workflow's own already, with fence `fence - 1`: this
    /// workflow holds it with `fence`, for its owner after the commit. At no time is it free in between. Else
    /// `Conflict::Asset`.
    Take {
        /// The asset.
        asset_id: AssetId,
        /// The fence it will have.
        fence: u64,
    },
    /// This workflow holds it with `fence`; nothing is written. Else `Conflict::Asset`.
    Assert {
        /// The asset.
        asset_id: AssetId,
        /// The fence it has.
        fence: u64,
    },
    /// Free it where this workflow still holds it with `fence`; else leave it as it is. Never a conflict.
    Release {
        /// The asset.
        asset_id: AssetId,
        /// The fence it has.
        fence: u64,
    },
}

impl LockChange {
    /// The asset.
    #[must_use]
    pub const fn asset_id(&self) -> &AssetId {
        match self {
            Self::Acquire { asset_id, .. }
            | Self::Take { asset_id, .. }
            | Self::Assert { asset_id, .. }
            | Self::Release { asset_id, .. } => asset_id,
        }
    }
}
