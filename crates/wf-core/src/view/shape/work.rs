//! The parts that show workflows: the whole view, candidates, history, what was finished last.

use serde_json::{Map, Value, json};

use crate::limits::CANDIDATES_SHOWN_MAX;
use crate::models::{Person, Phase, Reading, ResultId, StepId, Workflow};
use crate::policy::{BlockSource, DomainPolicyPort, Needs, ResultOption};
use crate::state_machine::{Event, EventBody, deadlines};
use crate::view::{Outlook, Words};

use super::step::{step, without_nulls};
use super::{Frame, person, put};

/// `workflow`, `step`, `blocks`, `last_recorded` and `next_idempotency_key` of one workflow. Without its outlook (the
/// definition is not known here) what only a policy knows is absent.
#[must_use]
pub fn workflow(
    frame: &Frame<'_>,
    workflow: &Workflow,
    outlook: Option<&Outlook<'_>>,
) -> Map<String, Value> {
    let mut parts = Map::new();
    parts.insert("workflow".to_owned(), head(frame, workflow, outlook));
    put(&mut parts, "last_recorded", last_recorded(workflow));
    if let Some(outlook) = outlook {
        put(&mut parts, "step", step(outlook, &frame.words));
        if !workflow.blocks.is_empty() {
            parts.insert("blocks".to_owned(), blocks(workflow, outlook.policy, &frame.words));
        }
    }
    parts.insert("next_idempotency_key".to_owned(), Value::from(next_key(frame, workflow)));
    parts
}

/// An ordinary key that spares a model from inventing one: it changes with every commit of the workflow.
#[must_use]
pub fn next_key(frame: &Frame<'_>, workflow: &Workflow) -> String {
    let text = format!("{}\0{}\0{}", frame.store_id, workflow.id, workflow.revision);
    let hash = wf_idempotency::sha256_hex(text.as_bytes());
    format!("nk_{}", hash.get(..32).unwrap_or(&hash))
}

fn head(frame: &Frame<'_>, w: &Workflow, outlook: Option<&Outlook<'_>>) -> Value {
    let words = &frame.words;
    let mut map = Map::new();
    map.insert("id".to_owned(), Value::from(w.id.as_str()));
    map.insert("label".to_owned(), Value::from(words.text(&w.label)));
    map.insert("state".to_owned(), Value::from(w.phase.as_str()));
    put(&mut map, "result", w.result.as_ref().map(ResultId::as_str));
    map.insert("revision".to_owned(), Value::from(w.revision));
    map.insert("procedure".to_owned(), json!(w.procedure));
    map.insert("assets".to_owned(), assets(w, words));
    map.insert("owner".to_owned(), person(&w.owner));
    if let Some(offer) = &w.offer {
        let offer = json!({"to": offer.to.as_ref().map(person), "at": offer.at});
        map.insert("offer".to_owned(), without_nulls(offer));
    }
    if let Some(outlook) = outlook {
        let (settled, required) = outlook.plan.progress();
        map.insert("progress".to_owned(), json!({"settled": settled, "required": required}));
        map.insert("reasons".to_owned(), reasons(outlook.policy, words));
        map.insert("results".to_owned(), results(&outlook.results, words));
    }
    map.insert("started_at".to_owned(), Value::from(w.started_at.to_string()));
    map.insert("updated_at".to_owned(), Value::from(w.updated_at.to_string()));
    Value::Object(map)
}

fn reasons(policy: &dyn DomainPolicyPort, words: &Words<'_>) -> Value {
    let known = policy.reasons();
    known.iter().map(|r| json!({"code": r.id, "say": words.text(&r.say)})).collect()
}

fn results(results: &[ResultOption], words: &Words<'_>) -> Value {
    let available = results.iter().filter(|r| r.available);
    available.map(|r| json!({"id": r.id, "say": words.text(&r.say)})).collect()
}

fn assets(w: &Workflow, words: &Words<'_>) -> Value {
    let shown = w.assets.iter();
    shown.map(|a| json!({"role": a.role, "id": a.id, "say": words.text(&a.say)})).collect()
}

fn blocks(w: &Workflow, policy: &dyn DomainPolicyPort, words: &Words<'_>) -> Value {
    w.blocks
        .iter()
        .map(|block| {
            let source = BlockSource { step_id: block.step_id.as_ref(), reported: block.reported };
            let rule = policy.block_rule(source);
            let decisions: Vec<Value> = rule
                .decisions
                .iter()
                .map(|d| json!({"id": d.id, "say": words.text(&d.say), "effect": d.effect}))
                .collect();
            without_nulls(json!({
                "id": block.id,
                "code": block.code,
                "question": words.text(&rule.question),
                "decisions": decisions,
                "step_id": block.step_id,
                "summary": block.summary,
                "severity": block.severity,
                "escalated_to": block.escalated_to,
                "escalated_at": block.escalated_at,
                "unanswered_since": block.unanswered_since,
                "acknowledged_by": block.acknowledged_by.as_ref().map(person),
                "acknowledged_at": block.acknowledged_at,
                "deadline": deadlines::response_due(w, &block.id),
                "at": block.at,
            }))
        })
        .collect()
}

fn last_recorded(w: &Workflow) -> Option<Value> {
    let step_id = w.last_recorded.as_ref()?;
    let record = w.steps.get(step_id)?;
    let mut map = given(record.reading.as_ref()?);
    map.insert("step_id".to_owned(), Value::from(step_id.as_str()));
    map.insert("at".to_owned(), Value::from(record.at.to_string()));
    map.insert("by".to_owned(), person(&record.by));
    Some(Value::Object(map))
}

