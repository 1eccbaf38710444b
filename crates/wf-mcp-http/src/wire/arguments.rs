//! Read arguments to typed calls of the engine: one function a tool, named in the tool table.

use serde_json::{Map, Value};
use wf_core::engine::{
    Call, CallMeta, CheckValue, Detail, FindScope, FindWork, GetStatus, Request,
};
use wf_core::idempotency::IdempotencyKey;
use wf_core::models::{BlockId, DecisionId, ReasonCode, ResultId, Severity, StepId, WorkflowId};
use wf_core::state_machine::command::SubmittedValue;
use wf_core::state_machine::{Rejection, Transfer};

use super::reader::Reader;
use crate::tools::Spec;

/// What a tool asks of the engine.
#[derive(Debug, Clone)]
pub(crate) enum Asked {
    /// `Engine::execute`
    Change(Box<Call>),
    /// `Engine::find_work`
    FindWork(FindWork),
    /// `Engine::get_status`
    GetStatus(GetStatus),
    /// `Engine::check_value`
    CheckValue(CheckValue),
}

/// What a tool asks before key, metadata and raw arguments are put to it.
#[derive(Debug)]
pub(crate) enum Built {
    Change(Request),
    Ask(Asked),
}

/// Makes the typed call of read arguments.
pub(crate) type Build = fn(&Reader<'_>) -> Result<Built, Rejection>;

/// Reads the arguments of a tool.
pub(crate) fn read(
    spec: &'static Spec,
    arguments: &Map<String, Value>,
    meta: &CallMeta,
) -> Result<Asked, Rejection> {
    let reader = Reader::new(spec, arguments)?;
    match (spec.build)(&reader)? {
        Built::Ask(asked) => Ok(asked),
        Built::Change(request) => Ok(Asked::Change(Box::new(Call {
            operation: spec.name,
            arguments: arguments.clone(),
            key: key(&reader)?,
            request,
            meta: meta.clone(),
        }))),
    }
}

fn key(reader: &Reader<'_>) -> Result<Option<IdempotencyKey>, Rejection> {
    let name = "idempotency_key";
    let parse = |text| {
        IdempotencyKey::parse(text).map_err(|error| Rejection::invalid(name, &error.to_string()))
    };
    reader.text(name)?.map(parse).transpose()
}

fn owned(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

fn workflow(reader: &Reader<'_>) -> Result<WorkflowId, Rejection> {
    reader.required_id("workflow_id", WorkflowId::parse)
}

fn step(reader: &Reader<'_>) -> Result<StepId, Rejection> {
    reader.required_id("step_id", StepId::parse)
}

fn reason(reader: &Reader<'_>) -> Result<Option<ReasonCode>, Rejection> {
    reader.id("reason_code", ReasonCode::parse)
}

fn value(reader: &Reader<'_>) -> Result<SubmittedValue, Rejection> {
    Ok(SubmittedValue {
        value: owned(reader.text("value")?),
        unit: owned(reader.text("unit")?),
        note: owned(reader.text("note")?),
        confirm_token: owned(reader.text("confirm_token")?),
        confirmed_by: None,
    })
}

pub(crate) fn find_work(reader: &Reader<'_>) -> Result<Built, Rejection> {
    let scopes = [
        ("mine", FindScope::Mine),
        ("available", FindScope::Available),
        ("blocked", FindScope::Blocked),
    ];
    Ok(Built::Ask(Asked::FindWork(FindWork {
        query: owned(reader.text("query")?),
        asset_id: owned(reader.text("asset_id")?),
        scope: reader.word("scope", &scopes)?,
    })))
}

pub(crate) fn get_status(reader: &Reader<'_>) -> Result<Built, Rejection> {
    let details = [("brief", Detail::Brief), ("full", Detail::Full)];
    Ok(Built::Ask(Asked::GetStatus(GetStatus {
        workflow_id: reader.id("workflow_id", WorkflowId::parse)?,
        asset_id: owned(reader.text("asset_id")?),
        detail: reader.word("detail", &details)?.unwrap_or_default(),
    })))
}

pub(crate) fn check_value(reader: &Reader<'_>) -> Result<Built, Rejection> {
    Ok(Built::Ask(Asked::CheckValue(CheckValue {
        workflow_id: workflow(reader)?,
        step_id: step(reader)?,
        value: reader.required_text("value")?.to_owned(),
        unit: owned(reader.text("unit")?),
    })))
}

pub(crate) fn start_workflow(reader: &Reader<'_>) -> Result<Built, Rejection> {
    Ok(Built::Change(Request::Start {
        procedure_id: reader.required_text("procedure_id")?.to_owned(),
        assets: reader.names("assets")?,
        inputs: reader.object("inputs")?,
    }))
}

pub(crate) fn submit_step(reader: &Reader<'_>) -> Result<Built, Rejection> {
    Ok(Built::Change(Request::SubmitStep {
        workflow_id: workflow(reader)?,
        step_id: step(reader)?,
        value: value(reader)?,
    }))
}

pub(crate) fn correct_step(reader: &Reader<'_>) -> Result<Built, Rejection> {
    reader.required_text("value")?;
    Ok(Built::Change(Request::CorrectStep {
        workflow_id: workflow(reader)?,
        step_id: step(reader)?,
        value: value(reader)?,
        // Without one the engine asks for it, with the reasons there are.
        reason_code: reason(reader)?,
    }))
}

pub(crate) fn skip_step(reader: &Reader<'_>) -> Result<Built, Rejection> {
    Ok(Built::Change(Request::SkipStep {
        workflow_id: workflow(reader)?,
        step_id: step(reader)?,
        reason_code: reason(reader)?,
        note: owned(reader.text("note")?),
    }))
}

pub(crate) fn report_problem(reader: &Reader<'_>) -> Result<Built, Rejection> {
    let severities = [Severity::Note, Severity::Low, Severity::High].map(|s| (s.as_str(), s));
    Ok(Built::Change(Request::ReportProblem {
        workflow_id: workflow(reader)?,
        summary: reader.required_text("summary")?.to_owned(),
        severity: reader.word("severity", &severities)?,
        step_id: reader.id("step_id", StepId::parse)?,
    }))
}

pub(crate) fn transfer_workflow(reader: &Reader<'_>) -> Result<Built, Rejection> {
    let (to, reason_code) = (owned(reader.text("to")?), reason(reader)?);
    let transfers = [
        ("offer", Transfer::Offer { to }),
        ("withdraw", Transfer::Withdraw),
        ("decline", Transfer::Decline),
        ("accept", Transfer::Accept),
        ("take_over", Transfer::TakeOver { reason_code }),
    ];
    Ok(Built::Change(Request::Transfer {
        workflow_id: workflow(reader)?,
        transfer: reader.required_word("action", &transfers)?,
    }))
}

pub(crate) fn finish_workflow(reader: &Reader<'_>) -> Result<Built, Rejection> {
    Ok(Built::Change(Request::Finish {
        workflow_id: workflow(reader)?,
        result: reader.required_id("result", ResultId::parse)?,
        note: owned(reader.text("note")?),
        confirm_token: owned(reader.text("confirm_token")?),
        confirmed_by: None,
    }))
}

pub(crate) fn resolve_block(reader: &Reader<'_>) -> Result<Built, Rejection> {
    Ok(Built::Change(Request::ResolveBlock {
        workflow_id: workflow(reader)?,
        block_id: reader.required_id("block_id", BlockId::parse)?,
        decision: reader.required_id("decision", DecisionId::parse)?,
        comment: reader.required_text("comment")?.to_owned(),
    }))
}

#[cfg(test)]
mod tests;
