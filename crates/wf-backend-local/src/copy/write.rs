//! Records as rows. Writing one again changes nothing, and they may come in any order: an event, a ledger row or a message
//! that comes before the row that it belongs to makes an empty one.

use rusqlite::Connection;
use wf_core::models::{TenantId, Timestamp, Workflow, WorkflowId};
use wf_core::policy::Definition;
use wf_core::ports::copy::{LockRecord, Record, WorkflowRecord};
use wf_core::ports::{LedgerRow, OutboxRow};
use wf_core::state_machine::Event;

use crate::codec::decode::Read;
use crate::codec::encode::{self, signed};
use crate::codec::outbox_state;
use crate::connection::{int_of, run};
use crate::fault::{Cause, unreadable};

/// Without a state, so that the end of the copy finds those whose record never came.
const WORKFLOW: &str = "
INSERT INTO workflows (tenant, id, revision, phase, owner, updated_at, last_activity, assets, state)
VALUES (?1, ?2, 1, 'CREATED', '', 0, 0, '', '') ON CONFLICT (tenant, id) DO NOTHING";
const WID: &str = "SELECT wid FROM workflows WHERE tenant = ?1 AND id = ?2";

const HEAD: &str = "
UPDATE workflows SET revision = ?2, phase = ?3, owner = ?4, offered_to = ?5, offered_at = ?6, blocked_since = ?7,
       completed_at = ?8, updated_at = ?9, last_activity = ?10, assets = ?11, swept = ?12, state = ?13
 WHERE wid = ?1";
