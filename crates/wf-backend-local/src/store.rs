//! The store's handle: the port, method by method. Reads go to the readers, writes into the writer's queue. What is asked
//! of the file as a whole is in `whole`.

mod whole;

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
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

use crate::codec::encode::Prepared;
use crate::config::LocalConfig;
use crate::fault::{Cause, Failure, Trouble};
use crate::open::{self, Opened};
use crate::queries::{catalogue, deadlines, events, load, locks, outbox, people, workflows};
use crate::readers::Readers;
use crate::shared::Shared;
use crate::threads::Ended;
use crate::writer::job::{Done, Job, Task};
use crate::{checkpoint, writer};

/// A SQLite store. Cheap to clone; all clones are one store. When the last one is dropped the writer finishes what
/// waits and ends; [`close`](Self::close) waits for that.
#[derive(Debug, Clone)]
pub struct LocalStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    readers: Readers,
    queue: mpsc::Sender<Job>,
    /// The writer; taken by `close`.
    writer: Mutex<Option<Ended>>,
    /// What stops the checkpointer when it is dropped, and the checkpointer; taken by `close`.
    checkpointer: Mutex<Option<(std::sync::mpsc::Sender<Infallible>, Ended)>>,
}

/// How long `close` waits for the files to be closed once all that waited is done: a checkpoint may wait for a reader.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

impl LocalStore {
    /// Opens the store, creating the file and migrating it as needed. Must be called within a tokio runtime. What works
    /// on the file are threads of the store's own.
    ///
    /// # Errors
    /// [`OpenError`]; its message says what to do.
    pub async fn open(config: LocalConfig) -> Result<Opened, OpenError> {
        open::open(config).await
    }

    /// Opens a store that is there and has the schema of this build: for commands, which must not create a file by
    /// mistake. A server may have it open at the same time.
    ///
    /// # Errors
    /// [`OpenError`]; its message says what to do.
    pub async fn open_existing(config: LocalConfig) -> Result<Self, OpenError> {
        open::open_existing(config).await
    }

    /// Refuses new commits, finishes those that wait, carries the log over and closes the files. Other handles answer
    /// `Unavailable` from then on.
    pub async fn close(self) {
        if let Some((stop, ended)) = take(&self.inner.checkpointer) {
            drop(stop);
            ended.wait().await;
        }
        self.inner.readers.close().await;
        // The writer closes last, so that it is the one that carries the whole log over and removes it.
        let (reply, done) = oneshot::channel();
        if self.inner.queue.send(Job::Close(reply)).await.is_ok() {
            // An error means that the writer is gone already.
            let _ = done.await;
        }
        if let Some(ended) = take(&self.inner.writer)
            && tokio::time::timeout(CLOSE_TIMEOUT, ended.wait()).await.is_err()
        {
            tracing::warn!(
                "the store was not closed in time; its log is carried over at the next start"
            );
        }
    }

    /// How the store was opened.
    #[must_use]
    pub fn config(&self) -> &LocalConfig {
        &self.inner.shared.config
    }

    /// Starts the parts of an open store. `anchor` is that of [`connection::anchor`](crate::connection::anchor).
    pub(crate) fn start(shared: Shared, anchor: Connection) -> Result<Self, Cause> {
        let shared = Arc::new(shared);
        let readers = Readers::start(&shared)?;
        let (queue, jobs) = mpsc::channel(shared.config.queue_max.max(1));
        let writer = writer::spawn(Arc::clone(&shared), jobs, anchor)?;
        let (stop, stopped) = std::sync::mpsc::channel();
        let checkpointer = checkpoint::spawn(Arc::clone(&shared), queue.downgrade(), stopped)?;
        let writer = Mutex::new(Some(writer));
        let checkpointer = Mutex::new(Some((stop, checkpointer)));
        Ok(Self { inner: Arc::new(Inner { shared, readers, queue, writer, checkpointer }) })
    }

    /// Reads the identity, to find out that the file can be read.
    pub(crate) async fn first_look(&self) -> Result<(), OpenError> {
        match self.identity().await {
            Ok(_) => Ok(()),
            Err(ReadError::Unavailable { source }) => Err(OpenError::Unavailable { source }),
            Err(ReadError::Corrupt { what }) => Err(OpenError::Corrupt { what }),
            // Nobody asked for a page.
            Err(error @ ReadError::BadCursor) => {
                Err(OpenError::Unavailable { source: error.into() })
            }
        }
    }

