//! What no decision ever makes, and what would break the laws of the store if it were written.

use wf_core::limits::STATE_BYTES_MAX;
use wf_core::ports::{Commit, CommitError};

use crate::fault::{Fail, Trouble};

/// Longest text from outside that is part of a key, in bytes; a partition key has 2,048, a sort key 1,024 (API reference).
const KEY_PART_BYTES_MAX: usize = 400;

pub(super) fn malformed(what: &'static str) -> CommitError {
    Fail::from(Trouble::Malformed(what)).into_commit_error()
}

pub(super) fn check(commit: &Commit) -> Result<(), CommitError> {
    let next = &commit.next;
    let mut seq = commit.expected;
    for event in &commit.events {
        seq = seq.checked_add(1).ok_or(malformed("the revision ends"))?;
        if event.seq != seq || event.workflow_id != next.id {
            return Err(malformed("the events do not follow the expected revision"));
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
    let long = |text: &str| crate::keys::encoded(text).len() > KEY_PART_BYTES_MAX;
    if commit.outbox.iter().any(|m| long(&m.recipient) || long(&m.id)) {
        return Err(CommitError::TooLarge { what: "the name of a recipient" });
    }
    // Measured as JSON, as every backend does: the text and its quotes.
    let result = serde_json::to_string(&ledger.entry.result);
    if result.map_or(true, |written| written.len() > STATE_BYTES_MAX) {
        return Err(CommitError::TooLarge { what: "the result" });
    }
    Ok(())
}
