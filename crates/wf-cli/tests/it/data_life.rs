//! The life of data at the command line: exports, erasures that leave nothing in the files, and their messages.

use std::path::Path;

use serde_json::{Value, json};

use crate::binary::run;
use crate::server::Server;

/// A procedure with a sensitive input and a sensitive step.
const BADGE: &str = "
schema: checkpoint/procedure/v1
id: badge-check
version: 1
title: Badge check
assets:
  - role: gate
    say: gate
    id: { prefix: GATE-, digits: { max: 9 } }
    example: GATE-1
inputs:
  type: object
  properties:
    visitor:
      type: string
      say: visitor
      sensitive: true
steps:
  - id: badge
    kind: text
    prompt: What is on the badge?
    sensitive: true
    confirm: never
  - id: remark
    kind: text
    prompt: Anything else?
    confirm: never
";

const VALUE: &str = "CANARY-BADGE-4711";
const VISITOR: &str = "CANARY-VISITOR-0815";

fn served(more: &[&str]) -> Server {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("procedures")).unwrap();
    std::fs::write(folder.path().join("procedures/badge.yaml"), BADGE).unwrap();
    Server::start_in(folder, &[&["--procedures", "procedures"], more].concat())
}

/// A workflow with all its values.
fn visited(server: &Server, gate: &str) -> String {
    let view = server.call(
        "start_workflow",
        &json!({
            "procedure_id": "badge-check",
            "assets": { "gate": gate },
            "inputs": { "visitor": VISITOR },
            "idempotency_key": format!("{gate}-k1"),
        }),
    );
    let id = view["workflow"]["id"].as_str().unwrap_or_else(|| panic!("{view:#}")).to_owned();
    for (step, value, key) in
        [("badge", VALUE, "k2"), ("remark", "=cmd|' /C calc'!A0, \"quoted\"", "k3")]
    {
        let view = server.call(
            "submit_step",
            &json!({
                "workflow_id": id,
                "step_id": step,
                "value": value,
                "idempotency_key": format!("{gate}-{key}"),
            }),
        );
        assert_eq!(view["ok"], true, "{view:#}");
    }
    id
}

/// Ends it, as what a person confirms.
fn finished(server: &Server, id: &str) {
    let mut finish = json!({ "workflow_id": id, "result": "abandoned", "idempotency_key": id });
    let asked = server.call("finish_workflow", &finish);
    finish["confirm_token"] = asked["confirm"]["token"].clone();
    let view = server.call("finish_workflow", &finish);
    assert_eq!(view["workflow"]["state"], "COMPLETED", "{view:#}");
}

/// Files of the database that hold `marker`.
fn holding(folder: &Path, marker: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let holds = |path: &std::path::PathBuf| {
        path.is_file() && {
            let bytes = std::fs::read(path).unwrap();
            bytes.windows(marker.len()).any(|part| part == marker.as_bytes())
        }
    };
    files.filter(holds).map(|path| path.display().to_string()).collect()
}

#[test]
fn exports_mask_and_erasures_leave_nothing_in_the_files() {
    let server = served(&[]);
    let id = visited(&server, "GATE-1");

    let lines = server.run(&["workflow", "export"]).exits(0).out;
    let records: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records[0]["workflow"]["id"], json!(id));
    let beside: Vec<&Value> = records
        .iter()
        .map(|record| &record["event"]["sensitive"])
        .filter(|s| s.is_array())
        .collect();
    assert_eq!(beside[1], &json!([{ "name": "value", "withheld": true }]));
    assert!(!lines.contains("CANARY"), "{lines}");

    let out = server.path().join("readings.csv");
    let out = out.to_str().unwrap();
    let csv = ["workflow", "export", "--format", "csv", "--out", out];
    let told = server.run(&[&csv[..], &["--json"]].concat()).exits(0).json();
    assert_eq!((&told["workflows"], &told["rows"]), (&json!(1), &json!(2)));
    let text = std::fs::read_to_string(out).unwrap();
    assert!(text.starts_with("tenant,workflow_id,") && !text.contains("CANARY"), "{text}");
    // A formula is text with an apostrophe, and quoted as RFC 4180 asks.
    assert!(text.contains("\"'=cmd|' /C calc'!A0, \"\"quoted\"\"\""), "{text}");
    let again = server.run(&csv).exits(1);
    assert!(again.err.contains("exists already"), "{}", again.err);
    server.run(&["workflow", "export", "--format", "csv", "--json"]).exits(2);
    std::fs::remove_file(out).unwrap();

    let whole = server.run(&["workflow", "export", "--id", &id, "--include-sensitive"]).exits(0);
    assert!(whole.out.contains(VALUE) && whole.err.contains("sensitive values"), "{}", whole.err);
    let evidence = server.run(&["workflow", "evidence", &id]).exits(0).out;

    assert_ne!(holding(server.path(), VALUE), Vec::<String>::new(), "the marker can be found");
    let erase = ["workflow", "erase", "--workflow", &id, "--reason", "asked for", "--json"];
    let looked = server.run(&[&erase[..], &["--dry-run"]].concat()).exits(0).json();
    assert_eq!(looked["erased"].as_array().unwrap().len(), 2);
    server.run(&["workflow", "erase", "--workflow", &id, "--reason", " "]).exits(2);
    let unknown = server.run(&[&erase[..], &["--step", "budge"]].concat()).exits(1);
    assert!(unknown.err.contains("no sensitive value of a step budge"), "{}", unknown.err);
    let badge = server.run(&[&erase[..], &["--step", "badge"]].concat()).exits(0).json();
    assert_eq!(badge["erased"][0]["step_id"], "badge");
    let all = server.run(&[&erase[..], &["--compact"]].concat()).exits(0).json();
    assert_eq!(
        (all["erased"].as_array().unwrap().len(), all["already"].as_array().unwrap().len()),
        (1, 1)
    );

    server.run(&["workflow", "verify"]).exits(0);
    let history = server.run(&["workflow", "history", &id]).exits(0).out;
    assert!(history.contains("badge = (erased)"), "{history}");
    let csv = server.run(&["workflow", "export", "--format", "csv"]).exits(0).out;
    assert!(csv.contains(",erased,"), "{csv}");
    let view = server.call("get_status", &json!({ "workflow_id": id, "detail": "full" }));
    assert_eq!(view["ok"], true, "the server goes on: {view:#}");
    purged(&server, &id);
    let folder = server.stop();
    for marker in [VALUE, VISITOR] {
        assert_eq!(holding(folder.path(), marker), Vec::<String>::new(), "{marker}");
    }
    std::fs::write(folder.path().join("evidence.json"), evidence).unwrap();
    run(folder.path(), &["verify-evidence", "evidence.json"]).exits(0);
}

