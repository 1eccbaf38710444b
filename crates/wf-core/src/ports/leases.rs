//! Work under lease: outbox streams and deadlines.

use serde::{Deserialize, Serialize};

use crate::models::{TenantId, Timestamp, WorkflowId};

use super::{Cursor, Message};

/// A deadline of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// `<workflow id>/<seq of the event that set it>/<n>`; the idempotency key of its firing.
    pub id: String,
    /// When it is due.
    pub fire_at: Timestamp,
}

/// What a commit does to deadlines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeadlineChange {
    /// Set it.
    Set(Deadline),
    /// Remove it.
    Clear(String),
}

/// Proves that a lease is one's own; random.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseToken(pub String);

/// The latest expiry that a live lease can have at `now`, when leases last `lease_ms` milliseconds: later ones were given
/// by a clock that was wrong. Twice the length, since another process may be ahead: its clock may be, and a claim that
/// waited for its turn comes with the time at which it began to wait.
#[must_use]
pub const fn latest_live_expiry(now: Timestamp, lease_ms: i64) -> Timestamp {
    now.plus_ms(lease_ms.saturating_mul(2))
}

/// A request for work under a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Now, by the claimer.
    pub now: Timestamp,
    /// How long the lease lasts, in milliseconds. A stored expiry after [`latest_live_expiry`] counts as expired.
    pub lease_ms: i64,
    /// The claimer's token, fresh for each claim.
    pub token: LeaseToken,
    /// At most this many streams (or deadlines).
    pub limit: u32,
}

/// Where an outbox row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutboxState {
    /// To be delivered.
    Pending,
    /// Delivered.
    Delivered,
    /// Given up, visible.
    Dead,
}

/// An outbox row with its delivery status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRow {
    /// The message.
    pub message: Message,
    /// How its delivery stands.
    pub status: OutboxStatus,
}

/// How the delivery of a message stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxStatus {
    /// Where it stands.
    pub state: OutboxState,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Not before this time; of a message that was given up, when that was.
    pub next_attempt_at: Timestamp,
    /// What the last failure said, if any.
    pub last_error: Option<String>,
}

/// A stream (workflow, recipient) under lease: its pending rows that are due, lowest `seq` first, at most 16.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedStream {
    /// The tenant.
    pub tenant: TenantId,
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// The recipient.
    pub recipient: String,
    /// The lease.
    pub token: LeaseToken,
    /// Rows to deliver in this order. A row that is not due hides the rows behind it.
    pub rows: Vec<OutboxRow>,
}

/// What became of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// Delivered.
    Delivered,
    /// Not delivered; try again at this time.
    Retry {
        /// When.
        at: Timestamp,
        /// Why.
        error: String,
    },
    /// Given up.
    Dead {
        /// Why.
        error: String,
    },
}

/// The end of a claim: what became of its messages. Releases the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The tenant.
    pub tenant: TenantId,
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// The recipient.
    pub recipient: String,
    /// The lease it was claimed under.
    pub token: LeaseToken,
    /// Now.
    pub now: Timestamp,
    /// Message id → what became of it; messages that are not named stay as they are.
    pub results: Vec<(String, Settled)>,
}

/// Which outbox rows to list, by id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutboxQuery {
    /// Only in this state.
    pub state: Option<OutboxState>,
    /// Where to go on.
    pub after: Option<Cursor>,
    /// At most this many rows, at least 1.
    pub limit: u32,
}

/// A page of outbox rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutboxPage {
    /// The rows.
    pub items: Vec<OutboxRow>,
    /// Rows of this page that cannot be read. They count for its limit.
    pub damaged: Vec<DamagedMessage>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<Cursor>,
}

/// A row of the outbox that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedMessage {
    /// The id it is stored under.
    pub id: String,
    /// Where its delivery stands, if that can be read.
    pub state: Option<OutboxState>,
    /// What is wrong with it.
    pub error: String,
}

/// Messages that nobody delivers any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// Delivered.
    Delivered,
    /// Given up.
    Dead,
}

/// Which messages to delete. A pending one never goes, so no stream loses its order or what it has to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutboxPurge {
    /// Those that ended so,
    pub which: Finished,
    /// at this time or before.
    pub until: Timestamp,
    /// At most this many.
    pub limit: u32,
    /// Only count them.
    pub count_only: bool,
}

/// How much of the outbox is not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Messages to be delivered.
    pub pending: u64,
    /// Messages that were given up.
    pub dead: u64,
    /// When the event was of the oldest message to be delivered. Where many are, the oldest of those that a backend looks
    /// at: at least 100, those of the workflows that started first.
    pub oldest_pending: Option<Timestamp>,
}

/// A deadline under lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedDeadline {
    /// The tenant.
    pub tenant: TenantId,
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// The deadline.
    pub deadline: Deadline,
    /// The lease.
    pub token: LeaseToken,
}

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextDeadline {
    /// When the next deadline is due, or when the lease is over that hides it; none is set when absent.
    pub at: Option<Timestamp>,
    /// Others use the store too: they may set an earlier deadline unheard, and leave it when they end.
    pub shared: bool,
}
