//! Guards that several commands share: phase, locks, steps and reasons. Who may is in `people`.

use serde_json::{Value, json};

use crate::errors::ErrorCode;
use crate::limits::{DEADLINES_MAX, ESCALATION_MAX, OPEN_WORKFLOWS_MAX};
use crate::locks::LockChange;
use crate::models::{
    Actor, Block, BlockId, HeldAsset, Phase, ReasonCode, Recipient, StepId, StepRecord, StepStatus,
    Text, Workflow,
};
use crate::policy::{Choice, DomainPolicyPort, Plan, PlannedStep};
use crate::view::{Fault, Rule, shape};

use super::super::command::{Command, Facts};
use super::super::decision::{Draft, Rejection};
use super::super::event::EventBody;

/// How many options speech names.
const SPOKEN_OPTIONS_MAX: usize = 3;

/// The command does not apply in this phase.
pub(super) fn wrong_state(workflow: &Workflow, command: &Command) -> Rejection {
    Rejection::new(
        ErrorCode::InvalidTransition,
        format!("{} does not apply while {}", command.kind.name(), workflow.phase.as_str()),
        Rule::WrongState { phase: workflow.phase },
    )
    .with("state", workflow.phase.as_str())
    .with("allowed", allowed(workflow.phase))
}

/// Commands that apply in a phase, by the names callers know.
fn allowed(phase: Phase) -> Value {
    match phase {
        Phase::Created => {
            json!(["submit_step", "skip_step", "report_problem", "transfer", "finish"])
        }
        Phase::Running => json!([
            "submit_step",
            "correct_step",
            "skip_step",
            "report_problem",
            "transfer",
            "finish"
        ]),
        Phase::Blocked => {
            json!(["resolve_block", "correct_step", "report_problem", "transfer", "finish"])
        }
        Phase::Completed => json!([]),
    }
}

/// The workflow still holds every asset with its fence: the conditions for the commit.
pub(super) fn locks(workflow: &Workflow, facts: &Facts<'_>) -> Result<Vec<LockChange>, Rejection> {
    let mut changes = Vec::with_capacity(workflow.assets.len());
    for asset in &workflow.assets {
        held(workflow, asset, facts)?;
        changes.push(LockChange::Assert { asset_id: asset.id.clone(), fence: asset.fence });
    }
    Ok(changes)
}

/// The workflow still holds this asset with its fence.
pub(super) fn held(
    workflow: &Workflow,
    asset: &HeldAsset,
    facts: &Facts<'_>,
) -> Result<(), Rejection> {
    if is_held(workflow, asset, facts) {
        return Ok(());
    }
    let lock = facts.locks.get(&asset.id);
    let other = lock.filter(|lock| lock.workflow_id.as_ref().is_some_and(|id| *id != workflow.id));
    let holder = other.and_then(|lock| lock.owner.as_ref());
    let said = holder.and_then(|person| person.name.clone());
    let rejection = Rejection::new(
        ErrorCode::LockLost,
        "this workflow no longer holds its asset; while that is free its owner may take_over, else only end it",
        Rule::LockLost { asset: asset.say.clone(), taken: other.is_some(), holder: said },
    )
    .with("asset_id", asset.id.as_str());
    Err(match holder {
        Some(person) => rejection.with("holder", shape::person(person)),
        None => rejection,
    })
}

/// The workflow holds this asset with its fence.
pub(super) fn is_held(workflow: &Workflow, asset: &HeldAsset, facts: &Facts<'_>) -> bool {
    facts.locks.get(&asset.id).is_some_and(|lock| {
        lock.fence == asset.fence && lock.workflow_id.as_ref() == Some(&workflow.id)
    })
}

/// One more workflow may be the caller's.
pub(super) fn room_for_another(facts: &Facts<'_>) -> Result<(), Rejection> {
    if facts.open_workflows < OPEN_WORKFLOWS_MAX {
        return Ok(());
    }
    Err(Rejection::new(
        ErrorCode::LimitExceeded,
        format!("at most {OPEN_WORKFLOWS_MAX} workflows may be open; finish one first"),
        Fault::LimitExceeded,
    )
    .with("limit", "open_workflows")
    .with("max", OPEN_WORKFLOWS_MAX))
}