/// Purges the workflow beside its server, when it may be; its tombstone is told.
fn purged(server: &Server, id: &str) {
    let purge = |more: &[&str]| {
        let all = ["workflow", "purge", "--json", "--completed-before", "2999-01-01"];
        server.run(&[&all[..], more].concat())
    };
    assert_eq!(purge(&["--yes"]).exits(0).json()["purged_count"], 0, "it is open");
    finished(server, id);
    let last = server.run(&["workflow", "show", id, "--json"]).exits(0).json()["last_hash"].clone();
    assert!(purge(&[]).exits(2).err.contains("--yes"), "nobody is asked");
    let counts = purge(&["--dry-run"]).exits(1).json();
    assert_eq!(counts["spared"][0]["why"], "its idempotency keys still count");

    let soon = ["--set", "idempotency.retention=1ms"];
    crate::server::until("its keys expired", || {
        purge(&[&soon[..], &["--dry-run"]].concat()).json()["purged_count"] == 1
    });
    // What was said before is what happens.
    let now = ["--yes", "--reason", "no longer needed"];
    let told = purge(&[&soon[..], &now[..]].concat()).exits(0).json();
    assert_eq!((&told["purged_count"], &told["purged"][0]["last_hash"]), (&json!(1), &last));
    let told = server.run(&["workflow", "show", id]).exits(1).err;
    assert!(told.contains("it was purged at") && told.contains("no longer needed"), "{told}");
    assert!(told.contains(last.as_str().unwrap()), "{told}");
    server.run(&["workflow", "verify"]).exits(0);
    let view = server.call("get_status", &json!({ "workflow_id": id }));
    assert_eq!(view["error"]["code"], "WORKFLOW_NOT_FOUND");
}

/// Ends the process of a purge before and after each of its commits. At no time anything is torn, and the next run takes
/// what is left.
#[cfg(feature = "failpoints")]
#[test]
fn a_purge_that_is_killed_is_completed_by_the_next() {
    let server = served(&["--set", "idempotency.retention=1ms"]);
    let ids: Vec<String> = (1..=3).map(|n| visited(&server, &format!("GATE-{n}"))).collect();
    for id in &ids {
        finished(&server, id);
    }
    let folder = server.stop();
    std::thread::scope(|scope| {
        for place in ["commit.before", "commit.after"] {
            let (folder, ids) = (folder.path(), &ids);
            scope.spawn(move || {
                let killed = (0..50).take_while(|n| is_killed_at(folder, ids, place, *n)).count();
                // A commit for each workflow at the least.
                assert!((ids.len()..50).contains(&killed), "{place}: {killed}");
            });
        }
    });
}

/// Purges a copy of the database, killed after `n` passes of this place. False if it came to its end before.
#[cfg(feature = "failpoints")]
fn is_killed_at(database: &Path, ids: &[String], place: &str, n: usize) -> bool {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(database.join("checkpoint.db"), folder.path().join("checkpoint.db")).unwrap();
    let purge = |failpoints: &str| -> crate::binary::Ran {
        let mut command = crate::binary::command(folder.path());
        command.args(["workflow", "purge", "--completed-before", "2999-01-01", "--yes", "--json"]);
        command.args(["--undelivered-too", "--set", "idempotency.retention=1ms"]);
        command.env("FAILPOINTS", failpoints).output().unwrap().into()
    };
    let off = if n == 0 { String::new() } else { format!("{n}*off->") };
    let killed = purge(&format!("{place}={off}1*return(abort)"));
    if killed.code == 0 {
        return false;
    }
    assert_eq!((killed.code, killed.out.as_str()), (-1, ""), "{place} {n}: {killed:#?}");
    let verify = || run(folder.path(), &["workflow", "verify"]).exits(0).out;
    verify();
    let told = purge("").exits(0).json();
    assert_eq!(told["spared_count"], 0, "{place} {n}: {told:#}");
    assert!(verify().starts_with("ok: 0 workflows, 0 events"), "{place} {n}: {}", verify());
    let first = run(folder.path(), &["workflow", "show", &ids[0]]).exits(1).err;
    assert!(first.contains("it was purged at"), "{place} {n}: {first}");
    assert_eq!(holding(folder.path(), VALUE), Vec::<String>::new(), "{place} {n}");
    true
}
