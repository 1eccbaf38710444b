//! The client over a script of answers: what it sends, and what each answer means. No network.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use wf_core::models::{TenantId, WorkflowId};
use wf_core::reconcile::Run;

use super::{Answered, Execution, States, Told, Trouble};
use crate::config::AwsConfig;

const ARN: &str = "arn:aws:states:eu-west-1:123456789012:stateMachine:checkpoint";
const STORE: &str = "0123456789abcdef";
const NAME: &str = "01234567-wf_1-3";

/// What a request is answered.
#[derive(Debug, Clone)]
enum Answer {
    Ok(Value),
    Error(u16, &'static str),
    Text(u16, &'static str),
    Reset,
    Hang,
}

#[derive(Debug, Clone, Default)]
struct Script {
    next: Arc<Mutex<VecDeque<Answer>>>,
    sent: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Script {
    fn of(answers: impl IntoIterator<Item = Answer>) -> Self {
        let script = Self::default();
        script.next.lock().unwrap_or_else(PoisonError::into_inner).extend(answers);
        script
    }

    fn sent(&self) -> Vec<(String, Value)> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn operations(&self) -> Vec<String> {
        self.sent().into_iter().map(|(operation, _)| operation).collect()
    }

    async fn states(&self) -> States {
        let mut config = AwsConfig::new("t").with_http_client(self.clone());
        config.endpoint_url = Some("http://127.0.0.1:9".to_owned());
        config.region = Some("eu-west-1".to_owned());
        config.state_machine_arn = Some(ARN.to_owned());
        config.attempt_timeout_ms = 100;
        States::connect(&config, STORE).await.expect("a client").expect("a state machine")
    }
}

impl HttpClient for Script {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Script {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body = serde_json::from_slice(request.body().bytes().unwrap_or_default());
        let body = body.unwrap_or(Value::Null);
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push((operation, body));
        let answer = self.next.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        HttpConnectorFuture::new(async move {
            match answer.expect("no request without an answer") {
                Answer::Ok(body) => Ok(response(200, &body.to_string())),
                Answer::Error(status, code) => Ok(response(
                    status,
                    &json!({ "__type": code, "message": "made up" }).to_string(),
                )),
                Answer::Text(status, text) => Ok(response(status, text)),
                Answer::Reset => {
                    let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                    Err(ConnectorError::io(error.into()))
                }
                Answer::Hang => std::future::pending().await,
            }
        })
    }
}

fn response(status: u16, body: &str) -> HttpResponse {
    let status = status.try_into().expect("a status");
    let mut response = HttpResponse::new(status, SdkBody::from(body));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    response
}

fn described(status: &str, input: Option<&str>) -> Answer {
    let mut body = json!({
        "executionArn": format!("{ARN}:x"),
        "stateMachineArn": ARN,
        "status": status,
        "startDate": 1.0,
    });
    if let Some(input) = input {
        body["input"] = Value::from(input);
    }
    Answer::Ok(body)
}

/// As our input, in another order and with blanks.
const OURS: &str = r#" { "fence": 3, "workflow_id": "wf_1", "tenant": "acme", "table": "t" } "#;

const UNCLEAR: [(Answer, &str); 12] = [
    (Answer::Error(400, "ThrottlingException"), "throttled"),
    (Answer::Error(400, "ExecutionLimitExceeded"), "throttled"),
    (Answer::Error(429, "Whatever"), "throttled"),
    (Answer::Error(500, "InternalFailure"), "silent"),
    (Answer::Error(503, "ServiceUnavailable"), "silent"),
    (Answer::Error(400, "SomethingNew"), "silent"),
    (Answer::Text(502, "<html>"), "silent"),
    (Answer::Reset, "silent"),
    (Answer::Hang, "silent"),
    (Answer::Error(400, "StateMachineDoesNotExist"), "no_machine"),
    (Answer::Error(400, "AccessDeniedException"), "denied"),
    (Answer::Error(400, "InvalidArn"), "refused"),
];

/// Runs `call` with each answer that says nothing, and with one that says something but cannot be read.
async fn is_unclear<T>(call: impl AsyncFn(&States) -> Result<T, Trouble>, operation: &str) {
    for (answer, kind) in UNCLEAR {
        let script = Script::of([answer.clone()]);
        let trouble = call(&script.states().await).await.err().expect("trouble");
        assert_eq!(trouble.kind(), kind, "{answer:?}: {trouble:?}");
        // Sent once: whoever calls looks again later.
        assert_eq!(script.operations(), [operation], "{answer:?}");
    }
}

fn with_execution<T>(act: impl FnOnce(&Execution<'_>) -> T) -> T {
    let tenant = TenantId::parse("acme").expect("an id");
    let workflow_id = WorkflowId::parse("wf_1").expect("an id");
    act(&Execution { tenant: &tenant, workflow_id: &workflow_id, fence: 3 })
}

fn ids() -> (TenantId, WorkflowId) {
    with_execution(|execution| (execution.tenant.clone(), execution.workflow_id.clone()))
}

async fn start(states: &States) -> Result<Run, Trouble> {
    let (tenant, workflow_id) = ids();
    states.start(&Execution { tenant: &tenant, workflow_id: &workflow_id, fence: 3 }).await
}

async fn describe(states: &States) -> Result<Run, Trouble> {
    let (tenant, workflow_id) = ids();
    states.describe(&Execution { tenant: &tenant, workflow_id: &workflow_id, fence: 3 }).await
}

async fn stop(states: &States) -> Result<(), Trouble> {
    let (tenant, workflow_id) = ids();
    states.stop(&Execution { tenant: &tenant, workflow_id: &workflow_id, fence: 3 }, "why").await
}

async fn answer(states: &States) -> Result<Answered, Trouble> {
    let told = Told { state: "RUNNING", ends: false, revision: 7, timeout_s: 60 };
    states.answer("token", &told).await
}

#[tokio::test]
async fn a_start_sends_the_name_and_the_input_and_nothing_else() {
    let started = json!({ "executionArn": format!("{ARN}:x"), "startDate": 1.0 });
    let script = Script::of([Answer::Ok(started)]);
    assert_eq!(start(&script.states().await).await.expect("an answer"), Run::Running);
    let [(operation, body)] = script.sent().try_into().expect("one request");
    assert_eq!((operation.as_str(), &body["name"]), ("StartExecution", &json!(NAME)));
    assert_eq!(body["stateMachineArn"], ARN);
    let input: Value = serde_json::from_str(body["input"].as_str().expect("text")).expect("JSON");
    let expected = json!({ "table": "t", "tenant": "acme", "workflow_id": "wf_1", "fence": 3 });
    assert_eq!(input, expected);
}

#[tokio::test]
async fn what_has_the_name_already_is_looked_at() {
    let other = OURS.replace('3', "4");
    for (looked, expected) in [
        (described("RUNNING", Some(OURS)), Run::Running),
        (described("RUNNING", Some(&other)), Run::Foreign),
        (described("RUNNING", Some("[]")), Run::Foreign),
        (described("SUCCEEDED", Some(OURS)), Run::Closed),
        (described("FAILED", Some(OURS)), Run::Closed),
        (described("ABORTED", Some(OURS)), Run::Closed),
        (described("TIMED_OUT", Some(OURS)), Run::Closed),
    ] {
        let script = Script::of([Answer::Error(400, "ExecutionAlreadyExists"), looked.clone()]);
        let run = start(&script.states().await).await.expect("an answer");
        assert_eq!(run, expected, "{looked:?}");
        let [_, (operation, body)] = script.sent().try_into().expect("two requests");
        assert_eq!(operation, "DescribeExecution");
        let arn = format!("arn:aws:states:eu-west-1:123456789012:execution:checkpoint:{NAME}");
        assert_eq!(body["executionArn"], arn);
    }
    let exists = Answer::Error(400, "ExecutionAlreadyExists");
    let script = Script::of([exists, Answer::Error(400, "ExecutionDoesNotExist")]);
    let trouble = start(&script.states().await).await.expect_err("a contradiction");
    assert_eq!(trouble.kind(), "contradictory");
}

#[tokio::test]
async fn a_description_says_how_it_is_or_nothing() {
    let script = Script::of([Answer::Error(400, "ExecutionDoesNotExist")]);
    assert_eq!(describe(&script.states().await).await.expect("an answer"), Run::Absent);
    for looked in [described("PENDING_REDRIVE", Some(OURS)), described("RUNNING", None)] {
        let script = Script::of([looked.clone()]);
        let trouble = describe(&script.states().await).await.expect_err("nothing is known");
        assert_eq!(trouble.kind(), "contradictory", "{looked:?}");
    }
}

#[tokio::test]
async fn what_is_gone_counts_as_stopped() {
    for answers in [
        vec![Answer::Ok(json!({ "stopDate": 1.0 }))],
        vec![Answer::Error(400, "ExecutionDoesNotExist")],
        vec![Answer::Error(400, "ValidationException"), described("ABORTED", Some(OURS))],
        vec![
            Answer::Error(400, "ValidationException"),
            Answer::Error(400, "ExecutionDoesNotExist"),
        ],
    ] {
        let script = Script::of(answers.clone());
        stop(&script.states().await).await.expect("stopped");
        let (_, body) = script.sent().swap_remove(0);
        assert_eq!(body["cause"], "why", "{answers:?}");
    }
    let refused = Answer::Error(400, "ValidationException");
    let script = Script::of([refused, described("RUNNING", Some(OURS))]);
    let trouble = stop(&script.states().await).await.expect_err("it runs");
    assert_eq!(trouble.kind(), "refused");
}

#[tokio::test]
async fn a_token_is_answered_or_dead() {
    let script = Script::of([Answer::Ok(json!({}))]);
    assert_eq!(answer(&script.states().await).await.expect("an answer"), Answered::Taken);
    let [(_, body)] = script.sent().try_into().expect("one request");
    let output: Value = serde_json::from_str(body["output"].as_str().expect("text")).expect("JSON");
    assert_eq!(output, json!({ "timeout": 60, "state": "RUNNING", "revision": 7 }));
    for code in ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"] {
        let script = Script::of([Answer::Error(400, code)]);
        let answered = answer(&script.states().await).await.expect("an answer");
        assert_eq!(answered, Answered::Dead, "{code}");
    }
}

/// The last answer ends the execution, whatever the state is called.
#[tokio::test]
async fn the_last_answer_says_completed() {
    let script = Script::of([Answer::Ok(json!({}))]);
    let told = Told { state: "RUNNING", ends: true, revision: 9, timeout_s: 86_400 };
    script.states().await.answer("token", &told).await.expect("an answer");
    let [(_, body)] = script.sent().try_into().expect("one request");
    let output: Value = serde_json::from_str(body["output"].as_str().expect("text")).expect("JSON");
    assert_eq!(output["state"], "COMPLETED");
}

#[tokio::test]
async fn what_says_nothing_is_unclear_and_sent_once() {
    is_unclear(start, "StartExecution").await;
    is_unclear(describe, "DescribeExecution").await;
    is_unclear(answer, "SendTaskSuccess").await;
}

/// Looks are ours to save: AWS refills few of them. The first come at once, then it is slow, then it is refused.
#[tokio::test(start_paused = true)]
async fn looks_are_rationed() {
    let script = Script::of(std::iter::repeat_n(described("RUNNING", Some(OURS)), 200));
    let states = script.states().await;
    let mut running = tokio::task::JoinSet::new();
    let states = Arc::new(states);
    for _ in 0..100 {
        let states = Arc::clone(&states);
        running.spawn(async move { describe(&states).await.map_err(|trouble| trouble.kind()) });
    }
    let looked = running.join_all().await;
    let refused = looked.iter().filter(|one| **one == Err("throttled")).count();
    let asked = script.operations().len();
    // 30 at once and 5 a second for 2 seconds, and a few more while the test itself takes time.
    assert!((30..=60).contains(&asked), "{asked}");
    assert_eq!(asked + refused, 100);
}

#[tokio::test]
async fn a_list_has_pages_of_what_runs() {
    let one = |name: &str| {
        json!({ "executionArn": format!("{ARN}:{name}"), "name": name, "status": "RUNNING",
                "stateMachineArn": ARN, "startDate": 1.0 })
    };
    let script = Script::of([
        Answer::Ok(json!({ "executions": [one("a"), one("b")], "nextToken": "more" })),
        Answer::Ok(json!({ "executions": [one("c")] })),
    ]);
    let states = script.states().await;
    let (page, next) = states.list(None).await.expect("a page");
    assert_eq!((page.len(), next.as_deref()), (2, Some("more")));
    let (page, next) = states.list(next).await.expect("a page");
    assert_eq!((page[0].name.as_str(), next), ("c", None));
    let (_, body) = script.sent().swap_remove(1);
    assert_eq!((&body["statusFilter"], &body["nextToken"]), (&json!("RUNNING"), &json!("more")));
}

#[tokio::test]
async fn without_a_state_machine_there_is_no_client_and_a_wrong_arn_is_said() {
    let mut config = AwsConfig::new("t").with_http_client(Script::default());
    config.endpoint_url = Some("http://127.0.0.1:9".to_owned());
    assert!(States::connect(&config, STORE).await.expect("none").is_none());
    config.state_machine_arn = Some("checkpoint".to_owned());
    let trouble = States::connect(&config, STORE).await.expect_err("no ARN");
    assert_eq!(trouble.kind(), "refused");
}
