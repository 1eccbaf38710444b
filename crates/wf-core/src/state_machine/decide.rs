//! `decide`: what a command leads to. Pure; one file per command, one match over the phase in each.
//!
//! Scope and sight are the engine's business (before the ledger is read, and before the state is told about); ownership
//! and roles, state, locks and the policy are decided here, in this order. Not the owner's alone: `report_problem`, steps
//! that ask for a role (theirs who have it), `resolve_block` (supervisors), `release_lock` (operators),
//! `acknowledge_block` (who was told, operators), `deadline_reached` (the clock), `transfer` but for offering and
//! withdrawing (whom it is offered to; for a take-over whoever the rules of silence, supervision or loss let).

mod acknowledge;
mod correct;
mod deadline;
mod finish;
mod guard;
mod lock;
mod people;
mod problem;
mod resolve;
mod ripple;
mod skip;
mod start;
mod submit;
mod transfer;
mod value;
mod waits;

use crate::access;
use crate::models::{Actor, Phase, Workflow};

use super::chain::Tip;
use super::command::{Command, CommandKind, Facts};
use super::decision::{Decision, Draft, Outcome, Rejection, Unrecorded, Verdict};
use super::event::EventBody;

pub use guard::targets;

/// What `command` leads to in `state`.
///
/// # Errors
/// A [`Rejection`] when a rule says no; then nothing changes.
pub fn decide(
    state: Option<&Workflow>,
    command: &Command,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    let Some(workflow) = state else {
        return begin(command, facts);
    };
    let verdict = go_on(workflow, command, facts)?;
    Ok(waits::begin(state, Tip::of(workflow), command, verdict, facts))
}

fn go_on(workflow: &Workflow, command: &Command, facts: &Facts<'_>) -> Result<Verdict, Rejection> {
    let by = &command.principal;
    match &command.kind {
        CommandKind::Start { .. } => Err(guard::wrong_state(workflow, command)),
        CommandKind::AcknowledgeOrchestration { fence } => Ok(acknowledge(workflow, *fence)),
        CommandKind::SubmitStep { step_id, value } => {
            people::performer(workflow, by, step_id, facts.policy)?;
            submit::decide(workflow, command, step_id, value, facts)
        }
        CommandKind::CorrectStep { step_id, value, reason_code } => {
            people::performer(workflow, by, step_id, facts.policy)?;
            correct::decide(workflow, command, step_id, value, reason_code.as_ref(), facts)
        }
        CommandKind::SkipStep { step_id, reason_code, note } => {
            people::skipper(workflow, by, step_id, facts.policy)?;
            let request = skip::Skip { step_id, reason_code: reason_code.as_ref(), note };
            skip::decide(workflow, command, &request, facts)
        }
        CommandKind::ReportProblem { summary, severity, step_id } => {
            let report = problem::Report { summary, severity: *severity, step_id };
            problem::decide(workflow, command, &report, facts)
        }
        CommandKind::ResolveBlock { block_id, decision, comment } => {
            access::may_supervise(by)?;
            let request = resolve::Resolve { block_id, decision, comment };
            resolve::decide(workflow, command, &request, facts)
        }
        CommandKind::AcknowledgeBlock { block_id } => {
            acknowledge::decide(workflow, command, block_id)
        }
        CommandKind::DeadlineReached { deadline_id } => {
            deadline::decide(workflow, command, deadline_id, facts)
        }
        CommandKind::Transfer(transfer) => transfer::decide(workflow, command, transfer, facts),
        CommandKind::ReleaseLock { asset_id, reason } => {
            lock::decide(workflow, command, asset_id, reason, facts)
        }
        CommandKind::Finish { result, note, confirm_token, confirmed_by } => {
            people::owner(workflow, by)?;
            let request = finish::Finish {
                result,
                note,
                confirm_token: confirm_token.as_deref(),
                confirmed_by: *confirmed_by,
            };
            finish::decide(workflow, command, &request, facts)
        }
    }
}

fn begin(command: &Command, facts: &Facts<'_>) -> Result<Verdict, Rejection> {
    match &command.kind {
        CommandKind::Start { workflow_id, assets, inputs } => {
            let request = start::Start { assets, inputs };
            let verdict = start::decide(command, &request, facts)?;
            let tip = Tip::origin(&command.principal.tenant, workflow_id.clone());
            Ok(waits::begin(None, tip, command, verdict, facts))
        }
        CommandKind::AcknowledgeOrchestration { .. }
        | CommandKind::SubmitStep { .. }
        | CommandKind::CorrectStep { .. }
        | CommandKind::SkipStep { .. }
        | CommandKind::ReportProblem { .. }
        | CommandKind::ResolveBlock { .. }
        | CommandKind::AcknowledgeBlock { .. }
        | CommandKind::DeadlineReached { .. }
        | CommandKind::Transfer(_)
        | CommandKind::ReleaseLock { .. }
        | CommandKind::Finish { .. } => Err(Rejection::not_found()),
    }
}

/// An acknowledgement in any state but CREATED, or by an execution that was replaced, changes nothing and writes no event.
fn acknowledge(workflow: &Workflow, fence: u64) -> Verdict {
    match workflow.phase {
        Phase::Created if fence >= workflow.fence => Verdict::Commit(Decision {
            outcome: Outcome::View,
            drafts: vec![Draft {
                actor: Some(Actor::orchestrator()),
                ..Draft::new(EventBody::OrchestrationAcknowledged { fence })
            }],
            locks: Vec::new(),
            warnings: Vec::new(),
        }),
        Phase::Created | Phase::Running | Phase::Blocked | Phase::Completed => {
            Verdict::Unrecorded(Unrecorded::Unchanged)
        }
    }
}

fn commit(outcome: Outcome, drafts: Vec<Draft>, locks: Vec<crate::locks::LockChange>) -> Verdict {
    Verdict::Commit(Decision { outcome, drafts, locks, warnings: Vec::new() })
}
