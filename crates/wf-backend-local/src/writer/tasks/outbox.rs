//! Streams of the outbox: their lease, and what became of their messages.
//!
//! A message or a stream that cannot be read back is put aside by the claim that meets it, visibly, so that it keeps no
//! other waiting.

use std::collections::BTreeMap;

use rusqlite::Connection;
use wf_core::models::Timestamp;
use wf_core::ports::{
    Claim, ClaimedStream, Finished, OutboxPurge, OutboxRow, Settled, Settlement, latest_live_expiry,
};

use super::sweep;
use crate::codec::decode::{self, Read, readable};
use crate::connection::{rows, run};
use crate::failpoint;

/// Messages of one claimed stream at most.
const ROWS_MAX: i64 = 16;

/// Now, the latest expiry that a live lease can have, limit.
pub(crate) const CLAIMABLE: &str = "
SELECT sid, tenant, workflow_id, recipient FROM streams
 WHERE due_at <= ?1 AND (lease_until IS NULL OR lease_until <= ?1 OR lease_until > ?2)
 ORDER BY due_at, sid
 LIMIT ?3";

/// Token, expiry, streams as a JSON array.
pub(crate) const LEASE: &str = "
UPDATE streams SET lease_token = ?1, lease_until = ?2 WHERE sid IN (SELECT value FROM json_each(?3))";

/// Streams as a JSON array, rows of each at most.
pub(crate) const ROWS: &str = "
SELECT o.sid, o.oid, o.message, o.state, o.attempts, o.next_attempt_at, o.last_error
  FROM json_each(?1) q
 CROSS JOIN outbox o ON o.oid IN (SELECT p.oid FROM outbox p WHERE p.sid = q.value AND p.state = 'pending'
                                   ORDER BY p.seq, p.id LIMIT ?2)
 ORDER BY q.key, o.seq, o.id";

/// A message that cannot be read, why, now. It is dead, and stays as it is for who looks into it.
pub(crate) const PUT_ASIDE: &str =
    "UPDATE outbox SET state = 'dead', last_error = ?2, next_attempt_at = ?3 WHERE oid = ?1";

/// A stream that cannot be read: it is never due.
pub(crate) const NEVER_DUE: &str = "UPDATE streams SET due_at = NULL WHERE sid = ?1";

/// Tenant, workflow, recipient, token.
pub(crate) const STREAM: &str = "
SELECT sid FROM streams
 WHERE workflow_id = ?2 AND recipient = ?3 AND tenant = ?1 AND lease_token = ?4";

/// The same without the fence, for the lie of that name.
const WHOEVER_HOLDS_IT: &str = "
SELECT sid FROM streams
 WHERE workflow_id = ?2 AND recipient = ?3 AND tenant = ?1 AND ?4 IS NOT NULL";

/// Stream, message, state, failed attempts to add, next attempt or null, delivered at or null, error or null.
pub(crate) const SETTLE: &str = "
UPDATE outbox SET state = ?3, attempts = attempts + ?4, next_attempt_at = coalesce(?5, next_attempt_at),
       delivered_at = ?6, last_error = coalesce(?7, last_error)
 WHERE id = ?2 AND sid = ?1 AND state = 'pending'";

/// Stream.
pub(crate) const RELEASE: &str = "
UPDATE streams SET lease_token = NULL, lease_until = NULL,
       due_at = (SELECT o.next_attempt_at FROM outbox o WHERE o.sid = streams.sid AND o.state = 'pending'
                  ORDER BY o.seq, o.id LIMIT 1)
 WHERE sid = ?1";

/// Message, now. Answers its stream.
pub(crate) const REVIVE: &str = "
UPDATE outbox SET state = 'pending', attempts = 0, next_attempt_at = ?2 WHERE id = ?1 AND state = 'dead' RETURNING sid";

/// Stream.
pub(crate) const DUE_AGAIN: &str = "
UPDATE streams
   SET due_at = (SELECT o.next_attempt_at FROM outbox o WHERE o.sid = streams.sid AND o.state = 'pending'
                  ORDER BY o.seq, o.id LIMIT 1)
 WHERE sid = ?1";

/// The latest expiry that a live lease can have.
pub(super) fn latest(claim: &Claim) -> i64 {
    if failpoint::is_asked(failpoint::LEASE_TRUSTED) {
        return i64::MAX;
    }
    latest_live_expiry(claim.now, claim.lease_ms).as_ms()
}