/// The block, which must be open.
pub(super) fn block<'w>(workflow: &'w Workflow, id: &BlockId) -> Result<&'w Block, Rejection> {
    workflow.block(id).ok_or_else(|| {
        let open: Vec<&str> = workflow.blocks.iter().map(|b| b.id.as_str()).collect();
        let mut rejection = Rejection::invalid("block_id", "there is no such open block");
        rejection.saying = Fault::UnknownBlock.into();
        rejection.with("open", open)
    })
}

/// Whom a block tells first.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) to: Option<String>,
    pub(super) respond_within_ms: Option<i64>,
    pub(super) then: Vec<Recipient>,
    /// Who is told at once besides, because no deadline is left for one after the other.
    pub(super) at_once: Vec<Recipient>,
}

/// How the people of `chain` are told of a new block: one after the other where the state has room for a deadline.
pub(super) fn told(workflow: &Workflow, mut chain: Vec<Recipient>) -> Told {
    chain.truncate(ESCALATION_MAX);
    let mut rest = chain.into_iter();
    let Some(first) = rest.next() else { return Told::default() };
    let (to, then) = (Some(first.to), rest.collect());
    if first.respond_within_ms.is_some() && workflow.deadlines.len() >= DEADLINES_MAX {
        return Told { to, at_once: then, ..Told::default() };
    }
    Told { to, respond_within_ms: first.respond_within_ms, then, at_once: Vec::new() }
}

/// The next of `chain` is told of a block.
pub(super) fn escalated(block_id: &BlockId, chain: &[Recipient]) -> Option<Draft> {
    let (next, then) = chain.split_first()?;
    Some(Draft::new(EventBody::Escalated {
        block_id: Some(block_id.clone()),
        to: next.to.clone(),
        respond_within_ms: next.respond_within_ms,
        then: then.to_vec(),
    }))
}

/// Frees every asset that the workflow still holds.
pub(super) fn release_all(workflow: &Workflow) -> Vec<LockChange> {
    workflow
        .assets
        .iter()
        .map(|a| LockChange::Release { asset_id: a.id.clone(), fence: a.fence })
        .collect()
}

/// The step, which must exist.
pub(super) fn step<'p>(plan: &'p Plan, step_id: &StepId) -> Result<&'p PlannedStep, Rejection> {
    plan.step(step_id).ok_or_else(|| {
        let steps: Vec<&str> = plan.steps.iter().map(|s| s.id.as_str()).collect();
        Rejection::invalid("step_id", "there is no such step in this procedure")
            .with("valid", steps)
    })
}

/// The step is open now. `plan` is of `workflow`.
pub(super) fn open(
    workflow: &Workflow,
    plan: &Plan,
    step_id: &StepId,
    policy: &dyn DomainPolicyPort,
) -> Result<(), Rejection> {
    let planned = step(plan, step_id)?;
    if planned.is_open() {
        return Ok(());
    }
    if let Some(record) = workflow.steps.get(step_id) {
        match record.status {
            StepStatus::Recorded => return Err(already_recorded(step_id, record, policy)),
            StepStatus::Skipped | StepStatus::Reopened | StepStatus::Recheck => {}
        }
    }
    Err(not_open(workflow, plan, policy))
}

/// The step is not open: which are.
pub(super) fn not_open(
    workflow: &Workflow,
    plan: &Plan,
    policy: &dyn DomainPolicyPort,
) -> Rejection {
    let open: Vec<&str> = plan.open().map(|s| s.id.as_str()).collect();
    let prompt = next_prompt(workflow, plan, policy);
    Rejection::new(ErrorCode::StepNotOpen, "the step is not open now", Rule::StepNotOpen { prompt })
        .with("open", open)
}

/// The prompt of the step that is asked next.
pub(super) fn next_prompt(
    workflow: &Workflow,
    plan: &Plan,
    policy: &dyn DomainPolicyPort,
) -> Option<Text> {
    plan.next().and_then(|s| policy.describe(workflow, &s.id)).map(|d| d.prompt)
}

