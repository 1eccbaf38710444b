//! The HTTP client under the SDK, with a script of what befalls requests. Deterministic: the n-th request of an operation
//! meets the n-th entry; those behind the script pass, or meet what goes on for ever. Requests to DynamoDB arrive at the
//! emulator, those to Step Functions at the double, if there is one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::{Value, json};
use tokio::sync::Notify;
use wf_testkit::step_functions::StepFunctions;

/// What befalls a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    Pass,
    /// It is answered with an error of DynamoDB and never arrives.
    Error(u16, &'static str),
    /// It is cancelled for these reasons and never arrives.
    Cancelled(&'static [&'static str]),
    /// The connection breaks before it arrives.
    Reset,
    /// It arrives, and the answer is lost.
    Lost,
    /// It arrives, and the answer never comes.
    LostAndSilent,
    /// It does not arrive, and no answer ever comes.
    Hang,
    /// It arrives under another client request token, as if the table had forgotten the one it had: they are kept for ten
    /// minutes.
    Forgotten,
    /// It is answered with all of its keys unprocessed.
    Unprocessed,
    /// The answer lacks the items whose sort key has this in it: a query that sees half of a transaction.
    Without(&'static str),
    /// The answer has every item twice: a query of an index in which they are moving.
    Twice,
}

pub(crate) const THROTTLED: Fault = Fault::Error(400, "ThrottlingException");
pub(crate) const OVER_CAPACITY: Fault = Fault::Error(400, "ProvisionedThroughputExceededException");
pub(crate) const INTERNAL: Fault = Fault::Error(500, "InternalServerError");
pub(crate) const UNAVAILABLE: Fault = Fault::Error(503, "ServiceUnavailable");
pub(crate) const IN_PROGRESS: Fault = Fault::Error(400, "TransactionInProgressException");
pub(crate) const MISMATCH: Fault = Fault::Error(400, "IdempotentParameterMismatchException");
pub(crate) const CONFLICT: Fault = Fault::Cancelled(&["TransactionConflict"]);

/// A request as it was sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) operation: String,
    pub(crate) body: Value,
    pub(crate) bytes: Vec<u8>,
}

impl Sent {
    /// It changes something, other than who has the lease of a shard.
    pub(crate) fn writes(&self) -> bool {
        let reads = ["GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan"];
        let looks = ["DescribeExecution", "ListExecutions", "DescribeStateMachine"];
        let key = self.body["Key"]["PK"]["S"].as_str().unwrap_or_default();
        !reads.iter().chain(&looks).any(|name| *name == self.operation)
            && !key.starts_with("RECON#")
    }
}

/// The end of a process at one of its writes: its answer is never heard, and nothing is sent afterwards.
#[derive(Debug)]
struct Death {
    /// Writes before it.
    left: usize,
    /// The last one arrives.
    arrives: bool,
    dead: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Script {
    next: BTreeMap<String, VecDeque<Fault>>,
    always: BTreeMap<String, VecDeque<Fault>>,
    log: Vec<Sent>,
    held: Option<(String, Gate)>,
    echoed: Option<(String, Gate)>,
    death: Option<Death>,
    still: Option<(usize, Gate)>,
}

/// Holds one request up on its way, or a copy of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate {
    reached: Arc<Notify>,
    open: Arc<Notify>,
}

impl Gate {
    /// The request is on its way; of a copy: it has arrived.
    pub(crate) async fn reached(&self) {
        self.reached.notified().await;
    }

    /// Lets it pass.
    pub(crate) fn open(&self) {
        self.open.notify_one();
    }
}

/// The wire. A clone is the same wire.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    inner: SharedHttpClient,
    script: Arc<Mutex<Script>>,
    states: Option<States>,
}

/// Step Functions in the process.
#[derive(Debug, Clone)]
struct States {
    plane: StepFunctions,
    /// Executions have gone on before the answer is there, as far as they can; otherwise they go on when a test says so.
    eager: bool,
}

pub(crate) const WRITE: &str = "TransactWriteItems";

impl Wire {
    pub(crate) fn new() -> Self {
        let inner = aws_smithy_http_client::Builder::new().build_http();
        Self { inner, script: Arc::default(), states: None }
    }

    /// With this double of Step Functions. `eager`: executions are faster than its answers.
    pub(crate) fn with_states(plane: &StepFunctions, eager: bool) -> Self {
        Self { states: Some(States { plane: plane.clone(), eager }), ..Self::new() }
    }

