//! The wrapper: every method of the port asks the script first.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

use super::script::{Script, source};
use super::{Call, Fault, Record};

/// A store that fails on a script, and in its weather. Without both it is the store that it wraps.
#[derive(Debug, Clone)]
pub struct FaultStore {
    inner: Arc<dyn StorageBackendPort>,
    script: Arc<Mutex<Script>>,
    weather: Option<Arc<dyn Weather>>,
}

/// What befalls the calls of a store that no script has a fault for: a simulation draws it from its seed.
#[async_trait]
pub trait Weather: std::fmt::Debug + Send + Sync {
    /// The way of a call to the store, and what happens to it there. A call that is dropped on this way is not done.
    async fn there(&self, call: Call) -> Option<Fault>;

    /// The way of the answer.
    async fn back(&self);

    /// What a commit writes beside the store's own rows, in the same write: done when it is applied. `None` of most stores.
    fn beside(&self, commit: &Commit) -> Option<Beside>;
}

/// Done in the moment in which a commit is applied.
pub type Beside = Box<dyn FnOnce() + Send>;

/// An error that a fault can be answered with.
trait Faulty: Sized {
    /// Surely not done.
    fn before() -> Self;
    /// Done or not, nobody knows.
    fn unknown() -> Self;
    /// The store is damaged.
    fn corrupt() -> Self;
}

const DAMAGE: &str = "damaged by the test's script";

impl Faulty for CommitError {
    fn before() -> Self {
        Self::Unavailable { after_ms: None, source: source() }
    }
    fn unknown() -> Self {
        Self::Ambiguous { source: source() }
    }
    fn corrupt() -> Self {
        let what = DAMAGE.to_owned();
        Self::Corrupt { what }
    }
}

impl Faulty for ReadError {
    fn before() -> Self {
        Self::Unavailable { source: source() }
    }
    fn unknown() -> Self {
        Self::before()
    }
    fn corrupt() -> Self {
        let what = DAMAGE.to_owned();
        Self::Corrupt { what }
    }
}

macro_rules! only_unavailable {
    ($($error:ty),*) => {$(
        impl Faulty for $error {
            fn before() -> Self {
                Self::Unavailable { source: source() }
            }
            fn unknown() -> Self {
                Self::before()
            }
            fn corrupt() -> Self {
                Self::before()
            }
        }
    )*};
}

only_unavailable!(DefinitionError, SettleError);

impl FaultStore {
    /// Wraps a store.
    #[must_use]
    pub fn new(inner: Arc<dyn StorageBackendPort>) -> Self {
        Self { inner, script: Arc::new(Mutex::new(Script::default())), weather: None }
    }

    /// Under this weather. Nothing is recorded then: a simulation is long, and keeps a trace of its own.
    #[must_use]
    pub fn in_weather(self, weather: Arc<dyn Weather>) -> Self {
        Self { weather: Some(weather), ..self }
    }

    /// Wraps another handle under the script and record of this one.
    #[must_use]
    pub fn beside(&self, inner: Arc<dyn StorageBackendPort>) -> Self {
        Self { inner, ..self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next call of this kind without a fault of its own fails like this.
    pub fn fail_next(&self, call: Call, fault: Fault) {
        self.script(call, [Some(fault)]);
    }

    /// The next calls of this kind fail like this, one after the other; `None` lets one pass.
    pub fn script(&self, call: Call, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.lock().next.entry(call).or_default().extend(faults);
    }

    /// Every call of this kind without a fault of its own fails like this, until told otherwise.
    pub fn fail_always(&self, call: Call, fault: Option<Fault>) {
        let mut script = self.lock();
        match fault {
            Some(fault) => script.always.insert(call, fault),
            None => script.always.remove(&call),
        };
    }

    /// Forgets all faults that are still to come. What was recorded stays.
    pub fn heal(&self) {
        let mut script = self.lock();
        script.next.clear();
        script.always.clear();
    }

    /// Everything that was called, in order.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.lock().records.clone()
    }

    /// How often a method was called.
    #[must_use]
    pub fn count(&self, call: Call) -> usize {
        self.lock().records.iter().filter(|record| record.call == call).count()
    }

    /// Every commit that was sent, applied or not, in order.
    #[must_use]
    pub fn commits(&self) -> Vec<Commit> {
        let script = self.lock();
        let sent = script.records.iter().filter_map(|record| record.commit.as_deref());
        sent.cloned().collect()
    }

    /// Does the commits that were kept for [`Fault::Later`], as a request does that arrives late. Their answers go to
    /// nobody but the test.
    pub async fn land(&self) -> Vec<Result<(), CommitError>> {
        let kept = std::mem::take(&mut self.lock().kept);
        let mut answers = Vec::new();
        for commit in kept {
            answers.push(self.apply(commit).await);
        }
        answers
    }

    /// The commit, and what is written beside it.
    async fn apply(&self, commit: Commit) -> Result<(), CommitError> {
        let beside = self.weather.as_ref().and_then(|weather| weather.beside(&commit));
        self.inner.commit(commit).await?;
        if let Some(write) = beside {
            write();
        }
        Ok(())
    }

    /// Does a call under the fault that there is for it. `call` is not polled when it is not to be done.
    async fn through<T, E: Faulty>(
        &self,
        kind: Call,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let fault = self.fault(kind, None).await;
        self.under(fault, call).await
    }

    async fn under<T, E: Faulty>(
        &self,
        fault: Option<Fault>,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let answer = under(fault, call).await;
        if let Some(weather) = &self.weather {
            weather.back().await;
        }
        answer
    }

    /// The fault of a call, which is kept where it is a commit for later.
    async fn fault(&self, kind: Call, commit: Option<&Commit>) -> Option<Fault> {
        let fault = match &self.weather {
            Some(weather) => weather.there(kind).await,
            None => self.lock().take(kind, commit),
        };
        if let (Some(Fault::Later), Some(commit)) = (&fault, commit) {
            self.lock().kept.push(commit.clone());
        }
        fault
    }
}

async fn under<T, E: Faulty>(
    fault: Option<Fault>,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match fault {
        None => call.await,
        Some(Fault::Before) => Err(E::before()),
        Some(Fault::Instead | Fault::Later) => Err(E::unknown()),
        Some(Fault::Corrupt) => Err(E::corrupt()),
        Some(Fault::After) => {
            // The answer is lost, whatever it was.
            let _ = call.await;
            Err(E::unknown())
        }
        Some(Fault::Hold(gate)) => {
            gate.pass().await;
            call.await
        }
        Some(Fault::HoldAnswer(gate)) => {
            let answer = call.await;
            gate.pass().await;
            answer
        }
    }
}

#[async_trait]
impl StorageBackendPort for FaultStore {
    async fn identity(&self) -> Result<StoreIdentity, ReadError> {
        self.through(Call::Identity, self.inner.identity()).await
    }

