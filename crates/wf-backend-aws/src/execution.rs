//! Executions of Step Functions that give open workflows a life in time, and the rows that bind them to the workflows.
//!
//! ```text
//! commit ── start, end, another next deadline ──▶ attention ─┐
//! an execution ── registers, says that it is due ─▶ binding ─┴─▶ due ─▶ bound ─▶ wf_core::reconcile ─▶ writes of binding
//! ```
//!
//! `binding` is the item that says which execution may write on behalf of a workflow; `attention` the rows that drive the
//! reconciler; `lease` who works on a shard of them. Every write here is on behalf of an [`Epoch`] of that lease: of two
//! reconcilers, the earlier writes nothing once the later has written. `definition` is what an execution does, `states` the
//! client that starts, asks, stops and answers executions. The rules are [`wf_core::reconcile`]'s; docs/reconciler.md.

mod adoption;
mod attention;
pub(crate) mod binding;
pub(crate) mod definition;
mod lease;
mod look;
pub mod machine;
mod pass;
mod reconciler;
mod report;
mod states;

pub use binding::Bound;
pub use lease::ShardLease;
pub use reconciler::{Reconciler, ReconcilerError};
pub use report::Report;
pub use wf_core::engine::pass::{End, Looked, Outcome, Taken, action, rule};
pub use wf_core::ports::{Attention, Epoch, Written};

pub(crate) use attention::wanted;

use async_trait::async_trait;
use wf_core::models::{TenantId, Timestamp, WorkflowId};
use wf_core::ports::{BindingPort, Cursor, LeaseToken, Message, Page, ReadError};
use wf_core::reconcile::Replacement;

use crate::keys;
use crate::link::Link;

/// How many shards the rows of a table are in. All of one workflow are in one; a shard is worked on under one lease.
pub const SHARDS: u8 = keys::SHARDS;

/// The rows of a table that bind workflows to executions: what is to be looked at, under which lease, and the
/// [`BindingPort`]. Cheap to clone.
///
/// Errors of all methods: [`ReadError`] when the table does not answer, or what it holds cannot be read. After such an error
/// a write may have been applied: read again and go on from there.
#[derive(Debug, Clone)]
pub struct Bindings {
    link: Link,
}

impl Bindings {
    pub(crate) fn new(link: Link) -> Self {
        Self { link }
    }

    /// Takes or renews the lease of a shard; none when somebody else has it.
    ///
    /// # Errors
    /// See [`Bindings`].
    pub async fn hold(&self, lease: &ShardLease) -> Result<Option<Epoch>, ReadError> {
        Ok(lease::hold(&self.link, lease).await?)
    }

    /// Gives the lease of a shard back; false when it is somebody else's.
    ///
    /// # Errors
    /// See [`Bindings`].
    pub async fn release(&self, shard: u8, token: &LeaseToken) -> Result<bool, ReadError> {
        Ok(lease::release(&self.link, shard, token).await?)
    }

    /// What is to be looked at in a shard at `now`: at most `limit` that commits asked for, and at most `limit` that are to
    /// be looked at for another reason (the execution says that something is due, or it is a while since the last look).
    ///
    /// # Errors
    /// See [`Bindings`].
    pub async fn due(
        &self,
        shard: u8,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Attention>, ReadError> {
        Ok(attention::due(&self.link, shard, now, limit).await?)
    }

    /// The bindings of a shard that are not closed, and their fences. For a look at all of them: it reads each.
    ///
    /// # Errors
    /// See [`Bindings`].
    pub async fn open(&self, shard: u8) -> Result<Vec<(TenantId, WorkflowId, u64)>, ReadError> {
        Ok(attention::open(&self.link, shard).await?)
    }

    /// A page of the open workflows that have no binding, since they were there before the state machine. With `asks`, each
    /// is to be looked at from now on. Reads every workflow there is: for a command that somebody runs.
    ///
    /// # Errors
    /// See [`Bindings`].
    pub async fn without_binding(
        &self,
        after: Option<&Cursor>,
        asks: bool,
    ) -> Result<Page<Attention>, ReadError> {
        Ok(adoption::page(&self.link, after, asks).await?)
    }
}

#[async_trait]
impl BindingPort for Bindings {
    type Bound = Bound;

    async fn bound(&self, attention: &Attention, now: Timestamp) -> Result<Bound, ReadError> {
        Ok(look::bound(&self.link, attention, now).await?)
    }

    async fn peek(&self, attention: &Attention, now: Timestamp) -> Result<Bound, ReadError> {
        Ok(look::peek(&self.link, attention, now).await?)
    }

    async fn record(
        &self,
        bound: &Bound,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Written, ReadError> {
        Ok(binding::record(&self.link, bound, epoch, now).await?)
    }

    async fn drop_token(
        &self,
        bound: &Bound,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Written, ReadError> {
        Ok(binding::drop_token(&self.link, bound, epoch, now).await?)
    }

    async fn replace(
        &self,
        bound: &Bound,
        epoch: Epoch,
        by: &Replacement,
        told: &[Message],
        now: Timestamp,
    ) -> Result<Written, ReadError> {
        Ok(binding::replace(&self.link, bound, epoch, by, told, now).await?)
    }

    async fn evicted(&self, bound: &Bound, epoch: Epoch, fence: u64) -> Result<Written, ReadError> {
        Ok(binding::evicted(&self.link, bound, epoch, fence).await?)
    }

    async fn close(
        &self,
        bound: &Bound,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Written, ReadError> {
        Ok(binding::close(&self.link, bound, epoch, now).await?)
    }

    async fn settle(
        &self,
        bound: &Bound,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Written, ReadError> {
        Ok(attention::settle(&self.link, bound, epoch, now).await?)
    }

    async fn postpone(
        &self,
        bound: &Bound,
        epoch: Epoch,
        not_before: Timestamp,
    ) -> Result<Written, ReadError> {
        Ok(attention::postpone(&self.link, bound, epoch, not_before).await?)
    }
}
