//! The calls of a load: rounds of the procedure `bench-round`, whose steps are what is measured.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::{HeaderValue, Uri};
use serde_json::{Map, Value, json};

use crate::bench::wire::{Call, Connection};
use crate::fault::Fault;
use crate::harness::client::request_body;

/// The procedure; the folder that holds it is given to the server.
pub const PROCEDURE: &str = include_str!("../../procedures/bench-round.yaml");

/// Its steps.
pub const STEPS: usize = 12;

/// Workflows that may be open at once; one principal may own 100 (docs/limits.md).
pub const OPEN_MAX: usize = 96;

/// Puts the procedure into a new folder below this one, for `serve --procedures`.
///
/// # Errors
/// When it cannot be written.
pub fn procedures_below(folder: &Path) -> Result<PathBuf, Fault> {
    let procedures = folder.join("procedures");
    std::fs::create_dir_all(&procedures).map_err(Fault::io("the folder of procedures"))?;
    std::fs::write(procedures.join("bench-round.yaml"), PROCEDURE)
        .map_err(Fault::io("the procedure"))?;
    Ok(procedures)
}

/// Names for workflows and keys that no other round of the same database uses.
#[derive(Debug, Clone)]
pub struct Names {
    run: String,
    next: u64,
}

impl Names {
    /// New ones.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn new() -> Result<Self, Fault> {
        let run = getrandom::u32().map_err(|e| Fault::Run(format!("no randomness: {e}")))?;
        Ok(Self { run: format!("{run:08x}"), next: 0 })
    }

    /// A key for a call.
    pub fn key(&mut self) -> String {
        self.next += 1;
        format!("bench-{}-{:08}", self.run, self.next)
    }
}

/// How a server wants its calls; the body is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As tools of MCP.
    Mcp,
    /// As handlers of the unit's object behind the ingress of Restate, with the key in a header.
    Restate,
}

impl Form {
    fn call(self, unit: usize, handler: &str, key: &str, body: Bytes) -> Result<Call, Fault> {
        match self {
            Self::Mcp => Ok(body.into()),
            Self::Restate => {
                let path = Uri::try_from(format!("/unit/UNIT-{unit}/{handler}"));
                let path = path.map_err(|e| Fault::Run(format!("no path for a call: {e}")))?;
                let key = HeaderValue::from_str(key);
                let key = key.map_err(|e| Fault::Run(format!("a key is no header: {e}")))?;
                Ok(Call { path, key: Some(key), body })
            }
        }
    }
}

/// A workflow that was started, with the bodies of all its steps.
#[derive(Debug, Clone)]
pub struct Round {
    /// Its id.
    pub id: String,
    /// One `submit_step` each, in order, with fresh keys.
    pub steps: Vec<Call>,
    finish: Call,
}

impl Round {
    /// Starts a workflow on this unit and writes the calls for the rest of it.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start(
        connection: &mut Connection,
        unit: usize,
        names: &mut Names,
    ) -> Result<Self, Fault> {
        Self::start_as(Form::Mcp, connection, unit, names).await
    }

    /// The same on another server.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start_as(
        form: Form,
        connection: &mut Connection,
        unit: usize,
        names: &mut Names,
    ) -> Result<Self, Fault> {
        let key = names.key();
        let arguments = object(json!({
            "procedure_id": "bench-round",
            "assets": { "unit": format!("UNIT-{unit}") },
            "idempotency_key": key,
        }));
        let body = request_body("start_workflow", &arguments);
        let answer = connection.call(form.call(unit, "start", &key, body)?).await?;
        let parsed: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let id = parsed.pointer("/result/structuredContent/workflow/id").and_then(Value::as_str);
        let id = id.ok_or_else(|| unexpected("start_workflow", &answer))?.to_owned();
        expect(&answer, "started")?;
        let steps = (1..=STEPS)
            .map(|n| {
                let key = names.key();
                let arguments = object(json!({
                    "workflow_id": id, "step_id": format!("reading_{n:02}"), "value": "4.2",
                    "idempotency_key": key,
                }));
                form.call(unit, "step", &key, request_body("submit_step", &arguments))
            })
            .collect::<Result<_, Fault>>()?;
        let key = names.key();
        let arguments =
            object(json!({ "workflow_id": id, "result": "passed", "idempotency_key": key }));
        let body = request_body("finish_workflow", &arguments);
        let finish = form.call(unit, "finish", &key, body)?;
        Ok(Self { id, steps, finish })
    }

    /// Corrects the first step; even and odd numbers are different values.
    pub fn correction(&self, number: u64, names: &mut Names) -> Bytes {
        let value = if number.is_multiple_of(2) { "4.3" } else { "4.4" };
        let arguments = object(json!({
            "workflow_id": self.id, "step_id": "reading_01", "value": value, "reason_code": "MISHEARD",
            "idempotency_key": names.key(),
        }));
        request_body("correct_step", &arguments)
    }

    /// Submits what comes after so many steps, and finishes it.
    ///
    /// # Errors
    /// When it is not finished.
    pub async fn complete(&self, connection: &mut Connection, done: usize) -> Result<(), Fault> {
        for body in self.steps.iter().skip(done) {
            expect(&connection.call(body.clone()).await?, "recorded")?;
        }
        self.finish(connection).await
    }

    /// Finishes it, so that its unit is free again.
    ///
    /// # Errors
    /// When it is not finished.
    pub async fn finish(&self, connection: &mut Connection) -> Result<(), Fault> {
        let answer = connection.call(self.finish.clone()).await?;
        expect(&answer, "finished")
    }
}