/// Takes the lease of streams whose first pending message is due.
pub(crate) fn claim(conn: &Connection, claim: &Claim) -> Read<Vec<ClaimedStream>> {
    let now = claim.now.as_ms();
    let until = now.saturating_add(claim.lease_ms);
    let latest = latest(claim);
    let found = rows(conn, CLAIMABLE, (now, latest, claim.limit), |columns| {
        let sid = columns.next::<i64>()?;
        let name = readable(decode::workflow_name(columns))?;
        let name = match name {
            Ok(name) => Ok((name, columns.text()?.to_owned())),
            Err(why) => Err(why),
        };
        Ok((sid, name))
    })?;
    let mut streams = Vec::with_capacity(found.len());
    for (sid, name) in found {
        match name {
            Ok(((tenant, workflow_id), recipient)) => {
                let (token, rows) = (claim.token.clone(), Vec::new());
                let stream = ClaimedStream { tenant, workflow_id, recipient, token, rows };
                streams.push((sid, stream));
            }
            Err(why) => {
                metrics::counter!("checkpoint_notifications_damaged_total").increment(1);
                tracing::error!(sid, why, "a stream of messages is damaged and is left alone");
                run(conn, NEVER_DUE, [sid])?;
            }
        }
    }
    if streams.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<i64> = streams.iter().map(|(sid, _)| *sid).collect();
    let ids = serde_json::Value::from(ids).to_string();
    run(conn, LEASE, (&claim.token.0, until, &ids))?;
    let mut rows = rows_of(conn, &ids, claim.now)?;
    for (sid, stream) in &mut streams {
        stream.rows = rows.remove(sid).unwrap_or_default();
        // A row that is not due hides the rows behind it.
        let due = |row: &OutboxRow| row.status.next_attempt_at <= claim.now;
        let hidden = stream.rows.iter().position(|row| !due(row));
        stream.rows.truncate(hidden.unwrap_or(stream.rows.len()));
    }
    failpoint::hit(failpoint::OUTBOX_CLAIM)?;
    Ok(streams.into_iter().map(|(_, stream)| stream).collect())
}

fn rows_of(
    conn: &Connection,
    streams: &str,
    now: Timestamp,
) -> Read<BTreeMap<i64, Vec<OutboxRow>>> {
    let mut found: BTreeMap<i64, Vec<OutboxRow>> = BTreeMap::new();
    let read = rows(conn, ROWS, (streams, ROWS_MAX), |columns| {
        let (sid, oid) = (columns.next::<i64>()?, columns.next::<i64>()?);
        Ok((sid, oid, readable(decode::outbox(columns))?))
    })?;
    for (sid, oid, row) in read {
        match row {
            Ok(row) => found.entry(sid).or_default().push(row),
            Err(why) => {
                metrics::counter!("checkpoint_notifications_damaged_total").increment(1);
                tracing::error!(sid, oid, why, "a message is damaged and is given up");
                run(conn, PUT_ASIDE, (oid, why, now.as_ms()))?;
            }
        }
    }
    Ok(found)
}

/// Records what became of messages; false, and nothing written, when the lease is somebody else's.
pub(crate) fn settle(conn: &Connection, settlement: &Settlement) -> Read<bool> {
    let (tenant, workflow) = (settlement.tenant.as_str(), settlement.workflow_id.as_str());
    let stream = (tenant, workflow, &settlement.recipient, &settlement.token.0);
    let asked = failpoint::is_asked(failpoint::SETTLE_UNFENCED);
    let held = if asked { WHOEVER_HOLDS_IT } else { STREAM };
    let Some(sid) = rows(conn, held, stream, decode::one::<i64>)?.pop() else {
        return Ok(false);
    };
    for (id, settled) in &settlement.results {
        let (state, failures, next, delivered, error) = match settled {
            Settled::Delivered => ("delivered", 0, None, Some(settlement.now), None),
            Settled::Retry { at, error } => ("pending", 1, Some(*at), None, Some(error)),
            Settled::Dead { error } => ("dead", 1, Some(settlement.now), None, Some(error)),
        };
        let (next, delivered) = (next.map(Timestamp::as_ms), delivered.map(Timestamp::as_ms));
        run(conn, SETTLE, (sid, id, state, failures, next, delivered, error))?;
    }
    run(conn, RELEASE, [sid])?;
    failpoint::hit(failpoint::OUTBOX_MARK)?;
    Ok(true)
}

/// The latest end that is old enough, limit. Answers the streams.
pub(crate) const DELETE_DEAD: &str = "
DELETE FROM outbox
 WHERE oid IN (SELECT oid FROM outbox WHERE state = 'dead' AND next_attempt_at <= ?1 LIMIT ?2)
RETURNING sid";

/// Deletes messages that nobody delivers any more. A stream goes by its first pending message, so none notices.
pub(crate) fn purge(conn: &Connection, purge: &OutboxPurge) -> Read<u64> {
    let sql = match purge.which {
        Finished::Delivered => sweep::DELETE_DELIVERED,
        Finished::Dead => DELETE_DEAD,
    };
    sweep::delete_messages(conn, sql, purge.until, purge.limit)
}

/// Makes a dead message pending again.
pub(crate) fn revive(conn: &Connection, id: &str, now: Timestamp) -> Read<bool> {
    let revived = rows(conn, REVIVE, (id, now.as_ms()), decode::one::<i64>)?;
    for sid in &revived {
        run(conn, DUE_AGAIN, [sid])?;
    }
    Ok(!revived.is_empty())
}
