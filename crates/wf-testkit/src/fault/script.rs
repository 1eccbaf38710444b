//! Which call fails how, and what was called.

use std::collections::{BTreeMap, VecDeque};

use wf_core::ports::Commit;
use wf_core::ports::Source;

use super::Gate;

/// A method of the storage port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// `identity`
    Identity,
    /// `load`
    Load,
    /// `commit`
    Commit,
    /// `events`
    Events,
    /// `open_of`
    OpenOf,
    /// `offered_to`
    OfferedTo,
    /// `blocked`
    Blocked,
    /// `people`
    People,
    /// `last_completed`
    LastCompleted,
    /// `list`
    List,
    /// `list_locks`
    ListLocks,
    /// `put_definition`
    PutDefinition,
    /// `definition`
    Definition,
    /// `claim_outbox`
    ClaimOutbox,
    /// `settle_outbox`
    SettleOutbox,
    /// `list_outbox`
    ListOutbox,
    /// `outbox_backlog`
    OutboxBacklog,
    /// `purge_outbox`
    PurgeOutbox,
    /// `revive_outbox`
    ReviveOutbox,
    /// `claim_deadlines`
    ClaimDeadlines,
    /// `next_deadline`
    NextDeadline,
    /// `settle_deadline`
    SettleDeadline,
    /// `erase`
    Erase,
    /// `purge`
    Purge,
    /// `tombstone`
    Tombstone,
    /// `sweep`
    Sweep,
}

/// How a call fails.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Not done, and said so: `Unavailable`.
    Before,
    /// Done, but the answer is lost: `Ambiguous` for a commit, `Unavailable` for other calls.
    After,
    /// Not done and never will be, but nobody can know: `Ambiguous` for a commit, `Unavailable` for other calls.
    Instead,
    /// As `Instead`, but a commit is kept and done when [`FaultStore::land`](super::FaultStore::land) is called.
    Later,
    /// The store is damaged: `Corrupt` where the call can say so, else `Unavailable`. Not done.
    Corrupt,
    /// Waits at the gate, then is done as usual.
    Hold(Gate),
    /// Is done, then waits at the gate before it answers.
    HoldAnswer(Gate),
}

/// What was called, and how it was made to fail.
#[derive(Debug, Clone)]
pub struct Record {
    /// The method.
    pub call: Call,
    /// The fault it was given.
    pub fault: Option<Fault>,
    /// The commit that was sent.
    pub commit: Option<Box<Commit>>,
}

/// The cause in every error that a script makes.
#[derive(Debug, thiserror::Error)]
#[error("a fault of the test's script")]
struct Scripted;

pub(super) fn source() -> Source {
    Box::new(Scripted)
}

/// What is still to happen, and what has.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) next: BTreeMap<Call, VecDeque<Option<Fault>>>,
    pub(super) always: BTreeMap<Call, Fault>,
    pub(super) records: Vec<Record>,
    pub(super) kept: Vec<Commit>,
}

impl Script {
    /// Takes the fault of a call and records it.
    pub(super) fn take(&mut self, call: Call, commit: Option<&Commit>) -> Option<Fault> {
        let scripted = self.next.get_mut(&call).and_then(VecDeque::pop_front);
        let fault = scripted.unwrap_or_else(|| self.always.get(&call).cloned());
        self.records.push(Record {
            call,
            fault: fault.clone(),
            commit: commit.cloned().map(Box::new),
        });
        fault
    }
}
