//! I3 verified from both sides: what open workflows say that they hold, and what the lock rows say.

use std::collections::{BTreeMap, BTreeSet};

use crate::locks::{LockHolder, LockRow};
use crate::models::{AssetId, HeldAsset, TenantId, Workflow, WorkflowId};
use crate::ports::{LoadQuery, ReadError, Snapshot, StorageBackendPort};

use super::{PAGE, VerifyReport, unchanged};

type Rows = BTreeMap<(TenantId, AssetId), LockRow>;
/// Open workflows by the asset and fence they acquired.
pub(super) type Holders = BTreeMap<(TenantId, AssetId, u64), WorkflowId>;

/// A workflow and the rows of its assets.
pub(super) struct Held<'a> {
    pub(super) workflow: &'a Workflow,
    /// Assets that were released by hand, by its own events.
    pub(super) released: &'a BTreeSet<AssetId>,
    pub(super) rows: &'a Rows,
}

/// Lock rows of the assets of workflows.
pub(super) async fn of(
    store: &dyn StorageBackendPort,
    workflows: &[&Workflow],
) -> Result<Rows, ReadError> {
    let mut wanted: BTreeMap<TenantId, Vec<AssetId>> = BTreeMap::new();
    for workflow in workflows {
        let assets = wanted.entry(workflow.tenant.clone()).or_default();
        assets.extend(workflow.assets.iter().map(|a| a.id.clone()));
    }
    let mut rows = Rows::new();
    for (tenant, mut assets) in wanted {
        assets.sort();
        assets.dedup();
        for row in load(store, tenant, None, assets).await?.locks {
            rows.insert((row.tenant.clone(), row.asset_id.clone()), row);
        }
    }
    Ok(rows)
}

async fn load(
    store: &dyn StorageBackendPort,
    tenant: TenantId,
    workflow: Option<WorkflowId>,
    assets: Vec<AssetId>,
) -> Result<Snapshot, ReadError> {
    let query = LoadQuery {
        tenant,
        workflow,
        ledger: None,
        answered_as: None,
        assets,
        count_open_of: None,
    };
    store.load(&query).await
}

/// Each asset has a row that says what the workflow says.
pub(super) async fn held(
    store: &dyn StorageBackendPort,
    held: &Held<'_>,
    holders: &mut Holders,
    report: &mut VerifyReport,
) -> Result<(), ReadError> {
    let workflow = held.workflow;
    for asset in &workflow.assets {
        let place = (workflow.tenant.clone(), asset.id.clone());
        let Some(row) = held.rows.get(&place) else {
            report.find(workflow.id.as_str(), "I3", format!("asset {} has no lock row", asset.id));
            continue;
        };
        if let Some(message) = contradiction(held, asset, row, holders) {
            report.find(workflow.id.as_str(), "I3", message);
        } else if lost(held, asset, row) && unchanged(store, workflow).await? {
            let message = format!("asset {} is not held, and no event released it", asset.id);
            report.find(workflow.id.as_str(), "I3", message);
        }
    }
    Ok(())
}

/// What a row can never say, whatever happens in between.
fn contradiction(
    held: &Held<'_>,
    asset: &HeldAsset,
    row: &LockRow,
    holders: &mut Holders,
) -> Option<String> {
    let (workflow, id) = (held.workflow, &asset.id);
    let holds = row.holder.as_ref().is_some_and(|h| h.workflow_id == workflow.id);
    if row.fence < asset.fence {
        return Some(format!("asset {id} has fence {}, below {}", row.fence, asset.fence));
    }
    if !workflow.phase.is_open() {
        let message = format!("asset {id} is still held although the work is over");
        return holds.then_some(message);
    }
    let key = (workflow.tenant.clone(), id.clone(), asset.fence);
    let other = holders.insert(key, workflow.id.clone())?;
    Some(format!("asset {id} was acquired with the same fence by {other}"))
}

/// An open workflow does not hold its asset although nobody took it away.
fn lost(held: &Held<'_>, asset: &HeldAsset, row: &LockRow) -> bool {
    let workflow = held.workflow;
    let holds = row.fence == asset.fence
        && row.holder.as_ref().is_some_and(|h| h.workflow_id == workflow.id);
    workflow.phase.is_open() && !holds && !held.released.contains(&asset.id)
}

/// Each row is held by a workflow that says so.
pub(super) async fn holders(
    store: &dyn StorageBackendPort,
    only: Option<&WorkflowId>,
    report: &mut VerifyReport,
) -> Result<(), ReadError> {
    let mut after = None;
    loop {
        let page = store.list_locks(None, after.as_ref(), PAGE).await?;
        for row in &page.items {
            let holder = row.holder.as_ref();
            if only.is_some_and(|id| holder.is_none_or(|holder| id != &holder.workflow_id)) {
                continue;
            }
            report.locks += 1;
            let Some(holder) = holder else { continue };
            if !claims(store, row, holder).await? && stands(store, row).await? {
                let holder = &holder.workflow_id;
                let message = format!("it is held by {holder}, which does not have it");
                report.find(row.asset_id.as_str(), "I3", message);
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

/// The holder has acquired the asset with this fence. Work that is over is told of by [`held`].
async fn claims(
    store: &dyn StorageBackendPort,
    row: &LockRow,
    holder: &LockHolder,
) -> Result<bool, ReadError> {
    let id = Some(holder.workflow_id.clone());
    let workflow = load(store, row.tenant.clone(), id, Vec::new()).await?.workflow;
    Ok(workflow
        .is_some_and(|w| w.assets.iter().any(|a| a.id == row.asset_id && a.fence == row.fence)))
}

/// The row is still as it was listed: it is no trace of a change in between.
async fn stands(store: &dyn StorageBackendPort, row: &LockRow) -> Result<bool, ReadError> {
    let assets = vec![row.asset_id.clone()];
    let now = load(store, row.tenant.clone(), None, assets).await?.locks;
    Ok(now.contains(row))
}
