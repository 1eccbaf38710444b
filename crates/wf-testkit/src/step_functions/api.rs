//! The actions of the API: what each takes, does, answers and refuses.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wf_core::models::Timestamp;

use super::definition::Definition;
use super::execution::{DATA_BYTES_MAX, EVENTS_MAX, Execution, LIFE_MS, Place, Status};
use super::path::Failure;
use super::plane::{Machine, Plane};
use super::requests::{
    CreateMachine, Failed, Heartbeat, List, OfExecution, OfMachine, Redrive, Start, Stop, Success,
    UpdateMachine,
};

const ACCOUNT: &str = "arn:aws:states:us-east-1:000000000000";
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long the name of an execution that has ended is taken.
const NAME_MS: i64 = 90 * DAY_MS;
/// How long an execution that has ended can be redriven.
const REDRIVE_MS: i64 = 14 * DAY_MS;
/// How long the token of a client keeps a redrive from being done twice.
const CLIENT_TOKEN_MS: i64 = 15 * 60 * 1_000;

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// 200, 400 or 500.
    pub status: u16,
    /// The body; an error names itself in `__type`.
    pub body: Value,
}

impl Answer {
    /// The name of its error; `None` of a success.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.body.get("__type").and_then(Value::as_str)
    }
}

/// Why a request is refused.
struct Refused(&'static str, String);

fn refused<T>(code: &'static str, message: impl Into<String>) -> Result<T, Refused> {
    Err(Refused(code, message.into()))
}

pub(super) fn call(plane: &mut Plane, action: &str, body: &Value, now: Timestamp) -> Answer {
    *plane.took.entry(action.to_owned()).or_default() += 1;
    let answer = if plane.buckets.take(action, now) {
        act(plane, action, body, now)
    } else {
        refused("ThrottlingException", "Rate exceeded")
    };
    match answer {
        Ok(body) => Answer { status: 200, body },
        Err(Refused(code, message)) => {
            Answer { status: 400, body: json!({ "__type": code, "message": message }) }
        }
    }
}

fn act(plane: &mut Plane, action: &str, body: &Value, now: Timestamp) -> Result<Value, Refused> {
    match action {
        "CreateStateMachine" => create(plane, read(body)?, now),
        "UpdateStateMachine" => update(plane, read(body)?, now),
        "DescribeStateMachine" => describe_machine(plane, &read(body)?),
        "DeleteStateMachine" => delete(plane, &read(body)?),
        "StartExecution" => start(plane, read(body)?, now),
        "StopExecution" => stop(plane, read(body)?, now),
        "DescribeExecution" => describe(plane, &read(body)?),
        "ListExecutions" => list(plane, &read(body)?),
        "GetExecutionHistory" => history(plane, &read(body)?),
        "RedriveExecution" => redrive(plane, read(body)?, now),
        "SendTaskSuccess" => success(plane, &read(body)?, now),
        "SendTaskFailure" => failure(plane, read(body)?, now),
        "SendTaskHeartbeat" => {
            let heartbeat: Heartbeat = read(body)?;
            waiting(plane, &heartbeat.task_token).map(|_| json!({}))
        }
        _ => refused("UnknownOperationException", action),
    }
}

fn read<T: DeserializeOwned>(body: &Value) -> Result<T, Refused> {
    serde_json::from_value(body.clone())
        .map_err(|error| Refused("ValidationException", error.to_string()))
}

/// Seconds since 1970, as the protocol writes times.
fn seconds(at: Timestamp) -> Value {
    let ms = at.as_ms();
    let text = format!("{}.{:03}", ms.div_euclid(1_000), ms.rem_euclid(1_000));
    text.parse::<f64>().map_or(Value::Null, Value::from)
}

/// A name of a state machine or an execution.
fn named(name: &str) -> Result<(), Refused> {
    if !(1..=80).contains(&name.chars().count()) {
        return refused("ValidationException", "a name has 1 to 80 characters");
    }
    let wrong = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || "<>{}[]?*\"#%\\^|~`$&,;:/\u{fffe}\u{ffff}".contains(c)
    };
    if name.contains(wrong) {
        refused("InvalidName", format!("Invalid Name: '{name}'"))
    } else {
        Ok(())
    }
}

