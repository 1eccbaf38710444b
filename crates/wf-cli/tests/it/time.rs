//! Time and the real server: deadlines over a stop, shared by two servers on one file, a block that waits for an answer.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Server, until};

/// Three deadlines, a wait, and a question that can block. `first` is when the first deadline is due, in seconds.
fn procedure(first: u32) -> String {
    format!(
        "schema: checkpoint/procedure/v1
id: timed
version: 1
title: Timed work
assets:
  - {{ role: unit, say: unit, id: {{ prefix: U-, digits: {{ max: 4 }} }}, example: U-7 }}
deadlines:
  - {{ id: first, after: {first}s, from: start, notify: duty }}
  - {{ id: second, after: {}s, from: start, notify: duty }}
  - {{ id: third, after: {}s, from: start, notify: chief }}
steps:
  - {{ id: settle, kind: wait, duration: 2s, prompt: Let it settle. }}
  - {{ id: seal, kind: choice, prompt: How is the seal?, choices: [dry, wet], block_on: [wet] }}
blocks:
  default:
    escalate: {{ to: duty, severity: high, respond_within: 2s, then: chief }}
    decisions: [abort]
results: [{{ id: done, say: done }}]
",
        first + 1,
        first + 2
    )
}

fn folder(first: u32) -> TempDir {
    let folder = TempDir::new().unwrap();
    let procedures = folder.path().join("procedures");
    std::fs::create_dir(&procedures).unwrap();
    std::fs::write(procedures.join("timed.yaml"), procedure(first)).unwrap();
    folder
}

const PROCEDURES: [&str; 2] = ["--procedures", "procedures"];

fn started(server: &Server, asset: &str) -> String {
    let arguments = json!({"procedure_id": "timed", "assets": {"unit": asset}});
    let started = server.call("start_workflow", &arguments);
    assert_eq!(started["outcome"], "started", "{started}");
    started["workflow"]["id"].as_str().unwrap().to_owned()
}

/// Kinds of the events that the clock caused.
fn clocked(server: &Server, work: &str) -> Vec<String> {
    let status = server.call("get_status", &json!({"workflow_id": work, "detail": "full"}));
    let history = status["history"].as_array().unwrap();
    let by_clock = history.iter().filter(|event| event["by"]["id"] == "system:clock");
    by_clock.map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
}

