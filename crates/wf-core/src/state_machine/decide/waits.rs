//! Waits that begin with a commit: whatever opens the step of a wait also sets, in the history, when the wait is over.
//!
//! So the time runs from a recorded event, on the server's clock: no restart, no correction of an earlier value and no
//! later build moves it. A step that is sent back, or opens once more, begins anew.

use crate::limits::WAITS_BEGIN_MAX;
use crate::models::Workflow;
use crate::policy::PlannedStep;

use super::super::chain::{self, Tip};
use super::super::command::{Command, Facts};
use super::super::decision::{Draft, Verdict};
use super::super::event::EventBody;

/// `verdict` with the beginning of every wait whose step it opens. `tip` is where the history stands before it.
pub(super) fn begin(
    state: Option<&Workflow>,
    tip: Tip,
    command: &Command,
    verdict: Verdict,
    facts: &Facts<'_>,
) -> Verdict {
    match verdict {
        Verdict::Commit(mut decision) => {
            let begun = begun(state, tip, command, &decision.drafts, facts);
            decision.drafts.extend(begun);
            Verdict::Commit(decision)
        }
        Verdict::Unrecorded(unrecorded) => Verdict::Unrecorded(unrecorded),
    }
}

fn begun(
    state: Option<&Workflow>,
    tip: Tip,
    command: &Command,
    drafts: &[Draft],
    facts: &Facts<'_>,
) -> Vec<Draft> {
    let before = state.map(|workflow| facts.policy.plan(workflow));
    if before.as_ref().is_some_and(|plan| plan.steps.iter().all(|step| step.wait_ms.is_none())) {
        return Vec::new();
    }
    let next = foreseen(state, tip, command, drafts, facts);
    let Some(next) = next.filter(|next| next.phase.is_open()) else { return Vec::new() };
    let runs = |step: &PlannedStep| {
        let was_open = before.as_ref().and_then(|plan| plan.step(&step.id)).is_some_and(|s| s.open);
        was_open && next.waits.contains_key(&step.id)
    };
    let after = facts.policy.plan(&next);
    let open = after.steps.iter().filter(|step| step.open && step.broken.is_none());
    open.filter(|step| !runs(step))
        .filter_map(|step| Some((step.id.clone(), next.updated_at.plus_ms(step.wait_ms?))))
        .take(WAITS_BEGIN_MAX)
        .map(|(step_id, until)| Draft::new(EventBody::WaitStarted { step_id, until }))
        .collect()
}

/// The state after `drafts`.
pub(super) fn foreseen(
    state: Option<&Workflow>,
    tip: Tip,
    command: &Command,
    drafts: &[Draft],
    facts: &Facts<'_>,
) -> Option<Workflow> {
    chain::foresee(state, tip, drafts, &command.principal, &command.cause, facts.at)
}
