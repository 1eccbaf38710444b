//! Writes the fixture of this build: a database with everything in it that a store can hold, what its commands and calls
//! said, and the evidence of one workflow. Run once for each release; docs/upgrading.md says how.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{SERVE, fixture, seen, token, verified};
use crate::binary::run;
use crate::server::{Server, until};

const PROCEDURE: &str = "schema: checkpoint/procedure/v1
id: kept
version: 1
title: Kept work
assets:
  - { role: unit, id: { prefix: U-, digits: { max: 4 } }, example: U-7 }
inputs:
  type: object
  properties:
    order: { type: string, title: order number, maxLength: 40 }
    badge: { type: string, title: badge number, sensitive: true, maxLength: 40 }
  required: [order]
  additionalProperties: false
deadlines:
  - { id: overdue, after: 366d, from: start, notify: chief }
reasons:
  - { code: MISHEARD, say: misheard }
steps:
  - { id: ready, kind: confirm, prompt: Confirm that it is ready. }
  - id: level
    kind: number
    prompt: What is the level?
    unit: mm
    accept_units: [mm, cm]
    decimals: 1
    range: { instrument: [0, 100], accept: [10, 90] }
    out_of_range: { code: LEVEL_OUT, escalate: { to: duty }, decisions: [accept_deviation, require_redo, abort] }
  - { id: code, kind: text, prompt: What is the code?, sensitive: true, max_length: 40 }
  - { id: state, kind: choice, prompt: How is it?, choices: [good, bad] }
blocks:
  default:
    escalate: { to: duty, severity: high }
    decisions: [{ id: carry_on, say: carry on, effect: continue }, abort]
results: [{ id: done, say: done }]
notify: [workflow_started]
";

/// Finishes a workflow, confirming what is read back; the call that ended it and its answer.
pub(super) fn finish(server: &Server, token: &str, id: &str, key: &str) -> (Value, Value) {
    let mut end = json!({ "workflow_id": id, "result": "done", "idempotency_key": key });
    let mut said = server.call_as(token, "finish_workflow", &end);
    if let Some(confirm) = said.pointer("/confirm/token") {
        end["confirm_token"] = confirm.clone();
        said = server.call_as(token, "finish_workflow", &end);
    }
    assert_eq!(said["outcome"], "finished", "{said:#}");
    (end, said)
}

/// Calls that are made, and what they were answered.
struct Calls<'s> {
    server: &'s Server,
    made: Vec<Value>,
}

impl Calls<'_> {
    fn call(&mut self, by: &str, tool: &str, arguments: &Value) -> Value {
        let answer = self.server.call_as(&token(self.server.path(), by), tool, arguments);
        assert_eq!(answer["ok"], true, "{tool} {arguments:#}: {answer:#}");
        let call = json!({ "by": by, "tool": tool, "arguments": arguments, "answer": answer });
        self.made.push(call);
        answer
    }

    /// Starts work on a unit; its id.
    fn start(&mut self, unit: u32) -> String {
        let start = json!({
            "procedure_id": "kept", "assets": { "unit": format!("U-{unit}") },
            "inputs": { "order": format!("O-{unit}"), "badge": "badge 4711" },
            "idempotency_key": format!("start-{unit}"),
        });
        let started = self.call("ann", "start_workflow", &start);
        started["workflow"]["id"].as_str().unwrap().to_owned()
    }

    fn submit(&mut self, id: &str, step: &str, value: &str) -> Value {
        let key = format!("{step}-{id}");
        let submit =
            json!({ "workflow_id": id, "step_id": step, "value": value, "idempotency_key": key });
        self.call("ann", "submit_step", &submit)
    }
}

/// Somebody who wants no messages, one connection after the other.
fn gone() -> (u16, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        // One message goes there: what follows is given up with the test.
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 65_536]);
        let answer = b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(answer).unwrap();
    });
    (port, serving)
}

/// Messages to `duty` are refused for good, those to subscribers find nobody, all others go into the log.
fn configuration(duty: u16) -> String {
    let route = |to: &str, port: u16| {
        format!(
            "[[notifications.route]]\nto = \"{to}\"\nsink = \"webhook\"\nurl = \"http://127.0.0.1:{port}/\"\n\
             secret_file = \"hooks.secret\"\nallow_private = true\n"
        )
    };
    route("duty", duty) + &route("subscribers", 9_999)
}

