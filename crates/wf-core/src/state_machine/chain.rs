//! Drafts become events: numbered, timed and linked by hash.

use serde_json::Value;
use wf_idempotency::CanonicalError;

use crate::models::{Cause, Digest, Principal, TenantId, Timestamp, Workflow, WorkflowId};

use super::decision::Draft;
use super::event::{EVENT_VERSION, Event};
use super::evolve::evolve;

/// Where a history stands before new events.
#[derive(Debug, Clone)]
pub struct Tip {
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// `seq` of the last event, 0 before the first.
    pub seq: u64,
    /// Its hash, or the hash that the first event follows.
    pub hash: Digest,
    /// Its time.
    pub at: Option<Timestamp>,
}

impl Tip {
    /// Before the first event.
    #[must_use]
    pub fn origin(tenant: &TenantId, workflow_id: WorkflowId) -> Self {
        let hash = origin_hash(tenant, &workflow_id);
        Self { workflow_id, seq: 0, hash, at: None }
    }

    /// After the last event of `workflow`.
    #[must_use]
    pub fn of(workflow: &Workflow) -> Self {
        Self {
            workflow_id: workflow.id.clone(),
            seq: workflow.revision,
            hash: workflow.last_hash.clone(),
            at: Some(workflow.updated_at),
        }
    }

    /// After `event`.
    fn after(event: &Event) -> Self {
        Self {
            workflow_id: event.workflow_id.clone(),
            seq: event.seq,
            hash: event.hash.clone(),
            at: Some(event.at),
        }
    }
}

/// `prev_hash` of the first event: SHA-256 of `checkpoint/v1`, the tenant and the workflow id, concatenated.
#[must_use]
pub fn origin_hash(tenant: &TenantId, workflow: &WorkflowId) -> Digest {
    Digest::of(format!("checkpoint/v1{tenant}{workflow}").as_bytes())
}

/// Hash of an event: SHA-256 of its RFC 8785 form without `hash` and `sensitive`.
///
/// # Errors
/// When the event cannot be canonical; events made of strictly parsed requests always can.
pub fn event_hash(event: &Event) -> Result<Digest, CanonicalError> {
    let mut value = serde_json::to_value(event).unwrap_or(Value::Null);
    if let Value::Object(members) = &mut value {
        members.remove("hash");
        members.remove("sensitive");
    }
    Ok(Digest::of(&wf_idempotency::canonical_bytes(&value)?))
}

/// Links `drafts` to the history and folds them into the state.
///
/// # Errors
/// When an event cannot be canonical, which is a bug.
pub fn append(
    state: Option<Workflow>,
    mut tip: Tip,
    drafts: Vec<Draft>,
    principal: &Principal,
    cause: &Cause,
    now: Timestamp,
) -> Result<(Vec<Event>, Option<Workflow>), CanonicalError> {
    let mut events = Vec::with_capacity(drafts.len());
    let mut next = state;
    for draft in drafts {
        let mut event = unlinked(&tip, draft, principal, cause, now);
        event.hash = event_hash(&event)?;
        tip = Tip::after(&event);
        next = evolve(next, &event);
        events.push(event);
    }
    Ok((events, next))
}

/// The state that `drafts` lead to, for a decision that depends on it. Nothing is hashed: only `append` makes history.
#[must_use]
pub fn foresee(
    state: Option<&Workflow>,
    mut tip: Tip,
    drafts: &[Draft],
    principal: &Principal,
    cause: &Cause,
    now: Timestamp,
) -> Option<Workflow> {
    let mut next = state.cloned();
    for draft in drafts {
        let event = unlinked(&tip, draft.clone(), principal, cause, now);
        tip = Tip::after(&event);
        next = evolve(next, &event);
    }
    next
}

/// The event of `draft` in its place, without its own hash yet.
fn unlinked(
    tip: &Tip,
    draft: Draft,
    principal: &Principal,
    cause: &Cause,
    now: Timestamp,
) -> Event {
    let (actor, actor_name) = match draft.actor {
        Some(actor) => (actor, None),
        None => (principal.actor.clone(), principal.name.clone()),
    };
    Event {
        v: EVENT_VERSION,
        workflow_id: tip.workflow_id.clone(),
        seq: tip.seq + 1,
        // A clock that steps back never makes a history run backwards.
        at: tip.at.map_or(now, |at| at.max(now)),
        actor,
        actor_name,
        body: draft.body,
        cause: cause.clone(),
        prev_hash: tip.hash.clone(),
        hash: tip.hash.clone(),
        sensitive: draft.sensitive,
    }
}
