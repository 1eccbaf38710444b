//! The statements that write what a batch has made of the world.

use std::collections::BTreeMap;

use wf_core::models::{TenantId, WorkflowId};
use wf_core::ports::DeadlineChange;

use super::judge::{HeadCell, Wanted, World};
use super::sheet::{Script, Sheet, SqlCache, Value};
use super::statements;
use crate::codec::encode::{Head, signed};

/// The statements that write what the world has become.
pub(crate) fn write<'a>(
    world: &'a World<'_>,
    wanted: &'a Wanted<'_>,
    cache: &mut SqlCache,
) -> Script<'a> {
    let mut script = Script::default();
    write_heads(world, wanted, &mut script, cache);
    write_events(world, &mut script, cache);
    write_ledger(world, &mut script, cache);
    write_locks(world, wanted, &mut script, cache);
    write_people(world, &mut script, cache);
    write_outbox(world, &mut script, cache);
    write_deadlines(world, &mut script, cache);
    script
}

/// A number that was checked to fit when the commit was prepared.
fn number(n: u64) -> Value<'static> {
    signed(n).unwrap_or(i64::MAX).into()
}

fn write_heads<'a>(
    world: &'a World<'_>,
    wanted: &'a Wanted<'_>,
    script: &mut Script<'a>,
    cache: &mut SqlCache,
) {
    let mut fresh = Sheet::new(&statements::NEW_WORKFLOWS);
    let mut states = Sheet::new(&statements::STATES);
    let mut placements = Sheet::new(&statements::PLACEMENTS);
    let mut gone = Sheet::new(&statements::ASSETS_GONE);
    let mut assets = Sheet::new(&statements::ASSETS);
    for (cell, (tenant, id)) in world.heads.iter().zip(&wanted.heads) {
        let Some(head) = cell.written else { continue };
        let ended = head.placement.completed_at;
        let assets_changed = match &cell.stored {
            None => {
                fresh.push(new_row(cell, head, tenant, id));
                true
            }
            Some((before, list)) => {
                states.push(state_row(cell, head));
                let assets_changed = before.completed_at != ended || *list != head.assets;
                if assets_changed {
                    gone.push([cell.wid.into()]);
                }
                // A completed workflow that changes again has a new ledger row for the sweep.
                if assets_changed || *before != head.placement || ended.is_some() {
                    placements.push(placement_row(cell, head));
                }
                assets_changed
            }
        };
        for asset in head.assets.split_terminator(' ').filter(|_| assets_changed) {
            assets.push([
                cell.wid.into(),
                asset.into(),
                tenant.as_str().into(),
                id.as_str().into(),
                ended.into(),
            ]);
        }
    }
    for sheet in [fresh, states, placements, gone, assets] {
        script.add(sheet, cache);
    }
}

/// For [`statements::STATES`].
fn state_row<'a>(cell: &HeadCell<'_>, head: &'a Head) -> [Value<'a>; 5] {
    [
        cell.wid.into(),
        number(cell.revision),
        head.updated_at.into(),
        head.last_activity.into(),
        (&head.state).into(),
    ]
}

/// For [`statements::PLACEMENTS`].
fn placement_row<'a>(cell: &HeadCell<'_>, head: &'a Head) -> [Value<'a>; 8] {
    let place = &head.placement;
    [
        cell.wid.into(),
        place.phase.as_str().into(),
        place.owner.as_str().into(),
        place.offered_to.as_deref().into(),
        place.offered_at.into(),
        place.blocked_since.into(),
        place.completed_at.into(),
        head.assets.as_str().into(),
    ]
}

/// For [`statements::NEW_WORKFLOWS`].
fn new_row<'a>(
    cell: &HeadCell<'_>,
    head: &'a Head,
    tenant: &'a TenantId,
    id: &'a WorkflowId,
) -> [Value<'a>; 14] {
    let [wid, revision, updated, active, state] = state_row(cell, head);
    let [_, phase, owner, offered_to, offered_at, blocked, completed, list] =
        placement_row(cell, head);
    [
        wid,
        tenant.as_str().into(),
        id.as_str().into(),
        revision,
        phase,
        owner,
        offered_to,
        offered_at,
        blocked,
        completed,
        updated,
        active,
        list,
        state,
    ]
}

fn write_events<'a>(world: &'a World<'_>, script: &mut Script<'a>, cache: &mut SqlCache) {
    let mut events = Sheet::new(&statements::EVENTS);
    let mut beside = Sheet::new(&statements::SENSITIVE_VALUES);
    for (wid, commit) in &world.accepted {
        for event in &commit.events {
            events.push([(*wid).into(), event.seq.into(), (&event.body).into()]);
            if let Some(values) = &event.sensitive {
                beside.push([(*wid).into(), event.seq.into(), values.into()]);
            }
        }
    }
    script.add(events, cache);
    script.add(beside, cache);
}

