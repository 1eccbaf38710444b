//! Calls as a transport would make them: the arguments as they were sent, for the fingerprint, and the same typed.

use std::collections::BTreeMap;
use std::error::Error;

use serde_json::{Map, Value, json};
use wf_core::engine::{Call, CallMeta, Request};
use wf_core::idempotency::{IdempotencyKey, KeyError};
use wf_core::models::{BlockId, DecisionId, ResultId, StepId, WorkflowId};
use wf_core::state_machine::command::SubmittedValue;

/// `start_workflow` of the pump inspection.
pub(crate) fn start(pump: &str, work_order: &str, key: &str) -> Result<Call, KeyError> {
    let inputs = Map::from_iter([("work_order".to_owned(), Value::from(work_order))]);
    let arguments = [
        ("procedure_id", json!("pump-inspection")),
        ("assets", json!({ "pump": pump })),
        ("inputs", json!(inputs)),
    ];
    let request = Request::Start {
        procedure_id: "pump-inspection".to_owned(),
        assets: BTreeMap::from([("pump".to_owned(), pump.to_owned())]),
        inputs,
    };
    call("start_workflow", key, arguments, request)
}

/// `submit_step`.
pub(crate) fn submit(
    workflow: &WorkflowId,
    step: &str,
    value: &str,
    key: &str,
) -> Result<Call, Box<dyn Error>> {
    let arguments =
        [("workflow_id", json!(workflow)), ("step_id", json!(step)), ("value", json!(value))];
    let request = Request::SubmitStep {
        workflow_id: workflow.clone(),
        step_id: StepId::parse(step)?,
        value: SubmittedValue { value: Some(value.to_owned()), ..SubmittedValue::default() },
    };
    Ok(call("submit_step", key, arguments, request)?)
}

/// The same `submit_step` with the token of its read-back.
pub(crate) fn confirmed(mut call: Call, token: &str) -> Call {
    if let Request::SubmitStep { value, .. } = &mut call.request {
        value.confirm_token = Some(token.to_owned());
        call.arguments.insert("confirm_token".to_owned(), Value::from(token));
    }
    call
}

/// `resolve_block`.
pub(crate) fn resolve(
    workflow: &WorkflowId,
    block: &str,
    decision: &str,
    comment: &str,
    key: &str,
) -> Result<Call, Box<dyn Error>> {
    let arguments = [
        ("workflow_id", json!(workflow)),
        ("block_id", json!(block)),
        ("decision", json!(decision)),
        ("comment", json!(comment)),
    ];
    let request = Request::ResolveBlock {
        workflow_id: workflow.clone(),
        block_id: BlockId::parse(block)?,
        decision: DecisionId::parse(decision)?,
        comment: comment.to_owned(),
    };
    Ok(call("resolve_block", key, arguments, request)?)
}

/// `finish_workflow`.
pub(crate) fn finish(
    workflow: &WorkflowId,
    result: &str,
    key: &str,
) -> Result<Call, Box<dyn Error>> {
    let arguments = [("workflow_id", json!(workflow)), ("result", json!(result))];
    let request = Request::Finish {
        workflow_id: workflow.clone(),
        result: ResultId::parse(result)?,
        note: None,
        confirm_token: None,
        confirmed_by: None,
    };
    Ok(call("finish_workflow", key, arguments, request)?)
}

fn call<const N: usize>(
    operation: &'static str,
    key: &str,
    arguments: [(&str, Value); N],
    request: Request,
) -> Result<Call, KeyError> {
    let mut sent: Map<String, Value> =
        arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    sent.insert("idempotency_key".to_owned(), Value::from(key));
    let key = Some(IdempotencyKey::parse(key)?);
    Ok(Call { operation, arguments: sent, key, request, meta: CallMeta::default() })
}
