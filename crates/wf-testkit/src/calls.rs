//! Calls by the name of their tool and its arguments, for tests and benches that speak to an engine without a transport.
//!
//! As a transport would make them of good arguments. It judges nothing: what is not good is `None`.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::{Map, Value};
use wf_core::engine::{
    Call, CallMeta, CheckValue, Detail, Engine, FindScope, FindWork, GetStatus, Reply, Request,
};
use wf_core::idempotency::IdempotencyKey;
use wf_core::models::{Principal, Severity};
use wf_core::state_machine::Transfer;
use wf_core::state_machine::command::SubmittedValue;

/// The arguments of a call.
pub type Arguments = Map<String, Value>;

/// Calls any tool that callers have.
pub async fn answered(
    engine: &Engine,
    by: &Principal,
    tool: &'static str,
    arguments: &Arguments,
) -> Option<Reply> {
    let meta = CallMeta::default();
    Some(match tool {
        "get_status" => engine.get_status(by, &status(arguments)?, &meta).await,
        "find_work" => engine.find_work(by, &find(arguments), &meta).await,
        "check_value" => engine.check_value(by, &check(arguments)?, &meta).await,
        _ => engine.execute(by, &call(tool, arguments, meta)?).await,
    })
}

/// A call that changes something.
#[must_use]
pub fn call(tool: &'static str, arguments: &Arguments, meta: CallMeta) -> Option<Call> {
    let key = match text(arguments, "idempotency_key") {
        Some(key) => Some(IdempotencyKey::parse(&key).ok()?),
        None => None,
    };
    let request = request(tool, arguments)?;
    Some(Call { operation: tool, key, request, arguments: arguments.clone(), meta })
}

/// What `get_status` is asked.
#[must_use]
pub fn status(arguments: &Arguments) -> Option<GetStatus> {
    let full = text(arguments, "detail").as_deref() == Some("full");
    Some(GetStatus {
        workflow_id: some(arguments, "workflow_id")?,
        asset_id: text(arguments, "asset_id"),
        detail: if full { Detail::Full } else { Detail::Brief },
    })
}

/// What `find_work` is asked.
#[must_use]
pub fn find(arguments: &Arguments) -> FindWork {
    FindWork {
        query: text(arguments, "query"),
        asset_id: text(arguments, "asset_id"),
        scope: match text(arguments, "scope").as_deref() {
            Some("mine") => Some(FindScope::Mine),
            Some("available") => Some(FindScope::Available),
            Some("blocked") => Some(FindScope::Blocked),
            Some(_) | None => None,
        },
    }
}

/// What `check_value` is asked.
#[must_use]
pub fn check(arguments: &Arguments) -> Option<CheckValue> {
    Some(CheckValue {
        workflow_id: must(arguments, "workflow_id")?,
        step_id: must(arguments, "step_id")?,
        value: text(arguments, "value")?,
        unit: text(arguments, "unit"),
    })
}

/// What a tool that changes something is asked.
#[must_use]
pub fn request(tool: &str, args: &Arguments) -> Option<Request> {
    let object = |name: &str| args.get(name).and_then(Value::as_object).cloned();
    Some(match tool {
        "start_workflow" => Request::Start {
            procedure_id: must(args, "procedure_id")?,
            assets: assets(&object("assets").unwrap_or_default())?,
            inputs: object("inputs").unwrap_or_default(),
        },
        "submit_step" => Request::SubmitStep {
            workflow_id: must(args, "workflow_id")?,
            step_id: must(args, "step_id")?,
            value: value(args),
        },
        "correct_step" => Request::CorrectStep {
            workflow_id: must(args, "workflow_id")?,
            step_id: must(args, "step_id")?,
            value: value(args),
            reason_code: some(args, "reason_code")?,
        },
        "skip_step" => Request::SkipStep {
            workflow_id: must(args, "workflow_id")?,
            step_id: must(args, "step_id")?,
            reason_code: some(args, "reason_code")?,
            note: text(args, "note"),
        },
        "report_problem" => Request::ReportProblem {
            workflow_id: must(args, "workflow_id")?,
            summary: text(args, "summary")?,
            severity: severity(args)?,
            step_id: some(args, "step_id")?,
        },
        "resolve_block" => Request::ResolveBlock {
            workflow_id: must(args, "workflow_id")?,
            block_id: must(args, "block_id")?,
            decision: must(args, "decision")?,
            comment: text(args, "comment")?,
        },
        "transfer_workflow" => {
            Request::Transfer { workflow_id: must(args, "workflow_id")?, transfer: transfer(args)? }
        }
        "release_lock" => Request::ReleaseLock {
            workflow_id: must(args, "workflow_id")?,
            asset_id: must(args, "asset_id")?,
            reason: text(args, "reason")?,
        },
        "finish_workflow" => Request::Finish {
            workflow_id: must(args, "workflow_id")?,
            result: must(args, "result")?,
            note: text(args, "note"),
            confirm_token: text(args, "confirm_token"),
            confirmed_by: None,
        },
        _ => return None,
    })
}

fn assets(given: &Arguments) -> Option<BTreeMap<String, String>> {
    let named = |(role, asset): (&String, &Value)| Some((role.clone(), asset.as_str()?.to_owned()));
    given.iter().map(named).collect()
}

fn value(args: &Arguments) -> SubmittedValue {
    SubmittedValue {
        value: text(args, "value"),
        unit: text(args, "unit"),
        note: text(args, "note"),
        confirm_token: text(args, "confirm_token"),
        confirmed_by: None,
    }
}

fn severity(args: &Arguments) -> Option<Option<Severity>> {
    Some(match text(args, "severity").as_deref() {
        None => None,
        Some("note") => Some(Severity::Note),
        Some("low") => Some(Severity::Low),
        Some("high") => Some(Severity::High),
        Some(_) => return None,
    })
}

fn transfer(args: &Arguments) -> Option<Transfer> {
    Some(match text(args, "action")?.as_str() {
        "offer" => Transfer::Offer { to: text(args, "to") },
        "withdraw" => Transfer::Withdraw,
        "decline" => Transfer::Decline,
        "accept" => Transfer::Accept,
        "take_over" => Transfer::TakeOver { reason_code: some(args, "reason_code")? },
        _ => return None,
    })
}

fn text(args: &Arguments, name: &str) -> Option<String> {
    args.get(name).and_then(Value::as_str).map(ToOwned::to_owned)
}

/// A member that must be there and parse.
fn must<T: FromStr>(args: &Arguments, name: &str) -> Option<T> {
    args.get(name)?.as_str()?.parse().ok()
}

/// A member that must parse when it is there.
fn some<T: FromStr>(args: &Arguments, name: &str) -> Option<Option<T>> {
    match args.get(name).and_then(Value::as_str) {
        None => Some(None),
        Some(text) => text.parse().ok().map(Some),
    }
}
