//! `wf-cli copy`: a store that moves, by way of a killed process or two, is the same store afterwards.
//!
//! From one file to another without anything else; by way of a DynamoDB table where an emulator is (`cargo xtask aws`).
//! `WF_COPY_WORKFLOWS` says how many workflows move; `WF_COPY_WORKFLOWS=10000` takes some minutes.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{Ran, command, run};
use crate::pump;
use crate::server::Server;

/// How long a copy may take, at the size that is asked for.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// A store in `from.db` with open, blocked and finished work.
fn filled(workflows: usize) -> TempDir {
    let folder = TempDir::new().unwrap();
    write_local(folder.path(), "from.toml", "from.db");
    let server = Server::start_in(folder, &["--config", "from.toml"]);
    for n in 0..workflows {
        let mut view = pump::start(&server, &format!("PUMP-{n}"), &format!("start-{n}"));
        for _ in 0..n % 4 {
            view = pump::submit(&server, &view);
        }
        // One person has a hundred open workflows at most.
        if n % 5 != 0 || n >= 300 {
            finish(&server, &view, n);
        }
    }
    server.stop()
}

fn finish(server: &Server, view: &Value, n: usize) {
    let mut end = json!({
        "workflow_id": pump::id(view), "result": "abandoned", "idempotency_key": format!("end-{n}"),
    });
    let asked = server.call("finish_workflow", &end);
    if let Some(token) = asked.pointer("/confirm/token") {
        end["confirm_token"] = token.clone();
        assert_eq!(server.call("finish_workflow", &end)["outcome"], "finished");
    }
}

fn write_local(folder: &Path, name: &str, database: &str) {
    let text = format!("[backend.local]\npath = \"{database}\"\n");
    std::fs::write(folder.join(name), text).unwrap();
}

/// Begins a copy and kills it as soon as `far` says so. Whether it was killed: it may have been faster.
fn killed(folder: &Path, arguments: &[&str], mut far: impl FnMut() -> bool) -> bool {
    let mut begun: Child = command(folder)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let end = Instant::now() + PATIENCE;
    while !far() {
        if begun.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(Instant::now() < end, "the copy never came so far");
        std::thread::sleep(Duration::from_millis(2));
    }
    begun.kill().unwrap();
    !begun.wait().unwrap().success()
}

fn size(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |found| found.len())
}

/// The evidence of a copy that must succeed.
fn evidence(ran: Ran) -> Value {
    let report = ran.exits(0).json();
    assert_eq!(report["ok"], true, "{report:#}");
    assert_eq!(report["differences"], json!([]));
    report
}

/// Copies `from` to the file of `to`, killed twice on the way; the report.
fn into_a_file(folder: &Path, from: &str, to: &str, database: &str, expected: usize) -> Value {
    write_local(folder, to, database);
    let copy = ["copy", "--from", from, "--to", to, "--page", "10", "--json"];
    let log = folder.join(format!("{database}-wal"));
    let mut kills = 0;
    for _ in 0..2 {
        // Some pages more than it takes to make the tables.
        let far = size(&log) + 400_000;
        kills += usize::from(killed(folder, &copy, || size(&log) > far));
        let refused = run(folder, &["workflow", "list", "--config", to]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.err.contains("unfinished copy"), "{refused:?}");
    }
    assert_eq!(kills, expected, "the copy was over before it was killed");
    let report = evidence(run(folder, &copy));
    assert_eq!(report["resumed"], true, "{report:#}");
    report
}

/// What people see of a store.
fn seen(folder: &Path, config: &str) -> (Value, Value) {
    let list = ["workflow", "list", "--json", "--limit", "100000", "--config", config];
    let locks = ["locks", "list", "--all", "--json", "--config", config];
    (run(folder, &list).exits(0).json(), run(folder, &locks).exits(0).json())
}

#[test]
fn a_killed_copy_of_a_file_goes_on_and_is_the_same_store() {
    let folder = filled(40);
    let folder = folder.path();
    let report = into_a_file(folder, "from.toml", "to.toml", "to.db", 2);
    assert_eq!(report["records"]["workflows"], 40);
    assert_eq!(seen(folder, "from.toml"), seen(folder, "to.toml"));
    run(folder, &["workflow", "verify", "--config", "to.toml"]).exits(0);
    let again =
        evidence(run(folder, &["copy", "--from", "from.toml", "--to", "to.toml", "--json"]));
    assert_eq!(again["already"], true);
}