fn arn(text: &str, kind: &str) -> Result<(), Refused> {
    let parts: Vec<&str> = text.split(':').collect();
    let count = if kind == "execution" { 8 } else { 7 };
    let right = parts.len() == count && text.starts_with("arn:") && parts.get(5) == Some(&kind);
    if right { Ok(()) } else { refused("InvalidArn", format!("Invalid Arn: '{text}'")) }
}

fn defined(text: &str) -> Result<Arc<Definition>, Refused> {
    let definition = Definition::parse(text);
    definition.map(Arc::new).map_err(|why| Refused("InvalidDefinition", why))
}

fn create(plane: &mut Plane, asked: CreateMachine, now: Timestamp) -> Result<Value, Refused> {
    named(&asked.name)?;
    if asked.kind.as_deref().is_some_and(|kind| kind != "STANDARD") {
        // Starts of the other type are not idempotent: it is of no use to us.
        return refused("StateMachineTypeNotSupported", "only STANDARD");
    }
    let definition = defined(&asked.definition)?;
    let arn = format!("{ACCOUNT}:stateMachine:{}", asked.name);
    if let Some(machine) = plane.machines.get(&arn) {
        if machine.deleting {
            return refused("StateMachineDeleting", arn);
        }
        if machine.text != asked.definition || machine.role != asked.role_arn {
            return refused("StateMachineAlreadyExists", arn);
        }
        return Ok(json!({ "stateMachineArn": arn, "creationDate": seconds(machine.made_at) }));
    }
    let answer = json!({ "stateMachineArn": arn, "creationDate": seconds(now) });
    let machine = Machine {
        name: asked.name,
        arn: arn.clone(),
        role: asked.role_arn,
        text: asked.definition,
        definition,
        made_at: now,
        deleting: false,
        other: asked.other,
    };
    plane.machines.insert(arn, machine);
    Ok(answer)
}

fn machine<'p>(plane: &'p mut Plane, of: &str) -> Result<&'p mut Machine, Refused> {
    arn(of, "stateMachine")?;
    let found = plane.machines.get_mut(of);
    found.ok_or_else(|| {
        Refused("StateMachineDoesNotExist", format!("State Machine Does Not Exist: '{of}'"))
    })
}

fn update(plane: &mut Plane, asked: UpdateMachine, now: Timestamp) -> Result<Value, Refused> {
    let machine = machine(plane, &asked.state_machine_arn)?;
    if machine.deleting {
        return refused("StateMachineDeleting", asked.state_machine_arn);
    }
    if asked.definition.is_none() && asked.role_arn.is_none() && asked.other.is_empty() {
        return refused("MissingRequiredParameter", "definition or roleArn");
    }
    if let Some(text) = asked.definition {
        machine.definition = defined(&text)?;
        machine.text = text;
    }
    machine.role = asked.role_arn.unwrap_or_else(|| machine.role.clone());
    machine.other.extend(asked.other);
    Ok(json!({ "updateDate": seconds(now) }))
}

fn describe_machine(plane: &mut Plane, asked: &OfMachine) -> Result<Value, Refused> {
    let machine = machine(plane, &asked.state_machine_arn)?;
    let mut answer = json!({
        "stateMachineArn": machine.arn,
        "name": machine.name,
        "status": if machine.deleting { "DELETING" } else { "ACTIVE" },
        "definition": machine.text,
        "roleArn": machine.role,
        "type": "STANDARD",
        "creationDate": seconds(machine.made_at),
    });
    for (key, value) in machine.other.iter().filter(|(key, _)| key.ends_with("Configuration")) {
        answer[key] = value.clone();
    }
    Ok(answer)
}

/// One that is not there is deleted as well.
fn delete(plane: &mut Plane, asked: &OfMachine) -> Result<Value, Refused> {
    arn(&asked.state_machine_arn, "stateMachine")?;
    if let Ok(machine) = machine(plane, &asked.state_machine_arn) {
        machine.deleting = true;
    }
    Ok(json!({}))
}

