//! Events of one workflow grouped into the commits that wrote them.

use std::collections::BTreeMap;

use wf_core::models::{AssetId, ProcedureRef, Workflow};
use wf_core::state_machine::{Event, EventBody, evolve};

use super::{Applied, Effect};

/// Kinds of which one commit writes several.
const SEVERAL: &[&str] = &["recheck_required", "block_resolved", "escalated"];

/// Reads one history, event by event.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    started: Option<ProcedureRef>,
    state: Option<Workflow>,
    /// The fences under which the workflow acquired its assets last.
    fences: BTreeMap<AssetId, u64>,
    open: Vec<Event>,
    commits: Vec<Applied>,
}

/// The events of one commit and the state after them.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) events: Vec<Event>,
    pub(super) state: Option<Workflow>,
}

impl Grouping {
    /// Takes the next event; answers the commit that ended before it.
    pub(super) fn push(&mut self, event: Event) -> Option<Done> {
        let done = if self.begins(&event) { self.finish() } else { None };
        self.state = evolve(self.state.take(), &event);
        self.open.push(event);
        done
    }

    /// The commit that is not ended yet.
    pub(super) fn finish(&mut self) -> Option<Done> {
        let events = std::mem::take(&mut self.open);
        let applied = self.applied(&events)?;
        self.commits.push(applied);
        Some(Done { events, state: self.state.clone() })
    }

    pub(super) fn into_parts(self) -> (Option<ProcedureRef>, Vec<Applied>) {
        (self.started, self.commits)
    }

    /// The event is of another commit than the ones before it: somebody else caused it, or something else, or it is of
    /// a kind that one commit writes once.
    fn begins(&self, event: &Event) -> bool {
        let Some(leader) = self.open.first() else { return true };
        let follows = event.cause == leader.cause
            && (event.actor == leader.actor || !event.actor.is_person());
        let kind = event.body.kind();
        let again =
            !SEVERAL.contains(&kind) && self.open.iter().any(|known| known.body.kind() == kind);
        !follows || again
    }

    fn applied(&mut self, events: &[Event]) -> Option<Applied> {
        let (leader, last) = (events.first()?, events.last()?);
        let mut applied = Applied {
            first: leader.seq,
            last: last.seq,
            actor: leader.actor.clone(),
            cause: leader.cause.clone(),
            salt: events
                .iter()
                .find_map(|event| event.sensitive.first())
                .map(|beside| beside.salt.clone()),
            effects: events.iter().map(|event| effect(&event.body)).collect(),
            taken: Vec::new(),
            freed: Vec::new(),
            ends: false,
        };
        for event in events {
            match &event.body {
                EventBody::WorkflowStarted { procedure, assets, .. } => {
                    self.started.get_or_insert_with(|| procedure.clone());
                    self.take(assets, &mut applied);
                }
                EventBody::OwnershipTransferred { assets, .. } => self.take(assets, &mut applied),
                EventBody::LockReleased { asset_id, .. } => applied.freed.push(asset_id.clone()),
                EventBody::WorkflowCompleted { .. } => applied.ends = true,
                EventBody::OrchestrationAcknowledged { .. }
                | EventBody::StepRecorded(_)
                | EventBody::StepCorrected { .. }
                | EventBody::RecheckRequired { .. }
                | EventBody::StepNotNeeded { .. }
                | EventBody::WaitStarted { .. }
                | EventBody::StepSkipped { .. }
                | EventBody::WorkflowBlocked { .. }
                | EventBody::ProblemNoted { .. }
                | EventBody::BlockResolved { .. }
                | EventBody::BlockAcknowledged { .. }
                | EventBody::OwnershipOffered { .. }
                | EventBody::OfferWithdrawn { .. }
                | EventBody::DeadlinePassed { .. }
                | EventBody::Escalated { .. } => {}
            }
        }
        Some(applied)
    }

    /// A transfer names all assets; only those with a new fence changed hands.
    fn take(&mut self, assets: &[wf_core::models::HeldAsset], applied: &mut Applied) {
        for asset in assets {
            if self.fences.insert(asset.id.clone(), asset.fence) != Some(asset.fence) {
                applied.taken.push((asset.id.clone(), asset.fence));
            }
        }
    }
}

fn effect(body: &EventBody) -> Effect {
    let (subject, value) = match body {
        EventBody::WorkflowStarted { procedure, .. } => (Some(procedure.id.to_string()), None),
        EventBody::StepRecorded(recording) | EventBody::StepCorrected { recording, .. } => {
            let reading = &recording.reading;
            (
                Some(recording.step_id.to_string()),
                (!reading.withheld).then(|| reading.given.clone()),
            )
        }
        EventBody::StepSkipped { step_id, .. }
        | EventBody::RecheckRequired { step_id, .. }
        | EventBody::StepNotNeeded { step_id, .. }
        | EventBody::WaitStarted { step_id, .. } => (Some(step_id.to_string()), None),
        EventBody::WorkflowBlocked { block_id, summary, .. } => {
            (Some(block_id.to_string()), summary.clone())
        }
        EventBody::ProblemNoted { summary, .. } => (None, Some(summary.clone())),
        EventBody::BlockResolved { block_id, decision, .. } => {
            (Some(block_id.to_string()), Some(decision.to_string()))
        }
        EventBody::WorkflowCompleted { result, .. } => (None, Some(result.to_string())),
        EventBody::LockReleased { asset_id, .. } => (Some(asset_id.to_string()), None),
        EventBody::OrchestrationAcknowledged { .. }
        | EventBody::BlockAcknowledged { .. }
        | EventBody::OwnershipOffered { .. }
        | EventBody::OfferWithdrawn { .. }
        | EventBody::OwnershipTransferred { .. }
        | EventBody::DeadlinePassed { .. }
        | EventBody::Escalated { .. } => (None, None),
    };
    Effect { kind: body.kind(), subject, value }
}
