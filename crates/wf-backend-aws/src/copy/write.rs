//! Records as items: those that a commit would have written, with everything that leads to them.

use std::collections::BTreeMap;

use wf_core::models::Phase;
use wf_core::ports::copy::{Record, WorkflowRecord};
use wf_core::ports::{LedgerKey, LedgerRow};

use crate::codec::head::{Held, Known};
use crate::codec::{self, head, ledger, lock, outbox};
use crate::definitions;
use crate::execution;
use crate::fault::Fail;
use crate::item::{Attributes, Value, json};
use crate::keys::{self, Key, by_state};
use crate::purge;

/// Adds the items of a record. With `binds`, open workflows are bound to executions anew: those of the source do not know
/// this table.
pub(super) fn items(
    record: &Record,
    binds: bool,
    items: &mut BTreeMap<Key, Attributes>,
) -> Result<(), Fail> {
    match record {
        Record::Definition(definition) => {
            items.insert(keys::definition(&definition.digest), definitions::item(definition)?);
        }
        Record::Version { id, version, digest } => {
            let item = Attributes::from([("digest", Value::s(digest.as_str()))]);
            items.insert(keys::version(id, *version), item);
        }
        Record::Workflow(record) => {
            let state = &record.state;
            if binds && state.phase.is_open() {
                items.extend([
                    execution::binding::new(state, state.fence.max(1), state.updated_at),
                    execution::wanted(state),
                ]);
            }
            workflow(record, items)?;
        }
        Record::Event { tenant, event, last } => {
            let (actor, cause) = (event.actor.clone(), event.cause.key.clone());
            let row = LedgerKey { tenant: tenant.clone(), actor, key: cause };
            let key = Key::new(keys::workflow(tenant, &event.workflow_id), keys::event(event.seq));
            let (item, _) = codec::event(event.as_ref().clone(), *last, &keys::ledger(&row).pk)?;
            items.insert(key, item);
        }
        Record::Ledger(row) => {
            let row: &LedgerRow = row;
            items.insert(keys::ledger(&row.key), ledger::write(row)?);
        }
        Record::Lock(record) => {
            let row = &record.row;
            items.insert(keys::lock(&row.tenant, &row.asset_id), lock::write(row, record.floor)?);
        }
        Record::Stream { tenant, workflow_id, recipient, due_at } => {
            let key = keys::stream_head(tenant, workflow_id, recipient);
            let mut item = Attributes::from([
                ("tenant", Value::s(tenant.as_str())),
                ("workflow", Value::s(workflow_id.as_str())),
                ("recipient", Value::s(recipient)),
                ("joined", Value::n(1)),
            ]);
            if let Some(at) = due_at {
                let place = format!("{}#{}", keys::time(at.as_ms()), key.pk);
                item.insert("due_at", Value::n(at.as_ms()));
                codec::indexed(&mut item, keys::BY_STATE, by_state::STREAMS.to_owned(), place);
            }
            items.insert(key, item);
        }
        Record::Message { row, delivered_at } => {
            items.insert(outbox::key(&row.message), outbox::stored(row, *delivered_at)?);
        }
        Record::Person { tenant, person, seen_at } => {
            let (key, item) = codec::person(tenant, person, *seen_at);
            items.insert(key, item);
        }
        Record::Tombstone(left) => {
            items.insert(keys::tombstone(&left.tenant, &left.workflow_id), purge::item(left)?);
        }
        Record::Owner { tenant, actor, open } => {
            let item = Attributes::from([("open_count", Value::n(*open))]);
            items.insert(keys::open_count(tenant, actor), item);
        }
    }
    Ok(())
}

fn workflow(record: &WorkflowRecord, items: &mut BTreeMap<Key, Attributes>) -> Result<(), Fail> {
    let state = &record.state;
    let mut held = BTreeMap::new();
    for lock in &record.held {
        let (row, floor) = (&lock.row, lock.floor);
        if let Some(holder) = &row.holder {
            let (owner, at) = (holder.owner.clone(), holder.acquired_at);
            held.insert(row.asset_id.clone(), Held { fence: row.fence, owner, at, floor });
        }
    }
    let due = record.deadlines.iter().map(|d| (d.id.clone(), d.fire_at.as_ms())).collect();
    for deadline in &record.deadlines {
        let (key, item) = codec::deadline(&state.tenant, &state.id, deadline);
        items.insert(key, item);
    }
    let known = Known::of(state, held, due);
    let body = json(state, "a state")?;
    items.insert(keys::head(&state.tenant, &state.id), head::write(state, body, &known)?);
    items.extend(head::index(state));
    if state.phase == Phase::Completed && !record.swept {
        let (key, item) = head::to_sweep(state);
        items.insert(key, item);
    }
    Ok(())
}
