//! The life of a server: start, kill -9 and restart, polite ends, reload.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::metrics;
use crate::pump;
use crate::server::{self, Server, until};

#[test]
fn the_first_lines_name_the_database_the_procedures_and_the_address() {
    let server = Server::start(&[]);
    let database = server.path().canonicalize().unwrap().join("checkpoint.db");
    let log = server.log();
    assert!(log.contains(&format!("{} (created)", database.display())), "{log}");
    assert!(log.contains("pump-inspection version"), "{log}");
    assert!(log.contains(&format!("http://{}/mcp", server.address())), "{log}");
    let folder = server.stop();
    let again = Server::start_in(folder, &[]);
    assert!(!again.log().contains("(created)"), "{}", again.log());
}

#[test]
fn kill_9_loses_nothing_that_was_acknowledged() {
    let server = Server::start(&[]);
    let started = pump::start(&server, "PUMP-204", "k1");
    let recorded = pump::submit(&server, &started);
    let server = Server::start_in(server.kill(), &[]);
    let status = server.call("get_status", &json!({ "workflow_id": pump::id(&started) }));
    assert_eq!(status["workflow"]["revision"], recorded["workflow"]["revision"]);
    assert_eq!(status["step"], recorded["step"]);
    let replayed = pump::start(&server, "PUMP-204", "k1");
    assert_eq!(replayed["duplicate"], true);
    assert_eq!(pump::id(&replayed), pump::id(&started));
    server.run(&["workflow", "verify"]).exits(0);
}

#[test]
fn a_database_moved_away_underneath_is_named_in_the_log() {
    let server = Server::start(&[]);
    let started = pump::start(&server, "PUMP-204", "k1");
    let (here, away) = (server.path().join("checkpoint.db"), server.path().join("away.db"));
    std::fs::rename(&here, &away).unwrap();
    until("the log says so", || server.log().contains("replaced or deleted while in use"));
    let status = server.call("get_status", &json!({ "workflow_id": pump::id(&started) }));
    assert_eq!(status["error"]["code"], "BACKEND_UNAVAILABLE");
    std::fs::rename(&away, &here).unwrap();
    until("it goes on", || {
        server.call("get_status", &json!({ "workflow_id": pump::id(&started) }))["ok"] == true
    });
    assert_eq!(server.log().matches("replaced or deleted while in use").count(), 1);
}

#[test]
fn sigterm_and_sigint_end_it_with_0() {
    for name in ["TERM", "INT"] {
        let mut server = Server::start(&[]);
        pump::start(&server, "PUMP-204", "k1");
        server.signal(name);
        assert_eq!(server.wait().code(), Some(0), "{name}: {}", server.log());
        assert!(server.log().contains("stopped"), "{}", server.log());
    }
}

/// What one caller did: the key, and the answer if there was one.
type History = Arc<Mutex<Vec<(String, Option<Value>)>>>;

#[test]
fn sigterm_under_load_leaves_no_call_with_an_unknown_outcome() {
    let mut server = Server::start(&[]);
    let stop = Arc::new(AtomicBool::new(false));
    let history: History = Arc::default();
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let (stop, history, port) = (Arc::clone(&stop), Arc::clone(&history), server.port());
            std::thread::spawn(move || {
                for turn in 0.. {
                    let key = format!("c{caller}-{turn}");
                    let arguments = start_arguments(caller, turn, &key);
                    let answer = server::call(port, "start_workflow", &arguments);
                    let lost = answer.is_none();
                    history.lock().unwrap().push((key, answer));
                    if lost || stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            })
        })
        .collect();
    until("some load", || history.lock().unwrap().len() > 40);
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.join().unwrap();
    }
    let folder = server.kill();
    let server = Server::start_in(folder, &[]);
    let history = history.lock().unwrap();
    for (key, answer) in history.iter() {
        let (caller, turn) = key[1..].split_once('-').unwrap();
        let arguments = start_arguments(caller.parse().unwrap(), turn.parse().unwrap(), key);
        let again = server.call("start_workflow", &arguments);
        let acknowledged = answer.as_ref().is_some_and(|answer| answer["ok"] == true);
        // Acknowledged means done, and unanswered means not done.
        assert_eq!(again["duplicate"], acknowledged, "{key}: {answer:?} then {again:#}");
    }
    server.run(&["workflow", "verify"]).exits(0);
}

