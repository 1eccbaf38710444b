//! What the ledger has to do with a call: its key and fingerprints, replays, conflicts, repeats without a key.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wf_idempotency::{Fingerprint, IdempotencyKey};

use crate::errors::ErrorCode;
use crate::models::{Actor, Cause, Timestamp, Touch, Workflow};
use crate::ports::LedgerRow;
use crate::state_machine::decide::targets;
use crate::state_machine::{Outcome, Rejection};
use crate::view::Fault;
use crate::view::shape::{Frame, next_key};

use super::blind::Salt;
use super::call::{Call, Reply, Request};

/// Left out of the fingerprint, so that a confirmed call and the retry of its unconfirmed form are one.
const NOT_PAYLOAD: &[&str] = &["idempotency_key", "confirm_token"];
/// Left out besides, where there is no key: free texts and the time of observation.
const NOT_NATURAL: &[&str] =
    &["idempotency_key", "confirm_token", "note", "summary", "comment", "observed_at"];

/// Key and fingerprints of a call; `random` becomes the key of a call without one.
pub(super) fn cause(call: &Call, random: &str) -> Result<Cause, Rejection> {
    let key = match &call.key {
        Some(key) => key.clone(),
        None => IdempotencyKey::parse(&format!("rk_{random}"))
            .map_err(|_| Rejection::invalid("idempotency_key", "could not be made"))?,
    };
    let of = |excluded: &[&str]| {
        Fingerprint::of(call.operation, &call.arguments, excluded)
            .map_err(|error| Rejection::invalid("arguments", &error.to_string()))
    };
    Ok(Cause { key, fingerprint: of(NOT_PAYLOAD)?, natural: of(NOT_NATURAL)? })
}

/// A digest of each argument, keyed by the store, so that a conflict can name the fields that differ. Of a call with a
/// sensitive value they are under its salt besides.
pub(super) fn fields(call: &Call, store_id: &str, salt: Option<&str>) -> BTreeMap<String, String> {
    let keyed = salt.map_or_else(|| store_id.to_owned(), |salt| format!("{store_id}\0{salt}"));
    let payload = call.arguments.iter().filter(|(name, _)| !NOT_PAYLOAD.contains(&name.as_str()));
    payload
        .map(|(name, value)| {
            let written = wf_idempotency::canonical_string(value).unwrap_or_default();
            let hash = wf_idempotency::sha256_hex(format!("{keyed}\0{name}\0{written}").as_bytes());
            (name.clone(), hash.get(..8).unwrap_or_default().to_owned())
        })
        .collect()
}

/// The stored result, with `duplicate` turned to true.
pub(super) fn replayed(row: &LedgerRow) -> Result<Reply, Rejection> {
    let damaged =
        || Rejection::new(ErrorCode::Internal, "the stored result cannot be read", Fault::Internal);
    let body = wf_idempotency::replay(&row.entry).map_err(|_| damaged())?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let speech = text("speech");
    let outcome = Outcome::parse(&text("outcome")).ok_or_else(damaged)?;
    Ok(Reply { outcome, error: None, duplicate: true, speech, body, text: None })
}

/// The key was used for something else: what it recorded, when, and which fields differ (no values).
pub(super) fn conflict(
    row: &LedgerRow,
    call: &Call,
    salt: &Salt,
    workflow: Option<&Workflow>,
    frame: &Frame<'_>,
) -> Rejection {
    let mut differ: Vec<String> = Vec::new();
    let now = fields(call, frame.store_id, salt.text());
    for name in row.fields.keys().chain(now.keys()) {
        if row.fields.get(name) != now.get(name) && !differ.contains(name) {
            differ.push(name.clone());
        }
    }
    let erased = *salt == Salt::Erased;
    if erased {
        // What they were compared with is gone.
        differ.clear();
    }
    let at = Timestamp::from_ms(row.entry.created_at_ms);
    let mut rejection = Rejection::new(
        ErrorCode::IdempotencyConflict,
        "this idempotency_key was used for another payload; use next_idempotency_key",
        Fault::KeyConflict,
    )
    .with("recorded", json!({"operation": row.entry.operation, "at": at}))
    .with("differs", differ);
    if erased {
        rejection = rejection.with("erased", true);
    }
    if let Some(workflow) = workflow {
        rejection = rejection.with("next_idempotency_key", next_key(frame, workflow));
    }
    rejection
}

/// What a call without a key may repeat: the newest event on its target, when the same actor caused it with the same
/// payload. Of a withheld value only its salt can tell that, so that the caller has to look ([`Salt::over`]).
pub(super) fn repeated(
    call: &Call,
    cause: &Cause,
    actor: &Actor,
    workflow: &Workflow,
) -> Option<Touch> {
    let same = |touch: &&Touch| &touch.actor == actor && touch.cause.natural == cause.natural;
    let touch = match &call.request {
        Request::Start { .. }
        | Request::AcknowledgeBlock { .. }
        | Request::DeadlineReached { .. }
        | Request::AcknowledgeOrchestration { .. }
        | Request::ReleaseLock { .. } => None,
        Request::SubmitStep { step_id, .. }
        | Request::CorrectStep { step_id, .. }
        | Request::SkipStep { step_id, .. } => {
            let withheld = workflow.reading(step_id).is_some_and(|reading| reading.withheld);
            targets::step(workflow, step_id)
                .filter(|touch| same(touch) || (withheld && &touch.actor == actor))
        }
        Request::ResolveBlock { block_id, .. } => targets::block(workflow, block_id).filter(same),
        // Whatever somebody else did with the ownership in between makes it a fresh one.
        Request::Transfer { .. } => workflow.ownership_touch.as_ref().filter(same),
        Request::Finish { .. } => workflow.outcome_touch.as_ref().filter(same),
        // An open block of the same actor, step and code answers a repeated report, whatever its words.
        Request::ReportProblem { step_id, .. } => {
            let open = targets::reported(workflow, actor, step_id.as_ref()).map(|b| &b.touch);
            // A note blocks nothing and keeps its own words: another text is another note.
            let note = workflow.last_note.as_ref().filter(same);
            let note = note.filter(|touch| touch.cause.fingerprint == cause.fingerprint);
            if is_note(&call.arguments) { note } else { open }
        }
    }?;
    Some(touch.clone())
}

fn is_note(arguments: &Map<String, Value>) -> bool {
    arguments.get("severity").and_then(Value::as_str) == Some("note")
}
