//! A restore, rehearsed: a backup while people work, more work, then back. What was promised before the backup holds, the rest
//! is gone, and nothing that was given out in the lost time (ids, keys, fences) is given out again for something else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::run;
use crate::pump;
use crate::server::{Server, call};

/// What has been given out so far.
#[derive(Debug, Default)]
struct GivenOut {
    works: BTreeSet<String>,
    messages: BTreeSet<String>,
    keys: BTreeSet<String>,
    blocks: BTreeSet<String>,
    fence: u64,
}

fn texts(rows: &Value, pointer: &str) -> BTreeSet<String> {
    let rows = rows.as_array().expect("rows").iter();
    rows.map(|row| row.pointer(pointer).and_then(Value::as_str).expect("a text").to_owned())
        .collect()
}

fn fence(folder: &Path) -> u64 {
    let locks = run(folder, &["locks", "list", "--json"]).exits(0).json()["locks"].clone();
    let fences = locks.as_array().expect("locks").iter().filter_map(|row| row["fence"].as_u64());
    fences.max().expect("a fence")
}

fn given_out(folder: &Path, answers: &[&Value]) -> GivenOut {
    let works = run(folder, &["workflow", "list", "--json"]).exits(0).json();
    let outbox = run(folder, &["outbox", "list", "--json"]).exits(0).json();
    let key = |view: &&Value| view["next_idempotency_key"].as_str().map(str::to_owned);
    GivenOut {
        works: texts(&works["workflows"], "/id"),
        messages: texts(&outbox["messages"], "/message/id"),
        keys: answers.iter().filter_map(key).collect(),
        blocks: answers
            .iter()
            .filter_map(|view| view["blocks"][0]["id"].as_str())
            .map(str::to_owned)
            .collect(),
        fence: fence(folder),
    }
}

fn start(asset: &str, key: &str) -> Value {
    json!({
        "procedure_id": "pump-inspection", "assets": { "pump": asset },
        "inputs": { "work_order": "WO-1" }, "idempotency_key": key,
    })
}

fn problem(work: &str, summary: &str) -> Value {
    json!({ "workflow_id": work, "summary": summary, "severity": "high", "idempotency_key": "problem" })
}

/// Makes a copy of the store of a running server, who is back afterwards.
type Backup = fn(Server) -> Server;
/// Puts the copy in the place of the store, which no server has.
type Back = fn(&Path);

/// `wf-cli backup` while others start work, and `wf-cli restore`.
fn backup(server: Server) -> Server {
    let port = server.port();
    let others = std::thread::spawn(move || {
        for n in 0..40 {
            let started =
                call(port, "start_workflow", &start(&format!("PUMP-3{n:02}"), &format!("o{n}")));
            assert_eq!(started.expect("an answer")["ok"], true);
        }
    });
    server.run(&["backup", "then.db"]).exits(0);
    others.join().unwrap();
    server
}

fn restore(folder: &Path) {
    run(folder, &["restore", "then.db"]).exits(0);
}

const FILES: [&str; 2] = ["checkpoint.db", "checkpoint.db-wal"];

fn beside(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("then-{name}"))
}

/// A snapshot of the disk of a machine that lost its power, and `wf-cli restored`.
fn snapshot(server: Server) -> Server {
    let folder = server.kill();
    for name in FILES {
        let copied = std::fs::copy(folder.path().join(name), beside(folder.path(), name));
        assert!(copied.is_ok(), "a server that was killed leaves its log: {copied:?}");
    }
    Server::start_in(folder, &[])
}

fn restored(folder: &Path) {
    for name in FILES {
        std::fs::copy(beside(folder, name), folder.join(name)).unwrap();
    }
    let _ = std::fs::remove_file(folder.join("checkpoint.db-shm"));
    run(folder, &["restored"]).exits(0);
}

#[test]
fn nothing_that_was_given_out_in_the_lost_time_is_given_out_again() {
    std::thread::scope(|scope| {
        for (backup, back) in [(backup as Backup, restore as Back), (snapshot, restored)] {
            scope.spawn(move || rehearsal(backup, back));
        }
    });
}

