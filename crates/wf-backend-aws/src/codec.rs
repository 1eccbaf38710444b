//! Items ↔ domain values. The only place that knows how a value is written in an attribute.
//!
//! A workflow is stored whole as JSON in its head; what stands beside it (`head`) is copied for indexes and locks.

pub(crate) mod head;
pub(crate) mod ledger;
pub(crate) mod lock;
pub(crate) mod outbox;

use wf_core::models::{Person, TenantId, Timestamp, WorkflowId};
use wf_core::ports::Deadline;
use wf_core::state_machine::Event;

use crate::fault::Fail;
use crate::item::{Attributes, Item, Value, json};
use crate::keys::{self, Key};

/// Adds the keys of an index.
pub(crate) fn indexed(attributes: &mut Attributes, index: keys::Index, pk: String, sk: String) {
    attributes.insert(index.pk, Value::S(pk));
    attributes.insert(index.sk, Value::S(sk));
}

/// An event. `last` is the place of the last event of its commit; `ledger` the partition of the commit's ledger row, at
/// that last event. Sensitive values stand beside the body, so that they can be erased.
pub(crate) fn event(
    mut event: Event,
    last: u64,
    ledger: &str,
) -> Result<(Attributes, usize), Fail> {
    const MEMBER: &str = ",\"sensitive\":";
    let sensitive = std::mem::take(&mut event.sensitive);
    let body = json(&event, "an event")?;
    let mut size = body.len();
    let mut attributes = Attributes::from([("body", Value::S(body)), ("last", Value::n(last))]);
    if !sensitive.is_empty() {
        let sensitive = json(&sensitive, "a sensitive value")?;
        size += sensitive.len() + MEMBER.len();
        attributes.insert("sensitive", Value::S(sensitive));
    }
    if event.seq == last {
        attributes.insert("ledger", Value::s(ledger));
    }
    Ok((attributes, size))
}

/// An event as it was written, and the place of the last event of its commit.
pub(crate) fn read_event(item: &Item) -> Result<(Event, u64), Fail> {
    let mut event: Event = item.json("body")?;
    event.sensitive = item.opt_json("sensitive")?.unwrap_or_default();
    Ok((event, item.number("last")?))
}

/// A deadline, without a lease.
pub(crate) fn deadline(
    tenant: &TenantId,
    workflow: &WorkflowId,
    deadline: &Deadline,
) -> (Key, Attributes) {
    let at = deadline.fire_at.as_ms();
    let item = Attributes::from([
        ("tenant", Value::s(tenant.as_str())),
        ("workflow", Value::s(workflow.as_str())),
        ("deadline", Value::s(&deadline.id)),
        ("fire_at", Value::n(at)),
    ]);
    (keys::deadline(tenant, workflow, &deadline.id, at), item)
}

/// Somebody by the name that a commit gave them at `seen_at`.
pub(crate) fn person(tenant: &TenantId, person: &Person, seen_at: Timestamp) -> (Key, Attributes) {
    let actor = person.id.to_string();
    let mut item = Attributes::from([("seen_at", Value::n(seen_at.as_ms()))]);
    item.insert("actor", Value::s(&actor));
    if let Some(name) = &person.name {
        item.insert("called", Value::s(name));
    }
    (Key::new(keys::people(tenant), keys::encoded(&actor)), item)
}
