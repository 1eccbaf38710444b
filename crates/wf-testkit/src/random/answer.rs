//! Answers in a form that can be compared: what the port leaves open is taken out.

use std::fmt::Debug;

use wf_core::ports::{
    ClaimedStream, CommitError, DefinitionError, OutboxRow, OutboxState, ReadError, SettleError,
    Snapshot,
};

use crate::contract::Violation;

/// An answer as text: the value, or the variant of the error with what the law fixes of it.
pub(super) type Answer = String;

/// The part of an error that must be the same.
pub(super) trait Class {
    fn class(&self) -> String;
}

impl Class for CommitError {
    fn class(&self) -> String {
        match self {
            Self::Conflict(conflict) => format!("{conflict:#?}"),
            Self::Unavailable { .. } => "Unavailable".to_owned(),
            Self::Ambiguous { .. } => "Ambiguous".to_owned(),
            Self::Corrupt { .. } => "Corrupt".to_owned(),
            Self::TooLarge { .. } => "TooLarge".to_owned(),
        }
    }
}

impl Class for ReadError {
    fn class(&self) -> String {
        match self {
            Self::Unavailable { .. } => "Unavailable".to_owned(),
            Self::Corrupt { .. } => "Corrupt".to_owned(),
            Self::BadCursor => "BadCursor".to_owned(),
        }
    }
}

impl Class for DefinitionError {
    fn class(&self) -> String {
        match self {
            Self::Changed { existing } => format!("Changed from {existing}"),
            Self::Unavailable { .. } => "Unavailable".to_owned(),
        }
    }
}

impl Class for SettleError {
    fn class(&self) -> String {
        match self {
            Self::LeaseLost => "LeaseLost".to_owned(),
            Self::Unavailable { .. } => "Unavailable".to_owned(),
        }
    }
}

impl Class for Violation {
    fn class(&self) -> String {
        self.to_string()
    }
}

/// The answer as text.
pub(super) fn said<T: Debug, E: Class>(result: &Result<T, E>) -> Answer {
    match result {
        Ok(value) => format!("{value:#?}"),
        Err(error) => format!("error: {}", error.class()),
    }
}

pub(super) fn snapshot(mut seen: Snapshot) -> Snapshot {
    seen.locks.sort_by(|a, b| a.asset_id.cmp(&b.asset_id));
    seen
}

pub(super) fn streams(mut claimed: Vec<ClaimedStream>) -> Vec<ClaimedStream> {
    let key = |s: &ClaimedStream| (s.tenant.clone(), s.workflow_id.clone(), s.recipient.clone());
    claimed.sort_by_key(key);
    for stream in &mut claimed {
        stream.rows = outbox(std::mem::take(&mut stream.rows));
    }
    claimed
}

pub(super) fn outbox(mut rows: Vec<OutboxRow>) -> Vec<OutboxRow> {
    for row in &mut rows {
        let status = &mut row.status;
        match status.state {
            OutboxState::Pending => {}
            OutboxState::Delivered | OutboxState::Dead => {
                status.next_attempt_at = row.message.time;
            }
        }
        let failing = status.state != OutboxState::Delivered && status.attempts > 0;
        status.last_error = status.last_error.take().filter(|_| failing);
    }
    rows
}
