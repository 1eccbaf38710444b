//! The commands beside a running server: call, workflow, locks, outbox, procedure, doctor.

use serde_json::json;

use crate::binary::run;
use crate::life::small;
use crate::pump;
use crate::server::Server;

#[test]
fn call_goes_round() {
    let server = Server::start(&[]);
    let url = format!("http://{}/mcp", server.address());
    let said = server.run(&["call", "find_work", "--url", &url]).exits(0);
    assert_eq!(said.out.lines().count(), 1, "{}", said.out);
    let start = [
        "call",
        "start_workflow",
        "--url",
        &url,
        "--arg",
        "procedure_id=pump-inspection",
        "--arg",
        "assets.pump=PUMP-204",
        "--arg",
        "inputs.work_order=WO-1",
        "--arg",
        "idempotency_key=k1",
        "--json",
    ];
    let first = server.run(&start).exits(0);
    assert_eq!(first.json()["outcome"], "started");
    assert_eq!(first.err.trim(), first.json()["speech"].as_str().unwrap());
    assert_eq!(server.run(&start).exits(0).json()["duplicate"], true);
    server.stop();
}

#[test]
fn call_tells_an_error_from_an_absent_server() {
    let server = Server::start(&[]);
    let url = format!("http://{}/mcp", server.address());
    let asked = ["call", "get_status", "--arg", "workflow_id=nobody", "--json", "--url"];
    let with = |url: &str| server.run(&[&asked[..], &[url]].concat());
    let refused = with(&url).exits(1).json();
    assert_eq!(refused["error"]["code"], "WORKFLOW_NOT_FOUND");
    server.run(&["call", "fly", "--url", &url]).exits(1);
    server.signal("STOP");
    let waited = server.run(&["call", "find_work", "--timeout", "1", "--url", &url]);
    server.signal("CONT");
    assert!(waited.exits(3).err.contains("no answer within 1 s"));
    let folder = server.stop();
    let ran = run(folder.path(), &["call", "find_work", "--url", &url]).exits(3);
    assert!(ran.err.contains("wf-cli serve"), "{}", ran.err);
}