#[test]
fn what_must_not_be_copied_is_refused() {
    let server = Server::start(&[]);
    write_local(server.path(), "from.toml", "checkpoint.db");
    write_local(server.path(), "same.toml", "checkpoint.db");
    write_local(server.path(), "to.toml", "to.db");
    let busy = server.run(&["copy", "--from", "from.toml", "--to", "to.toml"]).exits(1);
    assert!(busy.err.contains("in use"), "{}", busy.err);
    let same = server.run(&["copy", "--from", "from.toml", "--to", "same.toml"]).exits(2);
    assert!(same.err.contains("same store"), "{}", same.err);
    let flag = ["copy", "--from", "from.toml", "--to", "to.toml", "--database", "x.db"];
    server.run(&flag).exits(2);
    server.run(&["copy", "--from", "absent.toml", "--to", "to.toml"]).exits(2);
    server.run(&["copy", "--to", "to.toml"]).exits(2);
    let folder = server.stop();
    run(folder.path(), &["copy", "--from", "from.toml", "--to", "to.toml"]).exits(0);
    run(folder.path(), &["backup", "b.db", "--config", "to.toml"]).exits(0);
}

#[cfg(feature = "aws")]
mod aws {
    use serde_json::{Value, json};

    use super::*;
    use crate::emulator::{ask, endpoint};

    fn workflows() -> usize {
        let asked = std::env::var("WF_COPY_WORKFLOWS").ok();
        asked.map_or(60, |asked| asked.parse().expect("WF_COPY_WORKFLOWS is a number"))
    }

    fn write_table(folder: &Path, name: &str, table: &str) {
        let endpoint = endpoint();
        let text = format!(
            "[backend]\nkind = \"aws\"\n[backend.aws]\ntable = \"{table}\"\nregion = \"us-east-1\"\nendpoint_url = \"{endpoint}\"\n"
        );
        std::fs::write(folder.join(name), text).unwrap();
    }

    fn key(pk: &str, sk: &str) -> Value {
        json!({ "PK": { "S": pk }, "SK": { "S": sk } })
    }

    /// Records that the copy in the table has taken.
    fn copied(table: &str) -> u64 {
        let item = ask("GetItem", &json!({ "TableName": table, "Key": key("STORE", "SECRET") }));
        let copied = item.as_ref().and_then(|item| item.pointer("/Item/copied/N"));
        copied.and_then(Value::as_str).map_or(0, |n| n.parse().unwrap())
    }

    #[test]
    #[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
    fn a_file_by_way_of_a_table_to_a_file_killed_on_each_leg() {
        let count = workflows();
        let folder = filled(count);
        let folder = folder.path();
        let table = format!("wf-copy-{}", std::process::id());
        write_table(folder, "table.toml", &table);
        run(folder, &["aws", "init", "--config", "table.toml"]).exits(0);

        let page = (count / 2).clamp(20, 500).to_string();
        let copy = ["copy", "--from", "from.toml", "--to", "table.toml", "--page", &page, "--json"];
        for share in [1, 3] {
            let far = u64::try_from(count * share).unwrap();
            assert!(killed(folder, &copy, || copied(&table) >= far), "it was over before");
            let refused = run(folder, &["workflow", "list", "--config", "table.toml"]);
            assert_eq!(refused.code, 1, "{refused:?}");
            assert!(refused.err.contains("unfinished copy"), "{refused:?}");
        }
        let there = evidence(run(folder, &copy));
        assert_eq!(there["records"]["workflows"], count);
        assert_eq!(seen(folder, "from.toml"), seen(folder, "table.toml"));
        run(folder, &["workflow", "verify", "--config", "table.toml"]).exits(0);

        let back = into_a_file(folder, "table.toml", "to.toml", "to.db", 2);
        assert_eq!(back["evidence"], there["evidence"], "identical evidence");
        assert_eq!(back["records"], there["records"]);
        run(folder, &["workflow", "verify", "--config", "to.toml"]).exits(0);
    }

