//! Names, starts, stops, and what is seen of executions.

use serde_json::{Value, json};
use wf_testkit::step_functions::Status;

use super::{Bench, succeeds_at_once, waits};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

#[test]
fn names_are_checked() {
    let bench = Bench::new(&succeeds_at_once());
    for (name, code) in [
        ("n".repeat(80), None),
        ("n".repeat(81), Some("ValidationException")),
        (String::new(), Some("ValidationException")),
        ("wf_1-ä.b+c=d@e".to_owned(), None),
    ] {
        assert_eq!(bench.start(&name, "{}").error(), code, "{name}");
    }
    for wrong in "<>{}[]?*\"#%\\^|~`$&,;:/ \t\n\u{7f}\u{85}".chars() {
        let answer = bench.start(&format!("a{wrong}b"), "{}");
        assert_eq!(answer.error(), Some("InvalidName"), "{wrong:?}");
    }
    let unnamed = json!({ "stateMachineArn": bench.machine });
    let one = bench.call("StartExecution", &unnamed);
    let other = bench.call("StartExecution", &unnamed);
    assert_ne!(one.body["executionArn"], other.body["executionArn"]);
}

#[tokio::test]
async fn a_start_under_a_name_that_runs_is_the_same_when_its_input_is() {
    let bench = Bench::new(&waits(&json!({})));
    let first = bench.start("n", r#"{"a":1}"#);
    bench.plane.run().await;
    bench.plane.pass_time(1_000).await;
    assert_eq!(bench.start("n", r#"{"a":1}"#), first, "the same ARN and date");
    bench.plane.run().await;
    assert_eq!(bench.tokens().len(), 1, "nothing ran twice");
    for other in [r#"{"a":2}"#, r#"{"a": 1}"#, "{}"] {
        assert_eq!(bench.start("n", other).error(), Some("ExecutionAlreadyExists"), "{other}");
    }
    // Another state machine has names of its own.
    let made = bench.make("other", &waits(&json!({})));
    let body = json!({ "stateMachineArn": made.body["stateMachineArn"], "name": "n" });
    assert_eq!(bench.call("StartExecution", &body).error(), None);
}

#[tokio::test]
async fn the_name_of_what_has_ended_is_taken_for_90_days() {
    let bench = Bench::new(&waits(&json!({})));
    let first = bench.start("n", "{}");
    bench.plane.pass_time(DAY_MS).await;
    bench.stop("n");
    bench.plane.pass_time(90 * DAY_MS - 1).await;
    assert_eq!(bench.start("n", "{}").error(), Some("ExecutionAlreadyExists"));
    bench.plane.pass_time(1).await;
    let again = bench.start("n", "{}");
    assert_eq!(again.error(), None);
    assert_eq!(again.body["executionArn"], first.body["executionArn"]);
    assert_ne!(again.body["startDate"], first.body["startDate"]);
}

#[test]
fn inputs_are_json_of_262_144_bytes() {
    let bench = Bench::new(&succeeds_at_once());
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    assert_eq!(bench.start("a", &text(262_144)).error(), None);
    assert_eq!(bench.start("b", &text(262_145)).error(), Some("ValidationException"));
    // Bytes, not characters.
    let wide = format!("\"{}\"", "ä".repeat(131_072));
    assert_eq!(bench.start("c", &wide).error(), Some("ValidationException"));
    assert_eq!(bench.start("d", "not json").error(), Some("InvalidExecutionInput"));
}

#[tokio::test]
async fn what_is_stopped_is_aborted_and_says_why() {
    let bench = Bench::new(&waits(&json!({})));
    bench.start("n", "{}");
    bench.plane.run().await;
    let stopped = bench.stop("n");
    assert_eq!(stopped.error(), None);
    let seen = bench.describe("n").body;
    assert_eq!(
        (&seen["status"], &seen["error"], &seen["cause"]),
        (&json!("ABORTED"), &json!("E"), &json!("why"))
    );
    assert_eq!(seen["stopDate"], stopped.body["stopDate"]);
    assert_eq!(bench.plane.history("n").last(), Some(&"ExecutionAborted"));
    bench.clock.advance(5_000);
    assert_eq!(bench.stop("n").body, stopped.body, "it stays as it ended");
    assert_eq!(bench.stop("x").error(), Some("ExecutionDoesNotExist"));
    assert_eq!(bench.describe("x").error(), Some("ExecutionDoesNotExist"));
    let wrong = json!({ "executionArn": "n" });
    assert_eq!(bench.call("DescribeExecution", &wrong).error(), Some("InvalidArn"));
    let gone = json!({ "stateMachineArn": format!("{}x", bench.machine), "name": "n" });
    assert_eq!(bench.call("StartExecution", &gone).error(), Some("StateMachineDoesNotExist"));
    assert_eq!(bench.call("StartExecution", &json!({})).error(), Some("ValidationException"));
    assert_eq!(bench.call("StartSomething", &json!({})).error(), Some("UnknownOperationException"));
}

#[tokio::test]
async fn looks_lag_as_long_as_they_are_told_to() {
    let bench = Bench::new(&waits(&json!({})));
    bench.plane.lags(2);
    bench.start("n", "{}");
    bench.plane.run().await;
    assert_eq!(bench.describe("n").error(), Some("ExecutionDoesNotExist"));
    let list = json!({ "stateMachineArn": bench.machine });
    assert_eq!(bench.call("ListExecutions", &list).body["executions"], json!([]));
    assert_eq!(bench.describe("n").body["status"], "RUNNING");
    bench.plane.lags(1);
    bench.stop("n");
    assert_eq!(bench.describe("n").body["status"], "RUNNING", "as it was");
    assert_eq!(bench.describe("n").body["status"], "ABORTED");
}

#[tokio::test]
async fn lists_are_filtered_paged_and_newest_first() {
    let bench = Bench::new(&waits(&json!({})));
    for name in ["c", "a", "b"] {
        bench.start(name, "{}");
        bench.plane.pass_time(1_000).await;
    }
    bench.stop("c");
    let page = |more: &Value| {
        let mut body = json!({ "stateMachineArn": bench.machine });
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        let answer = bench.call("ListExecutions", &body).body;
        let names = answer["executions"].as_array().unwrap();
        let names: Vec<String> = names.iter().map(|e| e["name"].as_str().unwrap().into()).collect();
        (names, answer["nextToken"].clone())
    };
    assert_eq!(page(&json!({})), (vec!["c".into(), "b".into(), "a".into()], Value::Null));
    assert_eq!(page(&json!({ "statusFilter": "RUNNING" })).0, ["b", "a"]);
    let (names, next) = page(&json!({ "maxResults": 2 }));
    assert_eq!(names, ["c", "b"]);
    assert_eq!(
        page(&json!({ "maxResults": 2, "nextToken": next })),
        (vec!["a".into()], Value::Null)
    );
}

#[test]
fn calls_that_come_too_often_are_refused() {
    let bench = Bench::new(&waits(&json!({})));
    bench.start("n", "{}");
    let answered = || {
        let answers: Vec<_> = (0..400).map(|_| bench.describe("n")).collect();
        let throttled = answers.iter().find(|answer| answer.status != 200).cloned();
        assert!(throttled.is_none_or(|answer| answer.error() == Some("ThrottlingException")));
        answers.iter().filter(|answer| answer.status == 200).count()
    };
    assert_eq!(answered(), 300, "the burst");
    bench.clock.advance(2_000);
    assert_eq!(answered(), 30, "15 a second");
    assert_eq!(bench.start("m", "{}").error(), None, "another bucket");
    assert_eq!(bench.plane.take_calls()["DescribeExecution"], 800);
    assert!(bench.plane.take_calls().is_empty());
}

#[tokio::test]
async fn a_state_machine_that_is_deleted_ends_its_executions_at_their_next_transition() {
    let bench = Bench::new(&waits(&json!({})));
    bench.start("n", "{}");
    bench.plane.run().await;
    let machine = json!({ "stateMachineArn": bench.machine });
    assert_eq!(bench.call("DeleteStateMachine", &machine).error(), None);
    bench.plane.run().await;
    assert_eq!(bench.status("n"), Status::Running, "it makes no transition");
    assert_eq!(bench.call("DescribeStateMachine", &machine).body["status"], "DELETING");
    assert_eq!(bench.start("m", "{}").error(), Some("StateMachineDeleting"));
    bench.succeed(&bench.tokens()[0], &json!({}));
    bench.plane.run().await;
    assert_eq!(bench.describe("n").error(), Some("ExecutionDoesNotExist"));
    assert_eq!(bench.start("m", "{}").error(), Some("StateMachineDoesNotExist"));
    assert_eq!(bench.call("DeleteStateMachine", &machine).error(), None, "gone is gone");
}

#[tokio::test]
async fn an_execution_keeps_the_definition_that_it_started_with() {
    let bench = Bench::new(&waits(&json!({})));
    bench.start("old", "{}");
    let update = |definition: &Value| {
        let body =
            json!({ "stateMachineArn": bench.machine, "definition": definition.to_string() });
        bench.call("UpdateStateMachine", &body)
    };
    assert_eq!(update(&json!({ "StartAt": "S" })).error(), Some("InvalidDefinition"));
    assert_eq!(update(&succeeds_at_once()).error(), None);
    bench.start("new", "{}");
    bench.plane.run().await;
    assert_eq!((bench.status("old"), bench.status("new")), (Status::Running, Status::Succeeded));
    let described =
        bench.call("DescribeStateMachine", &json!({ "stateMachineArn": bench.machine }));
    assert_eq!(described.body["definition"], succeeds_at_once().to_string());
}

#[test]
fn a_state_machine_is_made_once() {
    let bench = Bench::new(&succeeds_at_once());
    let again = bench.make("m", &succeeds_at_once());
    assert_eq!(again.body["stateMachineArn"], json!(bench.machine));
    assert_eq!(bench.make("m", &waits(&json!({}))).error(), Some("StateMachineAlreadyExists"));
    assert_eq!(bench.make("a:b", &succeeds_at_once()).error(), Some("InvalidName"));
    let express = json!({
        "name": "e", "type": "EXPRESS", "roleArn": "r", "definition": succeeds_at_once().to_string()
    });
    let answer = bench.call("CreateStateMachine", &express);
    assert_eq!(answer.error(), Some("StateMachineTypeNotSupported"));
}