fn already_recorded(
    step_id: &StepId,
    record: &StepRecord,
    policy: &dyn DomainPolicyPort,
) -> Rejection {
    let shown = record.reading.as_ref().filter(|r| !r.withheld);
    let value = shown.map(|r| policy.spoken(step_id, r, &crate::models::Locale::default()));
    let mut rejection = Rejection::new(
        ErrorCode::StepAlreadyRecorded,
        "the step has a value; correct_step replaces it",
        Rule::StepAlreadyRecorded { value },
    )
    .with("at", record.at.to_string())
    .with("by", shape::person(&record.by));
    let Some(reading) = shown else { return rejection.with("withheld", true) };
    rejection = rejection.with("value", reading.given.as_str());
    match &reading.given_unit {
        Some(unit) => rejection.with("unit", unit.as_str()),
        None => rejection,
    }
}

/// The reason, which must be one of the policy's list when given.
pub(super) fn known_reason(
    reason: &ReasonCode,
    policy: &dyn DomainPolicyPort,
) -> Result<(), Rejection> {
    let reasons = policy.reasons();
    if reasons.iter().any(|r| r.id == reason.as_str()) {
        return Ok(());
    }
    let mut rejection = Rejection::invalid("reason_code", "there is no such reason");
    rejection.saying = Fault::UnknownReason { reasons: spoken(&reasons) }.into();
    Err(rejection.with("reasons", listed(&reasons)))
}

/// A reason is needed and known.
pub(super) fn required_reason(
    reason: Option<&ReasonCode>,
    policy: &dyn DomainPolicyPort,
) -> Result<ReasonCode, Rejection> {
    match reason {
        Some(reason) => known_reason(reason, policy).map(|()| reason.clone()),
        None => {
            let reasons = policy.reasons();
            Err(Rejection::new(
                ErrorCode::ReasonRequired,
                "reason_code is needed",
                Rule::ReasonRequired { reasons: spoken(&reasons) },
            )
            .with("reasons", listed(&reasons)))
        }
    }
}

/// The first choices, for speech.
pub(super) fn spoken(choices: &[Choice]) -> Vec<Text> {
    choices.iter().take(SPOKEN_OPTIONS_MAX).map(|c| c.say.clone()).collect()
}

/// All reasons, for details.
fn listed(reasons: &[Choice]) -> Value {
    reasons.iter().map(|r| json!({"code": r.id, "say": r.say})).collect()
}

/// What a repeat without a key is compared with (idempotency.md, Without a key).
pub mod targets {
    use super::{Actor, Block, BlockId, StepId, Workflow};
    use crate::models::Touch;

    /// The newest event on a step. Where its rule could not be evaluated there is no value, only the block.
    #[must_use]
    pub fn step<'w>(workflow: &'w Workflow, step_id: &StepId) -> Option<&'w Touch> {
        let recorded = workflow.steps.get(step_id).map(|s| &s.touch);
        let caused = workflow.blocks.iter().filter(|b| !b.reported);
        let blocks = caused.filter(|b| b.step_id.as_ref() == Some(step_id)).map(|b| &b.touch);
        blocks.chain(recorded).max_by_key(|touch| touch.seq)
    }

    /// The newest event on a block, open or closed.
    #[must_use]
    pub fn block<'w>(workflow: &'w Workflow, block_id: &BlockId) -> Option<&'w Touch> {
        let open = workflow.block(block_id).map(|b| &b.touch);
        open.or_else(|| workflow.closed_blocks.iter().find(|b| &b.id == block_id).map(|b| &b.touch))
    }

    /// An open block that `actor` reported on the same step.
    #[must_use]
    pub fn reported<'w>(
        workflow: &'w Workflow,
        actor: &Actor,
        step_id: Option<&StepId>,
    ) -> Option<&'w Block> {
        workflow
            .blocks
            .iter()
            .find(|b| b.reported && &b.by.id == actor && b.step_id.as_ref() == step_id)
    }
}
