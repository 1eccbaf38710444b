//! What the storage port carries: queries, snapshots, commits, pages, and its errors.

use thiserror::Error;
use wf_idempotency::{Fingerprint, IdempotencyKey, LedgerEntry};

use crate::locks::{LockChange, LockRow};
use crate::models::{
    Actor, AssetId, Digest, Person, Phase, TenantId, Timestamp, Workflow, WorkflowId,
};
use crate::state_machine::{Event, Secret};

use super::{DeadlineChange, Message, Source};

/// What a store is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreIdentity {
    /// Random, made at first open, replaced by a restore; lowercase hexadecimal.
    pub id: String,
    /// Keys that sign confirm tokens, newest first; never empty.
    pub secrets: Vec<Secret>,
}

/// Whose key it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LedgerKey {
    /// The tenant.
    pub tenant: TenantId,
    /// The actor: two actors may use the same key.
    pub actor: Actor,
    /// The key.
    pub key: IdempotencyKey,
}

/// A ledger row: the marker and the answer of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRow {
    /// Whose key.
    pub key: LedgerKey,
    /// Operation, fingerprint, result.
    pub entry: LedgerEntry,
    /// The workflow that the commit changed.
    pub workflow_id: WorkflowId,
    /// `seq` of the last event of the commit.
    pub seq: u64,
    /// 32 hexadecimal digits, random: tells the commit from any other, also from that of another copy of the same call,
    /// which may be equal to it in everything else.
    pub mark: String,
    /// Argument name → 8 hexadecimal digits keyed by the store, to name the fields that differ in a conflict.
    pub fields: std::collections::BTreeMap<String, String>,
}

/// What to read before a decision, in one consistent read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadQuery {
    /// The tenant.
    pub tenant: TenantId,
    /// The workflow, when there is one already.
    pub workflow: Option<WorkflowId>,
    /// The ledger row to judge.
    pub ledger: Option<LedgerKey>,
    /// Fingerprint of the call. When the ledger row has it, the row is most likely the answer: everything else may be left
    /// out then. Who needs it after all asks again without this.
    pub answered_as: Option<Fingerprint>,
    /// Lock rows to read besides those of the workflow's own assets.
    pub assets: Vec<AssetId>,
    /// Count the open workflows that this actor owns.
    pub count_open_of: Option<Actor>,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// The workflow's state.
    pub workflow: Option<Workflow>,
    /// The ledger row, expired or not.
    pub ledger: Option<LedgerRow>,
    /// Lock rows of `assets` and of the workflow's own assets; assets that were never held are absent.
    pub locks: Vec<LockRow>,
    /// Open workflows of `count_open_of`.
    pub open_count: u32,
}

/// One atomic change. A backend applies all of it or nothing and never looks inside `next` to decide something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The state after the events; its tenant and id name the workflow.
    pub next: Workflow,
    /// Revision the decision was made on; 0 when the workflow must not exist yet.
    pub expected: u64,
    /// The events, `seq` from `expected + 1`.
    pub events: Vec<Event>,
    /// The ledger row to insert.
    pub ledger: LedgerRow,
    /// The expired row under the same key that was judged; replaced only while it is still exactly this one.
    pub replaces: Option<LedgerRow>,
    /// Lock conditions and changes.
    pub locks: Vec<LockChange>,
    /// Who caused it, by the name they have now; absent where that is surely known already.
    pub seen: Option<Person>,
    /// Messages to send later; ids are unique.
    pub outbox: Vec<Message>,
    /// Deadline changes.
    pub deadlines: Vec<DeadlineChange>,
}

impl Commit {
    /// The latest time at which a message of it is due first: its own, by the clock that made it. A message has the time of
    /// its event, and a history that a clock wrote which was ahead is ahead of the right one for as long.
    #[must_use]
    pub const fn due_at(&self) -> Timestamp {
        Timestamp::from_ms(self.ledger.entry.created_at_ms)
    }
}

/// Which condition of a commit failed. When several do: ledger, then lock, then revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conflict {
    /// The key has a row (and it is not the one that `replaces` names).
    Ledger(Box<LedgerRow>),
    /// A lock condition failed; the row as it is, `None` when the asset was never held.
    Asset {
        /// The asset.
        asset_id: AssetId,
        /// Its row.
        row: Option<LockRow>,
    },
    /// The workflow has another revision; 0 when it does not exist.
    Revision {
        /// The revision it has.
        current: u64,
    },
}

