//! The state machine that gives an open workflow a life in time: one for all procedures, the same for `aws init`, for the
//! CloudFormation template and for the tests. STANDARD; it needs no function, and no data travels through it.
//!
//! ```text
//! Init ─▶ Await ─ told ─▶ Route ─ COMPLETED ─▶ Done
//!         ▲ │ ▲             │
//!         │ │ └── any other ┘
//!         │ └─ its time is over ─▶ SignalDue ─▶ Rest ─▶ Await
//!         └─ the fence moved on, or the binding is closed ─▶ Superseded
//! ```
//!
//! `Await` registers its task token in the binding item and sleeps until the reconciler answers it, or until the time that
//! it was told is over. What it writes to comes from the execution's input only, never from an answer, so that no answer
//! can lead it to another row. Neighbours: `binding`, which reads what it writes; `states`, which starts it.

use serde_json::{Value, json};

use super::binding;
use crate::keys;

/// Attributes of the binding item that an execution writes. Those who read it use the same names.
pub(crate) mod written {
    /// The token to answer.
    pub(crate) const TOKEN: &str = "task_token";
    /// When it was registered, as text of ISO 8601.
    pub(crate) const REGISTERED_AT: &str = "registered_at";
    /// The revision that the execution knew then.
    pub(crate) const TOLD_REVISION: &str = "told_revision";
    /// How many tokens it registered.
    pub(crate) const REGISTRATIONS: &str = "registrations";
    /// The revision that an execution knew whose time was over.
    pub(crate) const DUE_REVISION: &str = "due_revision";
    /// The place in the index by which the reconciler looks, and the one of what is to be looked at now.
    pub(crate) const LOOK: (&str, &str) = (super::keys::BY_STATE.sk, super::binding::MARKED);
}

/// Attributes of the binding item that an execution's writes are conditional on.
pub(crate) mod asked {
    /// The fence that the binding has.
    pub(crate) const FENCE: &str = "fence";
    /// There when the workflow ended and its execution too.
    pub(crate) const CLOSED: &str = "closed";
}

/// The state of an answer after which an execution ends.
pub(crate) const COMPLETED: &str = "COMPLETED";

/// For how long an execution sleeps that was told nothing yet, in seconds.
const FIRST_WAKE_S: u32 = 60;
/// For how long it sleeps after its time was over and nobody told it more, in seconds: an adapter that is down must not
/// use up its history.
const REST_S: u32 = 3_600;

/// The condition that fails is one of the only errors that is an answer. The two integrations spell it differently.
const SUPERSEDED: [&str; 2] =
    ["DynamoDb.ConditionalCheckFailedException", "DynamoDB.ConditionalCheckFailedException"];
/// What an `Await` ends with that nobody answered.
const TIME_OVER: &str = "States.Timeout";