    async fn load(&self, query: &LoadQuery) -> Result<Snapshot, ReadError> {
        self.through(Call::Load, self.inner.load(query)).await
    }

    async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        let fault = self.fault(Call::Commit, Some(&commit)).await;
        self.under(fault, self.apply(commit)).await
    }

    async fn events(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, ReadError> {
        let call = self.inner.events(tenant, workflow, after, limit);
        self.through(Call::Events, call).await
    }

    async fn open_of(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        self.through(Call::OpenOf, self.inner.open_of(tenant, actor, limit)).await
    }

    async fn offered_to(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        self.through(Call::OfferedTo, self.inner.offered_to(tenant, actor, limit)).await
    }

    async fn people(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Person>, ReadError> {
        self.through(Call::People, self.inner.people(tenant, limit)).await
    }

    async fn blocked(&self, tenant: &TenantId, limit: u32) -> Result<Vec<Workflow>, ReadError> {
        self.through(Call::Blocked, self.inner.blocked(tenant, limit)).await
    }

    async fn last_completed(
        &self,
        tenant: &TenantId,
        whose: &Recent,
    ) -> Result<Option<Workflow>, ReadError> {
        self.through(Call::LastCompleted, self.inner.last_completed(tenant, whose)).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page<Workflow>, ReadError> {
        self.through(Call::List, self.inner.list(query)).await
    }

    async fn list_locks(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LockRow>, ReadError> {
        self.through(Call::ListLocks, self.inner.list_locks(tenant, after, limit)).await
    }

    async fn put_definition(&self, definition: &Definition) -> Result<(), DefinitionError> {
        self.through(Call::PutDefinition, self.inner.put_definition(definition)).await
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Definition>, ReadError> {
        self.through(Call::Definition, self.inner.definition(digest)).await
    }

    async fn claim_outbox(&self, claim: &Claim) -> Result<Vec<ClaimedStream>, ReadError> {
        self.through(Call::ClaimOutbox, self.inner.claim_outbox(claim)).await
    }

    async fn settle_outbox(&self, settlement: &Settlement) -> Result<(), SettleError> {
        self.through(Call::SettleOutbox, self.inner.settle_outbox(settlement)).await
    }

    async fn list_outbox(&self, query: &OutboxQuery) -> Result<OutboxPage, ReadError> {
        self.through(Call::ListOutbox, self.inner.list_outbox(query)).await
    }

    async fn outbox_backlog(&self, limit: u32) -> Result<Backlog, ReadError> {
        self.through(Call::OutboxBacklog, self.inner.outbox_backlog(limit)).await
    }

    async fn purge_outbox(&self, purge: &OutboxPurge) -> Result<u64, SettleError> {
        self.through(Call::PurgeOutbox, self.inner.purge_outbox(purge)).await
    }

    async fn revive_outbox(&self, id: &str, now: Timestamp) -> Result<bool, SettleError> {
        self.through(Call::ReviveOutbox, self.inner.revive_outbox(id, now)).await
    }

    async fn claim_deadlines(&self, claim: &Claim) -> Result<Vec<ClaimedDeadline>, ReadError> {
        self.through(Call::ClaimDeadlines, self.inner.claim_deadlines(claim)).await
    }

    async fn next_deadline(
        &self,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<NextDeadline, ReadError> {
        self.through(Call::NextDeadline, self.inner.next_deadline(now, lease_ms)).await
    }

    async fn settle_deadline(&self, claimed: &ClaimedDeadline) -> Result<(), SettleError> {
        self.through(Call::SettleDeadline, self.inner.settle_deadline(claimed)).await
    }

    async fn erase(&self, erasure: &Erasure) -> Result<bool, SettleError> {
        self.through(Call::Erase, self.inner.erase(erasure)).await
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, SettleError> {
        self.through(Call::Purge, self.inner.purge(purge)).await
    }

    async fn tombstone(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
    ) -> Result<Option<Tombstone>, ReadError> {
        self.through(Call::Tombstone, self.inner.tombstone(tenant, workflow)).await
    }

    async fn sweep(
        &self,
        now: Timestamp,
        retention_ms: i64,
        limit: u32,
    ) -> Result<Swept, SettleError> {
        self.through(Call::Sweep, self.inner.sweep(now, retention_ms, limit)).await
    }
}