const ASSET: &str = "
INSERT INTO workflow_assets (wid, asset_id, tenant, workflow_id, completed_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (wid, asset_id) DO UPDATE SET completed_at = excluded.completed_at";
const DEADLINE: &str = "
INSERT INTO deadlines (wid, id, fire_at) VALUES (?1, ?2, ?3)
    ON CONFLICT (wid, id) DO UPDATE SET fire_at = excluded.fire_at";

const EVENT: &str = "
INSERT INTO events (wid, seq, body) VALUES (?1, ?2, ?3) ON CONFLICT (wid, seq) DO NOTHING";
const SENSITIVE: &str = "
INSERT INTO sensitive_values (wid, seq, body) VALUES (?1, ?2, ?3)
    ON CONFLICT (wid, seq) DO UPDATE SET body = excluded.body";

const LEDGER: &str = "
INSERT OR REPLACE INTO ledger (tenant, actor, key, wid, seq, operation, fingerprint, result_version, created_at,
       expires_at, mark, fields, result) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
const LOCK: &str = "
INSERT OR REPLACE INTO locks (tenant, asset_id, fence, floor, holder, owner, owner_name, acquired_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const PERSON: &str = "
INSERT OR REPLACE INTO people (tenant, actor, name, seen_at) VALUES (?1, ?2, ?3, ?4)";

const TOMBSTONE: &str = "
INSERT OR REPLACE INTO purged (tenant, id, purged_at, body) VALUES (?1, ?2, ?3, ?4)";

const DEFINITION: &str = "
INSERT OR REPLACE INTO definitions (digest, procedure_id, version, title, document) VALUES (?1, ?2, ?3, ?4, ?5)";
const VERSION: &str = "
INSERT OR REPLACE INTO procedure_versions (procedure_id, version, digest) VALUES (?1, ?2, ?3)";

const STREAM: &str = "
INSERT INTO streams (tenant, workflow_id, recipient) VALUES (?1, ?2, ?3)
    ON CONFLICT (workflow_id, recipient, tenant) DO NOTHING";
const SID: &str =
    "SELECT sid FROM streams WHERE tenant = ?1 AND workflow_id = ?2 AND recipient = ?3";
const STREAM_DUE: &str = "UPDATE streams SET due_at = ?2 WHERE sid = ?1";
const MESSAGE: &str = "
INSERT INTO outbox (sid, seq, id, state, attempts, next_attempt_at, delivered_at, last_error, message)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
    ON CONFLICT (id, sid) DO UPDATE SET state = excluded.state, attempts = excluded.attempts,
       next_attempt_at = excluded.next_attempt_at, delivered_at = excluded.delivered_at,
       last_error = excluded.last_error, message = excluded.message";

/// Writes all of them.
pub(super) fn records(conn: &Connection, records: &[Record]) -> Read<()> {
    records.iter().try_for_each(|record| one(conn, record))
}

fn one(conn: &Connection, record: &Record) -> Read<()> {
    match record {
        Record::Definition(one) => definition(conn, one),
        Record::Version { id, version, digest } => {
            run(conn, VERSION, (id.as_str(), version, digest.as_str())).map(drop)
        }
        Record::Workflow(record) => workflow(conn, record),
        Record::Event { tenant, event, last: _ } => self::event(conn, tenant, event),
        Record::Ledger(row) => ledger(conn, row),
        Record::Lock(record) => lock(conn, record),
        Record::Stream { tenant, workflow_id, recipient, due_at } => {
            let sid = stream(conn, tenant, workflow_id, recipient)?;
            run(conn, STREAM_DUE, (sid, due_at.map(Timestamp::as_ms))).map(drop)
        }
        Record::Message { row, delivered_at } => {
            message(conn, row, delivered_at.map(Timestamp::as_ms))
        }
        Record::Person { tenant, person, seen_at } => {
            let named = (tenant.as_str(), person.id.to_string(), &person.name, seen_at.as_ms());
            run(conn, PERSON, named).map(drop)
        }
        Record::Tombstone(left) => {
            let body = json("a tombstone", left)?;
            let (tenant, id) = (left.tenant.as_str(), left.workflow_id.as_str());
            run(conn, TOMBSTONE, (tenant, id, left.purged_at.as_ms(), body)).map(drop)
        }
        // Counted from the workflows.
        Record::Owner { .. } => Ok(()),
    }
}

fn number(what: &str, number: u64) -> Read<i64> {
    signed(number).ok_or_else(|| unreadable(what, "it does not fit in 63 bits"))
}

fn json<T: serde::Serialize>(what: &str, value: &T) -> Read<String> {
    serde_json::to_string(value).map_err(|e| unreadable(what, e))
}

fn refused(error: wf_core::ports::CommitError) -> Cause {
    unreadable("a record", error)
}

fn definition(conn: &Connection, one: &Definition) -> Read<()> {
    let (title, document) = (json("a title", &one.title)?, json("a definition", &one.document)?);
    let row = (one.digest.as_str(), one.id.as_str(), one.version, title, document);
    run(conn, DEFINITION, row).map(drop)
}

fn wid(conn: &Connection, tenant: &TenantId, id: &WorkflowId) -> Read<i64> {
    let named = (tenant.as_str(), id.as_str());
    if let Some(wid) = int_of(conn, WID, named)? {
        return Ok(wid);
    }
    run(conn, WORKFLOW, named)?;
    int_of(conn, WID, named)?.ok_or_else(|| unreadable("a workflow", "it was not written"))
}

fn workflow(conn: &Connection, record: &WorkflowRecord) -> Read<()> {
    let state: &Workflow = &record.state;
    let wid = wid(conn, &state.tenant, &state.id)?;
    let head = encode::head(state, json("a state", state)?);
    let place = head.placement;
    let row = rusqlite::params![
        wid,
        number("a revision", state.revision)?,
        place.phase,
        place.owner,
        place.offered_to,
        place.offered_at,
        place.blocked_since,
        place.completed_at,
        head.updated_at,
        head.last_activity,
        head.assets,
        i64::from(record.swept),
        head.state,
    ];
    run(conn, HEAD, row)?;
    for asset in &state.assets {
        let named = (asset.id.as_str(), state.tenant.as_str(), state.id.as_str());
        run(conn, ASSET, (wid, named.0, named.1, named.2, place.completed_at))?;
    }
    for deadline in &record.deadlines {
        run(conn, DEADLINE, (wid, &deadline.id, deadline.fire_at.as_ms()))?;
    }
    Ok(())
}

fn event(conn: &Connection, tenant: &TenantId, event: &Event) -> Read<()> {
    let wid = wid(conn, tenant, &event.workflow_id)?;
    let row = encode::event_row(event.clone()).map_err(refused)?;
    run(conn, EVENT, (wid, row.seq, row.body))?;
    if let Some(beside) = row.sensitive {
        run(conn, SENSITIVE, (wid, row.seq, beside))?;
    }
    Ok(())
}

fn ledger(conn: &Connection, row: &LedgerRow) -> Read<()> {
    let (key, entry) = (&row.key, &row.entry);
    let values = rusqlite::params![
        key.tenant.as_str(),
        key.actor.to_string(),
        key.key.as_str(),
        wid(conn, &key.tenant, &row.workflow_id)?,
        number("the place of a ledger row", row.seq)?,
        entry.operation,
        entry.fingerprint.to_string(),
        i64::from(entry.result_version),
        entry.created_at_ms,
        entry.expires_at_ms,
        row.mark,
        json("fields", &row.fields)?,
        entry.result,
    ];
    run(conn, LEDGER, values).map(drop)
}

fn lock(conn: &Connection, record: &LockRecord) -> Read<()> {
    let row = &record.row;
    let holder = row.holder.as_ref();
    let values = rusqlite::params![
        row.tenant.as_str(),
        row.asset_id.as_str(),
        number("a fence", row.fence)?,
        number("a fence", record.floor)?,
        holder.map(|h| h.workflow_id.as_str()),
        holder.map(|h| h.owner.id.to_string()),
        holder.and_then(|h| h.owner.name.as_deref()),
        holder.map(|h| h.acquired_at.as_ms()),
    ];
    run(conn, LOCK, values).map(drop)
}

fn stream(conn: &Connection, tenant: &TenantId, id: &WorkflowId, recipient: &str) -> Read<i64> {
    let named = (tenant.as_str(), id.as_str(), recipient);
    if let Some(sid) = int_of(conn, SID, named)? {
        return Ok(sid);
    }
    run(conn, STREAM, named)?;
    int_of(conn, SID, named)?.ok_or_else(|| unreadable("a stream", "it was not written"))
}

fn message(conn: &Connection, row: &OutboxRow, delivered_at: Option<i64>) -> Read<()> {
    let (message, status) = (&row.message, &row.status);
    let sid = stream(conn, &message.tenant, &message.workflow_id, &message.recipient)?;
    let written = encode::message_row(message.clone(), status.next_attempt_at).map_err(refused)?;
    let values = rusqlite::params![
        sid,
        written.seq,
        written.id,
        outbox_state(status.state),
        status.attempts,
        status.next_attempt_at.as_ms(),
        delivered_at,
        status.last_error,
        written.body,
    ];
    run(conn, MESSAGE, values).map(drop)
}
