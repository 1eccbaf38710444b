//! Executions outside the process, and the rows that bind them to workflows: what a backend brings so that a
//! [pass](crate::engine::pass) can keep one execution for each open workflow, as the rules say ([`crate::reconcile`]).
//!
//! Rows are written on condition that the binding still has the fence that was read, and that no later reconciler has
//! written. Calls to the orchestrator cannot be fenced; each is harmless when it arrives late.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::models::{Phase, TenantId, Timestamp, WorkflowId};
use crate::reconcile::{Binding, Head, Replacement, Run};

use super::{Message, ReadError};

/// A workflow that is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attention {
    /// Its tenant.
    pub tenant: TenantId,
    /// Which.
    pub workflow_id: WorkflowId,
    /// The revision that its execution must know; none when no commit asks for a look.
    pub wanted_revision: Option<u64>,
    /// Since when it is to be looked at.
    pub not_before: Timestamp,
    /// How often it was looked at without an end, since the last commit that asked for it.
    pub looks: u32,
}

/// Which holding of the reconciler's lease it is: each has a higher one than all before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It is written.
    Done,
    /// The rows have moved on, or a later reconciler has written: nothing was written. Read again.
    Overtaken,
}

/// A workflow, its binding and its attention row, as they were read together; with whatever else the backend needs to write
/// on condition that they are still so.
pub trait BoundRows: Debug + Send + Sync {
    /// Whose, and how often it was looked at.
    fn attention(&self) -> &Attention;
    /// What storage says of the workflow; none when there is no such workflow.
    fn head(&self) -> Option<&Head>;
    /// Its phase, which an execution is told; none when there is no such workflow.
    fn phase(&self) -> Option<Phase>;
    /// Its revision; 0 when there is no such workflow.
    fn revision(&self) -> u64;
    /// What is known of its executions.
    fn binding(&self) -> &Binding;
    /// The token that the execution waits with.
    fn token(&self) -> Option<&str>;
}

/// The rows that bind executions to workflows.
///
/// Errors of all methods: [`ReadError`] when the store does not answer, or what it holds cannot be read. After such an error
/// a write may have been applied: read again and go on from there.
#[async_trait]
pub trait BindingPort: Debug + Send + Sync {
    /// What is read of a workflow.
    type Bound: BoundRows;

    /// The workflow, its binding and its attention row as they are together. Makes the binding of an open workflow that has
    /// none: one that started before there was an orchestrator.
    async fn bound(&self, attention: &Attention, now: Timestamp) -> Result<Self::Bound, ReadError>;

    /// The same without a write: an open workflow without a binding is shown with the one that it would get.
    async fn peek(&self, attention: &Attention, now: Timestamp) -> Result<Self::Bound, ReadError>;

    /// Records that the execution of the binding's fence runs.
    async fn record(
        &self,
        bound: &Self::Bound,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Written, ReadError>;

    /// Drops the token that was read, unless another is registered.
    async fn drop_token(
        &self,
        bound: &Self::Bound,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Written, ReadError>;

    /// Raises the fence, and forgets what is known of the execution before. `told` are messages about this workflow, for the
    /// outbox, in the same write.
    async fn replace(
        &self,
        bound: &Self::Bound,
        epoch: Epoch,
        by: &Replacement,
        told: &[Message],
        now: Timestamp,
    ) -> Result<Written, ReadError>;

    /// The execution of this fence was stopped: takes it off the binding, if it is the one that the binding evicts.
    async fn evicted(
        &self,
        bound: &Self::Bound,
        epoch: Epoch,
        fence: u64,
    ) -> Result<Written, ReadError>;

    /// Marks the binding closed: no execution may write any more.
    async fn close(
        &self,
        bound: &Self::Bound,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Written, ReadError>;

    /// Nothing is left to do: deletes the attention row, and puts the next look off. Only while the execution waits and
    /// knows what it must, or the binding is closed, or there is no such workflow. Writes nothing where nothing is to do.
    async fn settle(
        &self,
        bound: &Self::Bound,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Written, ReadError>;

    /// Looks again at `not_before`, unless a commit asks for it earlier.
    async fn postpone(
        &self,
        bound: &Self::Bound,
        epoch: Epoch,
        not_before: Timestamp,
    ) -> Result<Written, ReadError>;
}

/// An execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution<'a> {
    /// Of whose workflow.
    pub tenant: &'a TenantId,
    /// Of which.
    pub workflow_id: &'a WorkflowId,
    /// On behalf of which fence it writes.
    pub fence: u64,
}

/// What an execution is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told<'a> {
    /// The state of the workflow, for whoever looks at the execution.
    pub state: &'a str,
    /// The workflow has ended, so the execution ends.
    pub ends: bool,
    /// The revision that is told.
    pub revision: u64,
    /// In how many seconds it wakes up by itself.
    pub timeout_s: u32,
}

/// What became of an answer to a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// The execution has it and goes on.
    Taken,
    /// The token is settled, timed out or unknown.
    Dead,
}

/// A call of which nothing is known: refused, or without an answer; it may have been done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct UnclearCall {
    /// In one word, for metrics.
    pub kind: &'static str,
    /// In words.
    pub why: String,
}

/// The orchestrator: starts, asks, stops and answers executions. It sends each call once.
#[async_trait]
pub trait ExecutionPort: Debug + Send + Sync {
    /// Starts an execution under its own name, and tells how it is: running, whether this call started it or one before;
    /// or what has the name.
    async fn start(&self, execution: &Execution<'_>) -> Result<Run, UnclearCall>;

    /// Asks how an execution is. May be out of date.
    async fn describe(&self, execution: &Execution<'_>) -> Result<Run, UnclearCall>;

    /// Stops an execution, which shows why; one that is over or was never there counts as stopped.
    async fn stop(&self, execution: &Execution<'_>, cause: &str) -> Result<(), UnclearCall>;

    /// Answers a token.
    async fn answer(&self, token: &str, told: &Told<'_>) -> Result<Answered, UnclearCall>;
}