fn start(plane: &mut Plane, asked: Start, now: Timestamp) -> Result<Value, Refused> {
    let number = plane.number();
    let machine = machine(plane, &asked.state_machine_arn)?.clone();
    if machine.deleting {
        return refused("StateMachineDeleting", machine.arn);
    }
    let name = asked.name.unwrap_or_else(|| format!("00000000-0000-4000-8000-{number:012}"));
    named(&name)?;
    let input = asked.input.unwrap_or_else(|| "{}".to_owned());
    let data = data(&input, "InvalidExecutionInput")?;
    let arn = format!("{ACCOUNT}:execution:{}:{name}", machine.name);
    if let Some(taken) = plane.executions.get(&arn) {
        if taken.is_running() && taken.input == input {
            return Ok(json!({ "executionArn": arn, "startDate": seconds(taken.started_at) }));
        }
        let free = taken.end.as_ref().is_some_and(|end| now >= end.at.plus_ms(NAME_MS));
        if !free {
            return refused("ExecutionAlreadyExists", format!("Execution Already Exists: '{arn}'"));
        }
    }
    let place = Place::new(machine.definition.start_at.clone(), data.clone(), now);
    let execution = Execution {
        arn: arn.clone(),
        name,
        machine: machine.arn,
        role: machine.role,
        definition: machine.definition,
        input,
        data,
        started_at: now,
        end: None,
        history: vec!["ExecutionStarted"],
        redriven: Vec::new(),
        place,
    };
    plane.executions.insert(arn.clone(), execution);
    Ok(json!({ "executionArn": arn, "startDate": seconds(now) }))
}

/// Data in JSON that is not too large.
fn data(text: &str, code: &'static str) -> Result<Value, Refused> {
    if text.len() > DATA_BYTES_MAX {
        return refused("ValidationException", "more than 262144 bytes");
    }
    serde_json::from_str(text).map_err(|error| Refused(code, error.to_string()))
}

fn unknown(arn: &str) -> Refused {
    Refused("ExecutionDoesNotExist", format!("Execution Does Not Exist: '{arn}'"))
}

fn execution<'p>(plane: &'p mut Plane, of: &str) -> Result<&'p mut Execution, Refused> {
    arn(of, "execution")?;
    plane.executions.get_mut(of).ok_or_else(|| unknown(of))
}

/// One that has ended stays as it is.
fn stop(plane: &mut Plane, asked: Stop, now: Timestamp) -> Result<Value, Refused> {
    let execution = execution(plane, &asked.execution_arn)?;
    execution.ends(Status::Aborted, None, (asked.error, asked.cause), now);
    let at = execution.end.as_ref().map_or(now, |end| end.at);
    Ok(json!({ "stopDate": seconds(at) }))
}

fn describe(plane: &mut Plane, asked: &OfExecution) -> Result<Value, Refused> {
    arn(&asked.execution_arn, "execution")?;
    let seen = plane.looks();
    let execution = seen.get(&asked.execution_arn).ok_or_else(|| unknown(&asked.execution_arn))?;
    let mut answer = listed(execution);
    answer["input"] = json!(execution.input);
    answer["inputDetails"] = json!({ "included": true });
    if let Some(end) = &execution.end {
        for (key, value) in [("output", &end.output), ("error", &end.error), ("cause", &end.cause)]
        {
            if let Some(value) = value {
                answer[key] = json!(value);
            }
        }
    }
    Ok(answer)
}

fn listed(execution: &Execution) -> Value {
    let mut answer = json!({
        "executionArn": execution.arn,
        "stateMachineArn": execution.machine,
        "name": execution.name,
        "status": execution.status().as_str(),
        "startDate": seconds(execution.started_at),
        "redriveCount": execution.redriven.len(),
    });
    if let Some(end) = &execution.end {
        answer["stopDate"] = seconds(end.at);
    }
    if let Some((_, at)) = execution.redriven.last() {
        answer["redriveDate"] = seconds(*at);
    }
    answer
}

