//! The reference model: the storage port in memory, obvious and slow.
//!
//! One mutex around one state; nothing is awaited while it is locked. Every answer is computed by looking at
//! everything. Backends are compared with it (module `random`), so it must be easier to believe than they are.

mod commit;
mod fixture;
mod life;
mod outbox;
mod reads;
mod state;

pub use fixture::ModelFixture;
pub(crate) use fixture::disturb;
pub(crate) use outbox::stream_of;
pub(crate) use state::Lease;
pub(crate) use state::{Queued, State, StreamKey};

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use wf_core::locks::LockRow;
use wf_core::models::{Actor, Digest, Person, TenantId, Timestamp, Workflow, WorkflowId};
use wf_core::policy::Definition;
use wf_core::ports::{
    Backlog, Claim, ClaimedDeadline, ClaimedStream, Commit, CommitError, Cursor, DefinitionError,
    Erasure, ListQuery, LoadQuery, NextDeadline, OpenError, OutboxPage, OutboxPurge, OutboxQuery,
    Page, Purge, Purged, ReadError, Recent, SettleError, Settlement, Snapshot, StorageBackendPort,
    StoreIdentity, Swept, Tombstone,
};
use wf_core::state_machine::Event;

/// A store in memory. A clone is another handle on the same store.
#[derive(Debug, Clone)]
pub struct ModelStore {
    state: Arc<Mutex<State>>,
}

impl Default for ModelStore {
    fn default() -> Self {
        Self::new()
    }
}

impl ModelStore {
    /// The schema version that this model knows.
    pub const SCHEMA: u64 = 1;

    /// A new, empty store. Its identity differs from that of every other store of this process; it is not random.
    #[must_use]
    pub fn new() -> Self {
        static STORES: AtomicU64 = AtomicU64::new(1);
        Self::numbered(STORES.fetch_add(1, Ordering::Relaxed))
    }

    /// A new, empty store whose identity follows from the number, for runs that must be repeatable.
    #[must_use]
    pub fn numbered(number: u64) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(number))) }
    }

    /// Another handle on the same store, as another process would open it.
    ///
    /// # Errors
    /// [`OpenError::NewerSchema`] when the store's schema is newer than [`SCHEMA`](Self::SCHEMA).
    pub fn reopen(&self) -> Result<Self, OpenError> {
        let found = self.lock().schema;
        if found > Self::SCHEMA {
            let known = Self::SCHEMA;
            return Err(OpenError::NewerSchema { found, known });
        }
        Ok(self.clone())
    }

    /// Sets the schema version, as a newer build would.
    pub fn set_schema(&self, version: u64) {
        self.lock().schema = version;
    }

    /// The state, for tests that break it on purpose.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing here leaves the state half changed, so a panic of another test's thread does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl StorageBackendPort for ModelStore {
    async fn identity(&self) -> Result<StoreIdentity, ReadError> {
        Ok(self.lock().identity.clone())
    }

    async fn load(&self, query: &LoadQuery) -> Result<Snapshot, ReadError> {
        Ok(self.lock().load(query))
    }

    async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        self.lock().commit(commit)
    }

    async fn events(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, ReadError> {
        Ok(self.lock().events(tenant, workflow, after, limit))
    }

    async fn open_of(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        Ok(self.lock().open_of(tenant, actor, limit))
    }

    async fn offered_to(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        Ok(self.lock().offered_to(tenant, actor, limit))
    }

    async fn people(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Person>, ReadError> {
        Ok(self.lock().people(tenant, limit))
    }

    async fn blocked(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Workflow>, ReadError> {
        Ok(self.lock().blocked(tenant, limit))
    }

    async fn last_completed(
        &self,
        tenant: &TenantId,
        whose: &Recent,
    ) -> Result<Option<Workflow>, ReadError> {
        Ok(self.lock().last_completed(tenant, whose))
    }

    async fn list(&self, query: &ListQuery) -> Result<Page<Workflow>, ReadError> {
        of_a_page(query.after.as_ref())?;
        Ok(self.lock().list(query))
    }

    async fn list_locks(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LockRow>, ReadError> {
        of_a_page(after)?;
        Ok(self.lock().list_locks(tenant, after, limit))
    }

    async fn put_definition(&self, definition: &Definition) -> Result<(), DefinitionError> {
        self.lock().put_definition(definition)
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Definition>, ReadError> {
        Ok(self.lock().definitions.get(digest).cloned())
    }

    async fn claim_outbox(&self, claim: &Claim) -> Result<Vec<ClaimedStream>, ReadError> {
        Ok(self.lock().claim_outbox(claim))
    }

    async fn settle_outbox(&self, settlement: &Settlement) -> Result<(), SettleError> {
        self.lock().settle_outbox(settlement)
    }

    async fn list_outbox(&self, query: &OutboxQuery) -> Result<OutboxPage, ReadError> {
        of_a_page(query.after.as_ref())?;
        let Page { items, next } = self.lock().list_outbox(query);
        Ok(OutboxPage { items, damaged: Vec::new(), next })
    }

    async fn outbox_backlog(&self, limit: u32) -> Result<Backlog, ReadError> {
        Ok(self.lock().outbox_backlog(limit))
    }

    async fn purge_outbox(&self, purge: &OutboxPurge) -> Result<u64, SettleError> {
        Ok(self.lock().purge_outbox(purge))
    }

    async fn revive_outbox(&self, id: &str, now: Timestamp) -> Result<bool, SettleError> {
        Ok(self.lock().revive_outbox(id, now))
    }

    async fn claim_deadlines(&self, claim: &Claim) -> Result<Vec<ClaimedDeadline>, ReadError> {
        Ok(self.lock().claim_deadlines(claim))
    }

    async fn next_deadline(
        &self,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<NextDeadline, ReadError> {
        Ok(NextDeadline { at: self.lock().next_deadline(now, lease_ms), shared: false })
    }

    async fn settle_deadline(&self, claimed: &ClaimedDeadline) -> Result<(), SettleError> {
        self.lock().settle_deadline(claimed)
    }

    async fn erase(&self, erasure: &Erasure) -> Result<bool, SettleError> {
        Ok(self.lock().erase(erasure))
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, SettleError> {
        Ok(self.lock().purge(purge))
    }

    async fn tombstone(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
    ) -> Result<Option<Tombstone>, ReadError> {
        Ok(self.lock().tombstones.get(&(tenant.clone(), workflow.clone())).cloned())
    }

    async fn sweep(
        &self,
        now: Timestamp,
        retention_ms: i64,
        limit: u32,
    ) -> Result<Swept, SettleError> {
        Ok(self.lock().sweep(now, retention_ms, limit))
    }
}

/// No row has an empty place, nor one with a control character. Any other text is a place here, although perhaps of no row.
fn of_a_page(after: Option<&Cursor>) -> Result<(), ReadError> {
    let is_none = |text: &str| text.is_empty() || text.contains(char::is_control);
    if after.is_some_and(|after| is_none(&after.0)) { Err(ReadError::BadCursor) } else { Ok(()) }
}
