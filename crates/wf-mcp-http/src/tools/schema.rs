//! Schemas of results: the small envelope that every tool declares, and the whole shape (mcp.md, "One result shape").
//!
//! Only keywords that mean the same in draft-07 and 2020-12 are used: no `$ref`, `format`, unions of types.

use serde_json::{Map, Value, json};
use wf_core::errors::{ErrorCode, Retry};
use wf_core::limits::{CANDIDATES_SHOWN_MAX, HISTORY_SHOWN_MAX, SPEECH_CHARS_MAX};
use wf_core::state_machine::Outcome;

/// `outputSchema` of every tool. Open: results only ever gain keys.
pub(super) fn envelope() -> Map<String, Value> {
    let mut properties = Map::new();
    for (name, kind) in [
        ("ok", "boolean"),
        ("outcome", "string"),
        ("duplicate", "boolean"),
        ("speech", "string"),
        ("workflow", "object"),
        ("step", "object"),
        ("warnings", "array"),
        ("confirm", "object"),
        ("blocks", "array"),
        ("candidates", "array"),
        ("candidates_total", "integer"),
        ("last_recorded", "object"),
        ("last_completed", "object"),
        ("history", "array"),
        ("next_idempotency_key", "string"),
        ("error", "object"),
    ] {
        properties.insert(name.to_owned(), json!({ "type": kind }));
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(properties));
    let required = ["ok", "outcome", "duplicate", "speech"];
    schema.insert("required".to_owned(), required.as_slice().into());
    schema
}

/// The JSON Schema of every result of every tool, errors included.
#[must_use]
pub fn result_schema() -> Value {
    let mut schema = open(
        &["ok", "outcome", "duplicate", "speech"],
        [
            ("ok", said(flag(), "False for outcome error only.")),
            ("outcome", words(OUTCOMES.iter().map(|o| o.as_str()))),
            ("duplicate", said(flag(), "The call had been done before; this is its first result.")),
            ("speech", speech()),
            ("workflow", workflow()),
            ("step", step()),
            ("warnings", list(text())),
            ("confirm", confirm()),
            ("blocks", said(list(block()), "Open ones, oldest first.")),
            ("candidates", candidates()),
            ("candidates_total", said(count(), "All there are; candidates has the best.")),
            ("last_recorded", last_recorded()),
            ("last_completed", last_completed()),
            ("history", history()),
            ("next_idempotency_key", said(text(), "For the next change of this workflow.")),
            ("error", error()),
        ],
    );
    if let Value::Object(fields) = &mut schema {
        fields.insert("title".to_owned(), "Checkpoint result".into());
    }
    schema
}

const OUTCOMES: [Outcome; 20] = [
    Outcome::View,
    Outcome::List,
    Outcome::None,
    Outcome::Disambiguation,
    Outcome::NeedsInput,
    Outcome::NeedsConfirmation,
    Outcome::NotRecorded,
    Outcome::Verdict,
    Outcome::Started,
    Outcome::Joined,
    Outcome::Recorded,
    Outcome::OutOfRange,
    Outcome::Corrected,
    Outcome::Skipped,
    Outcome::Noted,
    Outcome::Blocked,
    Outcome::Transferred,
    Outcome::Finished,
    Outcome::Resolved,
    Outcome::Error,
];

