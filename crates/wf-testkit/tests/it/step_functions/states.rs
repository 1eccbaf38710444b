//! States: what each does, what is caught, and what no definition may say.

use serde_json::{Value, json};
use wf_testkit::step_functions::Status;

use super::{Bench, WAITS, WRITES, succeeds_at_once, waits};

#[tokio::test]
async fn pass_choice_and_result_paths_do_what_they_say() {
    let bench = Bench::new(&json!({ "StartAt": "Init", "States": {
        "Init": { "Type": "Pass", "Result": { "state": "A", "n": 1 }, "ResultPath": "$.told", "Next": "Set" },
        "Set": { "Type": "Pass", "Result": 3600, "ResultPath": "$.told.timeout", "Next": "Route" },
        "Route": {
            "Type": "Choice",
            "Choices": [{ "Variable": "$.told.state", "StringEquals": "B", "Next": "Wrong" }],
            "Default": "Shape",
        },
        "Wrong": { "Type": "Fail", "Error": "E", "Cause": "c" },
        "Shape": {
            "Type": "Pass",
            "Parameters": {
                "key.$": "States.Format('T#{}#{}', $.id, $.told.n)",
                "name.$": "$$.Execution.Name",
                "input.$": "$$.Execution.Input.id",
                "told.$": "$.told",
                "list": [{ "x.$": "$.id" }],
            },
            "Next": "Done",
        },
        "Done": { "Type": "Succeed" },
    } }));
    bench.start("n", r#"{"id":"w"}"#);
    bench.plane.run().await;
    let seen = bench.describe("n").body;
    let output: Value = serde_json::from_str(seen["output"].as_str().unwrap()).unwrap();
    let told = json!({ "state": "A", "n": 1, "timeout": 3600 });
    let expected =
        json!({ "key": "T#w#1", "name": "n", "input": "w", "told": told, "list": [{ "x": "w" }] });
    assert_eq!(output, expected);
}

#[tokio::test]
async fn fail_says_why_and_a_choice_without_a_way_fails() {
    let fail = json!({ "StartAt": "F", "States": { "F": { "Type": "Fail", "Error": "E", "Cause": "c" } } });
    let bench = Bench::new(&fail);
    bench.start("n", "{}");
    bench.plane.run().await;
    let seen = bench.describe("n").body;
    assert_eq!(
        (&seen["status"], &seen["error"], &seen["cause"]),
        (&json!("FAILED"), &json!("E"), &json!("c"))
    );

    let choice = json!({ "StartAt": "C", "States": {
        "C": { "Type": "Choice", "Choices": [{ "Variable": "$.s", "StringEquals": "x", "Next": "S" }] },
        "S": { "Type": "Succeed" },
    } });
    for (input, error) in [
        (r#"{"s":"y"}"#, json!("States.NoChoiceMatched")),
        ("{}", json!("States.Runtime")),
        (r#"{"s":"x"}"#, Value::Null),
    ] {
        let bench = Bench::new(&choice);
        bench.start("n", input);
        bench.plane.run().await;
        assert_eq!(bench.describe("n").body["error"], error, "{input}");
    }
}

/// A write that is caught by this name.
fn caught(resource: &str, name: &str) -> Value {
    let parameters = match resource {
        WAITS => json!({ "Token.$": "$$.Task.Token" }),
        _ => json!({}),
    };
    json!({ "StartAt": "T", "States": {
        "T": {
            "Type": "Task", "Resource": resource, "Parameters": parameters, "End": true,
            "Catch": [{ "ErrorEquals": [name], "ResultPath": "$.error", "Next": "S" }],
        },
        "S": { "Type": "Succeed" },
    } })
}

#[tokio::test]
async fn the_two_forms_of_a_write_name_their_errors_differently() {
    let failed = "ConditionalCheckFailedException";
    for (resource, prefix, other) in
        [(WAITS, "DynamoDb", "DynamoDB"), (WRITES, "DynamoDB", "DynamoDb")]
    {
        for (name, status) in [
            (format!("{prefix}.{failed}"), Status::Succeeded),
            (format!("{other}.{failed}"), Status::Failed),
            ("States.ALL".to_owned(), Status::Succeeded),
        ] {
            let bench = Bench::new(&caught(resource, &name));
            bench.answers(failed);
            bench.start("n", r#"{"kept":1}"#);
            bench.plane.run().await;
            assert_eq!(bench.status("n"), status, "{resource} {name}");
            if status == Status::Succeeded {
                let output = bench.describe("n").body["output"].as_str().unwrap().to_owned();
                let output: Value = serde_json::from_str(&output).unwrap();
                assert_eq!(output["kept"], 1);
                assert_eq!(output["error"]["Error"], format!("{prefix}.{failed}"));
            }
        }
    }
}

#[tokio::test]
async fn retries_come_later_and_later_and_end() {
    let retry = json!([
        { "ErrorEquals": ["DynamoDb.Refused"], "MaxAttempts": 0 },
        { "ErrorEquals": ["States.ALL"], "IntervalSeconds": 2, "MaxAttempts": 3, "BackoffRate": 2.0,
          "MaxDelaySeconds": 5, "JitterStrategy": "FULL" },
    ]);
    let bench = Bench::new(&waits(&json!({ "Retry": retry })));
    for _ in 0..4 {
        bench.answers("ThrottlingException");
    }
    bench.start("n", "{}");
    bench.plane.run().await;
    let mut tried = Vec::new();
    for pause in [2_000, 4_000, 5_000] {
        bench.plane.pass_time(pause - 1).await;
        tried.push(bench.tokens().len());
        bench.plane.pass_time(1).await;
    }
    assert_eq!((tried, bench.tokens().len()), (vec![1, 2, 3], 4));
    let seen = bench.describe("n").body;
    assert_eq!(
        (&seen["status"], &seen["error"]),
        (&json!("FAILED"), &json!("DynamoDb.ThrottlingException"))
    );
    let bench = Bench::new(&waits(&json!({ "Retry": retry })));
    bench.answers("Refused");
    bench.start("n", "{}");
    bench.plane.run().await;
    assert_eq!((bench.status("n"), bench.tokens().len()), (Status::Failed, 1), "none for this one");
}

#[tokio::test]
async fn data_of_a_state_has_262_144_bytes_at_most() {
    let keep = json!({ "ResultPath": "$.result", "Catch": [{ "ErrorEquals": ["States.ALL"], "Next": "S" }] });
    let mut definition = waits(&keep);
    definition["States"]["S"] = json!({ "Type": "Succeed" });
    let bench = Bench::new(&definition);
    bench.start("n", "{}");
    bench.plane.run().await;
    let token = bench.tokens()[0].clone();
    // The result alone has room, but not where it is put.
    let result = json!("x".repeat(262_142));
    assert_eq!(bench.succeed(&token, &result).error(), None);
    assert_eq!(bench.describe("n").body["error"], "States.DataLimitExceeded", "not caught");
}

#[tokio::test]
async fn a_path_to_nothing_can_be_caught_in_parameters() {
    let mut definition = caught(WRITES, "States.ALL");
    definition["States"]["T"]["Parameters"] = json!({ "a.$": "$.missing" });
    let bench = Bench::new(&definition);
    bench.start("n", "{}");
    bench.plane.run().await;
    assert_eq!(bench.status("n"), Status::Succeeded);
    assert!(bench.rows.asked.lock().unwrap().is_empty());
}

#[test]
fn a_definition_that_says_more_or_less_is_refused() {
    let bench = Bench::new(&succeeds_at_once());
    let task = |more: &Value| waits(more);
    let mut unreached = succeeds_at_once();
    unreached["States"]["X"] = json!({ "Type": "Succeed" });
    let mut endless = succeeds_at_once();
    endless["States"]["S"] = json!({ "Type": "Pass", "Next": "S" });
    let all = json!({ "ErrorEquals": ["States.ALL"], "Next": "T" });
    let wrong = [
        ("a type", json!({ "StartAt": "A", "States": { "A": { "Type": "Nope" } } })),
        ("no start", json!({ "StartAt": "B", "States": { "A": { "Type": "Succeed" } } })),
        (
            "no target",
            json!({ "StartAt": "A", "States": { "A": { "Type": "Pass", "Next": "B" } } }),
        ),
        (
            "both ways",
            json!({ "StartAt": "A", "States": { "A": { "Type": "Pass", "Next": "A", "End": true } } }),
        ),
        ("unreached", unreached),
        ("endless", endless),
        ("a field", task(&json!({ "HeartbeatSeconds": 5 }))),
        ("two time-outs", task(&json!({ "TimeoutSeconds": 5, "TimeoutSecondsPath": "$.t" }))),
        ("no time-out", task(&json!({ "TimeoutSeconds": 0 }))),
        ("a resource", task(&json!({ "Resource": "arn:aws:states:::lambda:invoke" }))),
        ("no token", task(&json!({ "Parameters": {} }))),
        ("a token without waiting", task(&json!({ "Resource": WRITES }))),
        ("a path", task(&json!({ "Parameters": { "Token.$": "$$.Task.Token", "a.$": "x" } }))),
        (
            "a function",
            task(&json!({ "Parameters": { "Token.$": "$$.Task.Token", "a.$": "States.UUID()" } })),
        ),
        (
            "a format",
            task(
                &json!({ "Parameters": { "Token.$": "$$.Task.Token", "a.$": "States.Format('{}')" } }),
            ),
        ),
        ("a place", task(&json!({ "ResultPath": "told" }))),
        ("all, then more", task(&json!({ "Catch": [all, all] }))),
        ("a retry", task(&json!({ "Retry": [{ "ErrorEquals": ["E"], "BackoffRate": 0.5 }] }))),
    ];
    for (n, (what, definition)) in wrong.iter().enumerate() {
        let answer = bench.make(&format!("w{n}"), definition);
        assert_eq!(answer.error(), Some("InvalidDefinition"), "{what}");
    }
}
