//! A store in memory, enough for the engine, whose commits can be held back.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio::sync::watch;
use wf_core::locks::{LockChange, LockHolder, LockRow};
use wf_core::models::{Actor, AssetId, Digest, Phase, TenantId, Timestamp, Workflow, WorkflowId};
use wf_core::policy::Definition;
use wf_core::ports::{
    Claim, ClaimedDeadline, ClaimedStream, Commit, CommitError, Conflict, Cursor, DefinitionError,
    LedgerRow, ListQuery, LoadQuery, OutboxQuery, OutboxRow, Page, ReadError, Recent, SettleError,
    Settlement, Snapshot, StorageBackendPort, StoreIdentity, Swept,
};
use wf_core::state_machine::{Event, Secret};

#[derive(Debug, Default)]
struct Rows {
    workflows: BTreeMap<String, Workflow>,
    events: BTreeMap<String, Vec<Event>>,
    ledger: Vec<LedgerRow>,
    locks: BTreeMap<AssetId, LockRow>,
    commits: usize,
}

#[derive(Debug)]
pub(crate) struct Shelf {
    rows: Mutex<Rows>,
    held: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
    breaks: AtomicBool,
}

impl Default for Shelf {
    fn default() -> Self {
        Self {
            rows: Mutex::default(),
            held: watch::channel(false).0,
            waiting: watch::channel(0).0,
            breaks: AtomicBool::new(false),
        }
    }
}

impl Shelf {
    /// Commits wait from now on.
    pub(crate) fn hold(&self) {
        self.waiting.send_replace(0);
        self.held.send_replace(true);
    }

    /// Waiting commits go on.
    pub(crate) fn release(&self) {
        self.held.send_replace(false);
    }

    /// So many commits are waiting.
    pub(crate) async fn waiting(&self, count: usize) {
        let mut waiting = self.waiting.subscribe();
        let arrived = waiting.wait_for(|found| *found == count);
        crate::world::within(arrived).await.expect("the store lives");
    }

    /// How many commits were applied.
    pub(crate) fn commits(&self) -> usize {
        self.rows().commits
    }

    /// The next load panics.
    pub(crate) fn break_next_load(&self) {
        self.breaks.store(true, Ordering::Release);
    }

    fn rows(&self) -> std::sync::MutexGuard<'_, Rows> {
        self.rows.lock().expect("no test panics in here")
    }

    fn apply(&self, commit: Commit) -> Result<(), CommitError> {
        let mut rows = self.rows();
        let conflict = |conflict| Err(CommitError::Conflict(conflict));
        let key = &commit.ledger.key;
        if let Some(row) = rows.ledger.iter().find(|row| &row.key == key) {
            return conflict(Conflict::Ledger(Box::new(row.clone())));
        }
        for change in &commit.locks {
            let row = rows.locks.get(change.asset_id()).cloned();
            let holder = row.as_ref().and_then(|r| r.holder.as_ref()).map(|h| &h.workflow_id);
            let fits = match change {
                LockChange::Acquire { fence, .. } => {
                    holder.is_none() && row.as_ref().map_or(0, |r| r.fence) + 1 == *fence
                }
                LockChange::Assert { fence, .. } => {
                    holder == Some(&commit.next.id)
                        && row.as_ref().is_some_and(|r| r.fence == *fence)
                }
                LockChange::Release { .. } => true,
            };
            if !fits {
                let asset_id = change.asset_id().clone();
                return conflict(Conflict::Asset { asset_id, row });
            }
        }
        let id = commit.next.id.to_string();
        let current = rows.workflows.get(&id).map_or(0, |w| w.revision);
        if current != commit.expected {
            return conflict(Conflict::Revision { current });
        }
        for change in &commit.locks {
            let asset_id = change.asset_id().clone();
            match change {
                LockChange::Acquire { fence, .. } => {
                    let row = LockRow {
                        tenant: commit.next.tenant.clone(),
                        asset_id: asset_id.clone(),
                        fence: *fence,
                        holder: Some(LockHolder {
                            workflow_id: commit.next.id.clone(),
                            owner: commit.next.owner.clone(),
                            acquired_at: commit.next.updated_at,
                        }),
                    };
                    rows.locks.insert(asset_id, row);
                }
                LockChange::Assert { .. } => {}
                LockChange::Release { .. } => {
                    if let Some(row) = rows.locks.get_mut(&asset_id) {
                        row.holder = None;
                    }
                }
            }
        }
        rows.events.entry(id.clone()).or_default().extend(commit.events);
        rows.ledger.push(commit.ledger);
        rows.workflows.insert(id, commit.next);
        rows.commits += 1;
        Ok(())
    }
}

fn page<T>(items: Vec<T>) -> Page<T> {
    Page { items, next: None }
}

