//! Deletes completed workflows with all that belongs to them. What is left is a tombstone, by which evidence that was
//! exported before is still compared.
//!
//! A workflow goes when its keys have expired (`idempotency.retention` after its end, or when the sweep said), so that no
//! repeat of a call finds its ledger row gone while the row would still count. Afterwards such a repeat is what it is after
//! any expiry: a start begins a new workflow under a new id, everything else finds no workflow.

use crate::models::{Actor, Timestamp, Workflow};
use crate::ports::{Purge, Purged, SettleError, StorageBackendPort, Tombstone};

/// How to purge.
#[derive(Debug, Clone)]
pub struct Manner {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: Actor,
    /// Why.
    pub reason: Option<String>,
    /// How long keys count after the end of a workflow, where no sweep was there.
    pub retention_ms: i64,
    /// Messages that were not delivered go, too.
    pub undelivered_too: bool,
    /// Only say whether it could be.
    pub check_only: bool,
}

/// Purges one workflow, piece by piece; what an interruption left is taken by the next run. Never answers `More`.
///
/// # Errors
/// [`SettleError`] when the store does not answer; the same again goes on.
pub async fn purge(
    store: &dyn StorageBackendPort,
    workflow: &Workflow,
    manner: &Manner,
) -> Result<Purged, SettleError> {
    let Manner { at, by, reason, retention_ms, undelivered_too, check_only } = manner;
    let purge = Purge {
        tombstone: Tombstone::of(workflow, *at, by.clone(), reason.clone()),
        retention_ms: *retention_ms,
        undelivered_too: *undelivered_too,
        check_only: *check_only,
    };
    loop {
        match store.purge(&purge).await? {
            Purged::More => {}
            end @ (Purged::Done | Purged::Changed | Purged::KeysCount | Purged::Undelivered(_)) => {
                return Ok(end);
            }
        }
    }
}
