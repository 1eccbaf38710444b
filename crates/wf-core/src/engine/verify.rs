//! Verifies a store from its own records: hash chains, I3, I4, I6, I13.

use std::collections::BTreeMap;

use crate::locks::LockRow;
use crate::models::{AssetId, Phase, TenantId, Workflow, WorkflowId};
use crate::ports::{ListQuery, LoadQuery, ReadError, StorageBackendPort};
use crate::state_machine::chain::{event_hash, origin_hash};
use crate::state_machine::{Event, EventBody, evolve};

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
/// Reads go on while others write: a workflow that changed in between is read again from its new state.
///
/// # Errors
/// [`ReadError`] when the store does not answer.
pub async fn verify(
    store: &dyn StorageBackendPort,
    only: Option<&WorkflowId>,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<VerifyReport, ReadError> {
    let mut report = VerifyReport::default();
    let mut holders = Holders::new();
    let mut query = ListQuery { limit: PAGE, ..ListQuery::default() };
    loop {
        let page = store.list(&query).await?;
        let meant: Vec<&Workflow> =
            page.items.iter().filter(|w| only.is_none_or(|id| id == &w.id)).collect();
        // Read after the workflows: a lock that was acquired later never looks missing.
        let locks = locks_of(store, &meant).await?;
        report.locks += u64::try_from(locks.len()).unwrap_or(u64::MAX);
        for workflow in meant {
            chain(store, workflow, &mut report).await?;
            held(workflow, &locks, &mut holders, &mut report);
            report.workflows += 1;
            progress(report.workflows);
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(report),
        }
    }
}

type Locks = BTreeMap<(TenantId, AssetId), LockRow>;
/// Open workflows by the asset and fence they acquired.
type Holders = BTreeMap<(TenantId, AssetId, u64), WorkflowId>;

async fn locks_of(
    store: &dyn StorageBackendPort,
    workflows: &[&Workflow],
) -> Result<Locks, ReadError> {
    let mut wanted: BTreeMap<TenantId, Vec<AssetId>> = BTreeMap::new();
    for workflow in workflows {
        let assets = wanted.entry(workflow.tenant.clone()).or_default();
        assets.extend(workflow.assets.iter().map(|a| a.id.clone()));
    }
    let mut rows = Locks::new();
    for (tenant, mut assets) in wanted {
        assets.sort();
        assets.dedup();
        let query = LoadQuery { tenant, workflow: None, ledger: None, assets, count_open_of: None };
        for row in store.load(&query).await?.locks {
            rows.insert((row.tenant.clone(), row.asset_id.clone()), row);
        }
    }
    Ok(rows)
}

/// Walks one history up to the listed revision: later events belong to commits that came after the listing.
async fn chain(
    store: &dyn StorageBackendPort,
    workflow: &Workflow,
    report: &mut VerifyReport,
) -> Result<(), ReadError> {
    let mut walk = Walk {
        tip: origin_hash(&workflow.tenant, &workflow.id),
        seq: 0,
        state: None,
        over: false,
        findings: Vec::new(),
    };
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
    if walk.findings.is_empty() && walk.state.as_ref() != Some(workflow) {
        walk.find("I13", "the stored state is not the fold of its events".to_owned());
    }
    let id = workflow.id.to_string();
    report.findings.extend(walk.findings.into_iter().map(|(invariant, message)| Finding {
        workflow_id: id.clone(),
        invariant,
        message,
    }));
    Ok(())
}

struct Walk {
    tip: crate::models::Digest,
    seq: u64,
    state: Option<Workflow>,
    over: bool,
    findings: Vec<(&'static str, String)>,
}

impl Walk {
    fn find(&mut self, invariant: &'static str, message: String) {
        self.findings.push((invariant, message));
    }

    fn step(&mut self, event: &Event) {
        if event.seq != self.seq + 1 {
            self.find("I4", format!("event {} follows event {}", event.seq, self.seq));
        }
        if event.prev_hash != self.tip {
            self.find("I4", format!("event {} does not follow the event before it", event.seq));
        }
        match event_hash(event) {
            Ok(hash) if hash == event.hash => {}
            Ok(_) | Err(_) => {
                self.find("I4", format!("event {} was changed: its hash differs", event.seq));
            }
        }
        if self.over {
            self.find("I6", format!("event {} comes after the completion", event.seq));
        }
        self.sensitive(event);
        self.over |= event.body.kind() == "workflow_completed";
        self.tip = event.hash.clone();
        self.seq = event.seq;
        self.state = evolve(self.state.take(), event);
    }

    /// A sensitive value that still stands beside its event must be the one in the chain.
    fn sensitive(&mut self, event: &Event) {
        for beside in &event.sensitive {
            let digest = beside.digest().map(|d| d.to_string()).unwrap_or_default();
            let chained = chained_digest(&event.body, &beside.name);
            if chained.as_deref() != Some(digest.as_str()) {
                let message = format!("event {}: a sensitive value was changed", event.seq);
                self.find("I4", message);
            }
        }
    }
}

fn chained_digest(body: &EventBody, name: &str) -> Option<String> {
    if let EventBody::StepRecorded { sensitive_digest, .. }
    | EventBody::StepCorrected { sensitive_digest, .. } = body
    {
        return sensitive_digest.as_ref().map(ToString::to_string);
    }
    if let EventBody::WorkflowStarted { sensitive_inputs, .. } = body {
        let input = name.strip_prefix("inputs.")?;
        return sensitive_inputs.get(input)?.as_str().map(ToOwned::to_owned);
    }
    None
}

/// I3: at most one open workflow holds an asset, and the lock row says the same.
fn held(workflow: &Workflow, locks: &Locks, holders: &mut Holders, report: &mut VerifyReport) {
    let mut find = |message: String| {
        report.findings.push(Finding {
            workflow_id: workflow.id.to_string(),
            invariant: "I3",
            message,
        });
    };
    for asset in &workflow.assets {
        let tenant = workflow.tenant.clone();
        let Some(row) = locks.get(&(tenant.clone(), asset.id.clone())) else {
            find(format!("asset {} has no lock row", asset.id));
            continue;
        };
        if row.fence < asset.fence {
            find(format!("asset {} has fence {}, below {}", asset.id, row.fence, asset.fence));
        }
        if workflow.phase == Phase::Completed {
            if row.holder.as_ref().is_some_and(|h| h.workflow_id == workflow.id) {
                find(format!("asset {} is still held although the work is over", asset.id));
            }
            continue;
        }
        let key = (tenant, asset.id.clone(), asset.fence);
        if let Some(other) = holders.insert(key, workflow.id.clone()) {
            find(format!("asset {} was acquired with the same fence by {other}", asset.id));
        }
    }
}
