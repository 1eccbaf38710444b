//! The deadlines of a history, by its events: each passes once, when it was due, in order, and only while it was set.

use std::collections::BTreeMap;

use wf_core::models::{BlockId, Timestamp, Workflow};
use wf_core::state_machine::{Event, EventBody, deadlines};

use super::super::Invariant;
use super::super::found::Found;

/// A deadline that is set at some point of a history.
#[derive(Debug)]
struct Set {
    fire_at: Timestamp,
    /// The block that is waited for.
    block: Option<BlockId>,
}

/// The deadlines at the point that was read to.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    set: BTreeMap<String, Set>,
    passed: Vec<String>,
}

impl Deadlines {
    pub(super) fn push(&mut self, event: &Event, found: &mut Found) {
        match &event.body {
            EventBody::DeadlinePassed { deadline_id, .. } => self.pass(event, deadline_id, found),
            EventBody::BlockAcknowledged { block_id, .. }
            | EventBody::BlockResolved { block_id, .. } => {
                self.set.retain(|_, set| set.block.as_ref() != Some(block_id));
            }
            EventBody::Escalated { block_id: Some(block), .. } if self.waits_for(block) => {
                let message = format!("event {} tells the next while one has time", event.seq);
                found.add(Invariant::I8, event.workflow_id.as_str(), message);
            }
            EventBody::WorkflowCompleted { .. } => self.set.clear(),
            EventBody::WorkflowStarted { .. }
            | EventBody::WorkflowBlocked { .. }
            | EventBody::Escalated { .. }
            | EventBody::OrchestrationAcknowledged { .. }
            | EventBody::StepRecorded(_)
            | EventBody::StepCorrected { .. }
            | EventBody::RecheckRequired { .. }
            | EventBody::StepNotNeeded { .. }
            | EventBody::WaitStarted { .. }
            | EventBody::StepSkipped { .. }
            | EventBody::ProblemNoted { .. }
            | EventBody::OwnershipOffered { .. }
            | EventBody::OfferWithdrawn { .. }
            | EventBody::OwnershipTransferred { .. }
            | EventBody::LockReleased { .. } => {}
        }
        let block = if let EventBody::WorkflowBlocked { block_id, .. }
        | EventBody::Escalated { block_id: Some(block_id), .. } = &event.body
        {
            Some(block_id.clone())
        } else {
            None
        };
        for (id, deadline) in deadlines::set_by(event) {
            let fire_at = deadline.fire_at;
            self.set.insert(id, Set { fire_at, block: block.clone() });
        }
    }

    fn waits_for(&self, block: &BlockId) -> bool {
        self.set.values().any(|set| set.block.as_ref() == Some(block))
    }

    fn pass(&mut self, event: &Event, id: &str, found: &mut Found) {
        let mut wrong = |invariant, what: &str| {
            let message = format!("event {}: deadline {id} {what}", event.seq);
            found.add(invariant, event.workflow_id.as_str(), message);
        };
        if self.passed.iter().any(|passed| passed == id) {
            return wrong(Invariant::I2, "passed twice");
        }
        self.passed.push(id.to_owned());
        let Some(due) = self.set.remove(id) else {
            return wrong(Invariant::I8, "passed and was not set");
        };
        if event.at < due.fire_at {
            wrong(Invariant::I8, "passed before it was due");
        }
        let earlier =
            |(other, set): &(&String, &Set)| (set.fire_at, other.as_str()) < (due.fire_at, id);
        if let Some((other, _)) = self.set.iter().find(earlier) {
            wrong(Invariant::I8, &format!("overtook an earlier one, {other}"));
        }
        if event.cause.key.as_str() != id {
            wrong(Invariant::I2, "passed under another key than its own");
        }
    }

    /// What is set at the end is what the state has.
    pub(super) fn finish(self, workflow: &Workflow, found: &mut Found) {
        let state = workflow.deadlines.iter().map(|(id, open)| (id.as_str(), open.fire_at));
        let ours = self.set.iter().map(|(id, set)| (id.as_str(), set.fire_at));
        if !state.eq(ours) {
            let message = "the deadlines of the state are not those that its events set";
            found.add(Invariant::I13, workflow.id.as_str(), message);
        }
    }
}