fn write_ledger<'a>(world: &'a World<'_>, script: &mut Script<'a>, cache: &mut SqlCache) {
    let mut gone = Sheet::new(&statements::LEDGER_GONE);
    let mut rows = Sheet::new(&statements::LEDGER);
    for cell in &world.ledger {
        let Some((wid, row)) = cell.written else {
            continue;
        };
        if let Some(lid) = cell.stored {
            gone.push([lid.into()]);
        }
        rows.push([
            row.key.tenant.as_str().into(),
            row.key.actor.to_string().into(),
            row.key.key.as_str().into(),
            wid.into(),
            number(row.seq),
            row.entry.operation.as_str().into(),
            row.entry.fingerprint.to_string().into(),
            i64::from(row.entry.result_version).into(),
            row.entry.created_at_ms.into(),
            row.entry.expires_at_ms.into(),
            row.mark.as_str().into(),
            super::apply::json(&row.fields).into(),
            row.entry.result.as_str().into(),
        ]);
    }
    script.add(gone, cache);
    script.add(rows, cache);
}

fn write_locks<'a>(
    world: &'a World<'_>,
    wanted: &'a Wanted<'_>,
    script: &mut Script<'a>,
    cache: &mut SqlCache,
) {
    let mut rows = Sheet::new(&statements::LOCKS);
    for (cell, (tenant, asset)) in world.locks.iter().zip(&wanted.locks) {
        if !cell.written {
            continue;
        }
        let holder = cell.holder.as_ref();
        rows.push([
            tenant.as_str().into(),
            asset.as_str().into(),
            number(cell.fence),
            number(cell.floor),
            holder.map(|h| h.workflow_id.as_str()).into(),
            holder.map(|h| h.owner.id.to_string()).into(),
            holder.and_then(|h| h.owner.name.as_deref()).into(),
            holder.map(|h| h.acquired_at.as_ms()).into(),
        ]);
    }
    script.add(rows, cache);
}

fn write_people<'a>(world: &'a World<'_>, script: &mut Script<'a>, cache: &mut SqlCache) {
    let mut rows = Sheet::new(&statements::PEOPLE);
    for (_, commit) in &world.accepted {
        let Some(person) = &commit.seen else { continue };
        rows.push([
            commit.tenant.as_str().into(),
            person.id.to_string().into(),
            person.name.as_deref().into(),
            commit.head.updated_at.into(),
        ]);
    }
    script.add(rows, cache);
}

fn write_outbox<'a>(world: &'a World<'_>, script: &mut Script<'a>, cache: &mut SqlCache) {
    let mut streams = Sheet::new(&statements::STREAMS);
    let mut rows = Sheet::new(&statements::OUTBOX);
    let mut due = Sheet::new(&statements::STREAMS_DUE);
    for (_, commit) in &world.accepted {
        for message in &commit.outbox {
            let stream: [Value<'_>; 3] = [
                commit.tenant.as_str().into(),
                commit.id.as_str().into(),
                message.recipient.as_str().into(),
            ];
            let [tenant, workflow, recipient] = stream.clone();
            rows.push([
                tenant,
                workflow,
                recipient,
                message.seq.into(),
                message.id.as_str().into(),
                message.next_attempt_at.into(),
                (&message.body).into(),
            ]);
            streams.push(stream.clone());
            due.push(stream);
        }
    }
    for sheet in [streams, rows, due] {
        script.add(sheet, cache);
    }
}

fn write_deadlines<'a>(world: &'a World<'_>, script: &mut Script<'a>, cache: &mut SqlCache) {
    // The last change of a deadline in the batch is what remains.
    let mut last: BTreeMap<(i64, &str), Option<i64>> = BTreeMap::new();
    for (wid, commit) in &world.accepted {
        for change in &commit.deadlines {
            match change {
                DeadlineChange::Set(d) => last.insert((*wid, &d.id), Some(d.fire_at.as_ms())),
                DeadlineChange::Clear(id) => last.insert((*wid, id), None),
            };
        }
    }
    let mut gone = Sheet::new(&statements::DEADLINES_GONE);
    let mut set = Sheet::new(&statements::DEADLINES);
    for ((wid, id), fire_at) in last {
        match fire_at {
            Some(at) => set.push([wid.into(), id.into(), at.into()]),
            None => gone.push([wid.into(), id.into()]),
        }
    }
    script.add(gone, cache);
    script.add(set, cache);
}
