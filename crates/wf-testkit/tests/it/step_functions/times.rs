//! Time-outs, the length of a history and of a life.

use serde_json::{Value, json};
use wf_testkit::step_functions::Status;

use super::{Bench, WRITES, waits};

/// Waits as long as the input says; what times out is written down, and waited for again.
fn timed() -> Value {
    json!({ "StartAt": "Await", "States": {
        "Await": {
            "Type": "Task",
            "Resource": super::WAITS,
            "Parameters": { "Token.$": "$$.Task.Token" },
            "TimeoutSecondsPath": "$.timeout",
            "Catch": [{ "ErrorEquals": ["States.Timeout"], "ResultPath": "$.error", "Next": "Due" }],
            "End": true,
        },
        "Due": {
            "Type": "Task",
            "Resource": WRITES,
            "Parameters": { "Due": true },
            "ResultPath": null,
            "Next": "Await",
        },
    } })
}

fn dues(bench: &Bench) -> usize {
    bench.rows.asked.lock().unwrap().iter().filter(|asked| asked["Due"] == true).count()
}

#[tokio::test]
async fn a_task_times_out_when_its_time_has_passed_and_not_before() {
    let bench = Bench::new(&timed());
    bench.start("n", r#"{"timeout":60}"#);
    bench.plane.run().await;
    bench.plane.pass_time(59_999).await;
    assert_eq!((dues(&bench), bench.tokens().len()), (0, 1));
    bench.plane.pass_time(1).await;
    assert_eq!((dues(&bench), bench.tokens().len()), (1, 2), "marked, and waiting again");
    let tokens = bench.tokens();
    assert_eq!(bench.succeed(&tokens[0], &json!({})).error(), Some("TaskTimedOut"));
    assert_eq!(bench.count("n", "TaskTimedOut"), 1);
    // Time is not skipped over: a time-out for each minute of an hour.
    bench.plane.pass_time(60 * 60_000).await;
    assert_eq!(dues(&bench), 61);
    let last = bench.tokens().pop().unwrap();
    assert_eq!(bench.succeed(&last, &json!({})).error(), None);
    assert_eq!(bench.status("n"), Status::Succeeded);
}

#[tokio::test]
async fn a_time_out_that_is_no_positive_whole_number_is_not_caught() {
    for input in
        ["{}", r#"{"timeout":0}"#, r#"{"timeout":-1}"#, r#"{"timeout":1.5}"#, r#"{"timeout":"60"}"#]
    {
        let bench = Bench::new(&timed());
        bench.start("n", input);
        bench.plane.run().await;
        let seen = bench.describe("n").body;
        assert_eq!(
            (&seen["status"], &seen["error"]),
            (&json!("FAILED"), &json!("States.Runtime")),
            "{input}"
        );
        assert_eq!(bench.tokens().len(), 0);
    }
}

#[tokio::test]
async fn an_uncaught_time_out_fails_the_execution() {
    let bench = Bench::new(&waits(&json!({ "TimeoutSeconds": 5 })));
    bench.start("n", "{}");
    bench.plane.pass_time(5_000).await;
    let seen = bench.describe("n").body;
    assert_eq!((&seen["status"], &seen["error"]), (&json!("FAILED"), &json!("States.Timeout")));
    // States.TaskFailed is any error but this one.
    let retry = json!([{ "ErrorEquals": ["States.TaskFailed"] }]);
    let bench = Bench::new(&waits(&json!({ "TimeoutSeconds": 5, "Retry": retry })));
    bench.start("n", "{}");
    bench.plane.pass_time(5_000).await;
    assert_eq!(bench.status("n"), Status::Failed);
}

#[tokio::test]
async fn the_25_000th_event_is_the_end() {
    let bench = Bench::new(&timed());
    bench.start("n", r#"{"timeout":1}"#);
    bench.plane.pass_time(24 * 60 * 60 * 1_000).await;
    let events = bench.plane.history("n");
    assert_eq!((events.len(), events.last()), (25_000, Some(&"ExecutionFailed")));
    let seen = bench.describe("n").body;
    assert_eq!(seen["error"], "States.Runtime");
    assert!(seen["cause"].as_str().unwrap().contains("25000"), "{seen}");
    let redrive = json!({ "executionArn": bench.arn("n") });
    let answer = bench.call("RedriveExecution", &redrive);
    assert_eq!(answer.error(), Some("ExecutionNotRedrivable"));
}

#[tokio::test]
async fn an_execution_runs_for_a_year_at_most() {
    let bench = Bench::new(&waits(&json!({})));
    bench.start("n", "{}");
    bench.plane.pass_time(365 * 24 * 60 * 60 * 1_000 - 1).await;
    assert_eq!(bench.status("n"), Status::Running);
    bench.plane.pass_time(1).await;
    let seen = bench.describe("n").body;
    assert_eq!((&seen["status"], &seen["error"]), (&json!("TIMED_OUT"), &Value::Null));
    assert_eq!(bench.plane.history("n").last(), Some(&"ExecutionTimedOut"));
}