/// The value as it was given, or that it is withheld.
fn given(reading: &Reading) -> Map<String, Value> {
    let mut map = Map::new();
    if reading.withheld {
        map.insert("withheld".to_owned(), Value::from(true));
    } else {
        map.insert("value".to_owned(), Value::from(reading.given.as_str()));
        put(&mut map, "unit", reading.given_unit.as_deref());
    }
    map
}

/// The `last_completed` part.
#[must_use]
pub fn completed(w: &Workflow, words: &Words<'_>) -> Value {
    json!({
        "workflow_id": w.id,
        "label": words.text(&w.label),
        "result": w.result,
        "at": w.completed_at,
    })
}

/// Something to choose: a workflow, or a procedure that may be started.
#[derive(Debug, Clone)]
pub enum Candidate<'a> {
    /// A workflow.
    Workflow(&'a Workflow),
    /// A procedure.
    Procedure(&'a dyn DomainPolicyPort),
}

/// The `candidates` part: at most `max` of them.
#[must_use]
pub fn candidates(all: &[Candidate<'_>], max: usize, words: &Words<'_>) -> Value {
    all.iter()
        .take(max)
        .map(|candidate| match candidate {
            Candidate::Workflow(w) => without_nulls(json!({
                "workflow_id": w.id,
                "procedure_id": w.procedure.id,
                "label": words.text(&w.label),
                "state": w.phase.as_str(),
                "assets": assets(w, words),
                "owner": person(&w.owner),
                "offered": w.offer.is_some().then_some(true),
                "started_at": w.started_at,
            })),
            Candidate::Procedure(policy) => {
                let definition = policy.definition();
                json!({
                    "procedure_id": definition.id,
                    "label": words.text(&definition.title),
                    "needs": needs(&policy.needs(), words),
                })
            }
        })
        .collect()
}

/// The `candidates` and `candidates_total` of people who are called so.
#[must_use]
pub fn people(people: &[Person]) -> Map<String, Value> {
    let shown = people.iter().take(CANDIDATES_SHOWN_MAX);
    let shown: Vec<Value> =
        shown.map(|p| json!({"to": p.id.to_string(), "label": p.spoken()})).collect();
    Map::from_iter([
        ("candidates".to_owned(), Value::from(shown)),
        ("candidates_total".to_owned(), Value::from(people.len())),
    ])
}

/// What must be given to start.
#[must_use]
pub fn needs(needs: &Needs, words: &Words<'_>) -> Value {
    let assets: Vec<Value> = needs
        .assets
        .iter()
        .map(|a| {
            without_nulls(json!({"role": a.role, "say": words.text(&a.say), "example": a.example}))
        })
        .collect();
    let inputs: Vec<Value> = needs
        .inputs
        .iter()
        .map(|i| {
            without_nulls(json!({
                "name": i.name,
                "kind": i.kind,
                "required": i.required,
                "say": words.text(&i.say),
                "example": i.example,
            }))
        })
        .collect();
    json!({"assets": assets, "inputs": inputs})
}

/// The `history` part, oldest first.
#[must_use]
pub fn history(events: &[Event]) -> Value {
    events.iter().map(event).collect()
}

fn event(event: &Event) -> Value {
    let mut map = match &event.body {
        EventBody::StepRecorded(recording) | EventBody::StepCorrected { recording, .. } => {
            let mut map = given(&recording.reading);
            map.insert("step_id".to_owned(), Value::from(recording.step_id.as_str()));
            map.insert("attempt".to_owned(), Value::from(recording.attempt));
            map
        }
        EventBody::StepSkipped { step_id, .. }
        | EventBody::RecheckRequired { step_id, .. }
        | EventBody::StepNotNeeded { step_id, .. }
        | EventBody::WaitStarted { step_id, .. } => {
            Map::from_iter([("step_id".to_owned(), Value::from(step_id.as_str()))])
        }
        EventBody::WorkflowBlocked { step_id, .. }
        | EventBody::ProblemNoted { step_id, .. }
        | EventBody::BlockResolved { step_id, .. } => {
            let mut map = Map::new();
            put(&mut map, "step_id", step_id.as_ref().map(StepId::as_str));
            map
        }
        EventBody::OwnershipOffered { to } => {
            let mut map = Map::new();
            put(&mut map, "to", to.as_ref().map(person));
            map
        }
        EventBody::OwnershipTransferred { to, .. } => {
            Map::from_iter([("to".to_owned(), person(to))])
        }
        EventBody::WorkflowStarted { .. }
        | EventBody::OrchestrationAcknowledged { .. }
        | EventBody::BlockAcknowledged { .. }
        | EventBody::OfferWithdrawn { .. }
        | EventBody::LockReleased { .. }
        | EventBody::WorkflowCompleted { .. }
        | EventBody::DeadlinePassed { .. }
        | EventBody::Escalated { .. } => Map::new(),
    };
    let by = Person { id: event.actor.clone(), name: event.actor_name.clone() };
    map.insert("seq".to_owned(), Value::from(event.seq));
    map.insert("at".to_owned(), Value::from(event.at.to_string()));
    map.insert("by".to_owned(), person(&by));
    map.insert("kind".to_owned(), Value::from(event.body.kind()));
    Value::Object(map)
}

/// True for a workflow that was finished lately enough to speak of.
#[must_use]
pub fn is_recent(w: &Workflow, now: crate::models::Timestamp) -> bool {
    w.phase == Phase::Completed
        && w.completed_at.is_some_and(|at| now.since_ms(at) <= crate::limits::RECENT_MS)
}
