//! `report_problem`: anybody who may write tells that something is wrong, in any open state.

use crate::errors::ErrorCode;
use crate::limits::BLOCKS_MAX;
use crate::models::{BlockId, Phase, Recipient, Severity, StepId, Workflow};
use crate::policy::BlockSource;
use crate::view::Fault;

use super::super::command::{Command, Facts};
use super::super::decision::{Draft, Outcome, Rejection, Verdict};
use super::super::event::EventBody;
use super::{commit, guard};

pub(super) struct Report<'a> {
    pub(super) summary: &'a str,
    pub(super) severity: Severity,
    pub(super) step_id: &'a Option<StepId>,
}

pub(super) fn decide(
    workflow: &Workflow,
    command: &Command,
    report: &Report<'_>,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    match workflow.phase {
        Phase::Created | Phase::Running | Phase::Blocked => {}
        Phase::Completed => return Err(guard::wrong_state(workflow, command)),
    }
    if let Some(step_id) = report.step_id {
        guard::step(&facts.policy.plan(workflow), step_id)?;
    }
    match report.severity {
        Severity::Note => {
            let body = EventBody::ProblemNoted {
                step_id: report.step_id.clone(),
                summary: report.summary.to_owned(),
            };
            Ok(commit(Outcome::Noted, vec![Draft::new(body)], Vec::new()))
        }
        Severity::Low | Severity::High => blocked(workflow, report, facts),
    }
}

fn blocked(
    workflow: &Workflow,
    report: &Report<'_>,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    if workflow.blocks.len() >= BLOCKS_MAX {
        return Err(Rejection::new(
            ErrorCode::LimitExceeded,
            format!("at most {BLOCKS_MAX} blocks may be open; resolve one first"),
            Fault::LimitExceeded,
        )
        .with("limit", "blocks")
        .with("max", BLOCKS_MAX));
    }
    let source = BlockSource { step_id: report.step_id.as_ref(), reported: true };
    let rule = facts.policy.block_rule(source);
    let told = guard::told(workflow, rule.escalation);
    let block_id = BlockId::of_seq(workflow.revision + 1);
    let blocked = Draft::new(EventBody::WorkflowBlocked {
        block_id: block_id.clone(),
        code: rule.code,
        step_id: report.step_id.clone(),
        reported: true,
        summary: Some(report.summary.to_owned()),
        severity: report.severity,
        escalated_to: told.to,
        respond_within_ms: told.respond_within_ms,
        then: told.then,
    });
    let at_once = told.at_once.into_iter().filter_map(|next| {
        guard::escalated(&block_id, &[Recipient { respond_within_ms: None, ..next }])
    });
    let drafts = std::iter::once(blocked).chain(at_once).collect();
    Ok(commit(Outcome::Blocked, drafts, Vec::new()))
}