fn open<const N: usize>(required: &[&str], properties: [(&str, Value); N]) -> Value {
    let properties: Map<_, _> =
        properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    if required.is_empty() {
        return json!({ "type": "object", "properties": properties });
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn list(items: Value) -> Value {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "array".into());
    schema.insert("items".to_owned(), items);
    Value::Object(schema)
}

fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Value {
    let words: Vec<_> = words.into_iter().collect();
    json!({ "type": "string", "enum": words })
}

fn said(mut schema: Value, description: &str) -> Value {
    if let Value::Object(fields) = &mut schema {
        fields.insert("description".to_owned(), description.into());
    }
    schema
}

fn time() -> Value {
    said(text(), "RFC 3339, UTC.")
}

fn decimal() -> Value {
    said(text(), "A decimal, digits as meant.")
}

fn speech() -> Value {
    let schema = json!({ "type": "string", "minLength": 1, "maxLength": SPEECH_CHARS_MAX });
    said(schema, "What to say to the person.")
}

/// Something to choose: what a call sends, and the words for it.
fn choice(id: &str) -> Value {
    open(&[id, "say"], [(id, text()), ("say", text())])
}

fn person() -> Value {
    open(&["id"], [("id", text()), ("name", text())])
}

fn asset() -> Value {
    open(&["role", "id", "say"], [("role", text()), ("id", text()), ("say", text())])
}

fn state() -> Value {
    words(["CREATED", "RUNNING", "BLOCKED", "COMPLETED"])
}

fn workflow() -> Value {
    let procedure = open(
        &["id", "version", "digest"],
        [("id", text()), ("version", count()), ("digest", text())],
    );
    let offer = open(&[], [("to", person()), ("at", time())]);
    let progress = open(&["settled", "required"], [("settled", count()), ("required", count())]);
    open(
        &["id", "label", "state", "revision", "procedure", "assets", "owner"],
        [
            ("id", text()),
            ("label", text()),
            ("state", state()),
            ("result", said(text(), "How it ended.")),
            ("revision", count()),
            ("procedure", procedure),
            ("assets", list(asset())),
            ("owner", person()),
            ("offer", said(offer, "On offer; without to, to anybody.")),
            ("progress", progress),
            ("reasons", said(list(choice("code")), "For reason_code.")),
            ("results", said(list(choice("id")), "For result.")),
            ("started_at", time()),
            ("updated_at", time()),
        ],
    )
}

fn step() -> Value {
    let recheck = open(&[], [("value", text()), ("unit", text()), ("withheld", flag())]);
    let schema = open(
        &["id", "prompt", "kind"],
        [
            ("id", text()),
            ("position", count()),
            ("of", count()),
            ("prompt", said(text(), "What to ask.")),
            ("kind", text()),
            ("unit", text()),
            ("decimals", count()),
            ("min", decimal()),
            ("max", decimal()),
            ("choices", list(choice("id"))),
            ("wait_seconds", count()),
            ("due_at", time()),
            ("skip", words(["never", "reason", "supervisor", "free"])),
            ("required", flag()),
            ("role", said(text(), "Only for somebody with this role.")),
            ("second_person", said(flag(), "Not for whoever worked on it.")),
            ("attempt", count()),
            ("recheck", said(recheck, "A recorded value to be checked again.")),
        ],
    );
    said(schema, "What is asked next.")
}

fn confirm() -> Value {
    let schema = open(
        &["token", "read_back", "expires_at"],
        [
            ("token", said(text(), "For confirm_token, after a yes.")),
            ("read_back", said(text(), "What to read back.")),
            ("expires_at", time()),
        ],
    );
    said(schema, "Nothing is recorded yet.")
}

fn block() -> Value {
    let decision = open(
        &["id", "say"],
        [("id", text()), ("say", text()), ("effect", words(["continue", "redo", "abort"]))],
    );
    open(
        &["id", "code", "question", "decisions"],
        [
            ("id", text()),
            ("code", text()),
            ("question", text()),
            ("decisions", list(decision)),
            ("step_id", text()),
            ("summary", text()),
            ("severity", words(["note", "low", "high"])),
            ("at", time()),
            ("escalated_to", text()),
            ("escalated_at", time()),
            ("unanswered_since", time()),
            ("acknowledged_by", person()),
            ("acknowledged_at", time()),
            ("deadline", time()),
        ],
    )
}

fn candidates() -> Value {
    let asset_needed =
        open(&["role", "say"], [("role", text()), ("say", text()), ("example", text())]);
    let input_needed = open(
        &["name"],
        [
            ("name", text()),
            ("kind", text()),
            ("required", flag()),
            ("say", text()),
            ("example", said(json!({}), "A value that would be accepted.")),
        ],
    );
    let needs = open(&[], [("assets", list(asset_needed)), ("inputs", list(input_needed))]);
    let candidate = open(
        &["label"],
        [
            ("workflow_id", text()),
            ("procedure_id", text()),
            ("label", text()),
            ("state", state()),
            ("assets", list(asset())),
            ("owner", person()),
            ("offered", flag()),
            ("started_at", time()),
            ("to", said(text(), "A person, for to.")),
            ("needs", said(needs, "What a start must give.")),
        ],
    );
    json!({ "type": "array", "maxItems": CANDIDATES_SHOWN_MAX, "items": candidate })
}

fn last_recorded() -> Value {
    open(
        &["step_id", "at"],
        [
            ("step_id", text()),
            ("value", text()),
            ("unit", text()),
            ("withheld", flag()),
            ("at", time()),
            ("by", person()),
        ],
    )
}

fn last_completed() -> Value {
    open(
        &["workflow_id", "label", "result", "at"],
        [("workflow_id", text()), ("label", text()), ("result", text()), ("at", time())],
    )
}

fn history() -> Value {
    let event = open(
        &["seq", "at", "by", "kind"],
        [
            ("seq", count()),
            ("at", time()),
            ("by", person()),
            ("kind", text()),
            ("step_id", text()),
            ("attempt", count()),
            ("value", text()),
            ("unit", text()),
            ("withheld", flag()),
            ("to", person()),
        ],
    );
    let schema = json!({ "type": "array", "maxItems": HISTORY_SHOWN_MAX, "items": event });
    said(schema, "The last events, oldest first.")
}

fn error() -> Value {
    let retries = [Retry::SameCall, Retry::ChangedCall, Retry::No].map(Retry::as_str);
    open(
        &["code", "message", "retry"],
        [
            ("code", words(ErrorCode::ALL.iter().map(|code| code.as_str()))),
            ("message", said(text(), "For the developer.")),
            ("retry", words(retries)),
            ("after_ms", said(count(), "When the same call may succeed, in milliseconds.")),
            ("next", open(&[], [("ask", text()), ("tool", text())])),
            ("details", json!({ "type": "object" })),
        ],
    )
}
