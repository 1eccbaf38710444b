//! Verifies a store from its own records: hash chains, I3, I4, I5, I6, I13. The locks: `verify/locks.rs`.

mod locks;

use std::collections::BTreeSet;

use crate::models::{Actor, AssetId, Cause, Workflow, WorkflowId};
use crate::ports::{LedgerKey, ListQuery, LoadQuery, ReadError, StorageBackendPort};
use crate::state_machine::chain::{event_hash, origin_hash};
use crate::state_machine::signature::signature;
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
    let mut walk = Walk {
        tip: origin_hash(&workflow.tenant, &workflow.id),
        seq: 0,
        state: None,
        over: false,
        causes: Vec::new(),
        released: BTreeSet::new(),
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
    let beyond = store.events(&workflow.tenant, &workflow.id, workflow.revision, 1).await?;
    if !beyond.is_empty() && unchanged(store, workflow).await? {
        walk.find("I5", "there are events after the stored revision".to_owned());
    }
    if workflow.phase.is_open() {
        marked(store, workflow, &mut walk).await?;
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

struct Walk {
    tip: crate::models::Digest,
    seq: u64,
    state: Option<Workflow>,
    over: bool,
    /// Who caused which commit, by its first event.
    causes: Vec<(u64, Actor, Cause)>,
    /// Assets that were released by hand.
    released: BTreeSet<AssetId>,
    findings: Vec<(&'static str, String)>,
}

impl Walk {
    fn find(&mut self, invariant: &'static str, message: String) {
        self.findings.push((invariant, message));
    }

    fn step(&mut self, event: &Event) {
        let due = self.seq.saturating_add(1);
        if event.seq != due {
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
        if let EventBody::LockReleased { asset_id, .. } = &event.body {
            self.released.insert(asset_id.clone());
        }
        if let EventBody::OwnershipTransferred { assets, .. } = &event.body {
            for asset in assets {
                self.released.remove(&asset.id);
            }
        }
        self.signed(event);
        // Two people may use the same key one after the other: these are two commits.
        let known = self
            .causes
            .last()
            .is_some_and(|(_, actor, cause)| *actor == event.actor && cause.key == event.cause.key);
        if event.actor.is_person() && !known {
            self.causes.push((event.seq, event.actor.clone(), event.cause.clone()));
        }
        self.over |= event.body.kind() == "workflow_completed";
        self.tip = event.hash.clone();
        // Always onwards, whatever number an event claims to have: the walk must end.
        self.seq = event.seq.max(due);
        self.state = evolve(self.state.take(), event);
    }

    /// What an event says was signed is what was known before it.
    fn signed(&mut self, event: &Event) {
        let Some(signed) = event.body.recording().and_then(|r| r.signed.as_ref()) else { return };
        let known = self.state.as_ref().and_then(|state| signature(state).ok());
        if known.as_ref() != Some(signed) {
            self.find("I4", format!("event {}: it signs something else than was known", event.seq));
        }
    }

    /// A sensitive value that still stands beside its event must be the one in the chain.
    fn sensitive(&mut self, event: &Event) {
        for beside in &event.sensitive {
            let digest = beside.digest().map(|d| d.to_string()).unwrap_or_default();
            let chained = chained_digest(&event.body, &beside.name);
            if chained.as_deref() != Some(digest.as_str()) || !is_salt(&beside.salt) {
                let message = format!("event {}: a sensitive value was changed", event.seq);
                self.find("I4", message);
            }
        }
    }
}

/// 32 hexadecimal digits. The digest is over salt and value in one, so that a salt of any length could take over digits
/// of a changed value.
fn is_salt(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn chained_digest(body: &EventBody, name: &str) -> Option<String> {
    if let Some(recording) = body.recording() {
        return recording.sensitive_digest.as_ref().map(ToString::to_string);
    }
    if let EventBody::WorkflowStarted { sensitive_inputs, .. } = body {
        let input = name.strip_prefix("inputs.")?;
        return sensitive_inputs.get(input)?.as_str().map(ToOwned::to_owned);
    }
    None
}
