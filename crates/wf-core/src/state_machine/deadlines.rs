//! Deadlines: which an event sets, and what a commit does to those that the store keeps.
//!
//! The events that set them carry them, so that the state has them by folding (`evolve`), and the rows of the store are the
//! difference between two states: neither can say what the other does not.

use crate::models::{DeadlineAbout, OpenDeadline, Timestamp, Workflow, WorkflowId};
use crate::ports::{Deadline, DeadlineChange};

use super::event::{Event, EventBody};

/// The id of the `n`th deadline, from 1, that the event `seq` sets: the idempotency key of its firing.
#[must_use]
pub fn id(workflow: &WorkflowId, seq: u64, n: usize) -> String {
    format!("{workflow}/{seq}/{n}")
}

/// The deadlines that `event` sets, with their ids. Time counts from the event.
#[must_use]
pub fn set_by(event: &Event) -> Vec<(String, OpenDeadline)> {
    let due = |after_ms: i64| event.at.plus_ms(after_ms);
    match &event.body {
        EventBody::WorkflowStarted { deadlines, .. } => (1..)
            .zip(deadlines)
            .map(|(n, deadline)| {
                let about = DeadlineAbout::Workflow {
                    name: deadline.id.clone(),
                    notify: deadline.notify.clone(),
                };
                let fire_at = due(deadline.after_ms);
                (id(&event.workflow_id, event.seq, n), OpenDeadline { fire_at, about })
            })
            .collect(),
        EventBody::WorkflowBlocked { block_id, respond_within_ms: Some(within), then, .. }
        | EventBody::Escalated {
            block_id: Some(block_id),
            respond_within_ms: Some(within),
            then,
            ..
        } => {
            let about = DeadlineAbout::Response { block_id: block_id.clone(), then: then.clone() };
            let fire_at = due(*within);
            vec![(id(&event.workflow_id, event.seq, 1), OpenDeadline { fire_at, about })]
        }
        EventBody::WorkflowBlocked { .. }
        | EventBody::Escalated { .. }
        | EventBody::OrchestrationAcknowledged { .. }
        | EventBody::StepRecorded(_)
        | EventBody::StepCorrected { .. }
        | EventBody::RecheckRequired { .. }
        | EventBody::StepNotNeeded { .. }
        | EventBody::WaitStarted { .. }
        | EventBody::StepSkipped { .. }
        | EventBody::ProblemNoted { .. }
        | EventBody::BlockResolved { .. }
        | EventBody::BlockAcknowledged { .. }
        | EventBody::OwnershipOffered { .. }
        | EventBody::OfferWithdrawn { .. }
        | EventBody::OwnershipTransferred { .. }
        | EventBody::LockReleased { .. }
        | EventBody::WorkflowCompleted { .. }
        | EventBody::DeadlinePassed { .. } => Vec::new(),
    }
}

/// What a commit from one state to the next does to the stored deadlines.
#[must_use]
pub fn changes(before: Option<&Workflow>, next: &Workflow) -> Vec<DeadlineChange> {
    let had = |id: &str| before.is_some_and(|before| before.deadlines.contains_key(id));
    let gone = before
        .into_iter()
        .flat_map(|before| before.deadlines.keys())
        .filter(|id| !next.deadlines.contains_key(*id))
        .map(|id| DeadlineChange::Clear(id.clone()));
    let set = next.deadlines.iter().filter(|(id, _)| !had(id)).map(|(id, deadline)| {
        DeadlineChange::Set(Deadline { id: id.clone(), fire_at: deadline.fire_at })
    });
    gone.chain(set).collect()
}

/// The open one that is to pass next: of several that are due at once, the one whose id is smaller.
#[must_use]
pub fn next_of(workflow: &Workflow) -> Option<(&str, &OpenDeadline)> {
    let all = workflow.deadlines.iter().map(|(id, deadline)| (id.as_str(), deadline));
    all.min_by_key(|(id, deadline)| (deadline.fire_at, *id))
}

/// When the response to a block is due, while somebody is waited for.
#[must_use]
pub fn response_due(workflow: &Workflow, block: &crate::models::BlockId) -> Option<Timestamp> {
    workflow.deadlines.values().find(|d| d.about.is_response_to(block)).map(|d| d.fire_at)
}