    /// The fence of the lock on an asset.
    fn fence(folder: &Path, config: &str, asset: &str) -> u64 {
        let list = ["locks", "list", "--all", "--json", "--config", config];
        let locks = run(folder, &list).exits(0).json();
        let locks = locks["locks"].as_array().unwrap().clone();
        let lock = locks.iter().find(|lock| lock["asset_id"] == asset).unwrap();
        lock["fence"].as_u64().unwrap()
    }

    #[test]
    #[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
    fn a_restored_store_keeps_its_raised_fences_in_a_table() {
        let folder = TempDir::new().unwrap();
        write_local(folder.path(), "from.toml", "from.db");
        let server = Server::start_in(folder, &["--config", "from.toml"]);
        let held = pump::start(&server, "PUMP-1", "k-1");
        let free = pump::start(&server, "PUMP-2", "k-2");
        finish(&server, &free, 2);
        let folder = server.stop();
        run(folder.path(), &["restored", "--config", "from.toml"]).exits(0);
        let table = format!("wf-restored-{}", std::process::id());
        write_table(folder.path(), "table.toml", &table);
        run(folder.path(), &["aws", "init", "--config", "table.toml"]).exits(0);
        let copy = ["copy", "--from", "from.toml", "--to", "table.toml", "--json"];
        evidence(run(folder.path(), &copy));
        assert_eq!(fence(folder.path(), "table.toml", "PUMP-1"), 1, "held: as its history says");
        assert_eq!(fence(folder.path(), "table.toml", "PUMP-2"), 1_000_001);

        let server = Server::start_in(folder, &["--config", "table.toml"]);
        finish(&server, &held, 1);
        for (n, asset) in ["PUMP-1", "PUMP-2", "PUMP-3"].into_iter().enumerate() {
            pump::start(&server, asset, &format!("again-{n}"));
        }
        let folder = server.stop();
        assert_eq!(fence(folder.path(), "table.toml", "PUMP-1"), 1_000_002, "from its floor on");
        assert_eq!(fence(folder.path(), "table.toml", "PUMP-2"), 1_000_002);
        assert_eq!(fence(folder.path(), "table.toml", "PUMP-3"), 1_000_001, "never held before");
        run(folder.path(), &["workflow", "verify", "--config", "table.toml"]).exits(0);
    }

    #[test]
    #[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
    fn verify_finds_a_damaged_item_of_a_table() {
        let folder = filled(3);
        let folder = folder.path();
        let table = format!("wf-verify-{}", std::process::id());
        write_table(folder, "table.toml", &table);
        run(folder, &["aws", "init", "--config", "table.toml"]).exits(0);
        evidence(run(folder, &["copy", "--from", "from.toml", "--to", "table.toml", "--json"]));
        let verify = ["workflow", "verify", "--json", "--config", "table.toml"];
        run(folder, &verify).exits(0);

        let list = run(folder, &["workflow", "list", "--json", "--config", "table.toml"]);
        let id = list.exits(0).json()["workflows"][1]["id"].as_str().unwrap().to_owned();
        let pk = format!("T#default#WF#{id}");
        let place = key(&pk, "EVT#00000000000000000001");
        let got = ask("GetItem", &json!({ "TableName": table, "Key": place })).unwrap();
        let mut item = got["Item"].clone();
        let body = item["body"]["S"].as_str().unwrap().replace("WO-1", "WO-2");
        item["body"]["S"] = body.into();
        ask("PutItem", &json!({ "TableName": table, "Item": item })).unwrap();
        let damaged = run(folder, &verify).exits(4).json();
        let findings = damaged["findings"].to_string();
        assert!(findings.contains("its hash differs") && findings.contains(&id), "{damaged:#}");
        let one = ["workflow", "verify", &id, "--config", "table.toml"];
        run(folder, &one).exits(4);

        let stray = json!({ "PK": { "S": "T#default#NOBODY" }, "SK": { "S": "X" } });
        ask("PutItem", &json!({ "TableName": table, "Item": stray })).unwrap();
        let damaged = run(folder, &verify).exits(4).json();
        assert!(damaged["findings"].to_string().contains("it belongs to nothing"), "{damaged:#}");

        write_local(folder, "back.toml", "back.db");
        let copy = ["copy", "--from", "table.toml", "--to", "back.toml", "--json"];
        let refused = run(folder, &copy);
        assert_eq!(refused.code, 4, "{refused:?}");
    }
}
