//! The server and the commands beside it on a DynamoDB table, on an emulator.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::run;
use crate::emulator::{self, endpoint};
use crate::pump;
use crate::server::{Server, until};

const CONFIG: [&str; 2] = ["--config", "c.toml"];

fn name(test: &str) -> String {
    format!("serve-{test}-{}", std::process::id())
}

/// A folder whose configuration names a table of this test.
fn folder(test: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let text = format!(
        "[backend]\nkind = \"aws\"\n[backend.aws]\ntable = \"{}\"\nendpoint_url = \"{}\"\n",
        name(test),
        endpoint()
    );
    std::fs::write(folder.path().join("c.toml"), text).unwrap();
    folder
}

fn with_table(test: &str) -> TempDir {
    let folder = folder(test);
    run(folder.path(), &["aws", "init", "--config", "c.toml"]).exits(0);
    folder
}

/// One request to the emulator, which answers.
fn ask(operation: &str, body: &Value) -> Value {
    emulator::ask(operation, body).expect("an answer")
}

#[test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
fn init_makes_a_table_once_and_finishes_what_was_interrupted() {
    let folder = folder("init");
    let init =
        || run(folder.path(), &["aws", "init", "--json", "--config", "c.toml"]).exits(0).json();
    let did = |created: bool, ttl: bool| json!({ "table": name("init"), "created": created, "ttl_switched_on": ttl, "state_machine": null });
    assert_eq!(init(), did(true, true));
    assert_eq!(init(), did(false, false));
    let off = json!({ "AttributeName": "ttl_at", "Enabled": false });
    ask("UpdateTimeToLive", &json!({ "TableName": name("init"), "TimeToLiveSpecification": off }));
    assert_eq!(init(), did(false, true));
    let said = run(folder.path(), &["aws", "init", "--config", "c.toml"]).exits(0).out;
    assert!(said.contains("Nothing was changed"), "{said}");
}

#[test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
fn a_table_of_another_shape_is_refused_and_stays_as_it_is() {
    let folder = folder("foreign");
    let foreign = json!({
        "TableName": name("foreign"), "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{ "AttributeName": "id", "AttributeType": "S" }],
        "KeySchema": [{ "AttributeName": "id", "KeyType": "HASH" }],
    });
    ask("CreateTable", &foreign);
    let described = || {
        ask("DescribeTable", &json!({ "TableName": name("foreign") }))["Table"]["KeySchema"].clone()
    };
    let before = described();
    for command in [&["aws", "init"][..], &["serve"]] {
        let ran = run(folder.path(), &[command, &CONFIG].concat()).exits(1);
        assert!(ran.err.contains("is not ours"), "{}", ran.err);
    }
    assert_eq!(described(), before);
}

#[test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
fn a_table_that_is_not_there_or_is_empty_says_what_to_do() {
    let folder = folder("none");
    for command in [&["serve"][..], &["workflow", "list"]] {
        let ran = run(folder.path(), &[command, &CONFIG].concat()).exits(1);
        assert!(ran.err.contains("run `wf-cli aws init`"), "{}", ran.err);
    }
    run(folder.path(), &[&["aws", "init"][..], &CONFIG].concat()).exits(0);
    let ran = run(folder.path(), &[&["workflow", "list"][..], &CONFIG].concat()).exits(1);
    assert!(ran.err.contains("start the server once"), "{}", ran.err);
    // Nobody at the address: not the table's fault, and worth another try.
    let silent = ["workflow", "list", "--set", "backend.aws.endpoint_url=http://127.0.0.1:9"];
    let ran = run(folder.path(), &[&silent[..], &CONFIG].concat()).exits(3);
    assert!(ran.err.contains("DynamoDB did not answer"), "{}", ran.err);
}

#[test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
fn the_commands_work_on_a_table_beside_the_server() {
    let server = Server::start_in(with_table("commands"), &CONFIG);
    let asked = |arguments: &[&str]| server.run(&[arguments, &CONFIG].concat());
    let view = pump::start(&server, "PUMP-204", "k1");
    let view = pump::submit(&server, &view);
    let id = pump::id(&view);
    let listed = asked(&["workflow", "list", "--json"]).exits(0).json();
    assert_eq!(listed["workflows"][0]["id"], id);
    assert!(asked(&["workflow", "show", &id]).exits(0).out.contains("PUMP-204"));
    let history = asked(&["workflow", "history", &id, "--json"]).exits(0).json();
    assert_eq!(history["events"].as_array().unwrap().len(), 3);
    let locks = asked(&["locks", "list", "--json"]).exits(0).json();
    assert_eq!(locks["locks"][0]["asset_id"], "PUMP-204");
    asked(&["locks", "release", "PUMP-204", "--reason", "tablet lost"]).exits(0);
    assert_eq!(asked(&["locks", "list", "--json"]).exits(0).json()["locks"], json!([]));
    pump::start(&server, "PUMP-204", "k2");
    let problem = json!({"workflow_id": id, "summary": "it hums", "severity": "high", "idempotency_key": "k3"});
    server.call("report_problem", &problem);
    asked(&["outbox", "list", "--json"]).exits(0);
    asked(&["outbox", "retry", "--all"]).exits(0);
    let verified = asked(&["workflow", "verify", "--json"]).exits(0).json();
    assert_eq!(verified["findings"], json!([]));
    assert_eq!(verified["workflows"], 2);
    server_tells_what_it_consumes(&server);
    let folder = server.stop();
    assert!(!folder.path().join("checkpoint.db").exists(), "nothing is in a file");
}