#[async_trait]
impl StorageBackendPort for Shelf {
    async fn identity(&self) -> Result<StoreIdentity, ReadError> {
        Ok(StoreIdentity {
            id: "0123456789abcdef".to_owned(),
            secrets: vec![Secret::new(vec![7; 32])],
        })
    }

    async fn load(&self, query: &LoadQuery) -> Result<Snapshot, ReadError> {
        assert!(!self.breaks.swap(false, Ordering::AcqRel), "a planted bug");
        let rows = self.rows();
        let workflow = query
            .workflow
            .as_ref()
            .and_then(|id| rows.workflows.get(id.as_str()))
            .filter(|w| w.tenant == query.tenant)
            .cloned();
        let mut assets = query.assets.clone();
        assets.extend(workflow.iter().flat_map(|w| w.assets.iter().map(|a| a.id.clone())));
        assets.sort();
        assets.dedup();
        let ledger = query.ledger.as_ref();
        let ledger = ledger.and_then(|key| rows.ledger.iter().find(|row| &row.key == key));
        let open_of = |actor: &Actor| {
            rows.workflows.values().filter(|w| w.phase.is_open() && &w.owner.id == actor).count()
        };
        let count = query.count_open_of.as_ref().map_or(0, open_of);
        Ok(Snapshot {
            workflow,
            ledger: ledger.cloned(),
            locks: assets.iter().filter_map(|id| rows.locks.get(id).cloned()).collect(),
            open_count: u32::try_from(count).expect("few"),
        })
    }

    async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        let mut held = self.held.subscribe();
        if *held.borrow() {
            self.waiting.send_modify(|count| *count += 1);
        }
        held.wait_for(|held| !held).await.expect("the store lives");
        self.apply(commit)
    }

    async fn events(
        &self,
        _: &TenantId,
        workflow: &WorkflowId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, ReadError> {
        let rows = self.rows();
        let events = rows.events.get(workflow.as_str()).into_iter().flatten();
        let limit = usize::try_from(limit).expect("small");
        Ok(events.filter(|event| event.seq > after).take(limit).cloned().collect())
    }

    async fn open_of(
        &self,
        _: &TenantId,
        actor: &Actor,
        _: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        let rows = self.rows();
        let open = rows.workflows.values().filter(|w| w.phase.is_open() && &w.owner.id == actor);
        Ok(open.cloned().collect())
    }

    async fn offered_to(
        &self,
        _: &TenantId,
        _: &Actor,
        _: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        Ok(Vec::new())
    }

    async fn blocked(&self, _: &TenantId, _: u32) -> Result<Vec<Workflow>, ReadError> {
        let rows = self.rows();
        let blocked = rows.workflows.values().filter(|w| w.phase == Phase::Blocked);
        Ok(blocked.cloned().collect())
    }

    async fn last_completed(
        &self,
        _: &TenantId,
        _: &Recent,
    ) -> Result<Option<Workflow>, ReadError> {
        let rows = self.rows();
        Ok(rows.workflows.values().rfind(|w| w.phase == Phase::Completed).cloned())
    }

    async fn list(&self, _: &ListQuery) -> Result<Page<Workflow>, ReadError> {
        Ok(page(self.rows().workflows.values().cloned().collect()))
    }

    async fn list_locks(
        &self,
        _: Option<&TenantId>,
        _: Option<&Cursor>,
        _: u32,
    ) -> Result<Page<LockRow>, ReadError> {
        Ok(page(self.rows().locks.values().cloned().collect()))
    }

    async fn put_definition(&self, _: &Definition) -> Result<(), DefinitionError> {
        Ok(())
    }

    async fn definition(&self, _: &Digest) -> Result<Option<Definition>, ReadError> {
        Ok(None)
    }

    async fn claim_outbox(&self, _: &Claim) -> Result<Vec<ClaimedStream>, ReadError> {
        Ok(Vec::new())
    }

    async fn settle_outbox(&self, _: &Settlement) -> Result<(), SettleError> {
        Ok(())
    }

    async fn list_outbox(&self, _: &OutboxQuery) -> Result<Page<OutboxRow>, ReadError> {
        Ok(page(Vec::new()))
    }

    async fn revive_outbox(&self, _: &str, _: Timestamp) -> Result<bool, SettleError> {
        Ok(false)
    }

    async fn claim_deadlines(&self, _: &Claim) -> Result<Vec<ClaimedDeadline>, ReadError> {
        Ok(Vec::new())
    }

    async fn settle_deadline(&self, _: &ClaimedDeadline) -> Result<(), SettleError> {
        Ok(())
    }

    async fn sweep(&self, _: Timestamp, _: i64, _: u32) -> Result<Swept, SettleError> {
        Ok(Swept::default())
    }
}
