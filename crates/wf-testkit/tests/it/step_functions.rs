//! The double of Step Functions keeps the rules that its documentation lists.

mod names;
mod states;
mod times;
mod tokens;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use wf_testkit::build::at;
use wf_testkit::clock::ManualClock;
use wf_testkit::step_functions::{Answer, Status, StepFunctions, Table, TableError};

/// A table that keeps what it is asked, and answers what it is told to; otherwise it succeeds.
#[derive(Debug, Default)]
struct Rows {
    asked: Mutex<Vec<Value>>,
    answers: Mutex<VecDeque<Result<Value, TableError>>>,
}

#[async_trait]
impl Table for Rows {
    async fn call(&self, operation: &str, request: &Value) -> Result<Value, TableError> {
        assert_eq!(operation, "UpdateItem");
        self.asked.lock().unwrap().push(request.clone());
        self.answers.lock().unwrap().pop_front().unwrap_or_else(|| Ok(json!({})))
    }
}

/// A control plane with one state machine, and its table.
struct Bench {
    plane: StepFunctions,
    rows: Arc<Rows>,
    clock: ManualClock,
    machine: String,
}

impl Bench {
    fn new(definition: &Value) -> Self {
        let clock = ManualClock::new(at(0));
        let rows = Arc::new(Rows::default());
        let plane = StepFunctions::new(clock.clone(), rows.clone());
        let mut bench = Self { plane, rows, clock, machine: String::new() };
        let made = bench.make("m", definition);
        assert_eq!(made.status, 200, "{made:?}");
        bench.machine = made.body["stateMachineArn"].as_str().unwrap().to_owned();
        bench
    }

    fn call(&self, action: &str, body: &Value) -> Answer {
        self.plane.call(&format!("AWSStepFunctions.{action}"), body)
    }

    fn make(&self, name: &str, definition: &Value) -> Answer {
        let role = "arn:aws:iam::000000000000:role/r";
        let definition = definition.to_string();
        let body = json!({ "name": name, "definition": definition, "roleArn": role });
        self.call("CreateStateMachine", &body)
    }

    fn start(&self, name: &str, input: &str) -> Answer {
        let body = json!({ "stateMachineArn": self.machine, "name": name, "input": input });
        self.call("StartExecution", &body)
    }

    fn arn(&self, name: &str) -> String {
        format!("{}:{name}", self.machine.replace("stateMachine", "execution"))
    }

    fn stop(&self, name: &str) -> Answer {
        let body = json!({ "executionArn": self.arn(name), "error": "E", "cause": "why" });
        self.call("StopExecution", &body)
    }

    fn describe(&self, name: &str) -> Answer {
        self.call("DescribeExecution", &json!({ "executionArn": self.arn(name) }))
    }

    fn status(&self, name: &str) -> Status {
        self.plane.executions().into_iter().find(|seen| seen.name == name).unwrap().status
    }

    /// The tokens that the table was handed, in order.
    fn tokens(&self) -> Vec<String> {
        let asked = self.rows.asked.lock().unwrap();
        let token = |request: &Value| request["Token"].as_str().map(str::to_owned);
        asked.iter().filter_map(token).collect()
    }

    fn succeed(&self, token: &str, output: &Value) -> Answer {
        self.call("SendTaskSuccess", &json!({ "taskToken": token, "output": output.to_string() }))
    }

    fn answers(&self, code: &str) {
        let error = TableError { code: code.to_owned(), message: "made up".to_owned() };
        self.rows.answers.lock().unwrap().push_back(Err(error));
    }

    fn count(&self, name: &str, event: &str) -> usize {
        self.plane.history(name).into_iter().filter(|kind| *kind == event).count()
    }
}

const WAITS: &str = "arn:aws:states:::aws-sdk:dynamodb:updateItem.waitForTaskToken";
const WRITES: &str = "arn:aws:states:::dynamodb:updateItem";

/// One state that waits for its token, with these members as well.
fn waits(more: &Value) -> Value {
    let mut state = json!({
        "Type": "Task",
        "Resource": WAITS,
        "Parameters": { "Token.$": "$$.Task.Token" },
        "End": true,
    });
    for (key, value) in more.as_object().unwrap() {
        state[key] = value.clone();
    }
    json!({ "StartAt": "T", "States": { "T": state } })
}

fn succeeds_at_once() -> Value {
    json!({ "StartAt": "S", "States": { "S": { "Type": "Succeed" } } })
}
