//! `evolve`: the state after an event. Total, never fails, decides nothing.

use crate::limits::CLOSED_BLOCKS_MAX;
use crate::models::{
    Block, BlockId, ClosedBlock, HeldAsset, Offer, Person, Phase, ProcedureRef, ResultId, StepId,
    StepRecord, StepStatus, TenantId, Text, Touch, Wait, Workflow,
};
use crate::policy::Effect;

use super::deadlines;
use super::event::{Event, EventBody, Recording};

/// The state after `event`. A history that does not begin with a start stays nothing.
#[must_use]
pub fn evolve(state: Option<Workflow>, event: &Event) -> Option<Workflow> {
    let mut next = match state {
        // The last state: whatever follows moves the history on, never what it is about.
        Some(workflow) if workflow.phase == Phase::Completed => workflow,
        Some(workflow) => apply(workflow, event),
        None => born(event)?,
    };
    next.revision = event.seq;
    next.last_hash = event.hash.clone();
    next.updated_at = event.at;
    if event.actor.is_person() {
        next.last_activity = event.at;
    }
    Some(next)
}

fn touch(event: &Event) -> Touch {
    Touch { seq: event.seq, actor: event.actor.clone(), cause: event.cause.clone() }
}

fn born(event: &Event) -> Option<Workflow> {
    let EventBody::WorkflowStarted {
        tenant,
        procedure,
        label,
        assets,
        inputs,
        sensitive_inputs,
        owner,
        deadlines: _,
    } = &event.body
    else {
        return None;
    };
    let start = Born { tenant, procedure, label, assets };
    let mut workflow = start.workflow(event, owner.clone());
    workflow.inputs.clone_from(inputs);
    workflow.withheld_inputs = sensitive_inputs.keys().cloned().collect();
    workflow.deadlines.extend(deadlines::set_by(event));
    Some(workflow)
}

struct Born<'a> {
    tenant: &'a TenantId,
    procedure: &'a ProcedureRef,
    label: &'a Text,
    assets: &'a [HeldAsset],
}

impl Born<'_> {
    fn workflow(&self, event: &Event, owner: Person) -> Workflow {
        Workflow {
            tenant: self.tenant.clone(),
            id: event.workflow_id.clone(),
            procedure: self.procedure.clone(),
            label: self.label.clone(),
            phase: Phase::Created,
            result: None,
            revision: event.seq,
            last_hash: event.hash.clone(),
            owner,
            offer: None,
            assets: self.assets.to_vec(),
            inputs: serde_json::Map::new(),
            withheld_inputs: Vec::new(),
            steps: std::collections::BTreeMap::new(),
            waits: std::collections::BTreeMap::new(),
            performers: std::collections::BTreeSet::new(),
            blocks: Vec::new(),
            closed_blocks: Vec::new(),
            last_note: None,
            start_touch: touch(event),
            ownership_touch: None,
            outcome_touch: None,
            last_recorded: None,
            started_at: event.at,
            updated_at: event.at,
            last_activity: event.at,
            completed_at: None,
            fence: 1,
            deadlines: std::collections::BTreeMap::new(),
        }
    }
}

fn apply(mut w: Workflow, event: &Event) -> Workflow {
    match &event.body {
        // A second start cannot be: the first event made the workflow.
        EventBody::WorkflowStarted { .. } => {}
        EventBody::OrchestrationAcknowledged { fence } => {
            w.fence = *fence;
            run(&mut w);
        }
        EventBody::StepRecorded(recording) | EventBody::StepCorrected { recording, .. } => {
            record(&mut w, event, recording);
            run(&mut w);
        }
        EventBody::RecheckRequired { step_id, .. } | EventBody::StepNotNeeded { step_id, .. } => {
            recheck(&mut w, event, step_id);
        }
        EventBody::WaitStarted { step_id, until } => {
            w.waits.insert(step_id.clone(), Wait { since: event.at, until: *until });
        }
        EventBody::StepSkipped { step_id, .. } => {
            skip(&mut w, event, step_id);
            run(&mut w);
        }
        EventBody::WorkflowBlocked { .. } => block(&mut w, event),
        EventBody::ProblemNoted { .. } => w.last_note = Some(touch(event)),
        EventBody::BlockResolved { block_id, effect, step_id, .. } => {
            unblock(&mut w, event, block_id);
            match effect {
                Effect::Redo => reopen(&mut w, event, step_id.as_ref()),
                Effect::Continue | Effect::Abort => {}
            }
        }
        EventBody::BlockAcknowledged { block_id, by } => {
            acknowledge(&mut w, event, block_id, by);
        }
        EventBody::OwnershipOffered { to } => {
            w.offer = Some(Offer { to: to.clone(), at: event.at });
            w.ownership_touch = Some(touch(event));
        }
        EventBody::OfferWithdrawn { .. } => {
            w.offer = None;
            w.ownership_touch = Some(touch(event));
        }
        EventBody::OwnershipTransferred { to, assets, .. } => {
            w.owner = to.clone();
            w.assets.clone_from(assets);
            w.offer = None;
            w.ownership_touch = Some(touch(event));
        }
        // The lock row changed, not the workflow: its next step finds that the lock is lost. A take-over is a new one now.
        EventBody::LockReleased { .. } => w.ownership_touch = Some(touch(event)),
        EventBody::WorkflowCompleted { result, .. } => complete(&mut w, event, result),
        EventBody::DeadlinePassed { deadline_id, block_id, .. } => {
            let due = w.deadlines.remove(deadline_id).map(|deadline| deadline.fire_at);
            if let Some(block) = block_mut(&mut w, block_id.as_ref()) {
                block.unanswered_since = due;
            }
        }
        EventBody::Escalated { block_id, to, .. } => escalate(&mut w, event, block_id.as_ref(), to),
    }
    // The last event completes: nothing is due any more.
    if w.phase.is_open() {
        w.deadlines.extend(deadlines::set_by(event));
    }
    w
}

