//! A caller that does one thing at a time, so that what each answer must be is known exactly.
//!
//! `harness::workload` is richer, and has refusals of its own; here every attempt is either done or the store's fault.
//! A call that got no good answer is sent again with its key, or set aside and settled after the fault.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use wf_testkit::audit::history::Outcome;

use crate::harness::client::Client;
use crate::harness::record::{Call, Recorder};

/// What one attempt said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// Done, now or by an earlier attempt.
    Done,
    /// `BACKEND_UNAVAILABLE` as it must be: the same call may be sent again.
    Unavailable {
        /// When.
        after_ms: Option<u64>,
    },
    /// Refused before the tool saw it, nothing done.
    Shed,
    /// No answer.
    Silent(String),
    /// An answer that no fault of a disk may cause.
    Wrong(String),
}

/// One caller, with one workflow at a time.
#[derive(Debug)]
pub(super) struct Caller {
    number: u32,
    client: Client,
    recorder: Arc<Recorder>,
    /// The call to send next; the same one until it is done.
    next: Call,
    /// How often it was sent without being done.
    tries: u32,
    aside: Vec<Call>,
    orders: u32,
    /// The last workflow seen: id and revision.
    seen: Option<(String, u64)>,
}

/// How often a call is sent before it is set aside for another workflow's.
const TRIES_MAX: u32 = 2;
/// Calls set aside at most: each may leave a workflow open, and an actor may have 100 of them.
const ASIDE_MAX: usize = 6;

impl Caller {
    pub(super) fn new(number: u32, address: SocketAddr, recorder: &Arc<Recorder>) -> Self {
        let (client, recorder) = (Client::new(address), Arc::clone(recorder));
        let next = start(number, 0, &recorder);
        Self { number, client, recorder, next, tries: 0, aside: Vec::new(), orders: 0, seen: None }
    }

    /// The server is there now.
    pub(super) fn turn_to(&mut self, address: SocketAddr) {
        self.client = Client::new(address);
    }

    /// Sends the call in hand once.
    pub(super) async fn act(&mut self) -> Said {
        let call = self.next.clone();
        let (said, result) = self.send(&call).await;
        match result {
            Some(result) if said == Said::Done => {
                self.tries = 0;
                self.follow(&result);
            }
            _ => {
                self.tries += 1;
                if self.tries >= TRIES_MAX && self.aside.len() < ASIDE_MAX {
                    self.tries = 0;
                    self.aside.push(call);
                    self.begin();
                }
            }
        }
        said
    }

    /// Reads a workflow of its own, or the list when it has none.
    pub(super) async fn look(&mut self) -> Said {
        let (tool, arguments) = match &self.seen {
            Some((id, _)) => ("get_status", object(json!({ "workflow_id": id }))),
            None => ("find_work", Map::new()),
        };
        let call = Call { number: self.recorder.next_call(), tool, arguments };
        let (said, result) = self.send(&call).await;
        let Some(((_, known), result)) = self.seen.as_ref().zip(result) else { return said };
        let revision = result.pointer("/workflow/revision").and_then(Value::as_u64);
        if said == Said::Done && revision.is_none_or(|revision| revision < *known) {
            return Said::Wrong(format!("revision {known} was acknowledged, {revision:?} is read"));
        }
        said
    }

    /// Settles what was set aside: each within so many attempts. Answers the calls that stay open. Nobody goes on with
    /// those workflows, and an actor may have a hundred open ones, so they are given up.
    pub(super) async fn settle(&mut self, tries: u32) -> Vec<String> {
        let mut open = Vec::new();
        for call in std::mem::take(&mut self.aside) {
            match self.insist(&call, tries).await {
                Ok(view) if is_over(&view) => {}
                Ok(view) => {
                    let mut end = self.giving_up(&view);
                    // Asked first whether that is meant.
                    let asked = self.send(&end).await.1;
                    let token = asked.as_ref().and_then(|asked| asked.pointer("/confirm/token"));
                    end.arguments.extend(token.map(|t| ("confirm_token".to_owned(), t.clone())));
                    if let Err(said) = self.insist(&end, tries).await {
                        open.push(format!("giving up after call {}: {said:?}", call.number));
                    }
                }
                Err(said) => open.push(format!("call {} of {}: {said:?}", call.number, call.tool)),
            }
        }
        open
    }

    /// Sends a call until it is done, at most so often; the result, or what was said last.
    async fn insist(&mut self, call: &Call, tries: u32) -> Result<Value, Said> {
        let mut last = Said::Shed;
        for _ in 0..tries {
            match self.send(call).await {
                (Said::Done, Some(result)) => return Ok(result),
                (said, _) => last = said,
            }
        }
        Err(last)
    }

    fn giving_up(&self, view: &Value) -> Call {
        let number = self.recorder.next_call();
        let id = view.pointer("/workflow/id").cloned().unwrap_or_default();
        let arguments = json!({
            "workflow_id": id, "result": "abandoned", "idempotency_key": key(self.number, number),
        });
        Call { number, tool: "finish_workflow", arguments: object(arguments) }
    }

    /// The body of the call in hand and its record, for a case that sends it in its own way.
    pub(super) fn in_hand(&self) -> (&'static str, Map<String, Value>) {
        (self.next.tool, self.next.arguments.clone())
    }