/// Goes on where a run was ended, with a workflow of which nothing but the id is known: all its steps, then its end.
///
/// # Errors
/// When it does not come to an end.
pub async fn take_up(
    connection: &mut Connection,
    workflow: &str,
    names: &mut Names,
) -> Result<(), Fault> {
    for _ in 0..=STEPS {
        let answer = connection.call(status_of(workflow)).await?;
        expect(&answer, "view")?;
        let parsed: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let step = parsed.pointer("/result/structuredContent/step/id").and_then(Value::as_str);
        let Some(step) = step else {
            let arguments = object(json!({
                "workflow_id": workflow, "result": "passed", "idempotency_key": names.key(),
            }));
            let answer = connection.call(request_body("finish_workflow", &arguments)).await?;
            return expect(&answer, "finished");
        };
        let arguments = object(json!({
            "workflow_id": workflow, "step_id": step, "value": "4.2", "idempotency_key": names.key(),
        }));
        expect(&connection.call(request_body("submit_step", &arguments)).await?, "recorded")?;
    }
    Err(Fault::Run(format!("the workflow {workflow} of an earlier run does not end")))
}

/// Asks where a workflow stands.
#[must_use]
pub fn status_of(workflow: &str) -> Bytes {
    request_body("get_status", &object(json!({ "workflow_id": workflow })))
}

/// Looks for this outcome in the structured content.
///
/// # Errors
/// When another one is there.
pub fn expect(answer: &[u8], outcome: &str) -> Result<(), Fault> {
    const MEMBER: &[u8] = b"\"outcome\":\"";
    // The structured content is at the end, and the same text in `content` has escaped quotes.
    let found = answer.windows(MEMBER.len()).rposition(|window| window == MEMBER);
    let said = found.and_then(|at| answer.get(at + MEMBER.len()..));
    if said.is_some_and(|said| {
        said.strip_prefix(outcome.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'"'))
    }) {
        return Ok(());
    }
    Err(unexpected(outcome, answer))
}

/// Is this a list of tools, with some in it?
#[must_use]
pub fn is_list(answer: &[u8]) -> bool {
    const MEMBER: &[u8] = b"\"tools\":[{";
    answer.windows(MEMBER.len()).any(|window| window == MEMBER)
}

/// Is this the answer to a repeated call?
#[must_use]
pub fn is_duplicate(answer: &[u8]) -> bool {
    const MEMBER: &[u8] = b"\"duplicate\":true";
    answer.windows(MEMBER.len()).any(|window| window == MEMBER)
}

fn unexpected(wanted: &str, answer: &[u8]) -> Fault {
    let said: String = String::from_utf8_lossy(answer).chars().take(600).collect();
    Fault::Run(format!("not the answer that the load expects ({wanted}): {said}"))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::Form;

    #[test]
    fn restate_has_the_unit_in_the_path_and_the_key_in_a_header() {
        let call = |form: Form| form.call(7, "step", "key-1", Bytes::from_static(b"{}"));
        let there = call(Form::Restate).expect("a call");
        assert_eq!(there.path.path(), "/unit/UNIT-7/step");
        assert_eq!(there.key.as_ref().map(http::HeaderValue::as_bytes), Some(&b"key-1"[..]));
        let ours = call(Form::Mcp).expect("a call");
        assert_eq!((ours.path.path(), ours.key, ours.body), ("/mcp", None, there.body));
    }
}