/// The state machine in Amazon States Language, for a partition of AWS (`aws`, `aws-cn`, `aws-us-gov`; in a template the
/// parameter that stands for it).
///
/// The input of an execution is `{table, tenant, workflow_id, fence}`; the answer to its token
/// `{timeout, state, revision}`, where `timeout` is an integer from 1 to 86,400.
#[must_use]
pub fn definition(partition: &str) -> Value {
    json!({
        "Comment": "Checkpoint: the life in time of one workflow. It decides nothing and carries no data.",
        "StartAt": "Init",
        "States": {
            "Init": {
                "Type": "Pass",
                "Result": { "timeout": FIRST_WAKE_S, "state": "CREATED", "revision": 0 },
                "ResultPath": "$.told",
                "Next": "Await",
            },
            "Await": {
                "Type": "Task",
                "Resource": format!("arn:{partition}:states:::aws-sdk:dynamodb:updateItem.waitForTaskToken"),
                "TimeoutSecondsPath": "$.told.timeout",
                "Parameters": update(
                    &format!(
                        "SET {} = :token, {} = :at, {} = :revision ADD {} :one",
                        written::TOKEN,
                        written::REGISTERED_AT,
                        written::TOLD_REVISION,
                        written::REGISTRATIONS,
                    ),
                    &[
                        (":token", json!({ "S.$": "$$.Task.Token" })),
                        (":at", json!({ "S.$": "$$.State.EnteredTime" })),
                        (":revision", number("$.told.revision")),
                        (":one", json!({ "N": "1" })),
                    ],
                ),
                "ResultPath": "$.told",
                "Retry": retry(),
                "Catch": [
                    superseded(),
                    { "ErrorEquals": [TIME_OVER], "ResultPath": null, "Next": "SignalDue" },
                ],
                "Next": "Route",
            },
            "Route": {
                "Type": "Choice",
                "Choices": [{ "Variable": "$.told.state", "StringEquals": COMPLETED, "Next": "Done" }],
                "Default": "Await",
            },
            "SignalDue": {
                "Type": "Task",
                "Resource": format!("arn:{partition}:states:::dynamodb:updateItem"),
                "Parameters": update(
                    &format!("SET {} = :revision, {} = :now", written::DUE_REVISION, written::LOOK.0),
                    &[
                        (":revision", number("$.told.revision")),
                        (":now", json!({ "S": written::LOOK.1 })),
                    ],
                ),
                "ResultPath": null,
                "Retry": retry(),
                "Catch": [superseded()],
                "Next": "Rest",
            },
            "Rest": {
                "Type": "Pass",
                "Result": REST_S,
                "ResultPath": "$.told.timeout",
                "Next": "Await",
            },
            "Superseded": { "Type": "Succeed", "Comment": "another execution has the workflow" },
            "Done": { "Type": "Succeed", "Comment": "the workflow has ended" },
        },
    })
}

/// An UpdateItem of the binding item, on condition that the fence is this execution's and the binding is not closed.
fn update(expression: &str, values: &[(&str, Value)]) -> Value {
    let mut all: serde_json::Map<String, Value> =
        values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    all.insert(":fence".to_owned(), number("$$.Execution.Input.fence"));
    let input = "$$.Execution.Input";
    json!({
        "TableName.$": format!("{input}.table"),
        "Key": {
            "PK": { "S.$": format!("States.Format('T#{{}}#WF#{{}}', {input}.tenant, {input}.workflow_id)") },
            "SK": { "S": "ORCH" },
        },
        "UpdateExpression": expression,
        "ConditionExpression": format!("{} = :fence AND attribute_not_exists({})", asked::FENCE, asked::CLOSED),
        "ExpressionAttributeValues": all,
    })
}

/// A number is text in DynamoDB's JSON.
fn number(path: &str) -> Value {
    json!({ "N.$": format!("States.Format('{{}}', {path})") })
}

/// Whatever is no answer is tried again, later and later: about two hours in all. Then the execution fails, and the
/// reconciler replaces it.
fn retry() -> Value {
    let [native, optimised] = SUPERSEDED;
    json!([
        { "ErrorEquals": [native, optimised, TIME_OVER], "MaxAttempts": 0 },
        {
            "ErrorEquals": ["States.ALL"],
            "IntervalSeconds": 1,
            "BackoffRate": 2.0,
            "MaxDelaySeconds": 600,
            "MaxAttempts": 20,
            "JitterStrategy": "FULL",
        },
    ])
}

