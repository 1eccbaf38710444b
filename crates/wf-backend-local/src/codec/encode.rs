//! What a commit writes, made ready on the caller's task so that the writer only binds it.

use serde::Serialize;
use wf_core::limits::{EVENT_BYTES_MAX, STATE_BYTES_MAX};
use wf_core::locks::LockChange;
use wf_core::models::{TenantId, Timestamp, Workflow, WorkflowId};
use wf_core::ports::Message;
use wf_core::ports::{Commit, CommitError, DeadlineChange, LedgerRow};
use wf_core::state_machine::Event;

use super::{Placement, asset_list};
use crate::fault::{Failure, Trouble};

/// A commit in the form in which it is written.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The tenant.
    pub(crate) tenant: TenantId,
    /// The workflow.
    pub(crate) id: WorkflowId,
    /// The revision it was decided on.
    pub(crate) expected: u64,
    /// The revision after it.
    pub(crate) revision: u64,
    /// The head row after it.
    pub(crate) head: Head,
    /// Holder and time of acquired locks.
    pub(crate) holder: wf_core::locks::LockHolder,
    /// The events.
    pub(crate) events: Vec<EventRow>,
    /// The ledger row to insert.
    pub(crate) ledger: LedgerRow,
    /// The row it may replace.
    pub(crate) replaces: Option<LedgerRow>,
    /// Lock conditions and changes, in order.
    pub(crate) locks: Vec<LockChange>,
    /// Who caused it, where the store may not know.
    pub(crate) seen: Option<wf_core::models::Person>,
    /// Messages.
    pub(crate) outbox: Vec<MessageRow>,
    /// Deadline changes, in order.
    pub(crate) deadlines: Vec<DeadlineChange>,
}

/// A row of `workflows`.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    /// The columns for lists.
    pub(crate) placement: Placement,
    /// Its assets.
    pub(crate) assets: String,
    /// `updated_at`.
    pub(crate) updated_at: i64,
    /// `last_activity`.
    pub(crate) last_activity: i64,
    /// The whole state.
    pub(crate) state: String,
}

/// A row of `events`, and of `sensitive_values` if there are any.
#[derive(Debug)]
pub(crate) struct EventRow {
    /// Its place.
    pub(crate) seq: i64,
    /// The event without sensitive values.
    pub(crate) body: String,
    /// The sensitive values.
    pub(crate) sensitive: Option<String>,
}

/// A row of `outbox`.
#[derive(Debug)]
pub(crate) struct MessageRow {
    /// Its id.
    pub(crate) id: String,
    /// The recipient.
    pub(crate) recipient: String,
    /// Its place.
    pub(crate) seq: i64,
    /// Deliver not before; the event's time.
    pub(crate) next_attempt_at: i64,
    /// The whole message.
    pub(crate) body: String,
}

fn malformed(what: &'static str) -> CommitError {
    Failure::NotApplied(Trouble::Malformed(what)).into_commit_error(None)
}

fn json<T: Serialize>(value: &T, what: &'static str) -> Result<String, CommitError> {
    serde_json::to_string(value).map_err(|_| malformed(what))
}

/// A number as SQLite keeps it: signed, 64 bits.
pub(crate) fn signed(number: u64) -> Option<i64> {
    i64::try_from(number).ok()
}