    /// Writes down an attempt of the call in hand that another caller made.
    pub(super) fn keep(&self, caller: u32, sent_ns: u64, outcome: Outcome) {
        self.recorder.attempted(caller, &self.next, sent_ns, outcome);
    }

    async fn send(&mut self, call: &Call) -> (Said, Option<Value>) {
        let sent_ns = self.recorder.now_ns();
        let outcome = self.client.call(call.tool, &call.arguments).await;
        self.recorder.attempted(self.number, call, sent_ns, outcome.clone());
        let result = outcome.result();
        (judge(&outcome, result.as_ref()), result)
    }

    fn begin(&mut self) {
        self.orders += 1;
        self.next = start(self.number, self.orders, &self.recorder);
    }

    /// Decides the call after a good answer.
    fn follow(&mut self, view: &Value) {
        let id = view.pointer("/workflow/id").and_then(Value::as_str).unwrap_or_default();
        let revision = view.pointer("/workflow/revision").and_then(Value::as_u64).unwrap_or(0);
        self.seen = Some((id.to_owned(), revision));
        let number = self.recorder.next_call();
        let mut arguments =
            json!({ "workflow_id": id, "idempotency_key": key(self.number, number) });
        let tool = match view.get("step") {
            _ if is_over(view) => return self.begin(),
            Some(step) => {
                let step_id = step.get("id").and_then(Value::as_str).unwrap_or_default();
                arguments["step_id"] = step_id.into();
                arguments["value"] = value(step_id).into();
                if let Some(unit) = step.get("unit") {
                    arguments["unit"] = unit.clone();
                }
                "submit_step"
            }
            None => {
                arguments["result"] = "passed".into();
                "finish_workflow"
            }
        };
        self.next = Call { number, tool, arguments: object(arguments) };
    }
}

/// A start on an asset that nobody else has.
fn start(caller: u32, order: u32, recorder: &Recorder) -> Call {
    let number = recorder.next_call();
    // Six digits at most.
    let asset = 1 + u64::from(caller) * 1_000 + u64::from(order % 1_000);
    let arguments = json!({
        "procedure_id": "pump-inspection",
        "assets": { "pump": format!("PUMP-{asset}") },
        "inputs": { "work_order": format!("WO {number}") },
        "idempotency_key": key(caller, number),
    });
    Call { number, tool: "start_workflow", arguments: object(arguments) }
}

fn is_over(view: &Value) -> bool {
    view.pointer("/workflow/state").and_then(Value::as_str) == Some("COMPLETED")
}

/// Unique among the callers of a database.
fn key(caller: u32, call: u64) -> String {
    format!("k{caller}-{call}")
}

/// A good answer to a step of the shipped pump inspection.
fn value(step: &str) -> &'static str {
    match step {
        "isolate" => "yes",
        "suction_pressure" => "3.5",
        "vibration" => "2.0",
        "bearing_temperature" => "40.5",
        "seal" => "dry",
        _ => "nothing to add",
    }
}

/// What an outcome means.
pub(super) fn judge(outcome: &Outcome, result: Option<&Value>) -> Said {
    let result = match outcome {
        Outcome::NotSent => return Said::Silent("nobody listens".to_owned()),
        Outcome::Unknown { why } => return Said::Silent(why.clone()),
        Outcome::Shed { .. } => return Said::Shed,
        Outcome::Answered { text } => match result {
            Some(result) => result,
            None => return Said::Wrong(format!("no result: {text}")),
        },
    };
    if result.get("ok") == Some(&Value::Bool(true)) {
        return match result.get("outcome").and_then(Value::as_str) {
            Some("needs_confirmation" | "needs_input" | "not_recorded" | "joined") | None => {
                Said::Wrong(brief(result))
            }
            Some(_) => Said::Done,
        };
    }
    let at = |pointer| result.pointer(pointer).and_then(Value::as_str);
    match (at("/error/code"), at("/error/retry")) {
        (Some("BACKEND_UNAVAILABLE"), Some("same_call")) => Said::Unavailable {
            after_ms: result.pointer("/error/after_ms").and_then(Value::as_u64),
        },
        _ => Said::Wrong(brief(result)),
    }
}

fn brief(result: &Value) -> String {
    result.to_string().chars().take(400).collect()
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Said, judge};

    fn judged(text: &str) -> Said {
        let outcome = Outcome::Answered { text: text.to_owned() };
        judge(&outcome, outcome.result().as_ref())
    }

    #[test]
    fn only_the_answer_of_a_fault_counts_as_one() {
        let unavailable = r#"{"ok":false,"outcome":"error","error":{"code":"BACKEND_UNAVAILABLE","retry":"same_call"}}"#;
        assert_eq!(judged(unavailable), Said::Unavailable { after_ms: None });
        let other_retry = unavailable.replace("same_call", "no");
        assert!(matches!(judged(&other_retry), Said::Wrong(_)));
        let internal = unavailable.replace("BACKEND_UNAVAILABLE", "INTERNAL");
        assert!(matches!(judged(&internal), Said::Wrong(_)));
        assert_eq!(judged(r#"{"ok":true,"outcome":"recorded"}"#), Said::Done);
        assert!(matches!(judged(r#"{"ok":true,"outcome":"needs_input"}"#), Said::Wrong(_)));
        assert!(matches!(judged("gibberish"), Said::Wrong(_)));
    }
}
