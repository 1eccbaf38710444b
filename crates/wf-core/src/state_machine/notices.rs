//! Which messages a commit sends: one per (event, recipient), never with a sensitive value.

use serde_json::{Value, json};

use crate::limits::OUTBOX_ROWS_MAX;
use crate::models::{BlockId, Workflow};
use crate::policy::DomainPolicyPort;
use crate::ports::Message;

use super::ack_token::AckClaims;
use super::command::Secret;
use super::deadlines;
use super::event::{Event, EventBody};

/// The recipient of events that the procedure tells to whoever subscribed.
pub const SUBSCRIBERS: &str = "subscribers";

/// What the links of messages are made of.
#[derive(Debug, Clone, Copy)]
pub struct Links<'a> {
    /// Where the server is reached.
    pub public_url: &'a str,
    /// Keys of the store, newest first.
    pub secrets: &'a [Secret],
}

impl Links<'_> {
    /// Where the recipient acknowledges the block that `event` tells of.
    fn to(&self, event: &Event, w: &Workflow, block: &BlockId, recipient: &str) -> Option<String> {
        let told = (event.seq, event.at);
        let claims = AckClaims::new((&w.tenant, &w.id), block, recipient, told);
        let token = claims.sign(self.secrets)?;
        Some(format!("{}/ack/{token}", self.public_url.trim_end_matches('/')))
    }
}

/// Messages of the events of one commit.
#[must_use]
pub fn notices(
    events: &[Event],
    workflow: &Workflow,
    policy: &dyn DomainPolicyPort,
    links: Option<Links<'_>>,
) -> Vec<Message> {
    let mut told: Vec<(&Event, &str)> = Vec::new();
    // Who must act comes first: no limit may ever drop an escalation for the sake of a subscriber.
    told.extend(events.iter().filter_map(|event| Some((event, escalated_to(&event.body)?))));
    for event in events.iter().filter(|event| policy.notifies(event.body.kind())) {
        if !told.iter().any(|(known, to)| known.seq == event.seq && *to == SUBSCRIBERS) {
            told.push((event, SUBSCRIBERS));
        }
    }
    told.truncate(OUTBOX_ROWS_MAX);
    told.sort_by_key(|(event, _)| event.seq);
    told.into_iter().map(|(event, to)| message(event, workflow, to, links)).collect()
}

/// The block that the recipient of this message is to answer for. Subscribers are only told.
fn answered_by<'e>(event: &'e Event, recipient: &str) -> Option<&'e BlockId> {
    escalated_to(&event.body).filter(|to| *to == recipient)?;
    if let EventBody::WorkflowBlocked { block_id, .. }
    | EventBody::Escalated { block_id: Some(block_id), .. } = &event.body
    {
        Some(block_id)
    } else {
        None
    }
}

fn escalated_to(body: &EventBody) -> Option<&str> {
    match body {
        EventBody::WorkflowBlocked { escalated_to, .. } => escalated_to.as_deref(),
        EventBody::Escalated { to, .. } => Some(to),
        EventBody::WorkflowStarted { .. }
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
        | EventBody::DeadlinePassed { .. } => None,
    }
}

fn message(
    event: &Event,
    workflow: &Workflow,
    recipient: &str,
    links: Option<Links<'_>>,
) -> Message {
    let mut data = data(event, workflow);
    let block = answered_by(event, recipient);
    if let (Some(block), Some(members)) = (block, data.as_object_mut()) {
        if let Some(respond_by) = deadlines::response_due(workflow, block) {
            members.insert("respond_by".to_owned(), json!(respond_by));
        }
        let link = links.and_then(|links| links.to(event, workflow, block, recipient));
        if let Some(link) = link {
            members.insert("ack_url".to_owned(), Value::from(link));
        }
    }
    Message {
        id: Message::id_of(event, recipient),
        kind: event.body.kind().to_owned(),
        time: event.at,
        tenant: workflow.tenant.clone(),
        workflow_id: workflow.id.clone(),
        seq: event.seq,
        recipient: recipient.to_owned(),
        data,
    }
}

/// The event's own data. It holds no sensitive value: those stand beside it. A note on a withheld value may repeat it.
fn told(body: &EventBody) -> Value {
    let mut written = serde_json::to_value(body).unwrap_or(Value::Null);
    let mut data = written.get_mut("data").map_or(Value::Null, Value::take);
    let withheld = body.recording().is_some_and(|recording| recording.reading.withheld);
    if withheld && let Some(members) = data.as_object_mut() {
        members.remove("note");
    }
    data
}

fn data(event: &Event, workflow: &Workflow) -> Value {
    json!({
        "label": workflow.label,
        "state": workflow.phase.as_str(),
        "procedure": workflow.procedure,
        "assets": workflow.assets.iter().map(|a| json!({"role": a.role, "id": a.id})).collect::<Vec<_>>(),
        "actor": event.actor,
        "event": told(&event.body),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Reading, StepId};
    use crate::state_machine::Recording;

    #[test]
    fn a_note_on_a_withheld_value_is_not_told() {
        let note = |reading: Reading| {
            let recording = Recording {
                step_id: StepId::parse("step-1").expect("an id"),
                attempt: 1,
                reading,
                sensitive_digest: None,
                out_of_range: false,
                deviation: None,
                warnings: Vec::new(),
                note: Some("as I said".to_owned()),
                confirmed_by: None,
                signed: None,
            };
            told(&EventBody::StepRecorded(recording)).get("note").cloned()
        };
        assert_eq!(note(Reading::default()), Some(Value::from("as I said")));
        assert_eq!(note(Reading::default().withhold()), None);
    }
}
