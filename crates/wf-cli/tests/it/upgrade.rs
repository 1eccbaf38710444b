//! Databases that earlier versions wrote, kept under `tests/fixtures`: each opens, verifies, answers old calls as it did, and
//! its work goes on. `make` writes the one of this build. And what an upgrade must not do: lose the way back, or half of it.

mod make;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{Ran, command, run};
use crate::server::{Server, until};

/// What is kept, the oldest first: a folder for each schema version that a migration starts from, and for each release.
const FIXTURES: [&str; 3] = ["schema-1", "schema-2", "v0.1.0"];

/// What a server of these tests is told: the people of the fixture, and nothing that time has made forget.
const SERVE: [&str; 4] = ["--auth", "dev", "--set", "idempotency.retention=3650d"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn manifest(name: &str) -> Value {
    let text = std::fs::read_to_string(fixture(name).join("manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("a manifest is JSON")
}

/// A copy of the database where commands look for one.
fn copy_of(name: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("checkpoint.db");
    std::fs::copy(fixture(name).join("checkpoint.db"), database).expect("a database");
    folder
}

/// A token of the person in this folder.
fn token(folder: &Path, sub: &str) -> String {
    let scope = "workflow:read workflow:write workflow:supervise";
    let scope = if sub == "eve" { scope } else { "workflow:read workflow:write" };
    let name = match sub {
        "ann" => "Ann Miller",
        "bob" => "Bob Tailor",
        _ => "Eve Marsh",
    };
    let issue = ["token", "issue", "--sub", sub, "--name", name, "--scope", scope];
    run(folder, &issue).exits(0).out.trim().to_owned()
}

/// What the commands say about the store, as far as time and deliveries do not change it.
fn seen(folder: &Path) -> Value {
    let json = |arguments: &[&str]| run(folder, arguments).exits(0).json();
    let listed = json(&["workflow", "list", "--json"])["workflows"].clone();
    let works = listed.as_array().expect("workflows").iter().map(|work| {
        let id = work["id"].as_str().expect("an id");
        let shown = json(&["workflow", "show", id, "--json"]);
        let history = json(&["workflow", "history", id, "--json"])["events"].clone();
        let kinds: Vec<Value> =
            history.as_array().expect("events").iter().map(|event| event["kind"].clone()).collect();
        json!({
            "id": id, "phase": shown["phase"], "revision": shown["revision"],
            "last_hash": shown["last_hash"], "owner": shown["owner"], "offer": shown["offer"],
            "deadlines": shown["deadlines"], "history": kinds,
        })
    });
    let works: Vec<Value> = works.collect();
    let outbox = json(&["outbox", "list", "--json"])["messages"].clone();
    let messages = outbox.as_array().expect("messages").iter();
    let messages: Vec<Value> = messages
        .map(|row| json!({ "id": row["message"]["id"], "state": row["state"], "to": row["message"]["recipient"] }))
        .collect();
    json!({
        "workflows": works,
        "locks": json(&["locks", "list", "--json"])["locks"],
        "outbox": messages,
    })
}

fn verified(folder: &Path) {
    let verified = run(folder, &["workflow", "verify", "--json"]).exits(0).json();
    assert_eq!(verified["findings"], json!([]), "{verified:#}");
}

/// Brings a copy of the fixture to the schema of this build, if it is older; the copy from before.
fn migrated(folder: &Path, manifest: &Value) -> Option<PathBuf> {
    let newest = run(folder, &["migrate", "--database", "new.db", "--json"]).exits(0).json();
    let migration = run(folder, &["migrate", "--json"]).exits(0).json();
    assert_eq!(migration["from"], manifest["schema"]);
    assert_eq!(migration["to"], newest["to"]);
    let kept = migration["backup"].as_str().map(PathBuf::from);
    assert_eq!(kept.is_some(), migration["from"] != migration["to"], "{migration}");
    kept
}

#[test]
fn a_database_of_each_earlier_version_opens_verifies_and_goes_on() {
    std::thread::scope(|scope| {
        for name in FIXTURES {
            scope.spawn(move || goes_on(name));
        }
    });
}

fn goes_on(name: &str) {
    let manifest = manifest(name);
    let folder = copy_of(name);
    let kept = migrated(folder.path(), &manifest);
    verified(folder.path());
    assert_eq!(seen(folder.path()), manifest["seen"], "{name}");
    if let Some(kept) = kept {
        way_back(folder.path(), &kept, &manifest);
    }
    let evidence = fixture(name).join("evidence.json");
    let looked = run(folder.path(), &["verify-evidence", evidence.to_str().unwrap(), "--json"]);
    assert_eq!(looked.exits(0).json()["ok"], true, "{name}");

    let server = Server::start_in(folder, &SERVE);
    replays(&server, &manifest);
    finishes(&server, &manifest);
    until("what was to be delivered is", || {
        let pending = server.run(&["outbox", "list", "--pending", "--json"]).exits(0).json();
        pending["messages"] == json!([])
    });
    let dead = server.run(&["outbox", "list", "--dead", "--json"]).exits(0).json();
    assert_eq!(dead["messages"].as_array().map(Vec::len), Some(dead_of(&manifest)), "{name}");
    verified(server.path());
    server.stop();
}

fn dead_of(manifest: &Value) -> usize {
    let rows = manifest["seen"]["outbox"].as_array().expect("messages");
    let dead = rows.iter().filter(|row| row["state"] == "dead").count();
    assert!(dead > 0, "the fixture has a dead message");
    dead
}

/// The copy from before the migration is the old database: put back, it says the same.
fn way_back(folder: &Path, kept: &Path, manifest: &Value) {
    let name = kept.file_name().unwrap().to_str().unwrap();
    let prefix = format!("checkpoint.db.schema-{}.2", manifest["schema"]);
    assert!(name.starts_with(&prefix) && name.ends_with("Z.backup"), "{name}");
    let elsewhere = TempDir::new().unwrap();
    let to = elsewhere.path().join("checkpoint.db");
    std::fs::copy(kept, &to).unwrap();
    let old = run(elsewhere.path(), &["workflow", "list"]).exits(1);
    assert!(old.err.contains("migrate it first"), "{}", old.err);
    let again = run(elsewhere.path(), &["restore", kept.to_str().unwrap(), "--json"]).exits(0);
    assert_eq!(again.json()["migrated_from"], manifest["schema"]);
    assert_eq!(seen(elsewhere.path())["workflows"], manifest["seen"]["workflows"], "{folder:?}");
}

/// Every call of then is answered as it was, by the ledger.
fn replays(server: &Server, manifest: &Value) {
    let calls = manifest["calls"].as_array().expect("calls");
    assert!(calls.len() > 15, "the fixture has calls");
    for call in calls {
        let token = token(server.path(), call["by"].as_str().unwrap());
        let again = server.call_as(&token, call["tool"].as_str().unwrap(), &call["arguments"]);
        let mut answer = call["answer"].clone();
        answer["duplicate"] = json!(true);
        assert_eq!(again, answer, "{call:#}");
    }
    // The same key for another call is refused, as it would have been then.
    let mut other = calls[0].clone();
    other["arguments"]["inputs"]["order"] = json!("another");
    let token = token(server.path(), other["by"].as_str().unwrap());
    let refused = server.call_as(&token, other["tool"].as_str().unwrap(), &other["arguments"]);
    assert_eq!(refused["error"]["code"], "IDEMPOTENCY_CONFLICT", "{refused:#}");
}

/// Work of then is done to its end, by a definition that only the store knows.
fn finishes(server: &Server, manifest: &Value) {
    let id = |name: &str| manifest["works"][name].as_str().unwrap().to_owned();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|sub| token(server.path(), sub));
    let open = id("open");
    for (step, value) in [("code", "4711"), ("state", "good")] {
        let submit = json!({ "workflow_id": open, "step_id": step, "value": value, "idempotency_key": format!("new-{step}") });
        let next = server.call_as(&ann, "submit_step", &submit);
        assert_eq!(next["outcome"], "recorded", "{next:#}");
    }
    make::finish(server, &ann, &open, "new-end");

    let blocked = id("blocked");
    let status = server.call_as(&eve, "get_status", &json!({ "workflow_id": blocked }));
    let block = status["blocks"][0]["id"].clone();
    let resolve = json!({
        "workflow_id": blocked, "block_id": block, "decision": "accept_deviation", "comment": "seen",
        "idempotency_key": "new-resolve",
    });
    let resolved = server.call_as(&eve, "resolve_block", &resolve);
    assert_eq!(resolved["ok"], true, "{resolved:#}");

    let handed = json!({ "workflow_id": id("handed_over"), "action": "withdraw", "idempotency_key": "new-back" });
    let back = server.call_as(&bob, "transfer_workflow", &handed);
    assert_eq!(back["ok"], true, "{back:#}");

    // What was purged stays away, and what was erased goes on without it.
    if let (Some(purged), Some(erased)) =
        (manifest["works"]["purged"].as_str(), manifest["works"]["erased"].as_str())
    {
        let gone = server.call_as(&ann, "get_status", &json!({ "workflow_id": purged }));
        assert_eq!(gone["error"]["code"], "WORKFLOW_NOT_FOUND", "{gone:#}");
        let again = json!({
            "procedure_id": "kept", "assets": { "unit": "U-6" },
            "inputs": { "order": "O-6", "badge": "badge 4711" }, "idempotency_key": "start-6",
        });
        let again = server.call_as(&ann, "start_workflow", &again);
        assert_eq!(again["error"]["details"]["erased"], true, "{again:#}");
        let submit = json!({ "workflow_id": erased, "step_id": "level", "value": "30", "idempotency_key": "new-level" });
        let next = server.call_as(&ann, "submit_step", &submit);
        assert_eq!(next["outcome"], "recorded", "{next:#}");
    }

    // What it held is free now, and what others hold is held.
    let locks = server.run(&["locks", "list", "--json"]).exits(0).json()["locks"].clone();
    let mut then = manifest["seen"]["locks"].clone();
    let rows = then.as_array_mut().expect("locks");
    rows.retain(|row| row["holder"]["workflow_id"] != json!(open));
    assert_eq!(locks, then);
}

/// There is no room for the copy: nothing is migrated, nothing is left behind, and the next start with room does it.
#[test]
fn without_room_for_the_copy_nothing_is_migrated() {
    let folder = copy_of(FIXTURES[0]);
    let database = std::fs::read(folder.path().join("checkpoint.db")).unwrap();
    // No file grows beyond 64 KiB; the database is there already, and larger.
    assert!(database.len() > 128 * 1024);
    let script = "ulimit -f 64; trap '' XFSZ; exec \"$0\" migrate";
    let program = command(folder.path()).get_program().to_owned();
    let mut bash = std::process::Command::new("bash");
    let ran: Ran =
        bash.current_dir(folder.path()).arg("-c").arg(script).arg(program).output().unwrap().into();
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("was not migrated and is as it was"), "{}", ran.err);
    assert!(ran.err.contains("free some space"), "{}", ran.err);
    assert_eq!(std::fs::read(folder.path().join("checkpoint.db")).unwrap(), database);
    let names = std::fs::read_dir(folder.path()).unwrap();
    let names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains("backup")), "{names:?}");
    let migration = run(folder.path(), &["migrate", "--json"]).exits(0).json();
    assert_eq!(migration["from"], 1);
}

/// A store of a newer build is refused by every command with what to do, and stays as it is.
#[test]
fn a_database_of_a_newer_version_is_refused_and_stays_as_it_is() {
    let folder = copy_of("v0.1.0");
    let path = folder.path().join("checkpoint.db");
    let mut database = std::fs::read(&path).unwrap();
    // The schema version is the big-endian number at 60 (SQLite's file format, section 1.3).
    database[60..64].copy_from_slice(&1_000_u32.to_be_bytes());
    std::fs::write(&path, &database).unwrap();
    let other = folder.path().join("other.db");
    let restore = ["restore", "checkpoint.db", "--database", "other.db"];
    for arguments in [&["serve"][..], &["migrate"], &["workflow", "list"], &["restored"], &restore]
    {
        let ran = run(folder.path(), arguments).exits(1);
        assert!(ran.err.contains("schema version 1000, this build knows up to"), "{}", ran.err);
        assert!(ran.err.contains("use a newer build"), "{}", ran.err);
        assert_eq!(std::fs::read(&path).unwrap(), database, "{arguments:?}");
    }
    assert!(!other.exists());
}
