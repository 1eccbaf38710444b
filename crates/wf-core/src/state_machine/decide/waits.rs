//! Waits that begin with a commit: whatever opens the step of a wait also sets, in the history, when the wait is over.
//!
//! So the time runs from a recorded event, on the server's clock: no restart, no correction of an earlier value and no
//! later build moves it. A step that is sent back, or opens once more, begins anew.

use crate::limits::WAITS_BEGIN_MAX;
use crate::models::{Phase, Workflow};
use crate::policy::{Plan, PlannedStep};

use super::super::chain::{self, Tip};
use super::super::command::{Command, CommandKind, Facts};
use super::super::decision::{Decision, Draft};
use super::super::event::EventBody;

/// `decision` with the beginning of every wait whose step it opens.
pub(super) fn begin(
    state: Option<&Workflow>,
    command: &Command,
    mut decision: Decision,
    facts: &Facts<'_>,
) -> Decision {
    let before = state.map(|workflow| facts.policy.plan(workflow));
    if before.as_ref().is_some_and(|plan| plan.steps.iter().all(|step| step.wait_ms.is_none())) {
        return decision;
    }
    let Some(next) = foreseen(state, command, &decision.drafts, facts) else { return decision };
    if next.phase == Phase::Completed {
        return decision;
    }
    let after = facts.policy.plan(&next);
    let begun = after
        .steps
        .iter()
        .filter(|step| step.open && step.broken.is_none())
        .filter(|step| !(next.waits.contains_key(&step.id) && was_open(before.as_ref(), step)))
        .filter_map(|step| Some((step, step.wait_ms?)))
        .take(WAITS_BEGIN_MAX)
        .map(|(step, ms)| {
            let until = next.updated_at.plus_ms(ms);
            Draft::new(EventBody::WaitStarted { step_id: step.id.clone(), until })
        });
    decision.drafts.extend(begun);
    decision
}

fn was_open(before: Option<&Plan>, step: &PlannedStep) -> bool {
    before.and_then(|plan| plan.step(&step.id)).is_some_and(|step| step.open)
}

/// The state after `drafts`.
pub(super) fn foreseen(
    state: Option<&Workflow>,
    command: &Command,
    drafts: &[Draft],
    facts: &Facts<'_>,
) -> Option<Workflow> {
    let tip = match (state, &command.kind) {
        (Some(workflow), _) => Tip::of(workflow),
        (None, CommandKind::Start { workflow_id, .. }) => {
            Tip::origin(&command.principal.tenant, workflow_id.clone())
        }
        (None, _) => return None,
    };
    chain::foresee(state, tip, drafts, &command.principal, &command.cause, facts.at)
}
