//! Moving a store from one backend to another: everything in it as records, page by page.
//!
//! Records are what the law of the store knows (`storage`), not tables and items, so that every backend maps them without
//! loss: a store that was copied from one kind to another and back gives the same records. What a backend derives from
//! them (indexes, copies in columns) is not copied but made anew, and work under lease is copied as work that is free.
//!
//! Who copies is `engine::copy`; it reads both stores whole at the end and compares.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::Serialize;
use thiserror::Error;

use crate::locks::LockRow;
use crate::models::{
    Actor, Digest, Person, ProcedureId, TenantId, Timestamp, Workflow, WorkflowId,
};
use crate::policy::Definition;
use crate::state_machine::Event;

use super::{
    Cursor, Deadline, LedgerRow, OutboxRow, OutboxState, Page, ReadError, Source, StoreIdentity,
    Tombstone,
};

/// What a store is known by, and what a restore left in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFacts {
    /// Id and keys. A copy keeps both: it goes on from where its source stopped, nothing is lost, and whatever was handed
    /// out (confirm tokens, links of messages, fences) stays good.
    pub identity: StoreIdentity,
    /// The fence of an asset that has no lock row; 0 unless the store was restored.
    pub fence_base: u64,
}

/// A lock row, and what a restore left in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LockRecord {
    /// The row.
    pub row: LockRow,
    /// The fence that it gets when it is freed, unless its own is higher; 0 unless the store was restored.
    pub floor: u64,
}

/// A workflow as its last commit left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkflowRecord {
    /// The state.
    pub state: Workflow,
    /// A sweep gave all its ledger rows their expiry.
    pub swept: bool,
    /// Its deadlines that were neither fired nor removed, by id.
    pub deadlines: Vec<Deadline>,
    /// The lock rows that it holds, by asset. Each comes as a record of its own too.
    pub held: Vec<LockRecord>,
}

/// One thing that a store holds. What the order is in which they come is the backend's affair: an event may come before
/// its workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A procedure definition.
    Definition(Box<Definition>),
    /// Which definition a version of a procedure is.
    Version {
        /// The procedure.
        id: ProcedureId,
        /// Its version.
        version: u32,
        /// The definition.
        digest: Digest,
    },
    /// The head of a workflow.
    Workflow(Box<WorkflowRecord>),
    /// An event, with the sensitive values that stand beside it.
    Event {
        /// The tenant of its workflow.
        tenant: TenantId,
        /// The event.
        event: Box<Event>,
        /// `seq` of the last event of the same commit.
        last: u64,
    },
    /// A ledger row.
    Ledger(Box<LedgerRow>),
    /// A lock row, held or free.
    Lock(LockRecord),
    /// A stream of messages.
    Stream {
        /// The tenant.
        tenant: TenantId,
        /// The workflow.
        workflow_id: WorkflowId,
        /// The recipient.
        recipient: String,
        /// When its first pending message is due; absent when there is none.
        due_at: Option<Timestamp>,
    },
    /// A message, pending, delivered or dead.
    Message {
        /// The message and how its delivery stands.
        row: Box<OutboxRow>,
        /// When it was delivered.
        delivered_at: Option<Timestamp>,
    },
    /// Somebody whom a commit named.
    Person {
        /// The tenant.
        tenant: TenantId,
        /// By the newest name.
        person: Person,
        /// When a commit named them last.
        seen_at: Timestamp,
    },
    /// What is left of a workflow that was purged.
    Tombstone(Box<Tombstone>),
    /// How many open workflows somebody owns; nobody with none.
    Owner {
        /// The tenant.
        tenant: TenantId,
        /// The owner.
        actor: Actor,
        /// How many.
        open: u32,
    },
}

impl Record {
    /// What kind of record it is.
    #[must_use]
    pub const fn kind(&self) -> RecordKind {
        match self {
            Self::Definition(_) => RecordKind::Definition,
            Self::Version { .. } => RecordKind::Version,
            Self::Workflow(_) => RecordKind::Workflow,
            Self::Event { .. } => RecordKind::Event,
            Self::Ledger(_) => RecordKind::Ledger,
            Self::Lock(_) => RecordKind::Lock,
            Self::Stream { .. } => RecordKind::Stream,
            Self::Message { .. } => RecordKind::Message,
            Self::Person { .. } => RecordKind::Person,
            Self::Tombstone(_) => RecordKind::Tombstone,
            Self::Owner { .. } => RecordKind::Owner,
        }
    }

    /// The workflow that the record belongs to.
    #[must_use]
    pub fn workflow(&self) -> Option<(&TenantId, &WorkflowId)> {
        match self {
            Self::Workflow(record) => Some((&record.state.tenant, &record.state.id)),
            Self::Event { tenant, event, .. } => Some((tenant, &event.workflow_id)),
            Self::Ledger(row) => Some((&row.key.tenant, &row.workflow_id)),
            Self::Stream { tenant, workflow_id, .. } => Some((tenant, workflow_id)),
            Self::Message { row, .. } => Some((&row.message.tenant, &row.message.workflow_id)),
            Self::Tombstone(left) => Some((&left.tenant, &left.workflow_id)),
            Self::Definition(_)
            | Self::Version { .. }
            | Self::Lock(_)
            | Self::Person { .. }
            | Self::Owner { .. } => None,
        }
    }

