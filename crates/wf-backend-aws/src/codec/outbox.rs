//! Messages and their streams.

use wf_core::models::Timestamp;
use wf_core::ports::{Message, OutboxRow, OutboxState, OutboxStatus, Settled};

use super::indexed;
use crate::action::Expression;
use crate::fault::Fail;
use crate::item::{Attributes, Item, Value, json};
use crate::keys::{self, Key, by_id, by_state};

/// The name of a state.
pub(crate) const fn name(state: OutboxState) -> &'static str {
    match state {
        OutboxState::Pending => "pending",
        OutboxState::Delivered => "delivered",
        OutboxState::Dead => "dead",
    }
}

/// The list of the messages in a state.
pub(crate) const fn list(state: OutboxState) -> &'static str {
    match state {
        OutboxState::Pending => by_state::PENDING,
        OutboxState::Delivered => by_state::DELIVERED,
        OutboxState::Dead => by_state::DEAD,
    }
}

/// Where a message is.
pub(crate) fn key(message: &Message) -> Key {
    let pk = keys::stream(&message.tenant, &message.workflow_id, &message.recipient);
    Key::new(pk, keys::message(message.seq, &message.id))
}

/// Its place in the index of what never changes, which is also its place in the lists of one state.
fn listed(message: &Message) -> String {
    format!("{}#{}", keys::encoded(&message.id), message.tenant)
}

/// The first sort keys of a message with this id, whatever its tenant.
pub(crate) fn listed_prefix(id: &str) -> String {
    format!("{}#", keys::encoded(id))
}

/// The item of a new message that is due at this time, and the size of its body.
pub(crate) fn write(message: &Message, due_at: Timestamp) -> Result<(Attributes, usize), Fail> {
    let body = json(message, "a message")?;
    let size = body.len();
    let mut attributes = Attributes::from([
        ("body", Value::S(body)),
        ("delivery", Value::s(name(OutboxState::Pending))),
        ("attempts", Value::n(0)),
        ("next_attempt_at", Value::n(due_at.as_ms())),
    ]);
    let place = listed(message);
    indexed(&mut attributes, keys::BY_STATE, by_state::PENDING.to_owned(), place.clone());
    indexed(&mut attributes, keys::BY_ID, by_id::MESSAGES.to_owned(), place);
    Ok((attributes, size))
}

/// Where the delivery of a row stands.
pub(crate) fn state(item: &Item) -> Result<OutboxState, Fail> {
    match item.text("delivery")? {
        "pending" => Ok(OutboxState::Pending),
        "delivered" => Ok(OutboxState::Delivered),
        "dead" => Ok(OutboxState::Dead),
        other => Err(Fail::unreadable("delivery", other)),
    }
}

/// The id that a row is stored under, as its key spells it: of one that cannot be read.
pub(crate) fn stored_id(item: &Item) -> String {
    let key = item.text(keys::SK).unwrap_or_default();
    key.splitn(3, '#').nth(2).unwrap_or(key).to_owned()
}

/// The item of a row, whatever became of it.
pub(crate) fn stored(row: &OutboxRow, delivered_at: Option<Timestamp>) -> Result<Attributes, Fail> {
    let (mut attributes, _) = write(&row.message, row.status.next_attempt_at)?;
    let (status, place) = (&row.status, listed(&row.message));
    let place = match status.state {
        OutboxState::Pending | OutboxState::Dead => place,
        OutboxState::Delivered => {
            let at = delivered_at.unwrap_or(status.next_attempt_at).as_ms();
            attributes.insert("delivered_at", Value::n(at));
            format!("{}#{place}", keys::time(at))
        }
    };
    indexed(&mut attributes, keys::BY_STATE, list(status.state).to_owned(), place);
    attributes.insert("delivery", Value::s(name(status.state)));
    attributes.insert("attempts", Value::n(status.attempts));
    attributes.insert("next_attempt_at", Value::n(status.next_attempt_at.as_ms()));
    if let Some(error) = &status.last_error {
        attributes.insert("last_error", Value::s(error));
    }
    Ok(attributes)
}

/// A row as it was written.
pub(crate) fn read(item: &Item) -> Result<OutboxRow, Fail> {
    Ok(OutboxRow {
        message: item.json("body")?,
        status: OutboxStatus {
            state: state(item)?,
            attempts: item.number("attempts")?,
            next_attempt_at: Timestamp::from_ms(item.number("next_attempt_at")?),
            last_error: item.opt_text("last_error")?.map(str::to_owned),
        },
    })
}

/// A row that becomes what its delivery came to. Changes `row` and says how to change the item.
pub(crate) fn settle(row: &mut OutboxRow, settled: &Settled, now: Timestamp) -> Expression {
    let place = listed(&row.message);
    let status = &mut row.status;
    match settled {
        Settled::Delivered => {
            status.state = OutboxState::Delivered;
            let place = format!("{}#{place}", keys::time(now.as_ms()));
            let delivered_at = (":at", Value::n(now.as_ms()));
            changed(", delivered_at = :at", status, by_state::DELIVERED, place, vec![delivered_at])
        }
        Settled::Retry { at, error } => {
            status.attempts = status.attempts.saturating_add(1);
            status.next_attempt_at = *at;
            status.last_error = Some(error.clone());
            changed("", status, by_state::PENDING, place, Vec::new())
        }
        Settled::Dead { error } => {
            status.attempts = status.attempts.saturating_add(1);
            status.state = OutboxState::Dead;
            status.next_attempt_at = now;
            status.last_error = Some(error.clone());
            changed("", status, by_state::DEAD, place, Vec::new())
        }
    }
}

/// A dead row that becomes pending again.
pub(crate) fn revive(row: &mut OutboxRow, now: Timestamp) -> Expression {
    row.status.state = OutboxState::Pending;
    row.status.attempts = 0;
    row.status.next_attempt_at = now;
    changed("", &row.status, by_state::PENDING, listed(&row.message), Vec::new())
}

fn changed(
    more: &str,
    status: &OutboxStatus,
    partition: &str,
    place: String,
    mut values: Vec<(&'static str, Value)>,
) -> Expression {
    let mut text = "SET delivery = :delivery, attempts = :attempts, next_attempt_at = :next, \
                    state_pk = :list, state_sk = :place"
        .to_owned();
    text.push_str(more);
    values.extend([
        (":delivery", Value::s(name(status.state))),
        (":attempts", Value::n(status.attempts)),
        (":next", Value::n(status.next_attempt_at.as_ms())),
        (":list", Value::s(partition)),
        (":place", Value::S(place)),
    ]);
    if let Some(error) = &status.last_error {
        text.push_str(", last_error = :error");
        values.push((":error", Value::s(error)));
    }
    Expression { text, values: values.into_iter().collect() }
}

/// A row is in this state.
pub(crate) fn is(state: OutboxState) -> Expression {
    Expression::new("delivery = :is", [(":is", Value::s(name(state)))])
}
