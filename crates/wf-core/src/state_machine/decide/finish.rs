//! `finish`: with a result when nothing required is left, or abandoned from any open state.

use serde_json::{Value, json};

use crate::errors::ErrorCode;
use crate::models::{Phase, ResultId, Workflow};
use crate::view::{Ask, Rule};

use super::super::command::{Command, Facts};
use super::super::decision::{Draft, Outcome, Rejection, Verdict};
use super::super::event::{ConfirmedBy, EventBody};
use super::super::token::{self, Bound};
use super::{commit, guard, value};

pub(super) struct Finish<'a> {
    pub(super) result: &'a ResultId,
    pub(super) note: &'a Option<String>,
    pub(super) confirm_token: Option<&'a str>,
    pub(super) confirmed_by: Option<ConfirmedBy>,
}

pub(super) fn decide(
    workflow: &Workflow,
    command: &Command,
    request: &Finish<'_>,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    let abandoning = request.result == &ResultId::abandoned();
    match workflow.phase {
        Phase::Running => {}
        Phase::Created | Phase::Blocked if abandoning => {}
        Phase::Created | Phase::Blocked | Phase::Completed => {
            return Err(guard::wrong_state(workflow, command));
        }
    }
    if abandoning {
        return abandon(workflow, command, request, facts);
    }
    let results = facts.policy.results(workflow);
    let Some(option) = results.iter().find(|r| &r.id == request.result) else {
        return Err(not_available("there is no such result", &results));
    };
    settled(workflow, command, facts)?;
    if !option.available {
        return Err(not_available("the readings do not allow this result", &results));
    }
    guard::locks(workflow, facts)?;
    Ok(completed(workflow, request, None))
}

fn completed(
    workflow: &Workflow,
    request: &Finish<'_>,
    confirmed_by: Option<ConfirmedBy>,
) -> Verdict {
    let draft = Draft::new(EventBody::WorkflowCompleted {
        result: request.result.clone(),
        note: request.note.clone(),
        confirmed_by,
    });
    commit(Outcome::Finished, vec![draft], guard::release_all(workflow))
}

/// Abandoning asks for confirmation once; a workflow that lost its asset can still be ended.
fn abandon(
    workflow: &Workflow,
    command: &Command,
    request: &Finish<'_>,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    let actor = command.principal.actor.to_string();
    let bound = Bound {
        tenant: workflow.tenant.as_str(),
        actor: &actor,
        workflow: workflow.id.as_str(),
        target: "finish",
        attempt: 0,
        value: request.result.as_str(),
        unit: "",
        definition: workflow.procedure.digest.as_str(),
    };
    let confirmed = request
        .confirm_token
        .is_some_and(|token| token::verify(facts.secrets, &bound, token, facts.at));
    if confirmed {
        let by = request.confirmed_by.unwrap_or(ConfirmedBy::Token);
        return Ok(completed(workflow, request, Some(by)));
    }
    let minted = token::mint(facts.secrets, &bound, facts.at);
    let read_back = Ask::ConfirmAbandon { label: workflow.label.clone() };
    value::confirmation(minted, read_back.into()).map(Verdict::Unrecorded)
}

/// No required step is unsettled, and no step waits for a re-check.
fn settled(workflow: &Workflow, command: &Command, facts: &Facts<'_>) -> Result<(), Rejection> {
    let plan = facts.policy.plan(workflow);
    let mut unsettled: Vec<&str> = plan.unsettled().map(|s| s.id.as_str()).collect();
    let touched = workflow.steps.iter().filter(|(_, s)| !s.is_settled());
    for (id, _) in touched {
        let applies = plan.step(id).is_some_and(|s| s.applies);
        if applies && !unsettled.contains(&id.as_str()) {
            unsettled.push(id.as_str());
        }
    }
    if unsettled.is_empty() {
        return Ok(());
    }
    let mut rejection = guard::wrong_state(workflow, command);
    "steps are still to be done".clone_into(&mut rejection.message);
    rejection.saying =
        Rule::StepsUnsettled { prompt: guard::next_prompt(workflow, &plan, facts.policy) }.into();
    Err(rejection.with("unsettled", unsettled))
}

fn not_available(rule: &str, results: &[crate::policy::ResultOption]) -> Rejection {
    let available = || results.iter().filter(|r| r.available);
    let listed: Value = available().map(|r| json!({"id": r.id, "say": r.say})).collect();
    let spoken = available().take(3).map(|r| r.say.clone()).collect();
    Rejection {
        code: ErrorCode::ValidationError,
        saying: Rule::ResultNotAvailable { results: spoken }.into(),
        ..Rejection::invalid("result", rule)
    }
    .with("results", listed)
}