    /// SHA-256 of everything in the record. Two stores hold the same when their records have the same hashes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let bytes = match self {
            Self::Definition(definition) => json(&("definition", definition)),
            Self::Version { id, version, digest } => json(&("version", id, version, digest)),
            Self::Workflow(record) => json(&("workflow", record)),
            Self::Event { tenant, event, last } => json(&("event", tenant, event, last)),
            Self::Ledger(row) => {
                let LedgerRow { key, entry, workflow_id, seq, mark, fields } = row.as_ref();
                let key = (&key.tenant, &key.actor, &key.key);
                json(&("ledger", key, entry, workflow_id, seq, mark, fields))
            }
            Self::Lock(record) => json(&("lock", record)),
            Self::Stream { tenant, workflow_id, recipient, due_at } => {
                json(&("stream", tenant, workflow_id, recipient, due_at))
            }
            Self::Message { row, delivered_at } => {
                let status = &row.status;
                // When a row that is not pending would be due means nothing, and is nowhere promised.
                let due = (status.state == OutboxState::Pending).then_some(status.next_attempt_at);
                let status = (status.state, status.attempts, due, &status.last_error);
                json(&("message", &row.message, status, delivered_at))
            }
            Self::Person { tenant, person, seen_at } => json(&("person", tenant, person, seen_at)),
            Self::Tombstone(left) => json(&("tombstone", left)),
            Self::Owner { tenant, actor, open } => json(&("owner", tenant, actor, open)),
        };
        Digest::of(&bytes)
    }
}

/// Our own types, without maps whose keys are no texts: this cannot fail.
fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// What kinds of records there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A procedure definition.
    Definition,
    /// A version of a procedure.
    Version,
    /// A workflow.
    Workflow,
    /// An event.
    Event,
    /// A ledger row.
    Ledger,
    /// A lock row.
    Lock,
    /// A stream of messages.
    Stream,
    /// A message.
    Message,
    /// A person.
    Person,
    /// What is left of a purged workflow.
    Tombstone,
    /// An owner of open workflows.
    Owner,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Definition,
        Self::Version,
        Self::Workflow,
        Self::Event,
        Self::Ledger,
        Self::Lock,
        Self::Stream,
        Self::Message,
        Self::Person,
        Self::Tombstone,
        Self::Owner,
    ];

    /// Its name, for reports: plural, lowercase.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Definition => "definitions",
            Self::Version => "versions",
            Self::Workflow => "workflows",
            Self::Event => "events",
            Self::Ledger => "ledger_rows",
            Self::Lock => "locks",
            Self::Stream => "streams",
            Self::Message => "messages",
            Self::Person => "people",
            Self::Tombstone => "tombstones",
            Self::Owner => "owners",
        }
    }
}

/// What a target has of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// A part of it, maybe nothing yet: how many records, and where the source goes on (from the start when absent).
    Copying {
        /// Where the next page of the source starts.
        after: Option<Cursor>,
        /// Records taken so far, repeats included.
        records: u64,
    },
    /// All of it; it was not compared with the source yet.
    Copied {
        /// Records taken, repeats included.
        records: u64,
    },
    /// All of it, compared: the target is a store.
    Finished,
}

/// A copy that cannot go on.
#[derive(Debug, Error)]
pub enum CopyError {
    /// It must not be done, and why; says what to do.
    #[error("{message}")]
    Refused {
        /// Why, and what to do.
        message: String,
    },
    /// A store did not answer; the copy goes on when it is started again.
    #[error("the {side} store did not answer")]
    Unavailable {
        /// Which one.
        side: Side,
        /// Why.
        #[source]
        source: Source,
    },
    /// A store holds something that cannot be read.
    #[error("the {side} store is damaged: {what}")]
    Corrupt {
        /// Which one.
        side: Side,
        /// What cannot be read.
        what: String,
    },
}

/// One of the two stores of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Where records come from.
    Source,
    /// Where they go.
    Target,
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Target => "target",
        })
    }
}

impl CopyError {
    /// A read of one of the stores that did not succeed.
    #[must_use]
    pub fn reading(side: Side, error: ReadError) -> Self {
        match error {
            ReadError::Unavailable { source } => Self::Unavailable { side, source },
            ReadError::Corrupt { what } => Self::Corrupt { side, what },
            ReadError::BadCursor => Self::Refused {
                message: format!(
                    "the {side} store does not know the place where the copy stopped: begin again with an empty target"
                ),
            },
        }
    }
}

/// A store that can be read whole. Nobody writes to it meanwhile: where a backend can tell, it refuses to be opened like
/// this while it is in use; where it cannot, the comparison at the end finds what moved.
#[async_trait]
pub trait CopySourcePort: Debug + Send + Sync {
    /// What the store is known by.
    async fn facts(&self) -> Result<StoreFacts, ReadError>;

    /// Records from `after` on, some `limit` (a few times as many where parts are read side by side), each once from the first page to the last. A page may be empty although
    /// there are more. The cursor stays good when this process ends.
    async fn export(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<Record>, ReadError>;
}

/// A store that is being made of another one's records. Until [`finish`](Self::finish) it is none: opening it as a store
/// is refused.
#[async_trait]
pub trait CopyTargetPort: CopySourcePort {
    /// Begins a copy in an empty store, or finds where one of the same source stopped.
    ///
    /// # Errors
    /// [`CopyError::Refused`] when it holds anything else.
    async fn begin(&self, source: &StoreFacts) -> Result<Begun, CopyError>;

    /// Takes records, then remembers that the source goes on at `next`, or that this was all. Taking a record again
    /// changes nothing, so a page that was taken and not remembered may be sent again.
    async fn import(&self, records: &[Record], next: Option<&Cursor>) -> Result<(), CopyError>;

    /// Makes a store of it.
    async fn finish(&self, source: &StoreFacts) -> Result<(), CopyError>;
}

const _: fn(&dyn CopyTargetPort) = |_| {};
