//! The hash chain of events, as the design writes it, made here independently of the core.

use serde_json::Value;
use wf_core::models::{Digest, TenantId, WorkflowId};
use wf_core::state_machine::Event;
use wf_idempotency::canonical_bytes;

/// `prev_hash` of the first event: SHA-256 of `checkpoint/v1`, the tenant and the workflow id.
#[must_use]
pub fn genesis(tenant: &TenantId, workflow: &WorkflowId) -> Digest {
    let text = format!("checkpoint/v1{tenant}{workflow}");
    Digest::of(text.as_bytes())
}

/// Sets `prev_hash` and `hash` of each event, the first one following `before`. Returns the hash of the last.
pub fn chain(before: &Digest, events: &mut [Event]) -> Digest {
    let mut previous = before.clone();
    for event in events {
        event.prev_hash = previous;
        event.hash = hash_of(event);
        previous = event.hash.clone();
    }
    previous
}

/// SHA-256 of the RFC 8785 form of the event without `hash` and `sensitive`.
fn hash_of(event: &Event) -> Digest {
    let mut form = serde_json::to_value(event).expect("an event is JSON");
    if let Value::Object(members) = &mut form {
        members.remove("hash");
        members.remove("sensitive");
    }
    Digest::of(&canonical_bytes(&form).expect("an event of a test is canonical"))
}