    /// The process ends at its write after `left` more; that one arrives, or it does not. Notified when it is over.
    pub(crate) fn dies(&self, left: usize, arrives: bool) -> Arc<Notify> {
        let dead = Arc::new(Notify::new());
        self.script().death = Some(Death { left, arrives, dead: Arc::clone(&dead) });
        dead
    }

    /// The process stands still before its write after `left` more, until the gate is opened.
    pub(crate) fn stands_still(&self, left: usize) -> Gate {
        let gate = Gate::default();
        self.script().still = Some((left, gate.clone()));
        gate
    }

    /// The gate before which this request stands still.
    fn still(&self, sent: &Sent) -> Option<Gate> {
        let mut script = self.script();
        let (left, _) = script.still.as_mut().filter(|_| sent.writes())?;
        if *left > 0 {
            *left -= 1;
            return None;
        }
        script.still.take().map(|(_, gate)| gate)
    }

    /// What of a death befalls this request: none, or its end, and whether it arrives.
    fn fate(&self, sent: &Sent) -> Option<(bool, Arc<Notify>)> {
        let mut script = self.script();
        let death = script.death.as_mut()?;
        if death.left == usize::MAX {
            return Some((false, Arc::clone(&death.dead)));
        }
        if !sent.writes() {
            return None;
        }
        if death.left > 0 {
            death.left -= 1;
            return None;
        }
        death.left = usize::MAX;
        Some((death.arrives, Arc::clone(&death.dead)))
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next requests of an operation meet these.
    pub(crate) fn next(&self, operation: &str, faults: impl IntoIterator<Item = Fault>) {
        self.script().next.entry(operation.to_owned()).or_default().extend(faults);
    }

    /// All further requests of an operation meet these, in turn, for ever; none ends it.
    pub(crate) fn always(&self, operation: &str, faults: impl IntoIterator<Item = Fault>) {
        self.script().always.insert(operation.to_owned(), faults.into_iter().collect());
    }

    /// Holds the next request of an operation up until the gate is opened.
    pub(crate) fn hold(&self, operation: &str) -> Gate {
        let gate = Gate::default();
        self.script().held = Some((operation.to_owned(), gate.clone()));
        gate
    }

    /// A copy of the next request of an operation arrives when the gate is opened, as if the network had kept it for so
    /// long that the table has forgotten its token. With [`Fault::Reset`] it is the request itself, come late.
    pub(crate) fn echo(&self, operation: &str) -> Gate {
        let gate = Gate::default();
        self.script().echoed = Some((operation.to_owned(), gate.clone()));
        gate
    }

    fn gates(&self, operation: &str) -> (Option<Gate>, Option<Gate>) {
        let mut script = self.script();
        let mine = |(of, _): &mut (String, Gate)| of == operation;
        let held = script.held.take_if(mine).map(|(_, gate)| gate);
        (held, script.echoed.take_if(mine).map(|(_, gate)| gate))
    }

    /// Requests since the last time, and forgets them.
    pub(crate) fn take_log(&self) -> Vec<Sent> {
        std::mem::take(&mut self.script().log)
    }

    /// The operations of the requests since the last time, and forgets them.
    pub(crate) fn take_operations(&self) -> Vec<String> {
        self.take_log().into_iter().map(|sent| sent.operation).collect()
    }

    fn fault(&self, sent: Sent) -> Fault {
        let mut script = self.script();
        let operation = sent.operation.clone();
        script.log.push(sent);
        if let Some(fault) = script.next.get_mut(&operation).and_then(VecDeque::pop_front) {
            return fault;
        }
        let Some(always) = script.always.get_mut(&operation) else { return Fault::Pass };
        let Some(fault) = always.pop_front() else { return Fault::Pass };
        always.push_back(fault.clone());
        fault
    }
}

impl HttpClient for Wire {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Connector { inner, wire: self.clone() })
    }
}

#[derive(Debug)]
struct Connector {
    inner: SharedHttpConnector,
    wire: Wire,
}

