//! The store of one replica: the shared one, behind a wire that delays, loses and repeats nothing, and a process that may
//! stand still.
//!
//! A commit is on its way by itself once it was sent, as in the writer of a real store: who waits for it may be dropped.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::sleep;
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

use super::sea::{Fate, Sea};
use super::still::Still;

/// One replica's way to the shared store.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    pub(super) inner: Arc<dyn StorageBackendPort>,
    pub(super) sea: Sea,
    pub(super) replica: usize,
    pub(super) still: Still,
}

/// The cause in every error of a simulation.
#[derive(Debug, thiserror::Error)]
#[error("the weather of the simulation")]
struct Storm;

/// What a lost call is answered with.
trait Lost: Sized {
    fn before() -> Self;
    fn unknown() -> Self;
}

impl Lost for CommitError {
    fn before() -> Self {
        Self::Unavailable { after_ms: None, source: Box::new(Storm) }
    }
    fn unknown() -> Self {
        Self::Ambiguous { source: Box::new(Storm) }
    }
}

macro_rules! lost {
    ($($error:ty),*) => {$(
        impl Lost for $error {
            fn before() -> Self {
                Self::Unavailable { source: Box::new(Storm) }
            }
            fn unknown() -> Self {
                Self::before()
            }
        }
    )*};
}

lost!(ReadError, DefinitionError, SettleError);

impl Wire {
    fn note(&self, what: impl fmt::Display) {
        self.sea.note(format_args!("{} {what}", self.replica));
    }

    /// On the way there.
    async fn there(&self, name: &str) -> Fate {
        self.still.over().await;
        sleep(self.sea.delay()).await;
        self.still.over().await;
        let fate = self.sea.fate();
        self.note(format_args!("{name} {fate:?}"));
        fate
    }

    /// On the way back.
    async fn back(&self) {
        sleep(self.sea.delay()).await;
        self.still.over().await;
    }

    async fn through<T, E: Lost>(
        &self,
        name: &str,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let fate = self.there(name).await;
        let answer = match fate {
            Fate::Before | Fate::Later => Err(E::before()),
            Fate::After => {
                // The answer is lost, whatever it was.
                let _ = call.await;
                Err(E::unknown())
            }
            Fate::Fine => call.await,
        };
        self.back().await;
        answer
    }
}

#[async_trait]
impl StorageBackendPort for Wire {
    async fn identity(&self) -> Result<StoreIdentity, ReadError> {
        self.through("identity", self.inner.identity()).await
    }

    async fn load(&self, query: &LoadQuery) -> Result<Snapshot, ReadError> {
        self.through("load", self.inner.load(query)).await
    }

    async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        let fate = self.there("commit").await;
        let (inner, sea, replica) = (Arc::clone(&self.inner), self.sea.clone(), self.replica);
        let late = Duration::from_millis(sea.below(5_000));
        let never = fate == Fate::Later && sea.chance(0.5);
        let sent = tokio::spawn(async move {
            if fate == Fate::Later {
                sleep(late).await;
            }
            if fate == Fate::Before || never {
                return Err(CommitError::before());
            }
            let (id, seq) = (commit.next.id.clone(), commit.next.revision);
            let answer = inner.commit(commit).await;
            sea.note(format_args!("{replica} landed {id} {seq} {}", answer.is_ok()));
            answer
        });
        let answer = match fate {
            Fate::Later => Err(CommitError::unknown()),
            Fate::Fine | Fate::Before | Fate::After => {
                sent.await.unwrap_or_else(|_| Err(CommitError::unknown()))
            }
        };
        self.back().await;
        if fate == Fate::After { Err(CommitError::unknown()) } else { answer }
    }

    async fn events(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, ReadError> {
        self.through("events", self.inner.events(tenant, workflow, after, limit)).await
    }

    async fn open_of(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        self.through("open_of", self.inner.open_of(tenant, actor, limit)).await
    }

    async fn offered_to(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        self.through("offered_to", self.inner.offered_to(tenant, actor, limit)).await
    }

    async fn people(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Person>, ReadError> {
        self.through("people", self.inner.people(tenant, limit)).await
    }

    async fn blocked(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Workflow>, ReadError> {
        self.through("blocked", self.inner.blocked(tenant, limit)).await
    }

    async fn last_completed(
        &self,
        tenant: &TenantId,
        whose: &Recent,
    ) -> Result<Option<Workflow>, ReadError> {
        self.through("last_completed", self.inner.last_completed(tenant, whose)).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page<Workflow>, ReadError> {
        self.through("list", self.inner.list(query)).await
    }

    async fn list_locks(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LockRow>, ReadError> {
        self.through("list_locks", self.inner.list_locks(tenant, after, limit)).await
    }

    async fn put_definition(&self, definition: &Definition) -> Result<(), DefinitionError> {
        self.through("put_definition", self.inner.put_definition(definition)).await
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Definition>, ReadError> {
        self.through("definition", self.inner.definition(digest)).await
    }

    async fn claim_outbox(&self, claim: &Claim) -> Result<Vec<ClaimedStream>, ReadError> {
        self.through("claim_outbox", self.inner.claim_outbox(claim)).await
    }

    async fn settle_outbox(&self, settlement: &Settlement) -> Result<(), SettleError> {
        self.through("settle_outbox", self.inner.settle_outbox(settlement)).await
    }

    async fn list_outbox(&self, query: &OutboxQuery) -> Result<OutboxPage, ReadError> {
        self.through("list_outbox", self.inner.list_outbox(query)).await
    }

    async fn outbox_backlog(&self, limit: u32) -> Result<Backlog, ReadError> {
        self.through("outbox_backlog", self.inner.outbox_backlog(limit)).await
    }

    async fn purge_outbox(&self, purge: &OutboxPurge) -> Result<u64, SettleError> {
        self.through("purge_outbox", self.inner.purge_outbox(purge)).await
    }

    async fn revive_outbox(&self, id: &str, now: Timestamp) -> Result<bool, SettleError> {
        self.through("revive_outbox", self.inner.revive_outbox(id, now)).await
    }

    async fn claim_deadlines(&self, claim: &Claim) -> Result<Vec<ClaimedDeadline>, ReadError> {
        self.through("claim_deadlines", self.inner.claim_deadlines(claim)).await
    }

    async fn next_deadline(
        &self,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<NextDeadline, ReadError> {
        self.through("next_deadline", self.inner.next_deadline(now, lease_ms)).await
    }

    async fn settle_deadline(&self, claimed: &ClaimedDeadline) -> Result<(), SettleError> {
        self.through("settle_deadline", self.inner.settle_deadline(claimed)).await
    }

    async fn erase(&self, erasure: &Erasure) -> Result<bool, SettleError> {
        self.through("erase", self.inner.erase(erasure)).await
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, SettleError> {
        self.through("purge", self.inner.purge(purge)).await
    }

    async fn tombstone(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
    ) -> Result<Option<Tombstone>, ReadError> {
        self.through("tombstone", self.inner.tombstone(tenant, workflow)).await
    }

    async fn sweep(
        &self,
        now: Timestamp,
        retention_ms: i64,
        limit: u32,
    ) -> Result<Swept, SettleError> {
        self.through("sweep", self.inner.sweep(now, retention_ms, limit)).await
    }
}
