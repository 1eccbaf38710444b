//! Any text as a procedure file. What is refused is refused with places that are in the file and with what to write instead;
//! what is taken keeps its digest through every way to store it, means the same when it is read from there, and is a
//! procedure that can be started, driven and ended.

#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use checkpoint_fuzz::planted;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use tokio::runtime::{Builder, Runtime};
use wf_core::access::Visibility;
use wf_core::engine::{Engine, EngineParts, Policies, Settings};
use wf_core::models::{Digest, Locale, Principal};
use wf_core::policy::{DomainPolicyPort, NeededInput, PolicyCompilerPort, StartRefusal};
use wf_idempotency::{canonical_bytes, canonical_string};
use wf_procedure::{Compiler, Problem, Procedure, parse};
use wf_testkit::calls::answered;
use wf_testkit::clock::ManualClock;
use wf_testkit::ids::SequentialIds;
use wf_testkit::model::ModelStore;
use wf_testkit::notification::RecordingSink;
use wf_testkit::orchestrator::ImmediateOrchestrator;

/// Longest line about a problem, in bytes.
const MESSAGE_BYTES_MAX: usize = 2_048;
/// Most problems of one file.
const PROBLEMS_MAX: usize = 100;
/// Steps that are driven.
const STEPS: usize = 12;

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().build().expect("a runtime");
}

fuzz_target!(|data: &[u8]| {
    let Ok(source) = str::from_utf8(data) else { return };
    match read(source) {
        Err(problems) => refused(source, &problems),
        Ok(procedure) => taken(procedure),
    }
});

/// The reader. In a control the place of what is no YAML is lost.
fn read(source: &str) -> Result<Procedure, Vec<Problem>> {
    let mut read = parse(source, "f.yaml");
    if let Err(problems) = &mut read
        && planted()
    {
        for problem in problems {
            if problem.message.contains("twice") {
                problem.line = 0;
            }
        }
    }
    read
}

/// Every problem has a place in the file, says what is wrong and what to write instead.
fn refused(source: &str, problems: &[Problem]) {
    assert!(!problems.is_empty(), "refused, and nothing is wrong");
    assert!(problems.len() <= PROBLEMS_MAX, "{} problems", problems.len());
    assert!(problems.is_sorted(), "in the order of the file");
    let lines: Vec<&str> = source.split('\n').collect();
    for problem in problems {
        let shown = problem.to_string();
        assert_eq!(problem.file, "f.yaml");
        assert!(problem.line >= 1 && problem.column >= 1, "no place: {shown}");
        // A carriage return ends a line as well (YAML 1.2 section 5.4): line and column are of such a line then. The end of
        // the text may be called the line after the last.
        let ends = source.matches(['\r', '\n']).count();
        assert!(problem.line <= ends + 2, "a line that is not there: {shown}");
        let line = lines.get(problem.line - 1).copied().unwrap_or_default();
        let wide = if source.contains('\r') { source.len() } else { line.chars().count() };
        assert!(problem.column <= wide + 1, "a column that is not there: {shown}");
        assert!(!problem.message.is_empty() && !problem.hint.is_empty(), "no hint: {shown}");
        assert!(shown.len() <= MESSAGE_BYTES_MAX, "{} bytes: {shown}", shown.len());
        assert!(!shown.chars().any(char::is_control), "not one line: {shown:?}");
    }
}

fn taken(procedure: Procedure) {
    let definition = procedure.definition().clone();
    let form = canonical_bytes(&definition.document).expect("a canonical document");
    assert_eq!(definition.digest, Digest::of(&form), "the digest is of the document");
    // As it is stored, as JSON for people, and with its members in another order.
    let pretty = serde_json::to_string_pretty(&definition.document).expect("written");
    let mut other = String::new();
    reversed(&definition.document, &mut other);
    for text in [String::from_utf8(form).expect("UTF-8"), pretty, other] {
        let again =
            parse(&text, "f.json").unwrap_or_else(|problems| panic!("{problems:?}: {text}"));
        assert_eq!(again.definition().digest, definition.digest, "{text}");
        alike(&procedure, &again);
    }
    let mut stored = definition.clone();
    let text = canonical_string(&definition.document).expect("canonical");
    stored.document = serde_json::from_str(&text).expect("JSON");
    let compiled = Compiler.compile(&stored).expect("a stored definition compiles");
    assert_eq!(compiled.definition().digest, definition.digest);
    alike(&procedure, compiled.as_ref());
    stored.document["version"] = json!(u64::from(definition.version) + 1);
    assert!(Compiler.compile(&stored).is_none(), "compiled under another's digest");
    if let Some((assets, inputs)) = start(&procedure) {
        RUNTIME.with(|runtime| runtime.block_on(driven(procedure, &assets, &inputs)));
    }
}