impl HttpConnector for Connector {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default().to_owned();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let bytes = request.body().bytes().unwrap_or_default().to_vec();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let (gate, echo) = self.wire.gates(&operation);
        let sent = Sent { operation, body: body.clone(), bytes };
        let gate = self.wire.still(&sent).or(gate);
        let states = target.starts_with("AWSStepFunctions.").then(|| self.wire.states.clone());
        let inner = Far { inner: self.inner.clone(), states: states.flatten(), target };
        if let Some((arrives, dead)) = self.wire.fate(&sent) {
            return HttpConnectorFuture::new(async move {
                if arrives {
                    drop(inner.call(request).await);
                }
                dead.notify_one();
                std::future::pending().await
            });
        }
        let fault = self.wire.fault(sent);
        if let Some(gate) = echo {
            arrive_late(inner.clone(), &request, body.clone(), gate);
        }
        if fault == Fault::Forgotten {
            forget(&mut request, body.clone());
        }
        HttpConnectorFuture::new(async move {
            if let Some(gate) = gate {
                gate.reached.notify_one();
                gate.open.notified().await;
            }
            match fault {
                Fault::Pass | Fault::Forgotten => inner.call(request).await,
                Fault::Without(text) => {
                    let torn = |item: &Value| !item["SK"]["S"].to_string().contains(text);
                    answered(inner.call(request).await?, |items| items.retain(torn)).await
                }
                Fault::Twice => {
                    answered(inner.call(request).await?, |items| items.extend(items.clone())).await
                }
                Fault::Unprocessed => {
                    let left = json!({ "Responses": {}, "UnprocessedKeys": body["RequestItems"] });
                    Ok(response(200, left.to_string()))
                }
                Fault::Error(status, code) => Ok(answer(status, code, "")),
                Fault::Cancelled(codes) => {
                    let reason =
                        |code: &&str| format!(r#"{{"Code":"{code}","Message":"made up"}}"#);
                    let reasons: Vec<String> = codes.iter().map(reason).collect();
                    let reasons = format!(r#","CancellationReasons":[{}]"#, reasons.join(","));
                    Ok(answer(400, "TransactionCanceledException", &reasons))
                }
                Fault::Reset => Err(broken("before it was sent")),
                Fault::Lost => {
                    let answer = inner.call(request).await;
                    drop(answer);
                    Err(broken("while the answer was awaited"))
                }
                Fault::LostAndSilent => {
                    let answer = inner.call(request).await;
                    drop(answer);
                    std::future::pending().await
                }
                Fault::Hang => std::future::pending().await,
            }
        })
    }
}

/// Where a request arrives: at the emulator, or at the double of Step Functions.
#[derive(Debug, Clone)]
struct Far {
    inner: SharedHttpConnector,
    states: Option<States>,
    target: String,
}

impl Far {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let Some(States { plane, eager }) = &self.states else {
            return self.inner.call(request).await;
        };
        let body = request.body().bytes().unwrap_or_default();
        let answer = plane.call(&self.target, &serde_json::from_slice(body).expect("JSON"));
        if *eager {
            plane.run().await;
        }
        Ok(response(answer.status, answer.body.to_string()))
    }
}

/// Sends a copy when the gate opens, and tells nobody what comes of it.
fn arrive_late(inner: Far, request: &HttpRequest, body: Value, gate: Gate) {
    let mut copy = request.try_clone().expect("a request that was not read yet");
    forget(&mut copy, body);
    tokio::spawn(async move {
        gate.open.notified().await;
        let answer = inner.call(copy).await.expect("an answer");
        ByteStream::new(answer.into_body()).collect().await.expect("a whole answer");
        gate.reached.notify_one();
    });
}

/// An answer to a query, with other items.
async fn answered(
    answer: HttpResponse,
    change: impl FnOnce(&mut Vec<Value>),
) -> Result<HttpResponse, ConnectorError> {
    let body = ByteStream::new(answer.into_body()).collect().await.expect("a whole answer");
    let mut body: Value = serde_json::from_slice(&body.to_vec()).expect("JSON");
    let items = body["Items"].as_array_mut().expect("the answer to a query");
    change(items);
    body["Count"] = Value::from(items.len());
    Ok(response(200, body.to_string()))
}

fn broken(when: &str) -> ConnectorError {
    let error = std::io::Error::new(std::io::ErrorKind::ConnectionReset, when);
    ConnectorError::io(error.into())
}

/// Gives the transaction another token. The emulator does not look at signatures.
fn forget(request: &mut HttpRequest, mut body: Value) {
    let token = body["ClientRequestToken"].as_str().unwrap_or_default();
    let other: String = token.chars().rev().collect();
    body["ClientRequestToken"] = Value::from(other);
    *request.body_mut() = SdkBody::from(body.to_string());
    request.headers_mut().remove("content-length");
}

fn answer(status: u16, code: &str, more: &str) -> HttpResponse {
    let name = format!("com.amazonaws.dynamodb.v20120810#{code}");
    response(status, format!(r#"{{"__type":"{name}","message":"made up"{more}}}"#))
}

fn response(status: u16, body: String) -> HttpResponse {
    let status = status.try_into().expect("a status");
    let mut response = HttpResponse::new(status, SdkBody::from(body));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    response
}
