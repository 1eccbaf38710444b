//! What waits in the queue, and how it is answered.

use tokio::sync::oneshot;
use tracing::Span;
use wf_core::models::{Actor, Digest, Timestamp};
use wf_core::policy::Definition;
use wf_core::ports::{
    Claim, ClaimedDeadline, ClaimedStream, CommitError, Conflict, Erasure, OutboxPurge, Purge,
    Purged, Settlement, Swept,
};

use crate::codec::encode::Prepared;
use crate::fault::Failure;

/// One thing to write.
#[derive(Debug)]
pub(crate) enum Job {
    /// A commit, and the span of who waits for it.
    Commit(Box<Prepared>, oneshot::Sender<Result<(), CommitError>>, Span),
    /// Any other write.
    Task(Box<Task>, oneshot::Sender<Result<Done, Failure>>),
    /// Do what waits, then close.
    Close(oneshot::Sender<()>),
}

/// Any write but a commit.
#[derive(Debug)]
pub(crate) enum Task {
    /// `claim_outbox`.
    ClaimOutbox(Claim),
    /// `settle_outbox`.
    SettleOutbox(Settlement),
    /// `revive_outbox`.
    ReviveOutbox {
        /// The message.
        id: String,
        /// Now.
        now: Timestamp,
    },
    /// `purge_outbox`.
    PurgeOutbox(OutboxPurge),
    /// `claim_deadlines`.
    ClaimDeadlines(Claim),
    /// `settle_deadline`.
    SettleDeadline(ClaimedDeadline),
    /// `put_definition`.
    PutDefinition(Definition),
    /// `purge`.
    Purge(Purge),
    /// `erase`.
    Erase(Erasure),
    /// `sweep`.
    Sweep {
        /// Now.
        now: Timestamp,
        /// How long rows stay, in milliseconds.
        retention_ms: i64,
        /// Rows of each kind at most.
        limit: u32,
    },
    /// Writes something, to find out whether writing works.
    Probe,
}

/// What a task did.
#[derive(Debug)]
pub(crate) enum Done {
    /// Streams under lease.
    Streams(Vec<ClaimedStream>),
    /// Deadlines under lease.
    Deadlines(Vec<ClaimedDeadline>),
    /// Whether the lease was still held.
    Settled(bool),
    /// Whether there was a dead row.
    Revived(bool),
    /// How many messages were deleted.
    Purged(u64),
    /// The other digest under which the version is known, if any.
    Definition(Option<Digest>),
    /// What became of the purge of a workflow.
    PurgedWorkflow(Purged),
    /// Whether it was what was read.
    Erased(bool),
    /// What was swept.
    Swept(Swept),
    /// Writing works.
    Probed,
}

/// Why a commit was not taken although the store works.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A condition.
    Conflict(Conflict),
    /// A row that its conditions need cannot be read.
    Corrupt(String),
}

/// What a job is answered after COMMIT.
#[derive(Debug)]
pub(crate) enum Answer {
    /// To a commit.
    Commit(Result<(), Refusal>),
    /// To a task.
    Task(Done),
}

impl Job {
    /// The span of who waits for a commit.
    pub(crate) fn span(&self) -> Option<&Span> {
        match self {
            Self::Commit(_, _, span) => Some(span),
            Self::Task(..) | Self::Close(_) => None,
        }
    }

    /// Whether it is the firing of a deadline. Nothing but failpoints depends on it.
    pub(crate) fn fires(&self) -> bool {
        match self {
            Self::Commit(commit, ..) => {
                !commit.deadlines.is_empty() && commit.ledger.key.actor == Actor::clock()
            }
            Self::Task(..) | Self::Close(_) => false,
        }
    }

    /// Whether it reads far more of the file than commits will need of it soon.
    pub(crate) fn roams(&self) -> bool {
        match self {
            Self::Task(task, _) => matches!(**task, Task::Sweep { .. }),
            Self::Commit(..) | Self::Close(_) => false,
        }
    }

    /// Answers; nobody may be waiting any more.
    pub(crate) fn answer(self, answer: Answer) {
        match (self, answer) {
            (Self::Commit(_, reply, _), Answer::Commit(outcome)) => {
                let _ = reply.send(outcome.map_err(|refusal| match refusal {
                    Refusal::Conflict(conflict) => CommitError::Conflict(conflict),
                    Refusal::Corrupt(what) => CommitError::Corrupt { what },
                }));
            }
            (Self::Task(_, reply), Answer::Task(done)) => {
                let _ = reply.send(Ok(done));
            }
            // Dropping the reply says that the outcome is unknown.
            (Self::Close(_), _) | (Self::Commit(..), _) | (Self::Task(..), _) => {}
        }
    }

    /// Answers that it failed.
    pub(crate) fn fail(self, failure: Failure, after_ms: Option<i64>) {
        match self {
            Self::Commit(_, reply, _) => {
                let _ = reply.send(Err(failure.into_commit_error(after_ms)));
            }
            Self::Task(_, reply) => {
                let _ = reply.send(Err(failure));
            }
            Self::Close(_) => {}
        }
    }
}
