//! What a changed value means for the steps that used it: each is to be confirmed again, or is no longer needed.
//!
//! The policy says which steps use a value and, before and after, which are to be done. A step that comes or goes because
//! of its condition brings or takes its own value, so those that used it are looked at, too. A signature used everything
//! that was recorded when it was given, whatever a policy says: it is asked for again when any of that changes.

use std::collections::BTreeSet;

use crate::limits::{DEPENDANTS_MAX, SIGNATURES_MAX};
use crate::models::{Reading, StepId, StepRecord, StepStatus, Workflow};

use super::super::chain::Tip;
use super::super::command::{Command, Facts};
use super::super::decision::Draft;
use super::super::event::EventBody;
use super::waits;

/// A step whose value changes.
pub(super) struct Change<'a> {
    pub(super) step_id: &'a StepId,
    /// The new value; absent when the step is left out.
    pub(super) value: Option<&'a Reading>,
    /// What the command did so far.
    pub(super) drafts: &'a [Draft],
}

/// Events that follow from a change. None when the new value means the same as the old one.
pub(super) fn of(
    workflow: &Workflow,
    command: &Command,
    change: &Change<'_>,
    facts: &Facts<'_>,
) -> Vec<Draft> {
    let policy = facts.policy;
    if stays(workflow, change, facts) {
        return Vec::new();
    }
    let signed = signatures_over(workflow, change.step_id, facts);
    if signed.is_empty() && !reaches(workflow, change.step_id, facts) {
        return Vec::new();
    }
    let tip = Tip::of(workflow);
    let Some(next) = waits::foreseen(Some(workflow), tip, command, change.drafts, facts) else {
        return Vec::new();
    };
    let (before, after) = (policy.plan(workflow), policy.plan(&next));
    let mut used: BTreeSet<StepId> = policy.dependants(change.step_id).into_iter().collect();
    let (mut follow, mut signatures) = (Vec::new(), Vec::new());
    // Conditions look back only, so one pass in the definition's order meets every step after those it used.
    for step in after.steps.iter().filter(|step| &step.id != change.step_id) {
        let is_signature = signed.contains(&step.id);
        let uses = is_signature || used.contains(&step.id);
        let Some(record) = workflow.steps.get(&step.id).filter(|_| uses) else {
            continue;
        };
        let applied = before.step(&step.id).is_some_and(|before| before.applies);
        // A value that still counted, although its step was gone since an earlier one was sent back, goes now.
        let goes = record.status == StepStatus::Recorded && !step.applies;
        if goes || applied != step.applies {
            used.extend(policy.dependants(&step.id));
        }
        let (step_id, because_of) = (step.id.clone(), change.step_id.clone());
        let follow = if is_signature { &mut signatures } else { &mut follow };
        match record.status {
            StepStatus::Recorded if step.applies => {
                follow.push(EventBody::RecheckRequired { step_id, because_of });
            }
            StepStatus::Recorded => {
                follow.push(EventBody::StepNotNeeded { step_id, because_of });
            }
            StepStatus::Recheck if applied && !step.applies => {
                follow.push(EventBody::StepNotNeeded { step_id, because_of });
            }
            StepStatus::Recheck | StepStatus::Reopened | StepStatus::Skipped => {}
        }
    }
    signatures.truncate(SIGNATURES_MAX);
    follow.truncate(DEPENDANTS_MAX);
    follow.into_iter().chain(signatures).map(Draft::new).collect()
}

/// Signatures for the value of a step as it is: those that stand, and were given when it was recorded.
fn signatures_over(workflow: &Workflow, step_id: &StepId, facts: &Facts<'_>) -> BTreeSet<StepId> {
    let Some(changed) = workflow.steps.get(step_id) else { return BTreeSet::new() };
    // What was recorded once, and after the signature, is not what was signed.
    let came_after = |signature: &StepRecord| {
        changed.is_settled() && changed.attempt <= 1 && changed.touch.seq > signature.touch.seq
    };
    let signs = |id: &StepId| facts.policy.describe(workflow, id).is_some_and(|step| step.signs);
    let stand = workflow.steps.iter().filter(|(id, record)| {
        *id != step_id && record.status == StepStatus::Recorded && !came_after(record)
    });
    stand.filter(|(id, _)| signs(id)).map(|(id, _)| id.clone()).collect()
}

/// The new value means the same as the one that is known.
fn stays(workflow: &Workflow, change: &Change<'_>, facts: &Facts<'_>) -> bool {
    let old = workflow.reading(change.step_id).filter(|old| !old.withheld);
    old.zip(change.value)
        .is_some_and(|(old, new)| facts.policy.same_value(change.step_id, old, new))
}

/// Somebody recorded a step that used the value, itself or by way of others.
fn reaches(workflow: &Workflow, step_id: &StepId, facts: &Facts<'_>) -> bool {
    let mut seen = BTreeSet::from([step_id.clone()]);
    let mut left = vec![step_id.clone()];
    while let Some(of) = left.pop() {
        for id in facts.policy.dependants(&of) {
            let Some(record) = workflow.steps.get(&id) else { continue };
            if !seen.insert(id.clone()) {
                continue;
            }
            match record.status {
                StepStatus::Recorded | StepStatus::Recheck => return true,
                StepStatus::Reopened | StepStatus::Skipped => left.push(id),
            }
        }
    }
    false
}