    /// For tests that ask for faults.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    /// For tests of the readers.
    #[cfg(test)]
    pub(crate) fn readers(&self) -> &Readers {
        &self.inner.readers
    }

    /// Puts a job into the queue, at once or not at all.
    fn enqueue(&self, job: Job) -> Result<(), Failure> {
        use mpsc::error::TrySendError;
        self.inner.queue.try_send(job).map_err(|e| {
            Failure::NotApplied(match e {
                TrySendError::Full(_) => Trouble::QueueFull,
                TrySendError::Closed(_) => Trouble::Closed,
            })
        })
    }

    async fn task(&self, task: Task) -> Result<Done, Failure> {
        let (reply, answer) = oneshot::channel();
        self.enqueue(Job::Task(Box::new(task), reply))?;
        answer.await.unwrap_or(Err(Failure::Unknown(Trouble::WriterLost)))
    }
}

fn take<T>(held: &Mutex<Option<T>>) -> Option<T> {
    held.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// A task was answered with what another task does; never happens.
fn mismatch() -> Failure {
    Failure::Unknown(Trouble::WriterLost)
}

#[async_trait]
impl StorageBackendPort for LocalStore {
    async fn identity(&self) -> Result<StoreIdentity, ReadError> {
        catalogue::identity(&self.inner.readers).await
    }

    async fn load(&self, query: &LoadQuery) -> Result<Snapshot, ReadError> {
        load::load(&self.inner.readers, query).instrument(tracing::debug_span!("load")).await
    }

    async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        let span = tracing::debug_span!("commit");
        let prepared = Box::new(Prepared::new(commit)?);
        let (reply, answer) = oneshot::channel();
        self.enqueue(Job::Commit(prepared, reply, span.clone())).map_err(|failure| {
            let after_ms = self.inner.shared.after_ms(&failure);
            failure.into_commit_error(after_ms)
        })?;
        // From here on the commit happens or not, whether or not anybody waits for it.
        let answered = answer
            .await
            .unwrap_or_else(|_| Err(Failure::Unknown(Trouble::WriterLost).into_commit_error(None)));
        // Ended here and not by the writer, who has others to serve.
        drop(span);
        answered
    }

    async fn events(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, ReadError> {
        events::events(&self.inner.readers, tenant, workflow, after, limit).await
    }

    async fn open_of(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        workflows::open_of(&self.inner.readers, tenant, actor, limit).await
    }

    async fn offered_to(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        workflows::offered_to(&self.inner.readers, tenant, actor, limit).await
    }

    async fn people(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Person>, ReadError> {
        people::people(&self.inner.readers, tenant, limit).await
    }

    async fn blocked(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Workflow>, ReadError> {
        workflows::blocked(&self.inner.readers, tenant, limit).await
    }

    async fn last_completed(
        &self,
        tenant: &TenantId,
        whose: &Recent,
    ) -> Result<Option<Workflow>, ReadError> {
        workflows::last_completed(&self.inner.readers, tenant, whose).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page<Workflow>, ReadError> {
        workflows::list(&self.inner.readers, query).await
    }

    async fn list_locks(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LockRow>, ReadError> {
        locks::list(&self.inner.readers, tenant, after, limit).await
    }

    async fn put_definition(&self, definition: &Definition) -> Result<(), DefinitionError> {
        match self.task(Task::PutDefinition(definition.clone())).await {
            Ok(Done::Definition(None)) => Ok(()),
            Ok(Done::Definition(Some(existing))) => Err(DefinitionError::Changed { existing }),
            Ok(_) => Err(mismatch().into_definition_error()),
            Err(failure) => Err(failure.into_definition_error()),
        }
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Definition>, ReadError> {
        catalogue::definition(&self.inner.readers, digest).await
    }

    async fn claim_outbox(&self, claim: &Claim) -> Result<Vec<ClaimedStream>, ReadError> {
        if !outbox::any_stream_due(&self.inner.readers, claim).await? {
            return Ok(Vec::new());
        }
        match self.task(Task::ClaimOutbox(claim.clone())).await {
            Ok(Done::Streams(streams)) => Ok(streams),
            Ok(_) => Err(mismatch().into_read_error()),
            Err(failure) => Err(failure.into_read_error()),
        }
    }

    async fn settle_outbox(&self, settlement: &Settlement) -> Result<(), SettleError> {
        settled(self.task(Task::SettleOutbox(settlement.clone())).await)
    }

    async fn list_outbox(&self, query: &OutboxQuery) -> Result<OutboxPage, ReadError> {
        outbox::list(&self.inner.readers, query).await
    }

    async fn outbox_backlog(&self, limit: u32) -> Result<Backlog, ReadError> {
        outbox::backlog(&self.inner.readers, limit).await
    }

    async fn purge_outbox(&self, purge: &OutboxPurge) -> Result<u64, SettleError> {
        if purge.count_only {
            let counted = outbox::purgeable(&self.inner.readers, purge).await;
            return counted.map_err(|error| SettleError::Unavailable { source: Box::new(error) });
        }
        match self.task(Task::PurgeOutbox(*purge)).await {
            Ok(Done::Purged(deleted)) => Ok(deleted),
            Ok(_) => Err(mismatch().into_settle_error()),
            Err(failure) => Err(failure.into_settle_error()),
        }
    }

    async fn revive_outbox(&self, id: &str, now: Timestamp) -> Result<bool, SettleError> {
        let id = id.to_owned();
        match self.task(Task::ReviveOutbox { id, now }).await {
            Ok(Done::Revived(found)) => Ok(found),
            Ok(_) => Err(mismatch().into_settle_error()),
            Err(failure) => Err(failure.into_settle_error()),
        }
    }

    async fn claim_deadlines(&self, claim: &Claim) -> Result<Vec<ClaimedDeadline>, ReadError> {
        if !deadlines::any_due(&self.inner.readers, claim).await? {
            return Ok(Vec::new());
        }
        match self.task(Task::ClaimDeadlines(claim.clone())).await {
            Ok(Done::Deadlines(deadlines)) => Ok(deadlines),
            Ok(_) => Err(mismatch().into_read_error()),
            Err(failure) => Err(failure.into_read_error()),
        }
    }

    async fn next_deadline(
        &self,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<NextDeadline, ReadError> {
        let at = deadlines::next(&self.inner.readers, now, lease_ms).await?;
        Ok(NextDeadline { at, shared: self.inner.shared.is_used_by_others() })
    }

    async fn settle_deadline(&self, claimed: &ClaimedDeadline) -> Result<(), SettleError> {
        settled(self.task(Task::SettleDeadline(claimed.clone())).await)
    }

    async fn erase(&self, erasure: &Erasure) -> Result<bool, SettleError> {
        match self.task(Task::Erase(erasure.clone())).await {
            Ok(Done::Erased(was_it)) => Ok(was_it),
            Ok(_) => Err(mismatch().into_settle_error()),
            Err(failure) => Err(failure.into_settle_error()),
        }
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, SettleError> {
        match self.task(Task::Purge(purge.clone())).await {
            Ok(Done::PurgedWorkflow(purged)) => Ok(purged),
            Ok(_) => Err(mismatch().into_settle_error()),
            Err(failure) => Err(failure.into_settle_error()),
        }
    }

    async fn tombstone(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
    ) -> Result<Option<Tombstone>, ReadError> {
        catalogue::tombstone(&self.inner.readers, tenant, workflow).await
    }

    async fn sweep(
        &self,
        now: Timestamp,
        retention_ms: i64,
        limit: u32,
    ) -> Result<Swept, SettleError> {
        let task = Task::Sweep { now, retention_ms, limit };
        match self.task(task).await {
            Ok(Done::Swept(swept)) => Ok(swept),
            Ok(_) => Err(mismatch().into_settle_error()),
            Err(failure) => Err(failure.into_settle_error()),
        }
    }
}

fn settled(outcome: Result<Done, Failure>) -> Result<(), SettleError> {
    match outcome {
        Ok(Done::Settled(true)) => Ok(()),
        Ok(Done::Settled(false)) => Err(SettleError::LeaseLost),
        Ok(_) => Err(mismatch().into_settle_error()),
        Err(failure) => Err(failure.into_settle_error()),
    }
}
