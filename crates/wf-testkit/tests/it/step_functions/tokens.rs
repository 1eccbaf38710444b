//! Tokens: one winner, a new one for each attempt, none after the end; redrives.

use serde_json::json;
use wf_testkit::step_functions::Status;

use super::{Bench, waits};

#[tokio::test]
async fn a_token_is_answered_once() {
    let bench = Bench::new(&waits(&json!({})));
    bench.start("n", "{}");
    assert_eq!(bench.tokens().len(), 0, "it goes on after the answer");
    bench.plane.run().await;
    let token = bench.tokens()[0].clone();
    assert_eq!(bench.status("n"), Status::Running);
    let heartbeat = json!({ "taskToken": token });
    assert_eq!(bench.call("SendTaskHeartbeat", &heartbeat).error(), None);
    let answers: Vec<_> = (0..16).map(|i| bench.succeed(&token, &json!({ "i": i }))).collect();
    assert_eq!(answers.iter().filter(|answer| answer.error().is_none()).count(), 1);
    assert_eq!(answers[0].error(), None);
    assert_eq!(answers[1].error(), Some("TaskTimedOut"));
    assert_eq!(bench.call("SendTaskHeartbeat", &heartbeat).error(), Some("TaskTimedOut"));
    let seen = bench.describe("n").body;
    assert_eq!((&seen["status"], &seen["output"]), (&json!("SUCCEEDED"), &json!(r#"{"i":0}"#)));
    assert_eq!(bench.succeed("garbage", &json!({})).error(), Some("InvalidToken"));
    assert_eq!(bench.start("n", "{}").error(), Some("ExecutionAlreadyExists"));
    let events = bench.plane.history("n");
    assert_eq!(
        events,
        [
            "ExecutionStarted",
            "TaskStateEntered",
            "TaskScheduled",
            "TaskStarted",
            "TaskSubmitted",
            "TaskSucceeded",
            "TaskStateExited",
            "ExecutionSucceeded",
        ]
    );
    let history = bench.call("GetExecutionHistory", &json!({ "executionArn": bench.arn("n") }));
    assert_eq!(history.body["events"][7], json!({ "id": 8, "type": "ExecutionSucceeded" }));
}

#[tokio::test]
async fn the_token_of_what_was_stopped_is_dead() {
    let bench = Bench::new(&waits(&json!({})));
    bench.start("n", "{}");
    bench.plane.run().await;
    bench.stop("n");
    let token = bench.tokens()[0].clone();
    let events = bench.plane.history("n");
    assert_eq!(bench.succeed(&token, &json!({})).error(), Some("TaskTimedOut"));
    assert_eq!(bench.status("n"), Status::Aborted);
    assert_eq!(bench.plane.history("n"), events, "nothing after the end");
}

#[tokio::test]
async fn each_attempt_has_a_token_of_its_own() {
    let retry = json!([{ "ErrorEquals": ["Busy"], "IntervalSeconds": 2, "MaxAttempts": 1 }]);
    let bench = Bench::new(&waits(&json!({ "Retry": retry })));
    bench.start("n", "{}");
    bench.plane.run().await;
    let first = bench.tokens()[0].clone();
    let fail = |token: &str| {
        bench.call("SendTaskFailure", &json!({ "taskToken": token, "error": "Busy", "cause": "c" }))
    };
    assert_eq!(fail(&first).error(), None);
    bench.plane.pass_time(1_999).await;
    assert_eq!(bench.tokens().len(), 1, "it pauses");
    bench.plane.pass_time(1).await;
    let second = bench.tokens()[1].clone();
    assert_ne!(first, second);
    assert_eq!(bench.succeed(&first, &json!({})).error(), Some("TaskTimedOut"));
    assert_eq!(fail(&second).error(), None);
    let seen = bench.describe("n").body;
    assert_eq!(
        (&seen["status"], &seen["error"], &seen["cause"]),
        (&json!("FAILED"), &json!("Busy"), &json!("c"))
    );
}

#[tokio::test]
async fn a_token_may_be_answered_before_the_call_that_hands_it_on() {
    let bench = Bench::new(&waits(&json!({})));
    bench.start("n", "{}");
    bench.plane.run().await;
    // Answered with an error afterwards, as when the write landed and its answer was lost: too late to matter.
    let token = bench.tokens()[0].clone();
    bench.succeed(&token, &json!({}));
    bench.answers("ConditionalCheckFailedException");
    bench.plane.run().await;
    assert_eq!(bench.status("n"), Status::Succeeded);
}

#[tokio::test]
async fn outputs_are_json_of_262_144_bytes() {
    let bench = Bench::new(&waits(&json!({})));
    bench.start("n", "{}");
    bench.plane.run().await;
    let token = bench.tokens()[0].clone();
    let send = |output: &str| {
        bench.call("SendTaskSuccess", &json!({ "taskToken": token, "output": output }))
    };
    assert_eq!(send("not json").error(), Some("InvalidOutput"));
    let large = format!("\"{}\"", "x".repeat(262_143));
    assert_eq!(send(&large).error(), Some("ValidationException"));
    assert_eq!(bench.status("n"), Status::Running, "the token still counts");
    assert_eq!(send("{}").error(), None);
}

#[tokio::test]
async fn what_failed_is_redriven_from_where_it_failed() {
    let bench = Bench::new(&waits(&json!({})));
    let redrive = |token: &str| {
        let body = json!({ "executionArn": bench.arn("n"), "clientToken": token });
        bench.call("RedriveExecution", &body)
    };
    bench.start("n", "{}");
    bench.plane.run().await;
    assert_eq!(redrive("a").error(), Some("ExecutionNotRedrivable"), "it runs");
    bench.stop("n");
    let first = redrive("a");
    assert_eq!(first.error(), None);
    assert_eq!(redrive("a"), first, "the same call");
    bench.plane.run().await;
    assert_eq!(bench.count("n", "ExecutionRedriven"), 1);
    assert_eq!(bench.count("n", "ExecutionAborted"), 1, "the old events are kept");
    let tokens = bench.tokens();
    assert_eq!(bench.succeed(&tokens[0], &json!({})).error(), Some("TaskTimedOut"));
    assert_eq!(bench.describe("n").body["redriveCount"], 1);
    assert_eq!(bench.succeed(&tokens[1], &json!({})).error(), None);
    assert_eq!(redrive("b").error(), Some("ExecutionNotRedrivable"), "it succeeded");
    // Fourteen days after its end it is too late.
    bench.start("late", "{}");
    bench.plane.run().await;
    bench.stop("late");
    bench.plane.pass_time(14 * 24 * 60 * 60 * 1_000).await;
    let late = bench.call("RedriveExecution", &json!({ "executionArn": bench.arn("late") }));
    assert_eq!(late.error(), Some("ExecutionNotRedrivable"));
}
