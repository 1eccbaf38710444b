//! `submit_step`: the step is open now and the value parses.

use crate::models::{BlockId, Phase, Severity, StepId, Workflow};
use crate::policy::{BlockCause, BlockSource};

use super::super::command::{Command, Facts, SubmittedValue};
use super::super::decision::{Decision, Draft, Outcome, Rejection, Verdict};
use super::super::event::EventBody;
use super::ripple::{self, Change};
use super::value::{self, Judging};
use super::{commit, guard};

pub(super) fn decide(
    workflow: &Workflow,
    command: &Command,
    step_id: &StepId,
    value: &SubmittedValue,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    match workflow.phase {
        Phase::Created | Phase::Running => {}
        Phase::Blocked | Phase::Completed => return Err(guard::wrong_state(workflow, command)),
    }
    let plan = facts.policy.plan(workflow);
    guard::open(workflow, &plan, step_id, facts.policy)?;
    if let Some(code) = guard::step(&plan, step_id)?.broken.as_ref() {
        let locks = guard::locks(workflow, facts)?;
        let rule = facts.policy.block_rule(BlockSource { step_id: Some(step_id), reported: false });
        let cause = BlockCause {
            code: code.clone(),
            severity: Severity::High,
            escalation: rule.escalation,
        };
        let draft = block(workflow, 0, step_id, cause);
        return Ok(commit(Outcome::Blocked, vec![draft], locks));
    }
    let locks = guard::locks(workflow, facts)?;
    let judged = match value::judge(workflow, command, step_id, value, facts)? {
        Judging::Record(judged) => judged,
        Judging::Answer(unrecorded) => return Ok(Verdict::Unrecorded(unrecorded)),
    };
    let outcome = judged.outcome(Outcome::Recorded);
    let warnings = judged.accepted.warnings.clone();
    let mut drafts = vec![judged.draft(EventBody::StepRecorded(judged.recording(step_id, value)))];
    let change = Change { step_id, value: Some(&judged.accepted.reading), drafts: &drafts };
    let follow = ripple::of(workflow, command, &change, facts);
    drafts.extend(follow);
    if let Some(cause) = judged.block {
        drafts.push(block(workflow, drafts.len(), step_id, cause));
    }
    Ok(Verdict::Commit(Decision { outcome, drafts, locks, warnings }))
}

/// The block that comes `after` so many events of this commit.
pub(super) fn block(
    workflow: &Workflow,
    after: usize,
    step_id: &StepId,
    cause: BlockCause,
) -> Draft {
    let seq = workflow.revision + 1 + u64::try_from(after).unwrap_or(u64::MAX);
    let told = guard::told(workflow, cause.escalation);
    Draft::new(EventBody::WorkflowBlocked {
        block_id: BlockId::of_seq(seq),
        code: cause.code,
        step_id: Some(step_id.clone()),
        reported: false,
        summary: None,
        severity: cause.severity,
        escalated_to: told.to,
        respond_within_ms: told.respond_within_ms,
        then: told.then,
    })
}