fn superseded() -> Value {
    json!({ "ErrorEquals": SUPERSEDED, "ResultPath": null, "Next": "Superseded" })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;
    use wf_core::models::{TenantId, WorkflowId};

    use super::{definition, written};
    use crate::keys;

    fn states() -> serde_json::Map<String, Value> {
        definition("aws")["States"].as_object().expect("states").clone()
    }

    fn tasks() -> Vec<(String, Value)> {
        states().into_iter().filter(|(_, state)| state["Type"] == "Task").collect()
    }

    #[test]
    fn every_state_is_reached_and_leads_to_one_there_is() {
        let states = states();
        let mut reached = BTreeSet::from(["Init".to_owned()]);
        for state in states.values() {
            let nexts =
                ["Catch", "Choices"].iter().flat_map(|key| state[*key].as_array()).flatten();
            let nexts = nexts.map(|one| &one["Next"]).chain([&state["Next"], &state["Default"]]);
            for next in nexts.filter_map(Value::as_str) {
                assert!(states.contains_key(next), "{next}");
                reached.insert(next.to_owned());
            }
        }
        assert_eq!(reached, states.keys().cloned().collect());
    }

    #[test]
    fn what_is_written_to_comes_from_the_input_only() {
        for (name, task) in tasks() {
            let parameters = &task["Parameters"];
            assert_eq!(parameters["TableName.$"], "$$.Execution.Input.table", "{name}");
            let fence = &parameters["ExpressionAttributeValues"][":fence"]["N.$"];
            assert_eq!(fence, "States.Format('{}', $$.Execution.Input.fence)", "{name}");
            let condition = &parameters["ConditionExpression"];
            assert_eq!(condition, "fence = :fence AND attribute_not_exists(closed)", "{name}");
            let key = parameters["Key"].to_string();
            assert!(!key.contains("$.told"), "{name}: {key}");
        }
    }

    /// The key that the machine puts together is the one that `keys` knows.
    #[test]
    fn it_writes_to_the_binding() {
        let (tenant, id) = (TenantId::parse("acme").unwrap(), WorkflowId::parse("wf_1").unwrap());
        let expected = keys::workflow(&tenant, &id);
        for (name, task) in tasks() {
            let key = &task["Parameters"]["Key"];
            let format = key["PK"]["S.$"].as_str().expect("a format");
            let format = format.trim_start_matches("States.Format('");
            let (format, values) = format.split_once("', ").expect("values");
            assert_eq!(values, "$$.Execution.Input.tenant, $$.Execution.Input.workflow_id)");
            let made = format.replacen("{}", "acme", 1).replacen("{}", "wf_1", 1);
            assert_eq!(made, expected, "{name}");
            assert_eq!(key["SK"]["S"], "ORCH", "{name}");
        }
    }

    /// An error that is no answer is retried with jitter and then fails the execution; only a condition that fails ends it
    /// quietly.
    #[test]
    fn only_a_condition_that_fails_is_an_answer() {
        let mut caught = BTreeSet::new();
        for (name, task) in tasks() {
            let retry = &task["Retry"];
            assert_eq!(retry[0]["MaxAttempts"], 0, "{name}");
            assert_eq!(retry[1]["ErrorEquals"], serde_json::json!(["States.ALL"]), "{name}");
            assert_eq!(retry[1]["JitterStrategy"], "FULL", "{name}");
            for catcher in task["Catch"].as_array().expect("catchers") {
                for error in catcher["ErrorEquals"].as_array().expect("errors") {
                    let error = error.as_str().expect("a name").to_owned();
                    assert!(
                        retry[0]["ErrorEquals"].to_string().contains(&error),
                        "{name}: {error}"
                    );
                    caught.insert((error, catcher["Next"].as_str().expect("a state").to_owned()));
                }
            }
        }
        let caught: Vec<_> = caught.iter().map(|(e, next)| (e.as_str(), next.as_str())).collect();
        assert_eq!(
            caught,
            [
                ("DynamoDB.ConditionalCheckFailedException", "Superseded"),
                ("DynamoDb.ConditionalCheckFailedException", "Superseded"),
                ("States.Timeout", "SignalDue"),
            ]
        );
    }

    /// A missing time-out, or one that is no positive integer, is an error that no state can catch.
    #[test]
    fn the_timeout_is_an_integer_wherever_it_is_set() {
        let states = states();
        assert_eq!(states["Await"]["TimeoutSecondsPath"], "$.told.timeout");
        let first = states["Init"]["Result"]["timeout"].as_u64();
        let rest = states["Rest"]["Result"].as_u64();
        for set in [first, rest] {
            assert!(set.is_some_and(|s| (1..=86_400).contains(&s)), "{set:?}");
        }
        assert_eq!(states["Rest"]["ResultPath"], "$.told.timeout");
    }

    #[test]
    fn it_registers_what_the_binding_reads() {
        let expression = states()["Await"]["Parameters"]["UpdateExpression"].to_string();
        for name in
            [written::TOKEN, written::REGISTERED_AT, written::TOLD_REVISION, written::REGISTRATIONS]
        {
            assert!(expression.contains(name), "{name}");
        }
        assert!(!definition("aws-cn").to_string().contains("arn:aws:"), "partition");
    }
}