fn start_arguments(caller: usize, turn: usize, key: &str) -> Value {
    json!({
        "procedure_id": "pump-inspection",
        "assets": { "pump": format!("PUMP-{}", caller * 1000 + turn + 1) },
        "inputs": { "work_order": "WO-1" },
        "idempotency_key": key,
    })
}

#[test]
fn sighup_reads_the_procedures_again_and_keeps_the_old_ones_when_they_are_broken() {
    let folder = tempfile::tempdir().unwrap();
    let procedures = folder.path().join("procedures");
    std::fs::create_dir(&procedures).unwrap();
    let file = procedures.join("small.yaml");
    std::fs::write(&file, small(1, "one")).unwrap();
    let server = Server::start_in(folder, &["--procedures", "procedures"]);
    let offers = |server: &Server, label: &str| {
        let found = server.call("find_work", &json!({ "scope": "available" }));
        let candidates = found["candidates"].as_array().unwrap();
        candidates.iter().any(|candidate| candidate["label"] == label)
    };
    assert!(offers(&server, "Small one"));

    std::fs::write(&file, "schema: [").unwrap();
    server.signal("HUP");
    until("the refusal", || server.log().contains("procedures not reloaded"));
    assert!(server.log().contains("small.yaml:1:"), "{}", server.log());
    assert!(offers(&server, "Small one"));

    std::fs::write(&file, small(2, "two")).unwrap();
    server.signal("HUP");
    until("the reload", || offers(&server, "Small two"));

    std::fs::write(&file, small(2, "three")).unwrap();
    server.signal("HUP");
    until("the changed version", || server.log().contains("small version 2 changed"));
    assert!(offers(&server, "Small two"));
    server.stop();
}

/// A procedure of one step.
pub(crate) fn small(version: u32, title: &str) -> String {
    format!(
        "schema: checkpoint/procedure/v1\nid: small\nversion: {version}\ntitle: Small {title}\n\
         steps:\n  - id: done\n    kind: confirm\n    prompt: Is it done?\n"
    )
}

#[test]
fn probes_and_metrics_tell_how_it_is() {
    let server = Server::start(&["--set", "server.admin_listen=127.0.0.1:0"]);
    pump::start(&server, "PUMP-204", "k1");
    assert_eq!(server.get("/healthz").unwrap().0, 200);
    let happened = [
        "checkpoint_http_requests_total",
        "checkpoint_tool_calls_total",
        "checkpoint_tool_seconds",
        "checkpoint_commit_seconds",
        "checkpoint_commit_batch_size",
    ];
    until("the first look at the store", || {
        let (status, exposed) = server.get("/metrics").unwrap();
        assert_eq!(status, 200);
        exposed.contains("checkpoint_store_ready 1")
    });
    let (_, exposed) = server.get("/metrics").unwrap();
    assert_eq!(metrics::difference(&exposed, &["every", "file"], &happened), None, "{exposed}");
    for line in
        ["checkpoint_store_ready 1", "checkpoint_workflows_blocked 0", "checkpoint_writer_panics 0"]
    {
        assert!(exposed.lines().any(|told| told == line), "no {line}: {exposed}");
    }
    assert!(server.log().contains("/readyz and /metrics"), "{}", server.log());
    server.stop();
}

#[test]
fn logs_are_json_when_asked_and_hold_no_values() {
    let server = Server::start(&["--set", "telemetry.format=json", "--set", "telemetry.log=debug"]);
    let view = pump::start(&server, "PUMP-204", "secret-key-1");
    pump::submit(&server, &view);
    let errors = server.path().join("err.log");
    let folder = server.stop();
    let log = server::read(&errors);
    drop(folder);
    assert!(log.lines().count() > 0);
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(line["level"].is_string());
    }
    assert!(!log.contains("secret-key-1"), "{log}");
}