/// The step is open again, with its value, whenever it is to be done.
fn recheck(w: &mut Workflow, event: &Event, step_id: &StepId) {
    if let Some(step) = w.steps.get_mut(step_id) {
        step.status = StepStatus::Recheck;
        step.touch = touch(event);
        w.waits.remove(step_id);
    }
}

fn block_mut<'w>(w: &'w mut Workflow, id: Option<&BlockId>) -> Option<&'w mut Block> {
    w.blocks.iter_mut().find(|block| Some(&block.id) == id)
}

/// Somebody was told, and has all the time that is theirs.
fn escalate(w: &mut Workflow, event: &Event, block_id: Option<&BlockId>, to: &str) {
    if let Some(block) = block_mut(w, block_id) {
        block.escalated_to = Some(to.to_owned());
        block.escalated_at = Some(event.at);
        block.unanswered_since = None;
    }
}

fn acknowledge(w: &mut Workflow, event: &Event, block_id: &BlockId, by: &Person) {
    if let Some(block) = block_mut(w, Some(block_id)) {
        block.acknowledged_by = Some(by.clone());
        block.acknowledged_at = Some(event.at);
        block.unanswered_since = None;
    }
    responded(w, block_id);
}

/// Nobody is waited for any more.
fn responded(w: &mut Workflow, block_id: &BlockId) {
    w.deadlines.retain(|_, deadline| !deadline.about.is_response_to(block_id));
}

/// The first progress makes a created workflow run.
fn run(w: &mut Workflow) {
    if w.phase == Phase::Created {
        w.phase = Phase::Running;
    }
}

fn record(w: &mut Workflow, event: &Event, recording: &Recording) {
    let record = StepRecord {
        status: StepStatus::Recorded,
        attempt: recording.attempt,
        reading: Some(recording.reading.clone()),
        out_of_range: recording.out_of_range,
        at: event.at,
        by: person(event),
        touch: touch(event),
    };
    w.steps.insert(recording.step_id.clone(), record);
    if recording.signed.is_none() {
        w.performers.insert(event.actor.clone());
    }
    w.last_recorded = Some(recording.step_id.clone());
}

fn skip(w: &mut Workflow, event: &Event, step_id: &StepId) {
    let record = StepRecord {
        status: StepStatus::Skipped,
        attempt: w.steps.get(step_id).map_or(0, |s| s.attempt),
        reading: None,
        out_of_range: false,
        at: event.at,
        by: person(event),
        touch: touch(event),
    };
    w.steps.insert(step_id.clone(), record);
    w.performers.insert(event.actor.clone());
    if w.last_recorded.as_ref() == Some(step_id) {
        w.last_recorded = None;
    }
}

fn complete(w: &mut Workflow, event: &Event, result: &ResultId) {
    w.phase = Phase::Completed;
    w.result = Some(result.clone());
    w.completed_at = Some(event.at);
    w.outcome_touch = Some(touch(event));
    w.offer = None;
    // Nobody decides on a block of work that is over.
    w.blocks.clear();
    w.deadlines.clear();
}

fn unblock(w: &mut Workflow, event: &Event, block_id: &BlockId) {
    w.blocks.retain(|b| &b.id != block_id);
    responded(w, block_id);
    w.closed_blocks.push(ClosedBlock { id: block_id.clone(), touch: touch(event) });
    let surplus = w.closed_blocks.len().saturating_sub(CLOSED_BLOCKS_MAX);
    w.closed_blocks.drain(..surplus);
    if w.blocks.is_empty() && w.phase == Phase::Blocked {
        w.phase = Phase::Running;
    }
}

fn reopen(w: &mut Workflow, event: &Event, step_id: Option<&StepId>) {
    let Some(step_id) = step_id else { return };
    if let Some(step) = w.steps.get_mut(step_id) {
        step.status = StepStatus::Reopened;
        step.reading = None;
        step.out_of_range = false;
        step.touch = touch(event);
        w.waits.remove(step_id);
        if w.last_recorded.as_ref() == Some(step_id) {
            w.last_recorded = None;
        }
    }
}

fn block(w: &mut Workflow, event: &Event) {
    let EventBody::WorkflowBlocked {
        block_id,
        code,
        step_id,
        reported,
        summary,
        severity,
        escalated_to,
        respond_within_ms: _,
        then: _,
    } = &event.body
    else {
        return;
    };
    w.blocks.push(Block {
        id: block_id.clone(),
        code: code.clone(),
        step_id: step_id.clone(),
        reported: *reported,
        summary: summary.clone(),
        severity: *severity,
        escalated_to: escalated_to.clone(),
        escalated_at: escalated_to.as_ref().map(|_| event.at),
        unanswered_since: None,
        acknowledged_by: None,
        acknowledged_at: None,
        at: event.at,
        by: person(event),
        touch: touch(event),
    });
    w.phase = Phase::Blocked;
}

fn person(event: &Event) -> Person {
    Person { id: event.actor.clone(), name: event.actor_name.clone() }
}
