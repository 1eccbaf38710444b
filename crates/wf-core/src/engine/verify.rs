//! Verifies a store from its own records: hash chains, I3, I4, I5, I6, I13. The locks: `verify/locks.rs`.

mod locks;

use std::collections::BTreeSet;

use crate::models::{AssetId, Workflow, WorkflowId};
use crate::ports::{LedgerKey, ListQuery, LoadQuery, ReadError, StorageBackendPort};
use crate::state_machine::walk::Walk;

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where; the asset for a lock of no workflow.
    pub workflow_id: String,
    /// Which invariant of domain.md, for example `I4`.
    pub invariant: &'static str,
    /// What is wrong.
    pub message: String,
}

/// What was looked at and found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyReport {
    /// Workflows looked at.
    pub workflows: u64,
    /// Events looked at.
    pub events: u64,
    /// Lock rows looked at.
    pub locks: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

const PAGE: u32 = 200;

/// Recomputes everything that can be recomputed, over the whole store or for one workflow. `progress` is told how many
/// workflows are done.
///
/// Reads go on while others write: each workflow is looked at as it was listed, and what could come from a change in
/// between is a finding only when the workflow has not changed since.
///
/// # Errors
/// [`ReadError`] when the store does not answer.
pub async fn verify(
    store: &dyn StorageBackendPort,
    only: Option<&WorkflowId>,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<VerifyReport, ReadError> {
    let mut report = VerifyReport::default();
    let mut holders = locks::Holders::new();
    let mut query = ListQuery { limit: PAGE, ..ListQuery::default() };
    loop {
        let page = store.list(&query).await?;
        let meant: Vec<&Workflow> =
            page.items.iter().filter(|w| only.is_none_or(|id| id == &w.id)).collect();
        // Read after the workflows: a lock that was acquired later never looks missing.
        let rows = locks::of(store, &meant).await?;
        for workflow in meant {
            let released = chain(store, workflow, &mut report).await?;
            let held = locks::Held { workflow, released: &released, rows: &rows };
            locks::held(store, &held, &mut holders, &mut report).await?;
            report.workflows += 1;
            progress(report.workflows);
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    locks::holders(store, only, &mut report).await?;
    Ok(report)
}

impl VerifyReport {
    fn find(&mut self, place: impl Into<String>, invariant: &'static str, message: String) {
        self.findings.push(Finding { workflow_id: place.into(), invariant, message });
    }
}

/// The workflow has not changed since it was listed.
async fn unchanged(store: &dyn StorageBackendPort, workflow: &Workflow) -> Result<bool, ReadError> {
    let query = LoadQuery {
        tenant: workflow.tenant.clone(),
        workflow: Some(workflow.id.clone()),
        ledger: None,
        assets: Vec::new(),
        answered_as: None,
        count_open_of: None,
    };
    let now = store.load(&query).await?.workflow;
    Ok(now.is_some_and(|now| now.revision == workflow.revision))
}

/// Walks one history up to the listed revision: later events belong to commits that came after the listing. Returns the
/// assets that were released by hand.
async fn chain(
    store: &dyn StorageBackendPort,
    workflow: &Workflow,
    report: &mut VerifyReport,
) -> Result<BTreeSet<AssetId>, ReadError> {
    let mut walk = Walk::new(&workflow.tenant, &workflow.id);
    while walk.seq < workflow.revision {
        let left = workflow.revision - walk.seq;
        let limit = u32::try_from(left.min(u64::from(PAGE))).unwrap_or(PAGE);
        let events = store.events(&workflow.tenant, &workflow.id, walk.seq, limit).await?;
        if events.is_empty() {
            walk.find("I4", format!("events after {} are missing", walk.seq));
            break;
        }
        report.events += u64::try_from(events.len()).unwrap_or(u64::MAX);
        for event in &events {
            walk.step(event);
        }
    }
    walk.end(workflow);
    let beyond = store.events(&workflow.tenant, &workflow.id, workflow.revision, 1).await?;
    if !beyond.is_empty() && unchanged(store, workflow).await? {
        walk.find("I5", "there are events after the stored revision".to_owned());
    }
    if workflow.phase.is_open() {
        marked(store, workflow, &mut walk).await?;
    }
    // What is being purged has its tombstone before anything of it is gone.
    let damaged = !walk.findings.is_empty() && !workflow.phase.is_open();
    if damaged && store.tombstone(&workflow.tenant, &workflow.id).await?.is_some() {
        return Ok(walk.released);
    }
    for (invariant, message) in walk.findings {
        report.find(workflow.id.as_str(), invariant, message);
    }
    Ok(walk.released)
}

/// Every commit of an open workflow has its ledger row: without it the call could be done twice.
async fn marked(
    store: &dyn StorageBackendPort,
    workflow: &Workflow,
    walk: &mut Walk,
) -> Result<(), ReadError> {
    for (seq, actor, cause) in std::mem::take(&mut walk.causes) {
        let key = LedgerKey { tenant: workflow.tenant.clone(), actor, key: cause.key };
        let query = LoadQuery {
            tenant: workflow.tenant.clone(),
            workflow: None,
            ledger: Some(key),
            assets: Vec::new(),
            answered_as: None,
            count_open_of: None,
        };
        let row = store.load(&query).await?.ledger;
        let right = row.is_some_and(|row| {
            row.workflow_id == workflow.id && row.entry.fingerprint == cause.fingerprint
        });
        if !right {
            walk.find("I5", format!("the commit of event {seq} has no ledger row"));
        }
    }
    Ok(())
}
