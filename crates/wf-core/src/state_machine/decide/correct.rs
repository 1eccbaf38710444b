//! `correct_step`: a recorded value is replaced, judged exactly like a submitted one; the original stays.

use crate::errors::ErrorCode;
use crate::models::{Block, DecisionId, Phase, ReasonCode, StepId, Workflow};
use crate::policy::Effect;
use crate::view::Rule;

use super::super::command::{Command, Facts, SubmittedValue};
use super::super::decision::{Decision, Draft, Outcome, Rejection, Verdict};
use super::super::event::EventBody;
use super::ripple::{self, Change};
use super::value::{self, Judging};
use super::{guard, submit};

pub(super) fn decide(
    workflow: &Workflow,
    command: &Command,
    step_id: &StepId,
    value: &SubmittedValue,
    reason: Option<&ReasonCode>,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    match workflow.phase {
        Phase::Running => {}
        // Only the step that caused the block may be corrected while it stands.
        Phase::Blocked if causes(workflow, step_id).next().is_some() => {}
        Phase::Created | Phase::Blocked | Phase::Completed => {
            return Err(guard::wrong_state(workflow, command));
        }
    }
    let plan = facts.policy.plan(workflow);
    guard::step(&plan, step_id)?;
    if workflow.steps.get(step_id).is_none_or(|s| s.reading.is_none()) {
        let open: Vec<&str> = plan.open().map(|s| s.id.as_str()).collect();
        return Err(Rejection::new(
            ErrorCode::StepNotOpen,
            "nothing is recorded for the step; submit_step records a value",
            Rule::NothingToCorrect,
        )
        .with("open", open));
    }
    let reason = guard::required_reason(reason, facts.policy)?;
    let locks = guard::locks(workflow, facts)?;
    let judged = match value::judge(workflow, command, step_id, value, facts)? {
        Judging::Record(judged) => judged,
        Judging::Answer(unrecorded) => return Ok(Verdict::Unrecorded(unrecorded)),
    };
    let outcome = judged.outcome(Outcome::Corrected);
    let warnings = judged.accepted.warnings.clone();
    let corrected = EventBody::StepCorrected {
        recording: judged.recording(step_id, value),
        reason_code: reason,
    };
    let mut drafts = vec![judged.draft(corrected)];
    let change = Change { step_id, value: Some(&judged.accepted.reading), drafts: &drafts };
    let follow = ripple::of(workflow, command, &change, facts);
    drafts.extend(follow);
    match judged.block {
        // The block that stands goes on standing for the new value.
        Some(_) if causes(workflow, step_id).next().is_some() => {}
        Some(cause) => drafts.push(submit::block(workflow, drafts.len(), step_id, cause)),
        None => drafts.extend(causes(workflow, step_id).map(resolved)),
    }
    Ok(Verdict::Commit(Decision { outcome, drafts, locks, warnings }))
}

/// Open blocks that the value of the step caused.
fn causes<'w>(workflow: &'w Workflow, step_id: &'w StepId) -> impl Iterator<Item = &'w Block> {
    workflow.blocks.iter().filter(move |b| !b.reported && b.step_id.as_ref() == Some(step_id))
}

fn resolved(block: &Block) -> Draft {
    Draft::new(EventBody::BlockResolved {
        block_id: block.id.clone(),
        decision: DecisionId::corrected(),
        effect: Effect::Continue,
        step_id: block.step_id.clone(),
        comment: None,
    })
}
