//! Who may: who drives the workflow, who has the role that a step asks for, who is a second person.

use crate::errors::ErrorCode;
use crate::limits::PERFORMERS_MAX;
use crate::models::{Principal, StepId, Workflow};
use crate::policy::DomainPolicyPort;
use crate::view::{Fault, Rule, shape};

use super::super::decision::Rejection;

/// The caller drives the workflow, or supervises.
pub(super) fn owner(workflow: &Workflow, by: &Principal) -> Result<(), Rejection> {
    if workflow.owner.id == by.actor || by.scopes.supervise {
        return Ok(());
    }
    let owner = workflow.owner.name.clone();
    Err(not_owner(workflow, Rule::NotOwner { owner }))
}

/// Somebody else drives the workflow: who.
pub(super) fn not_owner(workflow: &Workflow, rule: Rule) -> Rejection {
    Rejection::new(ErrorCode::NotAllowed, "another person drives this workflow", rule)
        .with("owner", shape::person(&workflow.owner))
}

/// The caller may do this step: whoever has the role that it asks for, and nobody else, not even the owner; without a
/// role, who drives the workflow. A signature of a second person is for nobody who worked on what is signed.
pub(super) fn performer(
    workflow: &Workflow,
    by: &Principal,
    step_id: &StepId,
    policy: &dyn DomainPolicyPort,
) -> Result<(), Rejection> {
    let step = policy.describe(workflow, step_id);
    let second = step.as_ref().is_some_and(|step| step.not_performer);
    let Some(role) = step.and_then(|step| step.role) else {
        owner(workflow, by)?;
        return distinct(workflow, by, step_id, second);
    };
    if !by.has_role(&role) {
        return Err(Rejection::new(
            ErrorCode::NotAllowed,
            format!("the step is for the role {role}"),
            Rule::RoleNeeded { role: role.clone() },
        )
        .with("role", role));
    }
    distinct(workflow, by, step_id, second)
}

/// The caller is no performer where a second person is asked for, and else may become one.
fn distinct(
    workflow: &Workflow,
    by: &Principal,
    step_id: &StepId,
    second: bool,
) -> Result<(), Rejection> {
    if second && workflow.worked_on(&by.actor, step_id) {
        return Err(Rejection::new(
            ErrorCode::NotAllowed,
            "the step is for a second person: for nobody who recorded, skipped or signed another step",
            Rule::SecondPersonNeeded,
        )
        .with("rule", "not_performer"));
    }
    room_for_performer(workflow, by)
}

/// Everybody who works on a workflow is remembered, so they are not without number.
fn room_for_performer(workflow: &Workflow, by: &Principal) -> Result<(), Rejection> {
    let known = workflow.performers.contains(&by.actor);
    if known || workflow.performers.len() < PERFORMERS_MAX {
        return Ok(());
    }
    Err(Rejection::new(
        ErrorCode::LimitExceeded,
        format!("at most {PERFORMERS_MAX} people may work on one workflow"),
        Fault::LimitExceeded,
    )
    .with("limit", "performers")
    .with("max", PERFORMERS_MAX))
}

/// The caller may leave this step out, as far as people are concerned: whoever drives the workflow or could do the step.
pub(super) fn skipper(
    workflow: &Workflow,
    by: &Principal,
    step_id: &StepId,
    policy: &dyn DomainPolicyPort,
) -> Result<(), Rejection> {
    let role = || policy.describe(workflow, step_id).and_then(|step| step.role);
    match owner(workflow, by) {
        Err(refused) if !role().is_some_and(|role| by.has_role(&role)) => Err(refused),
        Ok(()) | Err(_) => room_for_performer(workflow, by),
    }
}