fn rehearsal(backup: Backup, back: Back) {
    let server = Server::start_in(TempDir::new().unwrap(), &[]);
    let known = server.call("start_workflow", &start("PUMP-204", "k1"));
    let step = pump::answer(&known).expect("a step");
    let submitted = server.call("submit_step", &step);
    let free = pump::id(&server.call("start_workflow", &start("PUMP-205", "k2")));
    server.run(&["locks", "release", "PUMP-205", "--reason", "rehearsal"]).exits(0);
    let server = backup(server);

    // The lost time: the known work is blocked, other work begins, what was free is held.
    let work = pump::id(&known);
    let lost_block = server.call("report_problem", &problem(&work, "it hums"));
    assert_eq!(lost_block["outcome"], "blocked", "{lost_block:#}");
    let lost_start = server.call("start_workflow", &start("PUMP-206", "k3"));
    let lost_again = server.call("start_workflow", &start("PUMP-205", "k4"));
    assert_eq!(lost_again["ok"], true, "{lost_again:#}");
    let lost = given_out(server.path(), &[&lost_block, &lost_start, &lost_again]);
    let folder = server.stop();
    back(folder.path());
    run(folder.path(), &["workflow", "verify"]).exits(0);
    let then = given_out(folder.path(), &[]);
    assert!(then.works.contains(&work) && then.works.contains(&free));
    assert!(then.works.len() < lost.works.len() && then.messages.len() < lost.messages.len());

    let server = Server::start_in(folder, &[]);
    // A call of before, sent again, has its answer.
    let mut before = submitted;
    before["duplicate"] = json!(true);
    assert_eq!(server.call("submit_step", &step), before);
    let mut before = known;
    before["duplicate"] = json!(true);
    assert_eq!(server.call("start_workflow", &start("PUMP-204", "k1")), before);
    // One of the lost time was never heard of: it is done, not answered.
    let new_block = server.call("report_problem", &problem(&work, "it hums and leaks"));
    assert_eq!(
        (&new_block["outcome"], &new_block["duplicate"]),
        (&json!("blocked"), &json!(false))
    );
    let new_start = server.call("start_workflow", &start("PUMP-206", "k3"));
    assert_eq!((&new_start["ok"], &new_start["duplicate"]), (&json!(true), &json!(false)));
    let new_again = server.call("start_workflow", &start("PUMP-205", "k4"));
    let answers = [&new_block, &new_start, &new_again];
    let now = given_out(server.path(), &answers);
    nothing_twice(&then, &lost, &now);
    assert!(now.fence > 1_000_000 && now.fence > lost.fence, "{now:?}");
    let acquired = |view: &Value| pump::id(view);
    let locks = server.run(&["locks", "list", "--json"]).exits(0).json()["locks"].clone();
    for view in [&new_start, &new_again] {
        let id = acquired(view);
        let row =
            locks.as_array().unwrap().iter().find(|row| row["holder"]["workflow_id"] == json!(id));
        let fence = row.and_then(|row| row["fence"].as_u64()).expect("it holds its pump");
        assert!(fence > lost.fence, "{fence} after {}", lost.fence);
    }
    // The history goes on from its place of then, with the same number for another block: nobody may take the message, or
    // the link in it, of the one for that of the other.
    assert_eq!(now.blocks, lost.blocks, "the case that ids of messages are made for");
    let places = |of: &GivenOut| -> BTreeSet<String> {
        let place = |id: &String| id.rsplit_once('/').map(|(place, _)| place.to_owned());
        of.messages.difference(&then.messages).filter_map(place).collect()
    };
    assert!(!places(&now).is_disjoint(&places(&lost)), "without the hash they would repeat");
    server.run(&["workflow", "verify"]).exits(0);
    server.stop();
}

/// What is told apart of what was given out.
type Part = fn(&GivenOut) -> &BTreeSet<String>;

fn nothing_twice(then: &GivenOut, lost: &GivenOut, now: &GivenOut) {
    let made = |all: &GivenOut, of: Part| -> BTreeSet<String> {
        of(all).difference(of(then)).cloned().collect()
    };
    let kinds: [(&str, Part); 3] =
        [("work", |g| &g.works), ("message", |g| &g.messages), ("key", |g| &g.keys)];
    for (what, of) in kinds {
        let (lost, now) = (made(lost, of), made(now, of));
        assert!(!lost.is_empty() && !now.is_empty(), "{what}");
        let twice: Vec<&String> = lost.intersection(&now).collect();
        assert!(twice.is_empty(), "{what}: {twice:?}");
    }
}