/// Each has passed, and how often and in which order the names of the deadlines did.
fn names_passed(server: &Server, work: &str) -> Vec<String> {
    let out = server.run(&["workflow", "history", work, "--json"]).out;
    let history: Value = serde_json::from_str(&out).unwrap();
    let events = history["events"].as_array().unwrap().iter();
    let passed = events.filter(|event| event["kind"] == "deadline_passed");
    passed.map(|event| event["data"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Everything that was recomputed from the store is as it must be.
fn verified(folder: &Path, server: &Server) {
    let ran = server.run(&["workflow", "verify", "--json"]);
    assert_eq!(ran.code, 0, "{} in {folder:?}: {}", ran.out, ran.err);
}

const ONE: [&str; 2] = ["deadline_passed", "escalated"];

const NAMES: [&str; 3] = ["first", "second", "third"];

/// What was due when a server starts is made up for in this time from its readiness on. A promise, not a measurement.
const MADE_UP_WITHIN: Duration = Duration::from_secs(2);

fn made_up_for_after(end: impl FnOnce(Server) -> TempDir) {
    let server = Server::start_in(folder(2), &PROCEDURES);
    let work = started(&server, "U-7");
    let begun = Instant::now();
    let folder = end(server);
    // The time itself must pass.
    until("the third deadline", || begun.elapsed() > Duration::from_secs(5));
    let server = Server::start_in(folder, &PROCEDURES);
    let ready = Instant::now();
    until("all three", || clocked(&server, &work).len() >= 6);
    let waited = json!({"workflow_id": work, "step_id": "settle", "value": "done"});
    let waited = server.call("submit_step", &waited);
    let took = ready.elapsed();
    assert_eq!(waited["outcome"], "recorded", "{waited}");
    assert!(took < MADE_UP_WITHIN, "it took {took:?}");
    assert_eq!(clocked(&server, &work), [ONE, ONE, ONE].concat(), "each once");
    assert_eq!(names_passed(&server, &work), NAMES, "in order");
    verified(server.path(), &server);
}

#[test]
fn deadlines_and_a_wait_that_pass_while_nobody_serves_are_made_up_for_at_once() {
    std::thread::scope(|scope| {
        scope.spawn(|| made_up_for_after(Server::stop));
        scope.spawn(|| made_up_for_after(Server::kill));
    });
}

/// Its store is slow, so that it is surely in the middle of firing when it is asked.
#[cfg(feature = "failpoints")]
#[test]
fn a_server_that_is_asked_to_end_while_it_fires_leaves_no_lease_behind() {
    let server = Server::start_in(folder(3), &PROCEDURES);
    let works: Vec<String> = (0..MANY).map(|n| started(&server, &format!("U-{n}"))).collect();
    let begun = Instant::now();
    let folder = server.kill();
    until("the last deadline", || begun.elapsed() > Duration::from_secs(6));
    let slow = [("FAILPOINTS", "deadline.fire=sleep(200)")];
    let server = Server::start_with(folder, &PROCEDURES, &slow);
    let left =
        |server: &Server| works.iter().filter(|work| clocked(server, work).len() < 6).count();
    until("the first firing", || works.iter().any(|work| !clocked(&server, work).is_empty()));
    assert!(works.iter().any(|work| clocked(&server, work).len() < 6), "in the middle");
    let server = Server::start_in(server.stop(), &PROCEDURES);
    let ready = Instant::now();
    until("all three of all", || left(&server) == 0);
    // What nobody gave back would be hidden for half a minute.
    assert!(ready.elapsed() < Duration::from_secs(15), "it took {:?}", ready.elapsed());
    for work in &works {
        assert_eq!(names_passed(&server, work), NAMES, "{work}");
    }
    verified(server.path(), &server);
}

#[test]
fn a_block_that_nobody_answers_tells_the_next_and_an_acknowledgement_ends_that() {
    let server = Server::start_in(folder(3_000), &PROCEDURES);
    let report = |asset: &str| {
        let work = started(&server, asset);
        let report = json!({"workflow_id": work, "summary": "it hums", "severity": "high"});
        let stopped = server.call("report_problem", &report);
        assert_eq!(stopped["blocks"][0]["escalated_to"], "duty", "{stopped}");
        (work, stopped["blocks"][0]["id"].as_str().unwrap().to_owned())
    };
    let (known, block) = report("U-7");
    let (unknown, _) = report("U-8");
    let acknowledged = server.run(&["ack", &known, "--block", &block]);
    assert_eq!(acknowledged.code, 0, "{}", acknowledged.err);
    let block =
        |work: &str| server.call("get_status", &json!({"workflow_id": work}))["blocks"][0].clone();
    until("the next one", || block(&unknown)["escalated_to"] == "chief");
    assert_eq!(clocked(&server, &unknown), ONE);
    assert_eq!(block(&unknown).get("deadline"), None, "the last has all the time");
    assert_eq!(block(&known)["escalated_to"], "duty");
    assert!(block(&known)["acknowledged_by"]["id"].as_str().unwrap().starts_with("cli:"));
    assert_eq!(clocked(&server, &known).len(), 0);
    let again = server.run(&["ack", &known]);
    assert_ne!(again.code, 0);
    assert!(again.err.contains("acknowledged already"), "{}", again.err);
}

/// Enough that the first claim of one server cannot be all of them.
const MANY: usize = 90;

#[test]
fn two_servers_on_one_file_share_deadlines_and_one_that_dies_leaves_its_own_to_the_other() {
    let first = Server::start_in(folder(4), &PROCEDURES);
    let database = first.path().join("checkpoint.db");
    let procedures = first.path().join("procedures");
    let second = Server::start(&[
        "--database",
        database.to_str().unwrap(),
        "--procedures",
        procedures.to_str().unwrap(),
    ]);
    let works: Vec<String> = (0..MANY).map(|n| started(&first, &format!("U-{n}"))).collect();
    until("the first firing", || works.iter().any(|work| !clocked(&second, work).is_empty()));
    let folder = first.kill();
    // What the dead one had claimed is free when its lease is over.
    let end = SystemTime::now() + Duration::from_secs(90);
    let done = |work: &String| clocked(&second, work).len() >= 6;
    let mut left: Vec<&String> = works.iter().collect();
    while !left.is_empty() {
        assert!(SystemTime::now() < end, "{} are left", left.len());
        left.retain(|work| !done(work));
    }
    for work in &works {
        assert_eq!(clocked(&second, work), [ONE, ONE, ONE].concat(), "{work}");
    }
    let ran = second.run(&["workflow", "verify", "--database", database.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    drop(folder);
}

/// Two servers on one file whose clock jumps: whoever looks sees within a second that something is due.
#[cfg(feature = "failpoints")]
#[test]
fn a_clock_that_jumps_ahead_and_back_fires_each_deadline_once() {
    let folder = folder(3_000);
    let moved = folder.path().join("clock");
    let clock = format!("clock=return({})", moved.display());
    let jump = |seconds: i64| std::fs::write(&moved, (seconds * 1_000).to_string()).unwrap();
    let (database, procedures) =
        (folder.path().join("checkpoint.db"), folder.path().join("procedures"));
    let environment = [("FAILPOINTS", clock.as_str())];
    jump(0);
    let first = Server::start_with(folder, &PROCEDURES, &environment);
    let [database, procedures] = [&database, &procedures].map(|path| path.to_str().unwrap());
    let second = Server::start_with(
        TempDir::new().unwrap(),
        &["--database", database, "--procedures", procedures],
        &environment,
    );
    let before = started(&first, "U-7");
    jump(3_010);
    until("all three after the jump", || clocked(&second, &before).len() >= 6);
    // Far behind the deadlines that passed, and behind their leases.
    jump(-3_600);
    let behind = started(&second, "U-8");
    // The time of the new one: due fifty minutes after its start, not before.
    jump(-3_600 + 2_990);
    let patience = Instant::now();
    until("a look at what is not due", || patience.elapsed() > Duration::from_secs(3));
    assert_eq!(clocked(&first, &behind).len(), 0, "ten seconds are left");
    jump(-3_600 + 3_010);
    until("all three of the other", || clocked(&first, &behind).len() >= 6);
    jump(100_000);
    let patience = Instant::now();
    until("a look at what has passed", || patience.elapsed() > Duration::from_secs(3));
    for work in [&before, &behind] {
        assert_eq!(names_passed(&first, work), NAMES, "{work}");
    }
    verified(first.path(), &first);
    drop(second);
}

/// Ends the process at a place of its store, around the claim and the firing of three missed deadlines.
#[cfg(feature = "failpoints")]
fn killed_at(failpoint: &str) {
    let server = Server::start_in(folder(2), &PROCEDURES);
    let work = started(&server, "U-7");
    let begun = Instant::now();
    let folder = server.kill();
    until("the third deadline", || begun.elapsed() > Duration::from_secs(5));
    let mut child = crate::binary::command(folder.path())
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(PROCEDURES)
        .env("FAILPOINTS", failpoint)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until(failpoint, || child.try_wait().unwrap().is_some_and(|status| !status.success()));
    let server = Server::start_in(folder, &PROCEDURES);
    // What was claimed is free when its lease is over.
    let end = Instant::now() + Duration::from_secs(60);
    while clocked(&server, &work).len() < 6 {
        assert!(Instant::now() < end, "{failpoint}: {:?}", clocked(&server, &work));
    }
    assert_eq!(clocked(&server, &work), [ONE, ONE, ONE].concat(), "{failpoint}");
    verified(server.path(), &server);
}

#[cfg(feature = "failpoints")]
#[test]
fn a_server_that_is_killed_while_it_fires_leaves_each_deadline_to_fire_once() {
    let places = (1..=6).flat_map(|n| {
        ["commit.before", "commit.after"].map(|place| format!("{place}={n}*off->1*return(abort)"))
    });
    let own = ["deadline.claim", "deadline.fire", "deadline.fired"];
    let places = places.chain(own.map(|place| format!("{place}=1*return(abort)")));
    let running: Vec<_> =
        places.map(|place| std::thread::spawn(move || killed_at(&place))).collect();
    for one in running {
        one.join().unwrap();
    }
}
