//! The judgement of a ledger row against the call at hand. Pure: the row, the call, the time.
//!
//! Storing rows is the caller's: under (tenant, actor, key), in the commit they describe. Uses
//! `fingerprint` to compare and `strict` to read a stored result back.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fingerprint::Fingerprint;
use crate::strict::{self, StrictError};

/// What a committed call left behind under its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The operation that was called.
    pub operation: String,
    /// What it was called with.
    pub fingerprint: Fingerprint,
    /// The version of the shape of `result`. A newer build answers old rows unchanged.
    pub result_version: u16,
    /// The whole result, as canonical JSON text (RFC 8785) of an object.
    pub result: String,
    /// When it was committed, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// From when on the row no longer counts, in milliseconds since the Unix epoch. `None`: it does
    /// not expire (yet).
    pub expires_at_ms: Option<i64>,
}

/// How a call relates to the row under its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// No row: do it, and commit the row under the condition that there still is none.
    Fresh,
    /// The same call again: answer [`replay`] of the row, do nothing.
    Replay(&'a LedgerEntry),
    /// The key was used for another call: refuse, do nothing.
    Conflict(&'a LedgerEntry),
    /// The row's time is past: do it, and replace the row under the condition that it still is
    /// this one.
    Expired(&'a LedgerEntry),
}

/// Judges the row found under a call's key.
///
/// `now_ms` is in milliseconds since the Unix epoch. The row's expiry is looked at first: a row whose
/// time has come (`expires_at_ms <= now_ms`) is [`Verdict::Expired`] whatever it recorded, whether or
/// not a purge has run. Then operation and fingerprint must both match.
#[must_use]
pub fn judge<'a>(
    entry: Option<&'a LedgerEntry>,
    operation: &str,
    fingerprint: &Fingerprint,
    now_ms: i64,
) -> Verdict<'a> {
    let Some(entry) = entry else {
        return Verdict::Fresh;
    };
    if entry.expires_at_ms.is_some_and(|at| at <= now_ms) {
        return Verdict::Expired(entry);
    }
    if entry.operation == operation && entry.fingerprint == *fingerprint {
        Verdict::Replay(entry)
    } else {
        Verdict::Conflict(entry)
    }
}

/// Why a stored result cannot be answered. Both mean that the row was damaged or not written by
/// [`canonical_string`](crate::canonical_string).
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The text is not JSON, or JSON that readers understand differently.
    #[error("the stored result cannot be read")]
    Unreadable(#[source] StrictError),
    /// The text is JSON but not an object.
    #[error("the stored result is not a JSON object")]
    NotAnObject,
}

/// The answer to a repeated call: the stored result with its top-level `duplicate` turned to `true`.
///
/// Nothing else changes. [`canonical_bytes`](crate::canonical_bytes) of the answer are the stored
/// bytes but for that member, which is added when it was not there.
///
/// # Errors
///
/// [`ReplayError`] when the stored text is not a JSON object. The call must then not be executed
/// again: the row says that it happened.
pub fn replay(entry: &LedgerEntry) -> Result<Value, ReplayError> {
    let stored = strict::read_stored(&entry.result).map_err(ReplayError::Unreadable)?;
    let Value::Object(mut result) = stored else {
        return Err(ReplayError::NotAnObject);
    };
    result.insert("duplicate".to_owned(), Value::Bool(true));
    Ok(Value::Object(result))
}
