//! Items ↔ domain values. The only place that knows how a value is written in an attribute.
//!
//! A workflow is stored whole as JSON in its head; what stands beside it (`head`) is copied for indexes and locks.

pub(crate) mod head;
pub(crate) mod ledger;
pub(crate) mod lock;
pub(crate) mod outbox;

use wf_core::state_machine::Event;

use crate::fault::Fail;
use crate::item::{Attributes, Item, Value, json};
use crate::keys;

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
