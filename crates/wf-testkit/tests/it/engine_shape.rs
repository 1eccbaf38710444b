//! The shape of results (mcp.md, One result shape) and the rules of speech, checked on every answer of these tests.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Map, Value};
use wf_core::engine::Reply;
use wf_core::errors::ErrorCode;
use wf_core::limits::{CANDIDATES_SHOWN_MAX, HISTORY_SHOWN_MAX, SPEECH_CHARS_MAX};
use wf_core::state_machine::Outcome;

use crate::plain_policy::STEPS;

/// Top-level keys of mcp.md, and `verdict` of `check_value`.
const KEYS: [&str; 17] = [
    "ok",
    "outcome",
    "duplicate",
    "speech",
    "workflow",
    "step",
    "warnings",
    "confirm",
    "blocks",
    "candidates",
    "candidates_total",
    "last_recorded",
    "last_completed",
    "history",
    "next_idempotency_key",
    "error",
    "verdict",
];

/// Names of the tools, which are never spoken.
const TOOLS: [&str; 11] = [
    "find_work",
    "get_status",
    "start_workflow",
    "submit_step",
    "check_value",
    "correct_step",
    "skip_step",
    "report_problem",
    "transfer_workflow",
    "finish_workflow",
    "resolve_block",
];

/// The answer, if its shape is right.
pub(crate) fn checked(reply: Reply) -> Reply {
    let faults = faults(&reply);
    assert!(faults.is_empty(), "{faults:#?}\n{:#}", reply.body);
    reply
}

/// Everything that is wrong with an answer.
pub(crate) fn faults(reply: &Reply) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(body) = reply.body.as_object() else { return vec!["no object".to_owned()] };
    for key in body.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        faults.push(format!("unknown key {key}"));
    }
    envelope(reply, body, &mut faults);
    error(reply, body, &mut faults);
    nulls("", &reply.body, &mut faults);
    if let Some(workflow) = body.get("workflow") {
        work(workflow, body, &mut faults);
    }
    lists(body, &mut faults);
    let confirms = body.contains_key("confirm");
    must(confirms == (reply.outcome == Outcome::NeedsConfirmation), "confirm", &mut faults);
    if let Some(confirm) = body.get("confirm") {
        texts(confirm, &["token", "read_back", "expires_at"], "confirm", &mut faults);
    }
    speech(reply, body, &mut faults);
    faults.extend(SCHEMA.iter_errors(&reply.body).map(|error| format!("schema: {error}")));
    faults
}

/// The full schema of results, as it is given to clients.
static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let text = include_str!("../../../../docs/result.schema.json");
    jsonschema::draft202012::new(&serde_json::from_str(text).unwrap()).unwrap()
});

fn must(right: bool, what: &str, faults: &mut Vec<String>) {
    if !right {
        faults.push(what.to_owned());
    }
}

/// Members that are texts and not empty.
fn texts(value: &Value, names: &[&str], of: &str, faults: &mut Vec<String>) {
    for name in names {
        let text = value.get(name).and_then(Value::as_str);
        must(text.is_some_and(|t| !t.is_empty()), &format!("{of}.{name}"), faults);
    }
}

fn envelope(reply: &Reply, body: &Map<String, Value>, faults: &mut Vec<String>) {
    let error = reply.outcome == Outcome::Error;
    must(body.get("ok") == Some(&Value::from(!error)), "ok", faults);
    must(body.get("outcome") == Some(&Value::from(reply.outcome.as_str())), "outcome", faults);
    must(body.get("duplicate") == Some(&Value::from(reply.duplicate)), "duplicate", faults);
    must(body.get("speech") == Some(&Value::from(reply.speech.as_str())), "speech", faults);
    must(body.contains_key("error") == error, "error exactly when not ok", faults);
    must(reply.error.is_some() == error, "error code exactly when not ok", faults);
    must(!(error && reply.duplicate), "an error is never a replay", faults);
}