/// Newest first: by their start while they run, by their end afterwards.
fn list(plane: &mut Plane, asked: &List) -> Result<Value, Refused> {
    machine(plane, &asked.state_machine_arn)?;
    let seen = plane.looks();
    let wanted = |execution: &&Execution| {
        let filter = asked.status_filter.as_deref();
        execution.machine == asked.state_machine_arn
            && filter.is_none_or(|status| execution.status().as_str() == status)
    };
    let mut found: Vec<&Execution> = seen.values().filter(wanted).collect();
    found.sort_by_key(|e| std::cmp::Reverse(e.end.as_ref().map_or(e.last_start(), |end| end.at)));
    let from = match asked.next_token.as_deref().map(str::parse::<usize>) {
        Some(Ok(from)) => from,
        Some(Err(_)) => return refused("InvalidToken", "nextToken"),
        None => 0,
    };
    let most = match asked.max_results.unwrap_or(100) {
        0 => 100,
        most => most.min(1_000),
    };
    let page: Vec<Value> = found.iter().skip(from).take(most).map(|e| listed(e)).collect();
    let next = from + page.len();
    let mut answer = json!({ "executions": page });
    if next < found.len() {
        answer["nextToken"] = json!(next.to_string());
    }
    Ok(answer)
}

fn history(plane: &mut Plane, asked: &OfExecution) -> Result<Value, Refused> {
    let execution = execution(plane, &asked.execution_arn)?;
    let event = |(n, kind): (usize, &&str)| json!({ "id": n + 1, "type": kind });
    let events: Vec<Value> = execution.history.iter().enumerate().map(event).collect();
    Ok(json!({ "events": events }))
}

/// Goes on at the state that failed, with its input, under the same ARN.
fn redrive(plane: &mut Plane, asked: Redrive, now: Timestamp) -> Result<Value, Refused> {
    let execution = execution(plane, &asked.execution_arn)?;
    let again = |(token, at): &&(Option<String>, Timestamp)| {
        token.is_some() && *token == asked.client_token && now < at.plus_ms(CLIENT_TOKEN_MS)
    };
    if let Some((_, at)) = execution.redriven.iter().rev().take(10).find(again) {
        return Ok(json!({ "redriveDate": seconds(*at) }));
    }
    let can = execution.end.as_ref().is_some_and(|end| {
        matches!(end.status, Status::Failed | Status::Aborted | Status::TimedOut)
            && now < end.at.plus_ms(REDRIVE_MS)
    });
    let young = now < execution.started_at.plus_ms(LIFE_MS);
    if !can || !young || execution.history.len() >= EVENTS_MAX - 1 {
        return refused("ExecutionNotRedrivable", asked.execution_arn);
    }
    execution.end = None;
    execution.history.push("ExecutionRedriven");
    execution.redriven.push((asked.client_token, now));
    execution.place = Place::new(execution.place.state.clone(), execution.place.input.clone(), now);
    Ok(json!({ "redriveDate": seconds(now) }))
}

/// The execution that waits for this token.
fn waiting<'p>(plane: &'p mut Plane, token: &str) -> Result<&'p mut Execution, Refused> {
    let Some(arn) = plane.tokens.get(token) else {
        return refused("InvalidToken", "Invalid token");
    };
    let execution = plane.executions.get_mut(arn);
    let waits = execution.filter(|execution| execution.token() == Some(token));
    waits.ok_or_else(|| Refused("TaskTimedOut", "Provided task does not exist anymore".to_owned()))
}

fn success(plane: &mut Plane, asked: &Success, now: Timestamp) -> Result<Value, Refused> {
    let result = data(&asked.output, "InvalidOutput")?;
    waiting(plane, &asked.task_token)?.succeeds(result, now);
    Ok(json!({}))
}

fn failure(plane: &mut Plane, asked: Failed, now: Timestamp) -> Result<Value, Refused> {
    let execution = waiting(plane, &asked.task_token)?;
    execution.note("TaskFailed", now);
    let failure =
        Failure { error: asked.error.unwrap_or_default(), cause: asked.cause.unwrap_or_default() };
    execution.failed(&failure, now);
    Ok(json!({}))
}
