//! The history of one workflow, for `workflow history`. Sensitive values are left out in both forms.

use serde_json::json;
use wf_core::models::{Reading, TenantId, WorkflowId};
use wf_core::ports::StorageBackendPort;
use wf_core::state_machine::{Event, EventBody, Recording};

use crate::exit::Failure;
use crate::output::Output;

/// Prints every event, oldest first.
pub(super) async fn print(
    store: &dyn StorageBackendPort,
    tenant: &TenantId,
    workflow: &WorkflowId,
    output: Output,
) -> Result<(), Failure> {
    let mut all: Vec<Event> = Vec::new();
    loop {
        let after = all.last().map_or(0, |event| event.seq);
        let mut page = store.events(tenant, workflow, after, super::PAGE).await?;
        if page.is_empty() {
            break;
        }
        for event in &mut page {
            // The salted digest stays in the chain; the value itself is nobody's business here. That it was erased, is.
            event.sensitive.retain(|beside| beside.erased.is_some());
        }
        all.append(&mut page);
    }
    if output.is_json() {
        let events: Vec<_> = all.iter().map(|event| json!(event)).collect();
        return output.document(&json!({ "workflow_id": workflow, "events": events }));
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|event| {
            vec![
                event.seq.to_string(),
                event.at.to_string(),
                event.actor.to_string(),
                event.body.kind().to_owned(),
                about(event),
            ]
        })
        .collect();
    output.table(&["SEQ", "AT", "BY", "KIND", "WHAT"], &rows)
}

/// A value for people.
pub(super) fn shown(reading: &Reading) -> String {
    shown_or(reading, "(withheld)")
}

/// A value for people, or `hidden` where it is withheld.
fn shown_or(reading: &Reading, hidden: &str) -> String {
    if reading.withheld {
        return hidden.to_owned();
    }
    match &reading.unit {
        Some(unit) => format!("{} {unit}", reading.value),
        None => reading.value.clone(),
    }
}

fn about(event: &Event) -> String {
    let hidden = if event.sensitive.is_empty() { "(withheld)" } else { "(erased)" };
    let shown = |reading: &Reading| shown_or(reading, hidden);
    match &event.body {
        EventBody::WorkflowStarted { procedure, assets, .. } => {
            let assets: Vec<&str> = assets.iter().map(|asset| asset.id.as_str()).collect();
            format!("{} version {}: {}", procedure.id, procedure.version, assets.join(", "))
        }
        EventBody::OrchestrationAcknowledged { fence } => format!("fence {fence}"),
        EventBody::StepRecorded(Recording { step_id, attempt, reading, .. }) => {
            format!("{step_id} = {} (attempt {attempt})", shown(reading))
        }
        EventBody::StepCorrected { recording, reason_code } => {
            let Recording { step_id, attempt, reading, .. } = recording;
            format!("{step_id} = {} (attempt {attempt}, {reason_code})", shown(reading))
        }
        EventBody::RecheckRequired { step_id, because_of }
        | EventBody::StepNotNeeded { step_id, because_of } => {
            format!("{step_id}, because of {because_of}")
        }
        EventBody::WaitStarted { step_id, until } => format!("{step_id}, until {until}"),
        EventBody::StepSkipped { step_id, reason_code, .. } => match reason_code {
            Some(reason) => format!("{step_id} ({reason})"),
            None => step_id.to_string(),
        },
        EventBody::WorkflowBlocked { block_id, code, summary, .. } => match summary {
            Some(summary) => format!("{block_id} {code}: {summary}"),
            None => format!("{block_id} {code}"),
        },
        EventBody::ProblemNoted { summary, .. } => summary.clone(),
        EventBody::BlockResolved { block_id, decision, .. } => format!("{block_id}: {decision}"),
        EventBody::BlockAcknowledged { block_id, by } => format!("{block_id} by {}", by.id),
        EventBody::OwnershipOffered { to } => {
            to.as_ref().map_or_else(|| "to anybody".to_owned(), |to| format!("to {}", to.id))
        }
        EventBody::OfferWithdrawn { declined } => {
            if *declined { "declined" } else { "withdrawn" }.to_owned()
        }
        EventBody::OwnershipTransferred { to, reason_code: None, .. } => format!("to {}", to.id),
        EventBody::OwnershipTransferred { to, reason_code: Some(reason), .. } => {
            format!("taken over by {}: {reason}", to.id)
        }
        EventBody::LockReleased { asset_id, reason } => format!("{asset_id}: {reason}"),
        EventBody::WorkflowCompleted { result, .. } => result.to_string(),
        EventBody::DeadlinePassed { deadline_id, name, block_id } => match (name, block_id) {
            (Some(name), _) => name.clone(),
            (None, Some(block_id)) => format!("nobody responded to {block_id}"),
            (None, None) => deadline_id.clone(),
        },
        EventBody::Escalated { block_id: Some(block_id), to, .. } => format!("{block_id} to {to}"),
        EventBody::Escalated { block_id: None, to, .. } => format!("to {to}"),
    }
}
