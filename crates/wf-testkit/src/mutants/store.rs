//! The port over a model with a mutation: each method asks the file of its subject.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use wf_core::locks::LockRow;
use wf_core::models::{Actor, Digest, Person, TenantId, Timestamp, Workflow, WorkflowId};
use wf_core::policy::Definition;
use wf_core::ports::{
    Backlog, Claim, ClaimedDeadline, ClaimedStream, Commit, CommitError, Cursor, DefinitionError,
    Erasure, ListQuery, LoadQuery, NextDeadline, OutboxPage, OutboxPurge, OutboxQuery, Page, Purge,
    Purged, ReadError, Recent, SettleError, Settlement, Snapshot, StorageBackendPort,
    StoreIdentity, Swept, Tombstone,
};
use wf_core::state_machine::Event;

use super::Mutation;
use crate::fault::FaultStore;
use crate::model::{self, ModelStore, State};

/// A store that breaks the law in one way, or in none. A clone is another handle on the same store.
#[derive(Debug, Clone)]
pub struct MutantStore {
    mutation: Option<Mutation>,
    model: ModelStore,
    faulty: FaultStore,
    shared: Arc<Shared>,
}

/// What the mutations remember.
#[derive(Debug)]
struct Shared {
    /// How many reads there were.
    reads: AtomicUsize,
    /// A commit was dropped half-way.
    poisoned: AtomicBool,
    /// The state before the newest commit.
    before: Mutex<State>,
}

impl MutantStore {
    /// A new, empty store with this mutation.
    #[must_use]
    pub fn new(mutation: Option<Mutation>) -> Self {
        let model = ModelStore::new();
        let before = Mutex::new(model.lock().clone());
        Self {
            mutation,
            faulty: FaultStore::new(Arc::new(model.clone())),
            model,
            shared: Arc::new(Shared {
                reads: AtomicUsize::new(0),
                poisoned: AtomicBool::new(false),
                before,
            }),
        }
    }

    pub(super) fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub(super) const fn model(&self) -> &ModelStore {
        &self.model
    }

    /// The way to the model that can be disturbed.
    pub(super) const fn faulty(&self) -> &FaultStore {
        &self.faulty
    }

    pub(super) async fn disturb(&self, on: bool) {
        model::disturb(&self.faulty, on).await;
    }

    pub(super) fn poisoned(&self) -> &AtomicBool {
        &self.shared.poisoned
    }

    /// Keeps the state as it is now for reads that lag.
    pub(super) fn remember(&self) {
        let now = self.model.lock().clone();
        *self.shared.before.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// What a read of the state before the newest commit finds.
    pub(super) fn load_before(&self, query: &LoadQuery) -> Snapshot {
        self.shared.before.lock().unwrap_or_else(PoisonError::into_inner).load(query)
    }

    fn note_read(&self) {
        self.shared.reads.fetch_add(1, Ordering::SeqCst);
    }

    /// Ready after some reads, or when nobody seems to read.
    pub(super) async fn reads_pass(&self) {
        let start = self.shared.reads.load(Ordering::SeqCst);
        for _ in 0..2_000 {
            if self.shared.reads.load(Ordering::SeqCst) > start + 2 {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait]
impl StorageBackendPort for MutantStore {
    async fn identity(&self) -> Result<StoreIdentity, ReadError> {
        if self.is(Mutation::IdentityChanges) {
            return Ok(ModelStore::new().lock().identity.clone());
        }
        if self.is(Mutation::IdentityFixed) {
            return Ok(State::new(0).identity);
        }
        self.faulty.identity().await
    }

    async fn load(&self, query: &LoadQuery) -> Result<Snapshot, ReadError> {
        self.note_read();
        self.mutant_load(query).await
    }

    async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        self.mutant_commit(commit).await
    }

    async fn events(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, ReadError> {
        self.note_read();
        let inclusive = self.is(Mutation::EventsInclusive);
        let after = if inclusive { after.saturating_sub(1) } else { after };
        self.faulty.events(tenant, workflow, after, limit).await
    }

    async fn open_of(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        self.note_read();
        self.mutant_open_of(tenant, actor, limit).await
    }

    async fn offered_to(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        self.mutant_offered_to(tenant, actor, limit).await
    }

    async fn people(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Person>, ReadError> {
        self.mutant_people(tenant, limit).await
    }

    async fn blocked(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Workflow>, ReadError> {
        self.mutant_blocked(tenant, limit).await
    }

    async fn last_completed(
        &self,
        tenant: &TenantId,
        whose: &Recent,
    ) -> Result<Option<Workflow>, ReadError> {
        self.mutant_last_completed(tenant, whose).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page<Workflow>, ReadError> {
        self.note_read();
        self.mutant_list(query).await
    }

    async fn list_locks(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LockRow>, ReadError> {
        self.mutant_list_locks(tenant, after, limit).await
    }

    async fn put_definition(&self, definition: &Definition) -> Result<(), DefinitionError> {
        self.mutant_put_definition(definition).await
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Definition>, ReadError> {
        if self.is(Mutation::DefinitionForgotten) {
            return Ok(None);
        }
        self.faulty.definition(digest).await
    }

    async fn claim_outbox(&self, claim: &Claim) -> Result<Vec<ClaimedStream>, ReadError> {
        self.mutant_claim_outbox(claim).await
    }

    async fn settle_outbox(&self, settlement: &Settlement) -> Result<(), SettleError> {
        self.mutant_settle_outbox(settlement).await
    }

    async fn list_outbox(&self, query: &OutboxQuery) -> Result<OutboxPage, ReadError> {
        self.mutant_list_outbox(query).await
    }

    async fn outbox_backlog(&self, limit: u32) -> Result<Backlog, ReadError> {
        self.mutant_outbox_backlog(limit).await
    }

    async fn purge_outbox(&self, purge: &OutboxPurge) -> Result<u64, SettleError> {
        self.mutant_purge_outbox(purge).await
    }

    async fn revive_outbox(&self, id: &str, now: Timestamp) -> Result<bool, SettleError> {
        self.mutant_revive_outbox(id, now).await
    }

    async fn claim_deadlines(&self, claim: &Claim) -> Result<Vec<ClaimedDeadline>, ReadError> {
        self.mutant_claim_deadlines(claim).await
    }

    async fn next_deadline(
        &self,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<NextDeadline, ReadError> {
        self.mutant_next_deadline(now, lease_ms).await
    }

    async fn settle_deadline(&self, claimed: &ClaimedDeadline) -> Result<(), SettleError> {
        self.mutant_settle_deadline(claimed).await
    }

    async fn erase(&self, erasure: &Erasure) -> Result<bool, SettleError> {
        self.mutant_erase(erasure).await
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, SettleError> {
        self.mutant_purge(purge).await
    }

    async fn tombstone(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
    ) -> Result<Option<Tombstone>, ReadError> {
        self.faulty.tombstone(tenant, workflow).await
    }

    async fn sweep(
        &self,
        now: Timestamp,
        retention_ms: i64,
        limit: u32,
    ) -> Result<Swept, SettleError> {
        self.mutant_sweep(now, retention_ms, limit).await
    }
}
