//! What an attempt asked and what its caller learned, read once from the record.

use serde_json::Value;
use wf_core::models::Digest;
use wf_core::state_machine::Outcome as Word;
use wf_idempotency::{Fingerprint, canonical_string};

use super::history::{Attempt, Outcome};

/// Tools that change nothing.
const READING: &[&str] = &["find_work", "get_status", "check_value"];
/// Left out of a payload (idempotency.md, Fingerprint).
const NOT_PAYLOAD: &[&str] = &["idempotency_key", "confirm_token"];

/// An attempt, read.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) attempt: &'a Attempt,
    /// Its key, if it sent one.
    pub(super) key: Option<&'a str>,
    /// Fingerprint of the operation and its arguments; none for a tool that changes nothing.
    pub(super) payload: Option<Fingerprint>,
    pub(super) fate: Fate,
    pub(super) answer: Option<Answer>,
}

/// What an attempt may have done, as far as its caller knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The answer says that this very attempt changed something.
    Done,
    /// The answer repeats what an earlier attempt did.
    Repeated,
    /// Surely nothing.
    Nothing,
    /// Nobody knows.
    Open,
}

/// A result object.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) outcome: Option<Word>,
    pub(super) error: Option<String>,
    /// Its `retry`.
    pub(super) retry: Option<String>,
    /// Its `ok`.
    pub(super) ok: bool,
    /// The bytes of the answer with `duplicate` false, hashed; none when the answer is not canonical.
    pub(super) first: Option<Digest>,
    pub(super) seen: Option<Seen>,
    /// The revision that a `VERSION_CONFLICT` tells.
    pub(super) current: Option<u64>,
    /// Asset and holder that an `ASSET_LOCKED` tells.
    pub(super) held: Option<(String, String)>,
    /// It was refused for a missing scope, before the ledger was asked.
    pub(super) scope: bool,
    /// Every `state` in it.
    pub(super) states: Vec<String>,
    /// Its `duplicate`.
    repeated: bool,
}

/// A workflow as an answer shows it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) workflow: String,
    pub(super) revision: u64,
    pub(super) state: String,
    pub(super) result: Option<String>,
    pub(super) digest: String,
    pub(super) assets: Vec<String>,
}

impl<'a> Call<'a> {
    pub(super) fn of(attempt: &'a Attempt) -> Self {
        let writes = !READING.contains(&attempt.tool.as_str());
        let payload = Fingerprint::of(&attempt.tool, &attempt.arguments, NOT_PAYLOAD).ok();
        let answer = match &attempt.outcome {
            Outcome::Answered { text } => {
                serde_json::from_str(text).ok().map(|r| Answer::of(text, r))
            }
            Outcome::NotSent | Outcome::Unknown { .. } | Outcome::Shed { .. } => None,
        };
        Self {
            attempt,
            key: attempt.arguments.get("idempotency_key").and_then(Value::as_str),
            payload: payload.filter(|_| writes),
            fate: fate(attempt, writes, answer.as_ref()),
            answer,
        }
    }

    /// A text argument.
    pub(super) fn said(&self, name: &str) -> Option<&'a str> {
        self.attempt.arguments.get(name).and_then(Value::as_str)
    }

    /// The call as a place in a report.
    pub(super) fn place(&self) -> String {
        let Attempt { call, tool, sent_ns, .. } = self.attempt;
        match self.key {
            Some(key) => format!("call {call} ({tool}, key {key}, sent {sent_ns})"),
            None => format!("call {call} ({tool}, no key, sent {sent_ns})"),
        }
    }

    /// The workflow that the answer shows, with the revision that was current while the call ran.
    pub(super) fn current(&self) -> Option<(&str, u64)> {
        let answer = self.answer.as_ref()?;
        if self.fate == Fate::Repeated {
            return None;
        }
        let seen = answer.seen.as_ref().map(|seen| (seen.workflow.as_str(), seen.revision));
        let told = || Some((self.said("workflow_id")?, answer.current?));
        seen.or_else(told)
    }
}

fn fate(attempt: &Attempt, writes: bool, answer: Option<&Answer>) -> Fate {
    if !writes {
        return Fate::Nothing;
    }
    match (&attempt.outcome, answer) {
        (Outcome::NotSent | Outcome::Shed { .. }, _) => Fate::Nothing,
        (Outcome::Unknown { .. } | Outcome::Answered { .. }, None) => Fate::Open,
        (_, Some(answer)) => answer.fate(),
    }
}

impl Answer {
    fn of(received: &str, mut result: Value) -> Self {
        let text = |pointer: &str| Some(result.pointer(pointer)?.as_str()?.to_owned());
        let outcome = text("/outcome").as_deref().and_then(Word::parse);
        let error = text("/error/code");
        let retry = text("/error/retry");
        let ok = result.get("ok") == Some(&Value::from(true));
        let held = text("/error/details/asset_id").zip(text("/error/details/workflow_id"));
        let scope = result.pointer("/error/details/scope").is_some();
        let current = result.pointer("/error/details/current_revision").and_then(Value::as_u64);
        let seen = result.get("workflow").and_then(seen);
        let mut states = Vec::new();
        collect(&result, &mut states);
        let repeated = result.get("duplicate") == Some(&Value::from(true));
        let canonical = canonical_string(&result).is_ok_and(|text| text == received);
        if let Some(duplicate) = result.get_mut("duplicate") {
            *duplicate = Value::from(false);
        }
        let first = canonical_string(&result).ok().filter(|_| canonical);
        let first = first.map(|text| Digest::of(text.as_bytes()));
        let held = held.filter(|_| error.as_deref() == Some("ASSET_LOCKED"));
        Self { outcome, error, retry, ok, first, seen, current, held, scope, states, repeated }
    }

    fn fate(&self) -> Fate {
        let committed = match self.outcome {
            Some(
                Word::Started
                | Word::Recorded
                | Word::OutOfRange
                | Word::Corrected
                | Word::Skipped
                | Word::Noted
                | Word::Blocked
                | Word::Transferred
                | Word::Finished
                | Word::Resolved,
            ) => true,
            Some(
                Word::View
                | Word::List
                | Word::None
                | Word::Disambiguation
                | Word::NeedsInput
                | Word::NeedsConfirmation
                | Word::NotRecorded
                | Word::Verdict
                | Word::Joined
                | Word::Error,
            )
            | None => false,
        };
        // What a server says of itself when it does not know either.
        let unsure = matches!(self.error.as_deref(), Some("BACKEND_UNAVAILABLE" | "INTERNAL"));
        match (self.repeated, committed, unsure) {
            (true, ..) => Fate::Repeated,
            (false, true, _) => Fate::Done,
            (false, false, true) => Fate::Open,
            (false, false, false) => Fate::Nothing,
        }
    }
}

fn seen(workflow: &Value) -> Option<Seen> {
    let text = |pointer: &str| Some(workflow.pointer(pointer)?.as_str()?.to_owned());
    let assets = workflow.get("assets").and_then(Value::as_array);
    let ids = assets.into_iter().flatten().filter_map(|asset| asset.get("id")?.as_str());
    Some(Seen {
        workflow: text("/id")?,
        revision: workflow.get("revision")?.as_u64()?,
        state: text("/state")?,
        result: text("/result"),
        digest: text("/procedure/digest")?,
        assets: ids.map(str::to_owned).collect(),
    })
}

/// Every state of a workflow that is told anywhere in a result.
fn collect(value: &Value, states: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if name == "state" {
                    states.extend(value.as_str().map(str::to_owned));
                }
                collect(value, states);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, states)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