/// A commit that did not succeed.
#[derive(Debug, Error)]
pub enum CommitError {
    /// A condition failed; nothing was written.
    #[error("a condition of the commit does not hold")]
    Conflict(Conflict),
    /// Surely not applied; the same commit may be sent again.
    #[error("the store did not take the commit")]
    Unavailable {
        /// When to try again, in milliseconds, if known.
        after_ms: Option<i64>,
        /// Why.
        #[source]
        source: Source,
    },
    /// It may or may not have been applied; the ledger row tells.
    #[error("the outcome of the commit is unknown")]
    Ambiguous {
        /// Why.
        #[source]
        source: Source,
    },
    /// The store holds something that cannot be read.
    #[error("the store is damaged: {what}")]
    Corrupt {
        /// What cannot be read.
        what: String,
    },
    /// A record is larger than any backend takes; nothing was written.
    #[error("{what} is too large to store")]
    TooLarge {
        /// Which record.
        what: &'static str,
    },
}

/// A read that did not succeed.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The store did not answer.
    #[error("the store did not answer")]
    Unavailable {
        /// Why.
        #[source]
        source: Source,
    },
    /// The store holds something that cannot be read.
    #[error("the store is damaged: {what}")]
    Corrupt {
        /// What cannot be read.
        what: String,
    },
    /// Where to go on is nothing that a page of this list said. Nothing is wrong with the store.
    #[error("this is no place of the list: begin at its first page")]
    BadCursor,
}

/// A store that cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The schema is newer than this build knows.
    #[error(
        "the store has schema version {found}, this build knows up to {known}, and changed nothing: use a newer build, or go back to a copy from before (docs/upgrading.md)"
    )]
    NewerSchema {
        /// The version found.
        found: u64,
        /// The newest this build knows.
        known: u64,
    },
    /// It cannot be used, and why; says what to do.
    #[error("{message}")]
    Refused {
        /// Why, and what to do.
        message: String,
    },
    /// The store did not answer.
    #[error("the store cannot be opened")]
    Unavailable {
        /// Why.
        #[source]
        source: Source,
    },
    /// The store holds something that cannot be read.
    #[error("the store is damaged: {what}")]
    Corrupt {
        /// What cannot be read.
        what: String,
    },
}

/// A definition that cannot be stored.
#[derive(Debug, Error)]
pub enum DefinitionError {
    /// The same id and version is stored with another digest.
    #[error("this version is already known with digest {existing}")]
    Changed {
        /// The digest that is stored.
        existing: Digest,
    },
    /// The store did not answer.
    #[error("the store did not take the definition")]
    Unavailable {
        /// Why.
        #[source]
        source: Source,
    },
}

/// A settlement that was not taken.
#[derive(Debug, Error)]
pub enum SettleError {
    /// The lease is somebody else's now; nothing was written.
    #[error("the lease is held by somebody else")]
    LeaseLost,
    /// The store did not answer.
    #[error("the store did not take the settlement")]
    Unavailable {
        /// Why.
        #[source]
        source: Source,
    },
}

/// Where a page ends; opaque, only for the backend that made it. It may come back from outside: a text that no page said
/// leads to some page or is [`ReadError::BadCursor`], and the empty one always is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(pub String);

/// A page of a listing. Stable and complete while others write: what is there from before the first page to after the
/// last appears exactly once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<Cursor>,
}

/// Which workflows to list, oldest id first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListQuery {
    /// Only of this tenant; all tenants when absent (operators only).
    pub tenant: Option<TenantId>,
    /// Only in this phase.
    pub phase: Option<Phase>,
    /// Where to go on.
    pub after: Option<Cursor>,
    /// At most this many rows, at least 1.
    pub limit: u32,
}

/// Whose last completed workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recent {
    /// The one that this actor owned.
    OwnedBy(Actor),
    /// The one that held this asset.
    OfAsset(AssetId),
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Ledger rows of completed workflows that got their expiry.
    pub expiries_set: u64,
    /// Expired ledger rows deleted.
    pub ledger_deleted: u64,
    /// Delivered outbox rows deleted.
    pub outbox_deleted: u64,
}