#[test]
#[ignore = "writes the fixture of this build for later ones: docs/upgrading.md"]
fn makes_the_fixture_of_this_build() {
    let folder = TempDir::new().unwrap();
    let (duty, refusing) = gone();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("checkpoint.toml", &configuration(duty));
    write("hooks.secret", "whsec_a2VwdCBmb3IgdGhlIG5leHQgcmVsZWFzZSBvbmx5\n");
    std::fs::create_dir(folder.path().join("procedures")).unwrap();
    write("procedures/kept.yaml", PROCEDURE);
    let more = ["--config", "checkpoint.toml", "--procedures", "procedures"];
    let server = Server::start_in(folder, &[&SERVE[..], &more].concat());
    // First: its retention counts for whatever is over by then.
    let purged = ended(&server, 7);
    let purge = [
        &["workflow", "purge", "--yes", "--undelivered-too", "--reason", "too old"][..],
        &["--id", &purged, "--completed-before", "2999-01-01"],
        &["--set", "idempotency.retention=1ms"],
    ];
    server.run(&purge.concat()).exits(0);
    let mut calls = Calls { server: &server, made: Vec::new() };
    let mut works = works(&mut calls);
    let made = std::mem::take(&mut calls.made);
    // Who repeats a call whose values were erased cannot be known to repeat it: these are not among the calls of then.
    let erased = calls.start(6);
    calls.submit(&erased, "ready", "yes");
    refusing.join().unwrap();
    let states = |state: &str| {
        let listed = server.run(&["outbox", "list", state, "--json"]).exits(0).json();
        listed["messages"].as_array().map_or(0, Vec::len)
    };
    until("a dead message and others that wait", || {
        states("--dead") == 1 && states("--pending") == 6
    });
    let done = works["completed"].as_str().unwrap();
    let evidence = server.run(&["workflow", "evidence", done]).exits(0).out;
    let folder = server.stop();
    let erase = ["workflow", "erase", "--workflow", &erased, "--reason", "asked for"];
    run(folder.path(), &erase).exits(0);
    works["erased"] = json!(erased);
    works["purged"] = json!(purged);
    verified(folder.path());
    let schema = run(folder.path(), &["migrate", "--json"]).exits(0).json()["to"].clone();
    let manifest = json!({
        "made_by": env!("CARGO_PKG_VERSION"), "schema": schema, "works": works,
        "seen": seen(folder.path()), "calls": made,
    });
    let to = fixture(&format!("v{}", env!("CARGO_PKG_VERSION")));
    std::fs::create_dir_all(&to).unwrap();
    let database = to.join("checkpoint.db");
    let _ = std::fs::remove_file(&database);
    run(folder.path(), &["backup", database.to_str().unwrap()]).exits(0);
    std::fs::write(to.join("evidence.json"), evidence).unwrap();
    let text = serde_json::to_string_pretty(&manifest).unwrap() + "\n";
    std::fs::write(to.join("manifest.json"), text).unwrap();
}

/// Work that is over, and whose calls nobody will send again; its id.
fn ended(server: &Server, unit: u32) -> String {
    let mut calls = Calls { server, made: Vec::new() };
    let id = calls.start(unit);
    for (step, value) in
        [("ready", "yes"), ("level", "50"), ("code", "gone 4711"), ("state", "bad")]
    {
        calls.submit(&id, step, value);
    }
    finish(server, &token(server.path(), "ann"), &id, "end-gone");
    id
}

/// Work of every kind; the ids by what they show.
fn works(calls: &mut Calls<'_>) -> Value {
    let open = calls.start(1);
    calls.submit(&open, "ready", "yes");
    calls.submit(&open, "level", "20");
    let correct = json!({
        "workflow_id": open, "step_id": "level", "value": "25", "reason_code": "MISHEARD",
        "note": "it was 25", "idempotency_key": "correct",
    });
    calls.call("ann", "correct_step", &correct);

    let completed = calls.start(2);
    for (step, value) in
        [("ready", "yes"), ("level", "5 cm"), ("code", "secret 4711"), ("state", "good")]
    {
        calls.submit(&completed, step, value);
    }
    let ann = token(calls.server.path(), "ann");
    let (end, said) = finish(calls.server, &ann, &completed, "end");
    let ended = json!({ "by": "ann", "tool": "finish_workflow", "arguments": end, "answer": said });
    calls.made.push(ended);

    let blocked = calls.start(3);
    calls.submit(&blocked, "ready", "yes");
    let stopped = calls.submit(&blocked, "level", "95");
    assert_eq!(stopped["workflow"]["state"], "BLOCKED", "{stopped:#}");

    let handed_over = calls.start(4);
    let transfer = |id: &str, action: &str, key: &str| json!({ "workflow_id": id, "action": action, "idempotency_key": key });
    calls.call("ann", "transfer_workflow", &transfer(&handed_over, "offer", "offer"));
    calls.call("bob", "transfer_workflow", &transfer(&handed_over, "accept", "accept"));
    calls.call("bob", "transfer_workflow", &transfer(&handed_over, "offer", "offer-again"));

    let remarked = calls.start(5);
    let note = json!({
        "workflow_id": remarked, "summary": "a scratch", "severity": "note", "idempotency_key": "note",
    });
    calls.call("ann", "report_problem", &note);
    json!({
        "open": open, "completed": completed, "blocked": blocked, "handed_over": handed_over,
        "remarked": remarked,
    })
}
