//! The store's handle: the port, method by method.

use std::sync::Arc;

use async_trait::async_trait;
use tracing::Instrument as _;
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

use crate::config::AwsConfig;
use crate::execution::Bindings;
use crate::known::Memory;
use crate::link::{Link, Usage};
use crate::open::{self, Opened};
use crate::read::{events, lists, load};
use crate::{backlog, commit, deadlines, definitions, erase, keys, outbox, purge, strays, sweep};

/// A store in a DynamoDB table. Cheap to clone; all clones are one store. Nothing runs in the background and nothing is
/// buffered: when a call has returned, its work is done.
#[derive(Debug, Clone)]
pub struct AwsStore {
    link: Link,
    memory: Arc<Memory>,
}

impl AwsStore {
    /// Opens the store in a table that exists, making its identity in an empty one.
    ///
    /// # Errors
    /// [`OpenError`]; its message says what to do.
    pub async fn open(config: AwsConfig) -> Result<Opened, OpenError> {
        open::open(config, true).await
    }

    /// Opens a store that is there: for commands, which must not make one by mistake.
    ///
    /// # Errors
    /// [`OpenError`]; its message says what to do.
    pub async fn open_existing(config: AwsConfig) -> Result<Self, OpenError> {
        Ok(open::open(config, false).await?.store)
    }

    pub(crate) fn new(link: Link, fence_base: u64) -> Self {
        Self { link, memory: Arc::new(Memory::new(fence_base)) }
    }

    /// How the store was opened.
    #[must_use]
    pub fn config(&self) -> &AwsConfig {
        self.link.config()
    }

    /// Requests that this store sent so far, and what they consumed.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.link.usage()
    }

    /// Whether this process may write: not where a newer build raised the schema, nor where the table is another store than
    /// the one that was opened. Looks at most once every [`AwsConfig::trust_ms`].
    ///
    /// # Errors
    /// [`ReadError`] that says why not, also when the table does not answer.
    pub async fn may_write(&self) -> Result<(), ReadError> {
        Ok(self.link.allowed().await?)
    }

    /// Items that belong to nothing, and copies that differ from what they copy: what the port does not show. At most 20
    /// lines of a kind; nothing when all is well. Reads the whole table by a parallel scan.
    ///
    /// # Errors
    /// [`ReadError`] when the table does not answer.
    pub async fn strays(&self) -> Result<Vec<String>, ReadError> {
        Ok(strays::look(&self.link).await?)
    }

    /// The rows that bind workflows to executions.
    #[must_use]
    pub fn bindings(&self) -> Bindings {
        Bindings::new(self.link.clone())
    }
}

#[async_trait]
impl StorageBackendPort for AwsStore {
    async fn identity(&self) -> Result<StoreIdentity, ReadError> {
        let item = self.link.get(&keys::identity()).await?;
        let corrupt = || ReadError::Corrupt { what: "the store has no identity".to_owned() };
        Ok(open::read(&item.ok_or_else(corrupt)?)?)
    }

    async fn load(&self, query: &LoadQuery) -> Result<Snapshot, ReadError> {
        let loading = load::load(&self.link, &self.memory, query);
        Ok(loading.instrument(tracing::debug_span!("load")).await?)
    }

    async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        let committing = commit::commit(&self.link, &self.memory, commit);
        committing.instrument(tracing::debug_span!("commit")).await
    }

    async fn events(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, ReadError> {
        Ok(events::events(&self.link, tenant, workflow, after, limit).await?)
    }

    async fn open_of(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        Ok(lists::open_of(&self.link, tenant, actor, limit).await?)
    }

    async fn offered_to(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        Ok(lists::offered_to(&self.link, tenant, actor, limit).await?)
    }

    async fn people(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Person>, ReadError> {
        Ok(lists::people(&self.link, tenant, limit).await?)
    }

    async fn blocked(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Workflow>, ReadError> {
        Ok(lists::blocked(&self.link, tenant, limit).await?)
    }

    async fn last_completed(
        &self,
        tenant: &TenantId,
        whose: &Recent,
    ) -> Result<Option<Workflow>, ReadError> {
        Ok(lists::last_completed(&self.link, tenant, whose).await?)
    }

    async fn list(&self, query: &ListQuery) -> Result<Page<Workflow>, ReadError> {
        Ok(lists::list(&self.link, query).await?)
    }

    async fn list_locks(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LockRow>, ReadError> {
        Ok(lists::locks(&self.link, tenant, after, limit).await?)
    }

    async fn put_definition(&self, definition: &Definition) -> Result<(), DefinitionError> {
        definitions::put(&self.link, definition).await
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Definition>, ReadError> {
        Ok(definitions::get(&self.link, digest).await?)
    }

    async fn claim_outbox(&self, claim: &Claim) -> Result<Vec<ClaimedStream>, ReadError> {
        Ok(outbox::claim(&self.link, claim).await?)
    }

    async fn settle_outbox(&self, settlement: &Settlement) -> Result<(), SettleError> {
        outbox::settle(&self.link, settlement).await
    }

    async fn list_outbox(&self, query: &OutboxQuery) -> Result<OutboxPage, ReadError> {
        Ok(backlog::list(&self.link, query).await?)
    }

    async fn outbox_backlog(&self, limit: u32) -> Result<Backlog, ReadError> {
        Ok(backlog::backlog(&self.link, limit).await?)
    }

    async fn purge_outbox(&self, purge: &OutboxPurge) -> Result<u64, SettleError> {
        Ok(backlog::purge(&self.link, purge).await?)
    }

    async fn revive_outbox(&self, id: &str, now: Timestamp) -> Result<bool, SettleError> {
        outbox::revive(&self.link, id, now).await
    }

    async fn claim_deadlines(&self, claim: &Claim) -> Result<Vec<ClaimedDeadline>, ReadError> {
        Ok(deadlines::claim(&self.link, claim).await?)
    }

    async fn next_deadline(
        &self,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<NextDeadline, ReadError> {
        Ok(deadlines::next(&self.link, now, lease_ms).await?)
    }

    async fn settle_deadline(&self, claimed: &ClaimedDeadline) -> Result<(), SettleError> {
        deadlines::settle(&self.link, claimed).await
    }

    async fn erase(&self, erasure: &Erasure) -> Result<bool, SettleError> {
        Ok(erase::erase(&self.link, erasure).await?)
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, SettleError> {
        Ok(purge::purge(&self.link, purge).await?)
    }

    async fn tombstone(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
    ) -> Result<Option<Tombstone>, ReadError> {
        Ok(purge::tombstone(&self.link, tenant, workflow).await?)
    }

    async fn sweep(
        &self,
        now: Timestamp,
        retention_ms: i64,
        limit: u32,
    ) -> Result<Swept, SettleError> {
        sweep::sweep(&self.link, now, retention_ms, limit).await
    }
}
