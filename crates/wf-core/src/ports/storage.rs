//! `StorageBackendPort`: the one write, and the reads around it. Each law Sn has a contract clause in wf-testkit.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::locks::LockRow;
use crate::models::{Actor, Digest, Person, TenantId, Timestamp, Workflow, WorkflowId};
use crate::policy::Definition;
use crate::state_machine::Event;

use super::{
    Backlog, Claim, ClaimedDeadline, ClaimedStream, Commit, CommitError, Cursor, DefinitionError,
    Erasure, ListQuery, LoadQuery, NextDeadline, OutboxPage, OutboxPurge, OutboxQuery, Page, Purge,
    Purged, ReadError, Recent, SettleError, Settlement, Snapshot, StoreIdentity, Swept, Tombstone,
};

/// The store. Implementations must obey:
///
/// - **S1** a commit is all or nothing;
/// - **S2** a stale expected revision is `Conflict::Revision`, nothing written;
/// - **S3** a ledger key that exists is `Conflict::Ledger` carrying the row, nothing written, unless it equals `replaces`;
/// - **S4** an asset held by another workflow is `Conflict::Asset` carrying the row, nothing written; several: all or none;
///   one that changes hands within its workflow is held all the while ([`LockChange::Take`](crate::locks::LockChange));
/// - **S5** a reader sees a commit whole or not at all;
/// - **S6** a commit is read by whoever was told of it; "open of", "blocked" and "offered to" are strongly consistent;
/// - **S7** tenants never see each other;
/// - **S8** pages are stable and complete while others write; a text that is no place of a list is refused as that;
/// - **S9** an unknown outcome is `Ambiguous`, never `Unavailable`; the ledger row resolves it;
/// - **S10** a claimed outbox stream or deadline reappears after its lease, a late holder's settle is refused, no
///   deadline overtakes an earlier one of its workflow that is under lease, and a message is due when its commit was made
///   ([`Commit::due_at`]), also where its history is ahead of the clock;
/// - **S11** events of one workflow are gapless and immutable;
/// - **S12** a record too large for any backend is `TooLarge`, nothing written;
/// - **S13** dropping the future of a call at any await leaves all of the commit or none;
/// - **S14** opening an unknown newer schema is refused with a clear error ([`OpenError::NewerSchema`](super::OpenError::NewerSchema));
/// - **S15** an erasure changes nothing but what stands beside its event, and only while that is what was read;
/// - **S16** a purge takes a completed workflow whole and leaves its tombstone, before anything else is gone; never one that
///   is open or has another revision, whose keys count, or, unless asked, whose messages were not delivered.
#[async_trait]
pub trait StorageBackendPort: Debug + Send + Sync {
    /// Id and keys of the store, made at first open.
    async fn identity(&self) -> Result<StoreIdentity, ReadError>;

    /// One consistent read of everything a decision needs. Reads its own commits.
    async fn load(&self, query: &LoadQuery) -> Result<Snapshot, ReadError>;

    /// Applies the commit: all of it or nothing.
    async fn commit(&self, commit: Commit) -> Result<(), CommitError>;

    /// Events with `seq > after`, ascending, at most `limit`; empty for an unknown workflow.
    async fn events(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, ReadError>;

    /// Open workflows that `actor` owns, newest activity first, at most `limit`.
    async fn open_of(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError>;

    /// Open workflows offered to `actor` or to anybody, oldest offer first, at most `limit`.
    async fn offered_to(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError>;

    /// People named by commits of the tenant ([`Commit::seen`]), each once with the newest name; named last first, at
    /// most `limit`.
    async fn people(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Person>, ReadError>;

    /// Blocked workflows, longest blocked first, at most `limit`.
    async fn blocked(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Workflow>, ReadError>;

    /// The workflow completed last, if any.
    async fn last_completed(
        &self,
        tenant: &TenantId,
        whose: &Recent,
    ) -> Result<Option<Workflow>, ReadError>;

    /// A page of workflows.
    async fn list(&self, query: &ListQuery) -> Result<Page<Workflow>, ReadError>;

    /// A page of lock rows, held and free, by tenant and asset id.
    async fn list_locks(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LockRow>, ReadError>;

    /// Stores a definition by its digest, and (id, version) → digest, once for ever. Storing the same again is fine.
    async fn put_definition(&self, definition: &Definition) -> Result<(), DefinitionError>;

    /// The definition with this digest.
    async fn definition(&self, digest: &Digest) -> Result<Option<Definition>, ReadError>;

    /// Takes the lease of streams that have a due pending row at their head and no live lease.
    async fn claim_outbox(&self, claim: &Claim) -> Result<Vec<ClaimedStream>, ReadError>;

    /// Records what became of claimed messages and releases the lease.
    async fn settle_outbox(&self, settlement: &Settlement) -> Result<(), SettleError>;

    /// A page of outbox rows. A row that cannot be read is told as damaged; it hides no other.
    async fn list_outbox(&self, query: &OutboxQuery) -> Result<OutboxPage, ReadError>;

    /// How much is not delivered, counted up to `limit` of each kind so that the cost is bounded.
    async fn outbox_backlog(&self, limit: u32) -> Result<Backlog, ReadError>;

    /// Deletes (or only counts) messages that nobody delivers any more; how many. Never a pending one.
    async fn purge_outbox(&self, purge: &OutboxPurge) -> Result<u64, SettleError>;

    /// Makes a dead row pending again under its old id; false when there is no dead row with this id.
    async fn revive_outbox(&self, id: &str, now: Timestamp) -> Result<bool, SettleError>;

    /// Takes the lease of deadlines that are due and have no live lease, earliest first; never one of a workflow that has an
    /// earlier one under a live lease, so that nobody overtakes.
    async fn claim_deadlines(&self, claim: &Claim) -> Result<Vec<ClaimedDeadline>, ReadError>;

    /// When [`claim_deadlines`](Self::claim_deadlines) can bring something, for leases of `lease_ms`.
    async fn next_deadline(&self, now: Timestamp, lease_ms: i64)
    -> Result<NextDeadline, ReadError>;

    /// Removes a claimed deadline that a decision refused (firing it removes it in the commit).
    async fn settle_deadline(&self, claimed: &ClaimedDeadline) -> Result<(), SettleError>;

    /// Puts [`Erasure::becomes`] in the place of what stands beside an event; false, and nothing written, when that is not
    /// [`Erasure::was`] any more, or there is no such event. What was there is overwritten where the backend can do that.
    async fn erase(&self, erasure: &Erasure) -> Result<bool, SettleError>;

    /// Deletes a workflow with its events, ledger rows, messages and places in lists; the rows of its assets stay with their
    /// fences. Work that is bounded: until it answers something else than `More` there is more to do.
    async fn purge(&self, purge: &Purge) -> Result<Purged, SettleError>;

    /// What is left of a workflow that was purged, or is just being.
    async fn tombstone(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
    ) -> Result<Option<Tombstone>, ReadError>;

    /// Sets the expiry of ledger rows of completed workflows to completion + `retention_ms`, deletes ledger rows whose
    /// expiry is past and delivered outbox rows older than `retention_ms`; at most `limit` rows of each a call.
    async fn sweep(
        &self,
        now: Timestamp,
        retention_ms: i64,
        limit: u32,
    ) -> Result<Swept, SettleError>;
}

const _: fn(&dyn StorageBackendPort) = |_| {};