/// The document as JSON, the members of each object last to first.
fn reversed(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().rev().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push_str(": ");
                reversed(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                reversed(item, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

/// Two readings of one definition mean the same.
fn alike(one: &Procedure, other: &dyn DomainPolicyPort) {
    assert_eq!(one.needs(), other.needs());
    assert_eq!(one.reasons(), other.reasons());
    assert_eq!(one.stale_after_ms(), other.stale_after_ms());
    assert_eq!(one.timezone(), other.timezone());
}

/// What it is started with: the examples that it gives. `None` where it gives none for something that it needs.
fn start(procedure: &Procedure) -> Option<(BTreeMap<String, String>, Map<String, Value>)> {
    let needs = procedure.needs();
    let mut assets = BTreeMap::new();
    let mut complete = true;
    for asset in &needs.assets {
        match &asset.example {
            Some(example) => {
                let role = asset.role.as_str().to_owned();
                drop(assets.insert(role, example.clone()));
            }
            None => complete = false,
        }
    }
    let mut inputs = Map::new();
    for NeededInput { name, required, example, .. } in &needs.inputs {
        match example {
            Some(example) => drop(inputs.insert(name.clone(), example.clone())),
            None => complete &= !required,
        }
    }
    match procedure.plan_start(&assets, &inputs) {
        Ok(_) if complete => Some((assets, inputs)),
        Ok(_) => panic!("started without what it needs"),
        Err(StartRefusal::Missing { .. }) => {
            assert!(
                !complete,
                "an example is given and missed: {:?}",
                procedure.definition().document
            );
            None
        }
        Err(StartRefusal::Invalid { field, rule, .. }) => {
            let known = needs.assets.iter().map(|asset| format!("assets.{}", asset.role));
            let known =
                known.chain(needs.inputs.iter().map(|input| format!("inputs.{}", input.name)));
            // One thing in two roles is no fault of either example.
            let excused =
                rule.contains("in two roles") || !known.into_iter().any(|one| one == field);
            assert!(excused, "{field} {rule}: {:?}", procedure.definition().document);
            None
        }
    }
}

/// Starts it, answers what is asked as well as it can be guessed, and ends it.
async fn driven(
    procedure: Procedure,
    assets: &BTreeMap<String, String>,
    inputs: &Map<String, Value>,
) {
    let document = procedure.definition().document.to_string();
    let id = procedure.definition().id.as_str().to_owned();
    let engine = engine(procedure).await;
    let by = Principal::local();
    let start = json!({
        "procedure_id": id, "assets": assets, "inputs": inputs, "idempotency_key": "start",
    });
    let mut answer = ask(&engine, &by, "start_workflow", &start, &document).await;
    assert_eq!(answer["outcome"], "started", "{answer} of {document}");
    let work = answer["workflow"]["id"].clone();
    for turn in 0..STEPS {
        let step = answer["step"].clone();
        let Some(step_id) = step["id"].as_str() else { break };
        for value in guesses(&step, turn) {
            let call = json!({"workflow_id": work, "step_id": step_id, "value": value});
            answer = ask(&engine, &by, "check_value", &call, &document).await;
            answer = ask(&engine, &by, "submit_step", &call, &document).await;
            if answer["outcome"] == "recorded" {
                break;
            }
        }
        answer = ask(&engine, &by, "get_status", &json!({"workflow_id": work}), &document).await;
    }
    let end = json!({"workflow_id": work, "result": "abandoned"});
    let mut ended = ask(&engine, &by, "finish_workflow", &end, &document).await;
    if let Some(token) = ended["confirm"]["token"].as_str() {
        let end = json!({"workflow_id": work, "result": "abandoned", "confirm_token": token});
        ended = ask(&engine, &by, "finish_workflow", &end, &document).await;
    }
    assert_eq!(ended["workflow"]["state"], "COMPLETED", "{ended} of {document}");
}

/// Values that a step may take.
fn guesses(step: &Value, turn: usize) -> Vec<Value> {
    let mut all = vec![json!("yes"), json!("1"), json!((turn * 7).to_string())];
    for name in ["min", "max"] {
        all.extend(step[name].as_str().map(Value::from));
    }
    let choices = step["choices"].as_array().cloned().unwrap_or_default();
    all.extend(choices.iter().take(2).map(|choice| choice["id"].clone()));
    all
}

/// One call; nothing of it may be our fault, and all of it can be spoken.
async fn ask(engine: &Engine, by: &Principal, tool: &'static str, call: &Value, of: &str) -> Value {
    let arguments = call.as_object().cloned().unwrap_or_default();
    let Some(reply) = answered(engine, by, tool, &arguments).await else {
        return Value::Null;
    };
    let body = reply.body;
    assert_ne!(body["error"]["code"], "INTERNAL", "{tool} {call}: {body} of {of}");
    assert_ne!(body["error"]["code"], "BACKEND_UNAVAILABLE", "{tool} {call}: {body} of {of}");
    let speech = reply.speech.chars().count();
    assert!((1..=240).contains(&speech), "{speech} characters of speech: {body} of {of}");
    body
}

async fn engine(procedure: Procedure) -> Engine {
    let parts = EngineParts {
        store: Arc::new(ModelStore::new()),
        policies: Policies::new(vec![Arc::new(procedure)], Some(Arc::new(Compiler))).expect("one"),
        clock: Arc::new(ManualClock::default()),
        ids: Arc::new(SequentialIds::new()),
        orchestrator: Arc::new(ImmediateOrchestrator::default()),
        notifications: Arc::new(RecordingSink::new()),
        settings: Settings {
            locale: Locale::default(),
            timezone: "UTC".to_owned(),
            retention_ms: 30 * 24 * 60 * 60 * 1_000,
            visibility: Visibility::default(),
            public_url: None,
            recent_workflows: wf_core::limits::RECENT_WORKFLOWS_MAX,
        },
    };
    Engine::open(parts).await.expect("opens")
}
