//! Backup, restore, recovery by other means, migration.

use serde_json::json;

use crate::binary::run;
use crate::pump;
use crate::server::Server;

#[test]
fn a_backup_of_a_running_server_is_what_a_restore_brings_back() {
    let server = Server::start(&[]);
    let before = pump::start(&server, "PUMP-204", "k1");
    let fence = fence_of(&server);
    assert!(fence < 1_000_000);
    let made = server.run(&["backup", "b.db", "--json"]).exits(0).json();
    assert!(made["bytes"].as_u64().unwrap() > 0);
    let again = server.run(&["backup", "b.db"]).exits(1);
    assert!(again.err.contains("exists already"), "{}", again.err);
    let after = pump::start(&server, "PUMP-205", "k2");

    let refused = server.run(&["restore", "b.db"]).exits(1);
    assert!(refused.err.contains("in use"), "{}", refused.err);
    let folder = server.stop();
    let report = run(folder.path(), &["restore", "b.db", "--json"]).exits(0).json();
    let kept = report["kept"].as_str().unwrap();
    let replaced = run(folder.path(), &["workflow", "list", "--json", "--database", kept]);
    assert_eq!(replaced.exits(0).json()["workflows"].as_array().unwrap().len(), 2);
    run(folder.path(), &["workflow", "verify"]).exits(0);

    let server = Server::start_in(folder, &[]);
    let known = server.call("get_status", &json!({ "workflow_id": pump::id(&before) }));
    assert_eq!(known["ok"], true, "{known:#}");
    let lost = server.call("get_status", &json!({ "workflow_id": pump::id(&after) }));
    assert_eq!(lost["error"]["code"], "WORKFLOW_NOT_FOUND");
    assert_eq!(next_fence(&server, &before), fence + 1_000_001);
    assert_ne!(known["next_idempotency_key"], before["next_idempotency_key"]);
    server.stop();
}

fn fence_of(server: &Server) -> u64 {
    let locks = server.run(&["locks", "list", "--json"]).exits(0).json();
    locks["locks"][0]["fence"].as_u64().unwrap()
}

/// The fence under which the asset of `view` changes hands next.
fn next_fence(server: &Server, view: &serde_json::Value) -> u64 {
    let mut end = json!({
        "workflow_id": pump::id(view), "result": "abandoned", "idempotency_key": "end",
    });
    let asked = server.call("finish_workflow", &end);
    if let Some(token) = asked.pointer("/confirm/token") {
        end["confirm_token"] = token.clone();
        assert_eq!(server.call("finish_workflow", &end)["outcome"], "finished");
    }
    pump::start(server, "PUMP-204", "next");
    fence_of(server)
}

#[test]
fn a_restore_needs_no_database_and_a_backup_that_is_one() {
    let server = Server::start(&[]);
    pump::start(&server, "PUMP-204", "k1");
    server.run(&["backup", "b.db"]).exits(0);
    let folder = server.stop();
    run(folder.path(), &["restore", "b.db", "--database", "fresh.db"]).exits(0);
    let listed = run(folder.path(), &["workflow", "list", "--json", "--database", "fresh.db"]);
    assert_eq!(listed.exits(0).json()["workflows"].as_array().unwrap().len(), 1);

    run(folder.path(), &["restore", "checkpoint.db"]).exits(2);
    let absent = run(folder.path(), &["restore", "absent.db", "--database", "x.db"]);
    assert_ne!(absent.code, 0, "{absent:?}");
    std::fs::write(folder.path().join("text.db"), "no database").unwrap();
    let text = run(folder.path(), &["restore", "text.db", "--database", "x.db"]);
    assert_ne!(text.code, 0, "{text:?}");
    assert!(!folder.path().join("x.db").exists());
}

#[test]
fn restored_stamps_a_recovered_database() {
    let server = Server::start(&[]);
    let view = pump::start(&server, "PUMP-204", "k1");
    let fence = fence_of(&server);
    let refused = server.run(&["restored"]).exits(1);
    assert!(refused.err.contains("in use"), "{}", refused.err);
    let folder = server.stop();
    run(folder.path(), &["restored"]).exits(0);
    let server = Server::start_in(folder, &[]);
    assert_eq!(next_fence(&server, &view), fence + 1_000_001);
    server.stop();
}

#[test]
fn migrate_says_what_it_did() {
    let folder = Server::start(&[]).stop();
    let ran = run(folder.path(), &["migrate", "--json"]).exits(0).json();
    assert_eq!(ran["from"], ran["to"]);
    let ran = run(folder.path(), &["migrate"]).exits(0);
    assert!(ran.out.contains("already"), "{}", ran.out);
    let made = run(folder.path(), &["migrate", "--database", "new.db"]).exits(0);
    assert!(made.out.contains("was made"), "{}", made.out);
}
