//! The state machine a second time, as domain.md draws it: which event may be in which state, and where it leads.
//!
//! `evolve` takes any event in any state, and the fold of a history that the engine should never have written is still the
//! fold. This looks at the history with nothing of the engine's.

use std::collections::BTreeMap;

use wf_core::models::{BlockId, Phase, StepId, Workflow};
use wf_core::state_machine::{Event, EventBody};

use super::super::Invariant;
use super::super::found::Found;

/// The one result that every open state may end with.
const ABANDONED: &str = "abandoned";

/// A workflow at the point that was read to.
#[derive(Debug, Default)]
pub(super) struct Moves {
    phase: Option<Phase>,
    /// The blocks that are open, each with the step whose value made it.
    blocks: BTreeMap<BlockId, Option<StepId>>,
}

impl Moves {
    pub(super) fn push(&mut self, event: &Event, found: &mut Found) {
        if !self.may(&event.body) {
            let state = self.phase.map_or("no state", Phase::as_str);
            let message = format!("event {} ({}) in {state}", event.seq, event.body.kind());
            found.add(Invariant::I8, event.workflow_id.as_str(), message);
        }
        self.follow(&event.body);
    }

    /// The event is lawful here. After the completion none is, which the walk of the history says already.
    fn may(&self, body: &EventBody) -> bool {
        let Some(phase) = self.phase else {
            return matches!(body, EventBody::WorkflowStarted { .. });
        };
        let open = |block: &BlockId| self.blocks.contains_key(block);
        match body {
            EventBody::WorkflowStarted { .. } => false,
            EventBody::OrchestrationAcknowledged { .. } => phase == Phase::Created,
            EventBody::StepRecorded(_) | EventBody::StepSkipped { .. } => {
                matches!(phase, Phase::Created | Phase::Running)
            }
            EventBody::StepCorrected { recording, .. } => match phase {
                Phase::Created => false,
                Phase::Running | Phase::Completed => true,
                Phase::Blocked => {
                    self.blocks.values().any(|step| step.as_ref() == Some(&recording.step_id))
                }
            },
            EventBody::BlockResolved { block_id, .. }
            | EventBody::BlockAcknowledged { block_id, .. } => open(block_id),
            EventBody::WorkflowCompleted { result, .. } => {
                phase == Phase::Running || result.as_str() == ABANDONED
            }
            EventBody::WorkflowBlocked { block_id, .. } => !open(block_id),
            EventBody::RecheckRequired { .. }
            | EventBody::StepNotNeeded { .. }
            | EventBody::WaitStarted { .. }
            | EventBody::ProblemNoted { .. }
            | EventBody::OwnershipOffered { .. }
            | EventBody::OfferWithdrawn { .. }
            | EventBody::OwnershipTransferred { .. }
            | EventBody::LockReleased { .. }
            | EventBody::DeadlinePassed { .. }
            | EventBody::Escalated { .. } => true,
        }
    }

    fn follow(&mut self, body: &EventBody) {
        match body {
            EventBody::WorkflowStarted { .. } => {
                self.phase.get_or_insert(Phase::Created);
            }
            EventBody::OrchestrationAcknowledged { .. }
            | EventBody::StepRecorded(_)
            | EventBody::StepCorrected { .. }
            | EventBody::StepSkipped { .. } => {
                if self.phase == Some(Phase::Created) {
                    self.phase = Some(Phase::Running);
                }
            }
            EventBody::WorkflowBlocked { block_id, step_id, reported, .. } => {
                let caused_by = step_id.clone().filter(|_| !reported);
                self.blocks.insert(block_id.clone(), caused_by);
                self.phase = Some(Phase::Blocked);
            }
            EventBody::BlockResolved { block_id, .. } => {
                self.blocks.remove(block_id);
                if self.blocks.is_empty() && self.phase == Some(Phase::Blocked) {
                    self.phase = Some(Phase::Running);
                }
            }
            EventBody::WorkflowCompleted { .. } => {
                self.blocks.clear();
                self.phase = Some(Phase::Completed);
            }
            EventBody::RecheckRequired { .. }
            | EventBody::StepNotNeeded { .. }
            | EventBody::WaitStarted { .. }
            | EventBody::ProblemNoted { .. }
            | EventBody::BlockAcknowledged { .. }
            | EventBody::OwnershipOffered { .. }
            | EventBody::OfferWithdrawn { .. }
            | EventBody::OwnershipTransferred { .. }
            | EventBody::LockReleased { .. }
            | EventBody::DeadlinePassed { .. }
            | EventBody::Escalated { .. } => {}
        }
    }

    /// The state is where the history leads, with the blocks that it left open.
    pub(super) fn finish(self, workflow: &Workflow, found: &mut Found) {
        let mut open: Vec<&BlockId> = workflow.blocks.iter().map(|block| &block.id).collect();
        open.sort();
        if self.phase != Some(workflow.phase) || !self.blocks.keys().eq(open) {
            let led = self.phase.map_or("no state", Phase::as_str);
            let message = format!(
                "it is {} with {} open blocks, and its events lead to {led} with {}",
                workflow.phase.as_str(),
                workflow.blocks.len(),
                self.blocks.len()
            );
            found.add(Invariant::I8, workflow.id.as_str(), message);
        }
    }
}