fn server_tells_what_it_consumes(server: &Server) {
    let page = include_str!("../../../../docs/observability.md");
    let (_, metrics) = server.get("/metrics").unwrap();
    assert!(
        metrics.contains("checkpoint_dynamodb_requests_total{operation=\"TransactWriteItems\"}"),
        "{metrics}"
    );
    for line in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        assert!(
            page.contains(&format!("| `{name}` | {kind} |")),
            "docs/observability.md has no row for {name}"
        );
    }
    let units =
        metrics.lines().find_map(|line| line.strip_prefix("checkpoint_dynamodb_write_units "));
    assert!(units.unwrap().parse::<f64>().unwrap() > 0.0, "{metrics}");
}

/// A procedure whose only deadline is due in two seconds.
const TIMED: &str = "schema: checkpoint/procedure/v1
id: timed
version: 1
title: Timed work
deadlines:
  - { id: soon, after: 2s, from: start, notify: duty }
steps:
  - { id: seal, kind: confirm, prompt: Is it dry? }
results: [{ id: done, say: done }]
";

#[test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
fn a_deadline_in_a_table_fires_once_with_two_servers_and_over_a_kill() {
    let folder = with_table("time");
    std::fs::create_dir(folder.path().join("procedures")).unwrap();
    std::fs::write(folder.path().join("procedures/timed.yaml"), TIMED).unwrap();
    let second = TempDir::new().unwrap();
    std::fs::copy(folder.path().join("c.toml"), second.path().join("c.toml")).unwrap();
    let with_procedures = [&CONFIG[..], &["--procedures", "procedures"]].concat();
    let server = Server::start_in(folder, &with_procedures);
    let other = Server::start_in(second, &CONFIG);
    let start = json!({"procedure_id": "timed", "idempotency_key": "k1"});
    let work = pump::id(&server.call("start_workflow", &start));
    // Who committed the deadline is gone; the other knows of it from the table alone.
    let folder = server.kill();
    let passed = |server: &Server| {
        let status = server.call("get_status", &json!({"workflow_id": work, "detail": "full"}));
        let history = status["history"].as_array().unwrap().clone();
        history.iter().filter(|event| event["kind"] == "deadline_passed").count()
    };
    until("the deadline", || passed(&other) > 0);
    let server = Server::start_in(folder, &with_procedures);
    assert_eq!((passed(&server), passed(&other)), (1, 1));
    server.run(&[&["workflow", "verify"][..], &CONFIG].concat()).exits(0);
    other.stop();
    server.stop();
}

/// Sets the schema of the store, as a newer build would.
fn set_schema(test: &str, version: u64) {
    let update = json!({
        "TableName": name(test), "Key": { "PK": { "S": "STORE" }, "SK": { "S": "SECRET" } },
        "UpdateExpression": "SET #schema = :v", "ExpressionAttributeNames": { "#schema": "schema" },
        "ExpressionAttributeValues": { ":v": { "N": version.to_string() } },
    });
    ask("UpdateItem", &update);
}

/// Waits until the server is ready, or not; what `/readyz` says then.
fn ready(server: &Server, wanted: u16) -> String {
    let mut said = String::new();
    until("the readiness that is wanted", || {
        let (status, body) = server.get("/readyz").expect("an answer");
        said = body;
        status == wanted
    });
    said
}

#[test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
fn a_server_writes_no_more_once_a_newer_build_or_a_restore_took_the_table() {
    let server = Server::start_in(with_table("newer"), &CONFIG);
    let view = pump::start(&server, "PUMP-204", "k1");
    let answer = pump::answer(&view).expect("a step");
    set_schema("newer", 2);
    let said = ready(&server, 503);
    assert!(said.contains("schema version 2") && said.contains("newer build"), "{said}");
    let refused = server.call("submit_step", &answer);
    assert_eq!(refused["error"]["code"], "BACKEND_UNAVAILABLE", "{refused:#}");
    assert_eq!(refused["error"]["retry"], "same_call", "{refused:#}");
    assert!(server.log().contains("the store is written to no more"), "{}", server.log());
    // What was recorded is still answered.
    let again = json!({
        "procedure_id": "pump-inspection", "assets": { "pump": "PUMP-204" },
        "inputs": { "work_order": "WO-1" }, "idempotency_key": "k1",
    });
    assert_eq!(server.call("start_workflow", &again)["duplicate"], true);
    let newer = server.run(&[&["workflow", "list"][..], &CONFIG].concat()).exits(1);
    assert!(newer.err.contains("schema version 2, this build knows up to 1"), "{}", newer.err);

    set_schema("newer", 1);
    ready(&server, 200);
    pump::submit(&server, &view);

    let report = server.run(&[&["restored", "--json"][..], &CONFIG].concat()).exits(0).json();
    assert_eq!(report["store_id"].as_str().map(str::len), Some(32), "{report}");
    let said = ready(&server, 503);
    assert!(said.contains("start the server again"), "{said}");
    let server = Server::start_in(server.stop(), &CONFIG);
    server
        .run(&[&["locks", "release", "PUMP-204", "--reason", "lost"][..], &CONFIG].concat())
        .exits(0);
    pump::start(&server, "PUMP-204", "k2");
    let locks = server.run(&[&["locks", "list", "--json"][..], &CONFIG].concat()).exits(0).json();
    assert!(locks["locks"][0]["fence"].as_u64() > Some(1_000_000), "{locks}");
    server.run(&[&["workflow", "verify"][..], &CONFIG].concat()).exits(0);
    server.stop();
}