impl Prepared {
    /// Makes the commit ready.
    ///
    /// # Errors
    /// `TooLarge`, and `Unavailable` for a commit that contradicts itself.
    pub(crate) fn new(commit: Commit) -> Result<Self, CommitError> {
        check(&commit)?;
        let due_at = commit.due_at();
        let next = &commit.next;
        let state = json(next, "the state")?;
        if state.len() > STATE_BYTES_MAX {
            return Err(CommitError::TooLarge { what: "the state of the workflow" });
        }
        if commit.ledger.entry.result.len() > STATE_BYTES_MAX {
            return Err(CommitError::TooLarge { what: "the result" });
        }
        let events = commit.events.into_iter().map(event_row).collect::<Result<_, _>>()?;
        let outbox = commit.outbox.into_iter().map(|message| message_row(message, due_at));
        let outbox = outbox.collect::<Result<_, _>>()?;
        Ok(Self {
            tenant: next.tenant.clone(),
            id: next.id.clone(),
            expected: commit.expected,
            revision: next.revision,
            holder: wf_core::locks::LockHolder {
                workflow_id: next.id.clone(),
                owner: next.owner.clone(),
                acquired_at: next.updated_at,
            },
            head: head(next, state),
            events,
            ledger: commit.ledger,
            replaces: commit.replaces,
            locks: commit.locks,
            seen: commit.seen,
            outbox,
            deadlines: commit.deadlines,
        })
    }
}

/// What no decision ever makes, and what would break the laws of the store if it were written.
fn check(commit: &Commit) -> Result<(), CommitError> {
    let next = &commit.next;
    let mut seq = commit.expected;
    for event in &commit.events {
        seq = seq.checked_add(1).ok_or(malformed("the revision ends"))?;
        if event.seq != seq {
            return Err(malformed("the events do not follow the expected revision"));
        }
        if event.workflow_id != next.id {
            return Err(malformed("an event is of another workflow"));
        }
    }
    if commit.events.is_empty() || next.revision != seq {
        return Err(malformed("the revision is not that of the last event"));
    }
    let ledger = &commit.ledger;
    if ledger.key.tenant != next.tenant || ledger.workflow_id != next.id {
        return Err(malformed("the ledger row is of another workflow"));
    }
    if commit.outbox.iter().any(|m| m.tenant != next.tenant || m.workflow_id != next.id) {
        return Err(malformed("a message is of another workflow"));
    }
    let fences = commit.locks.iter().map(|change| match change {
        LockChange::Acquire { fence, .. }
        | LockChange::Take { fence, .. }
        | LockChange::Assert { fence, .. }
        | LockChange::Release { fence, .. } => *fence,
    });
    let mut numbers = fences.chain([seq, ledger.seq]);
    if !numbers.all(|n| signed(n).is_some()) {
        return Err(malformed("a number does not fit in 63 bits"));
    }
    Ok(())
}

/// The head row of a state.
pub(crate) fn head(next: &Workflow, state: String) -> Head {
    Head {
        placement: Placement::of(next),
        assets: asset_list(next),
        updated_at: next.updated_at.as_ms(),
        last_activity: next.last_activity.as_ms(),
        state,
    }
}

/// The rows of an event.
pub(crate) fn event_row(mut event: Event) -> Result<EventRow, CommitError> {
    const MEMBER: &str = ",\"sensitive\":";
    let sensitive = std::mem::take(&mut event.sensitive);
    let body = json(&event, "an event")?;
    let beside = match sensitive.as_slice() {
        [] => None,
        some => Some(json(&some, "a sensitive value")?),
    };
    let size = body.len() + beside.as_ref().map_or(0, |s| s.len() + MEMBER.len());
    if size > EVENT_BYTES_MAX {
        return Err(CommitError::TooLarge { what: "an event" });
    }
    Ok(EventRow {
        seq: signed(event.seq).ok_or(malformed("the revision ends"))?,
        body,
        sensitive: beside,
    })
}

/// The row of a message that is due at this time at the latest.
pub(crate) fn message_row(message: Message, due_at: Timestamp) -> Result<MessageRow, CommitError> {
    let body = json(&message, "a message")?;
    if body.len() > EVENT_BYTES_MAX {
        return Err(CommitError::TooLarge { what: "a message" });
    }
    Ok(MessageRow {
        seq: signed(message.seq).ok_or(malformed("the place of a message"))?,
        next_attempt_at: message.time.min(due_at).as_ms(),
        id: message.id,
        recipient: message.recipient,
        body,
    })
}