#[test]
fn workflows_are_listed_shown_and_verified_beside_a_server() {
    let server = Server::start(&[]);
    let view = pump::start(&server, "PUMP-204", "k1");
    let view = pump::submit(&server, &view);
    pump::start(&server, "PUMP-205", "k2");
    let id = pump::id(&view);

    let list = server.run(&["workflow", "list", "--json"]).exits(0).json();
    assert_eq!(list["workflows"].as_array().unwrap().len(), 2);
    let one = server.run(&["workflow", "list", "--json", "--limit", "1"]).exits(0);
    assert_eq!(one.json()["more"], true);
    let none = server.run(&["workflow", "list", "--state", "completed", "--json"]);
    assert_eq!(none.exits(0).json()["workflows"], json!([]));
    let table = server.run(&["workflow", "list"]).exits(0).out;
    assert!(table.starts_with("ID"), "{table}");
    assert!(table.contains(&id), "{table}");

    let shown = server.run(&["workflow", "show", &id, "--json"]).exits(0).json();
    assert_eq!(shown["revision"], view["workflow"]["revision"]);
    assert!(server.run(&["workflow", "show", &id]).exits(0).out.contains("PUMP-204"));
    let history = server.run(&["workflow", "history", &id, "--json"]).exits(0).json();
    let kinds: Vec<&str> = history["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["workflow_started", "orchestration_acknowledged", "step_recorded"]);
    assert!(server.run(&["workflow", "history", &id]).exits(0).out.contains("step_recorded"));

    let verified = server.run(&["workflow", "verify", "--json"]).exits(0).json();
    assert_eq!(verified["workflows"], 2);
    assert_eq!(verified["findings"], json!([]));
    let verified = server.run(&["workflow", "verify", &id]).exits(0);
    assert!(verified.out.contains("ok: 1 workflow,"), "{}", verified.out);

    for command in ["show", "history", "verify"] {
        let ran = server.run(&["workflow", command, "nobody"]).exits(1);
        assert!(ran.err.contains("there is no workflow nobody"), "{}", ran.err);
    }
    let foreign = server.run(&["workflow", "show", &id, "--tenant", "other"]).exits(1);
    assert!(foreign.err.contains("of tenant other"), "{}", foreign.err);
    server.stop();
}

#[test]
fn a_changed_byte_of_the_history_is_damage() {
    let server = Server::start(&[]);
    let view = pump::start(&server, "PUMP-204", "k1");
    let mut arguments = pump::answer(&view).unwrap();
    arguments["note"] = "seal looks fine".into();
    assert_eq!(server.call("submit_step", &arguments)["ok"], true);
    let folder = server.stop();
    run(folder.path(), &["workflow", "verify"]).exits(0);
    let database = folder.path().join("checkpoint.db");
    let mut bytes = std::fs::read(&database).unwrap();
    let (note, forged) = (b"seal looks fine", b"seal looks FINE");
    let mut changed = 0;
    for at in 0..bytes.len() - note.len() {
        if &bytes[at..at + note.len()] == note {
            bytes[at..at + note.len()].copy_from_slice(forged);
            changed += 1;
        }
    }
    assert!(changed > 0, "the note is in the file");
    std::fs::write(&database, bytes).unwrap();
    let found = run(folder.path(), &["workflow", "verify", "--json"]).exits(4);
    assert_eq!(found.json()["ok"], false);
    assert!(found.json()["findings"][0]["workflow_id"] == pump::id(&view));
    run(folder.path(), &["workflow", "verify"]).exits(4);
    run(folder.path(), &["doctor"]).exits(4);
}

/// The history is whole; only the lists would be wrong.
#[test]
fn a_column_that_differs_from_its_state_is_damage() {
    let server = Server::start(&[]);
    let view = pump::start(&server, "PUMP-204", "k1");
    let folder = server.stop();
    let database = folder.path().join("checkpoint.db");
    let mut bytes = std::fs::read(&database).unwrap();
    let (running, created) = (b"RUNNING", b"CREATED");
    for at in 1..bytes.len() - running.len() {
        // Within JSON it stands in quotes.
        if &bytes[at..at + running.len()] == running && bytes[at - 1] != b'"' {
            bytes[at..at + running.len()].copy_from_slice(created);
        }
    }
    std::fs::write(&database, bytes).unwrap();
    let found = run(folder.path(), &["workflow", "verify", "--json"]).exits(4).json();
    let message = found["findings"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("a column for lists is not what the state says"), "{found}");
    let id = pump::id(&view);
    assert!(message.contains(&id), "{message}");
    // One workflow is recomputed, not its place in lists.
    run(folder.path(), &["workflow", "verify", &id]).exits(0);
}

#[test]
fn a_lock_is_released_beside_a_server_and_its_workflow_is_told() {
    let server = Server::start(&[]);
    let view = pump::start(&server, "PUMP-204", "k1");
    let locks = server.run(&["locks", "list", "--json"]).exits(0).json();
    assert_eq!(locks["locks"][0]["asset_id"], "PUMP-204");
    assert_eq!(locks["locks"][0]["holder"]["workflow_id"], pump::id(&view));

    let released = server.run(&["locks", "release", "PUMP-204", "--reason", "tablet lost"]);
    assert!(released.exits(0).out.contains("PUMP-204 is free"));
    assert!(!server.run(&["locks", "list"]).exits(0).out.contains("PUMP-204"));
    let all = server.run(&["locks", "list", "--all"]).exits(0).out;
    assert!(all.contains("(free)"), "{all}");

    let told = server.call("submit_step", &pump::answer(&view).unwrap());
    assert_eq!(told["error"]["code"], "LOCK_LOST", "{told:#}");
    let history = server.run(&["workflow", "history", &pump::id(&view), "--json"]);
    let history = history.exits(0).json();
    let last = history["events"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["kind"], "lock_released");
    assert_eq!(last["data"]["reason"], "tablet lost");
    assert!(last["actor"].as_str().unwrap().starts_with("cli:"), "{last}");

    let again = server.run(&["locks", "release", "PUMP-204", "--reason", "again"]).exits(1);
    assert!(again.err.contains("free already"), "{}", again.err);
    let never = server.run(&["locks", "release", "PUMP-999", "--reason", "x"]).exits(1);
    assert!(never.err.contains("never held"), "{}", never.err);
    server.run(&["workflow", "verify"]).exits(0);
    server.stop();
}

#[test]
fn the_outbox_is_listed_and_only_dead_messages_are_retried() {
    let server = Server::start(&[]);
    let empty = server.run(&["outbox", "list", "--json"]).exits(0).json();
    assert_eq!(empty["messages"], json!([]));
    let view = pump::start(&server, "PUMP-204", "k1");
    let blocked = server.call(
        "report_problem",
        &json!({
            "workflow_id": pump::id(&view),
            "summary": "oil on the floor",
            "severity": "high",
            "idempotency_key": "k2",
        }),
    );
    assert_eq!(blocked["outcome"], "blocked", "{blocked:#}");
    crate::server::until("the delivery", || {
        let listed = server.run(&["outbox", "list", "--delivered", "--json"]).exits(0).json();
        listed["messages"].as_array().is_some_and(|all| !all.is_empty())
    });
    assert!(server.log().contains("notification"), "{}", server.log());
    let listed = server.run(&["outbox", "list", "--json"]).exits(0).json();
    let id = listed["messages"][0]["message"]["id"].as_str().unwrap().to_owned();
    let dead = server.run(&["outbox", "list", "--dead", "--json"]).exits(0).json();
    assert_eq!(dead["messages"], json!([]));
    let ran = server.run(&["outbox", "retry", &id]).exits(1);
    assert!(ran.err.contains("there is no dead message"), "{}", ran.err);
    server.stop();
}

#[test]
fn delivered_messages_are_purged_by_age_and_nothing_else_is() {
    let server = Server::start(&[]);
    pump::start(&server, "PUMP-204", "k1");
    let states = || {
        let listed = server.run(&["outbox", "list", "--json"]).exits(0).json();
        let all = listed["messages"].as_array().unwrap().clone();
        all.iter().map(|row| row["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    crate::server::until("the delivery", || states() == ["delivered"]);
    let purge = |more: &[&str]| {
        let arguments = [&["outbox", "purge", "--json"], more].concat();
        server.run(&arguments).exits(0).json()
    };
    // By default the retention, and within it nothing is old.
    let kept = purge(&["--dead"]);
    assert_eq!((&kept["delivered"], &kept["dead"]), (&json!(0), &json!(0)), "{kept}");
    let counted = purge(&["--older-than", "1ms", "--dry-run"]);
    assert_eq!((&counted["delivered"], &counted["dead"]), (&json!(1), &json!(null)), "{counted}");
    assert!(counted["by"].as_str().unwrap().starts_with("cli:"), "{counted}");
    assert_eq!(states(), ["delivered"], "only counted");
    let said = server.run(&["outbox", "purge", "--older-than", "1ms"]).exits(0).out;
    assert!(said.starts_with("1 delivered messages until "), "{said}");
    assert!(states().is_empty());
    server.run(&["workflow", "verify"]).exits(0);
    server.stop();
}

#[test]
fn what_the_outbox_has_not_delivered_is_measured() {
    let server = Server::start(&[]);
    let gauges = || {
        let text = server.get("/metrics").map(|(_, text)| text).unwrap_or_default();
        let value = |name: &str| -> Option<f64> {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} ")))?;
            line.rsplit(' ').next()?.parse().ok()
        };
        ["pending", "dead", "oldest_pending_seconds"]
            .map(|what| value(&format!("checkpoint_notifications_{what}")))
    };
    crate::server::until("the first count", || gauges() == [Some(0.0); 3]);
    server.stop();
}

#[test]
fn procedures_are_checked_listed_and_shown_without_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let here = |arguments: &[&str]| run(folder.path(), arguments);
    let listed = here(&["procedure", "list", "--json"]).exits(0).json();
    assert_eq!(listed["procedures"].as_array().unwrap().len(), 2);
    let shown = here(&["procedure", "show", "pump-inspection"]).exits(0).out;
    assert!(shown.contains("STEP"), "{shown}");
    let shown = here(&["procedure", "show", "analytical-balance-calibration"]).exits(0).out;
    for told in [
        "deadline overdue: 8h after the start, tells quality-lead",
        "blocks   tell quality-lead, after 15m laboratory-manager",
        "done after 30m",
        "supervisor, a second person",
    ] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    let empty = here(&["procedure", "check", "."]).exits(1);
    assert!(empty.out.contains("no procedure files in this folder"), "{}", empty.out);
    let unknown = here(&["procedure", "show", "nothing"]).exits(1);
    assert!(unknown.err.contains("pump-inspection"), "{}", unknown.err);
    let schema = here(&["procedure", "schema"]).exits(0).json();
    assert!(schema.get("$schema").is_some());

    std::fs::write(folder.path().join("good.yaml"), small(1, "one")).unwrap();
    std::fs::write(folder.path().join("bad.yaml"), "schema: checkpoint/procedure/v1\nid: [\n")
        .unwrap();
    let good = here(&["procedure", "check", "good.yaml"]).exits(0);
    assert!(good.out.contains("small version 1"), "{}", good.out);
    let both = here(&["procedure", "check", "good.yaml", "bad.yaml", "absent.yaml"]).exits(1);
    assert!(both.out.contains("bad.yaml:"), "{}", both.out);
    assert!(both.out.contains("absent.yaml: cannot be read"), "{}", both.out);
    let json = here(&["procedure", "check", "bad.yaml", "--json"]).exits(1).json();
    assert_eq!(json["ok"], false);
    assert!(json["problems"][0]["line"].as_u64().unwrap() >= 2);
    assert!(!folder.path().join("checkpoint.db").exists());
}

#[test]
fn doctor_looks_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let before = run(folder.path(), &["doctor", "--json", "--set", "server.listen=127.0.0.1:0"]);
    assert_eq!(before.exits(0).json()["ok"], true);
    assert!(!folder.path().join("checkpoint.db").exists());
    let other = |name: &str, holds: &str| {
        std::fs::write(folder.path().join(name), holds).unwrap();
        let set = ["--quick", "--database", name, "--set", "server.listen=127.0.0.1:0"];
        run(folder.path(), &[&["doctor"], &set[..]].concat())
    };
    assert!(other("empty.db", "").exits(0).out.contains("not there yet; serve makes it"));
    let garbage = other("garbage.db", &"no database ".repeat(100)).exits(4).out;
    assert!(garbage.contains("→ keep a copy of the file"), "{garbage}");

    let server = Server::start_in(folder, &[]);
    pump::start(&server, "PUMP-204", "k1");
    let set = format!("server.listen={}", server.address());
    let beside = server.run(&["doctor", "--json", "--set", &set]).exits(0).json();
    let state = |name: &str| {
        let checks = beside["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["check"] == name);
        check.unwrap_or_else(|| panic!("no {name}: {beside:#}"))["state"].clone()
    };
    assert_eq!(state("listen"), "warn");
    for name in ["configuration", "folder", "database", "log size", "integrity", "clock"] {
        assert_eq!(state(name), "ok", "{name}");
    }
    let text = server.run(&["doctor", "--quick", "--set", &set]).exits(0).out;
    assert!(text.contains("not looked at"), "{text}");
    assert!(text.contains("→ fine when that is the server"), "{text}");

    // An authorization server that is away fails the whole look, and is no reason to end a process that lives.
    let issuer = ["auth.mode=jwt", "auth.issuer=https://127.0.0.1:9"];
    let with = |how: &str, listen: &str| {
        let more = [
            "--set",
            issuer[0],
            "--set",
            issuer[1],
            "--set",
            "server.public_url=https://a.example",
        ];
        server.run(&[&["doctor", how, "--set", listen], &more[..]].concat())
    };
    with("--quick", &set).exits(1);
    let alive = with("--alive", &set).exits(0).out;
    assert!(alive.contains("it lives"), "{alive}");
    with("--alive", "server.listen=127.0.0.1:9").exits(3);
    server.stop();
}