fn error(reply: &Reply, body: &Map<String, Value>, faults: &mut Vec<String>) {
    let (Some(error), Some(code)) = (body.get("error"), reply.error) else { return };
    must(ErrorCode::ALL.contains(&code), "a code of the closed list", faults);
    must(error["code"] == code.as_str(), "error.code", faults);
    must(error["retry"] == code.retry().as_str(), "error.retry", faults);
    texts(error, &["message"], "error", faults);
    texts(&error["next"], &["ask"], "error.next", faults);
    must(error["details"].is_object(), "error.details", faults);
    if let Some(tool) = error["next"].get("tool") {
        must(TOOLS.iter().any(|t| tool == t), "error.next.tool", faults);
    }
    if let Some(after) = error.get("after_ms") {
        must(after.as_i64().is_some_and(|ms| ms >= 0), "error.after_ms", faults);
    }
}

/// Absent keys are omitted.
fn nulls(path: &str, value: &Value, faults: &mut Vec<String>) {
    match value {
        Value::Null => faults.push(format!("null at {path}")),
        Value::Object(members) => {
            members.iter().for_each(|(name, v)| nulls(&format!("{path}/{name}"), v, faults));
        }
        Value::Array(items) => items.iter().for_each(|v| nulls(&format!("{path}/-"), v, faults)),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn work(workflow: &Value, body: &Map<String, Value>, faults: &mut Vec<String>) {
    texts(workflow, &["id", "label", "state", "started_at", "updated_at"], "workflow", faults);
    must(workflow["revision"].as_u64().is_some_and(|r| r > 0), "workflow.revision", faults);
    texts(&workflow["procedure"], &["id", "digest"], "workflow.procedure", faults);
    must(workflow["procedure"]["version"].is_u64(), "workflow.procedure.version", faults);
    texts(&workflow["owner"], &["id", "name"], "workflow.owner", faults);
    for asset in items(&workflow["assets"]) {
        texts(asset, &["role", "id", "say"], "workflow.assets", faults);
    }
    for reason in items(&workflow["reasons"]) {
        texts(reason, &["code", "say"], "workflow.reasons", faults);
    }
    for result in items(&workflow["results"]) {
        texts(result, &["id", "say"], "workflow.results", faults);
    }
    let state = workflow["state"].as_str().unwrap_or_default();
    let (blocked, over) = (state == "BLOCKED", state == "COMPLETED");
    must(["CREATED", "RUNNING", "BLOCKED", "COMPLETED"].contains(&state), "state", faults);
    must(workflow.get("result").is_some() == over, "result exactly when completed", faults);
    let shown = items(body.get("blocks").unwrap_or(&Value::Null)).count() > 0;
    let knows = workflow.get("progress").is_some();
    must(shown == (blocked && knows), "blocks exactly while blocked", faults);
    must(!(body.contains_key("step") && (blocked || over)), "a step although none is open", faults);
    let key = body.get("next_idempotency_key").and_then(Value::as_str).unwrap_or_default();
    must(key.starts_with("nk_") && key.len() == 35, "next_idempotency_key", faults);
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn lists(body: &Map<String, Value>, faults: &mut Vec<String>) {
    let list = |name: &str| items(body.get(name).unwrap_or(&Value::Null));
    if let Some(step) = body.get("step") {
        texts(step, &["id", "prompt", "kind", "skip"], "step", faults);
        for number in ["position", "of", "attempt"] {
            must(step[number].as_u64().is_some_and(|n| n > 0), number, faults);
        }
        must(step["required"].is_boolean(), "step.required", faults);
    }
    for block in list("blocks") {
        texts(block, &["id", "code", "question"], "blocks", faults);
        must(items(&block["decisions"]).count() > 0, "blocks.decisions", faults);
        for decision in items(&block["decisions"]) {
            texts(decision, &["id", "say"], "blocks.decisions", faults);
        }
    }
    let (candidates, total) = (list("candidates").count(), body.get("candidates_total"));
    must(candidates <= CANDIDATES_SHOWN_MAX, "too many candidates", faults);
    if body.contains_key("candidates") {
        let total = total.and_then(Value::as_u64).unwrap_or(0);
        must(usize::try_from(total).is_ok_and(|t| t >= candidates), "candidates_total", faults);
    }
    for candidate in list("candidates") {
        if candidate.get("to").is_some() {
            texts(candidate, &["to", "label"], "candidates", faults);
            continue;
        }
        texts(candidate, &["procedure_id", "label"], "candidates", faults);
        let work = candidate.get("workflow_id").is_some();
        must(work != candidate.get("needs").is_some(), "a workflow or a procedure", faults);
    }
    must(list("history").count() <= HISTORY_SHOWN_MAX, "too much history", faults);
    for event in list("history") {
        texts(event, &["at", "kind"], "history", faults);
        texts(&event["by"], &["id", "name"], "history.by", faults);
    }
}

/// 1 to 240 characters, no ids, no JSON, no names of tools, one question at most.
fn speech(reply: &Reply, body: &Map<String, Value>, faults: &mut Vec<String>) {
    let said = reply.speech.as_str();
    let length = said.chars().count();
    must((1..=SPEECH_CHARS_MAX).contains(&length), "length of speech", faults);
    must(said.trim() == said, "spaces around speech", faults);
    must(!said.contains(['{', '}', '[', ']', '"', '_', '\n']), "JSON or ids in speech", faults);
    must(said.matches('?').count() <= 2, "more than one next step", faults);
    let mut ids: Vec<String> = TOOLS.iter().map(ToString::to_string).collect();
    let mut add = |value: Option<&Value>| ids.extend(value.and_then(Value::as_str).map(Into::into));
    let workflow = body.get("workflow").unwrap_or(&Value::Null);
    add(workflow.get("id"));
    add(workflow["procedure"].get("digest"));
    add(workflow["owner"].get("id"));
    add(body.get("next_idempotency_key"));
    items(&workflow["assets"]).for_each(|asset| add(asset.get("id")));
    let blocks = items(body.get("blocks").unwrap_or(&Value::Null));
    blocks.for_each(|block| ["id", "code"].iter().for_each(|n| add(block.get(n))));
    let candidates = items(body.get("candidates").unwrap_or(&Value::Null));
    candidates.for_each(|candidate| add(candidate.get("workflow_id")));
    ids.extend(ErrorCode::ALL.iter().map(|code| code.as_str().to_owned()));
    ids.extend(["CANARY", "block-"].map(ToOwned::to_owned));
    // A sentence begins with a capital, whatever it begins with.
    must(!said.to_lowercase().contains("sub|"), "the id of a person is spoken", faults);
    for id in ids.iter().filter(|id| said.contains(id.as_str())) {
        faults.push(format!("{id} is spoken: {said}"));
    }
    let words = |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '-').count();
    must(words(said) > 0 && !STEPS.contains(&said), "words", faults);
}

/// The check is red for an answer that is wrong in one thing.
#[test]
fn a_wrong_shape_is_found() {
    let right = |change: &dyn Fn(&mut Map<String, Value>)| {
        let mut body = Map::from_iter([
            ("ok".to_owned(), Value::from(true)),
            ("outcome".to_owned(), Value::from("none")),
            ("duplicate".to_owned(), Value::from(false)),
            ("speech".to_owned(), Value::from("Nothing is open.")),
        ]);
        change(&mut body);
        let speech = body.get("speech").and_then(Value::as_str).unwrap_or_default().to_owned();
        let body = Value::Object(body);
        faults(&Reply {
            outcome: Outcome::None,
            error: None,
            duplicate: false,
            speech,
            body,
            text: None,
        })
    };
    assert_eq!(right(&|_| {}), Vec::<String>::new());
    let put = |name: &'static str, value: Value| {
        right(&move |body| drop(body.insert(name.to_owned(), value.clone())))
    };
    for (name, value) in [
        ("ok", Value::from(false)),
        ("outcome", Value::from("list")),
        ("duplicate", Value::from(true)),
        ("surprise", Value::from(1)),
        ("error", serde_json::json!({})),
        ("confirm", serde_json::json!({})),
        ("warnings", Value::Null),
        ("speech", Value::from("x".repeat(241))),
        ("speech", Value::from("")),
        ("speech", Value::from("Call find_work.")),
        ("speech", Value::from("It was sub|Ann.")),
        ("speech", Value::from("Sub|Ann was it.")),
        ("candidates_total", Value::from("many")),
        ("history", serde_json::json!([{"seq": "one"}])),
        ("workflow", serde_json::json!({"state": "FAILED"})),
        ("candidates", serde_json::json!([{}, {}, {}, {}, {}, {}])),
    ] {
        assert!(!put(name, value.clone()).is_empty(), "{name} = {value} must be found");
    }
}
