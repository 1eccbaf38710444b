//! Streams of the outbox: their lease, and what became of their messages.

use std::collections::BTreeMap;

use sqlx::SqliteConnection;
use wf_core::models::Timestamp;
use wf_core::ports::{Claim, ClaimedStream, OutboxRow, Settled, Settlement};

use crate::codec::decode::{self, Columns, Read};

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
SELECT o.sid, o.message, o.state, o.attempts, o.next_attempt_at, o.last_error
  FROM json_each(?1) q
 CROSS JOIN outbox o ON o.oid IN (SELECT p.oid FROM outbox p WHERE p.sid = q.value AND p.state = 'pending'
                                   ORDER BY p.seq, p.id LIMIT ?2)
 ORDER BY q.key, o.seq, o.id";

/// Tenant, workflow, recipient, token.
pub(crate) const STREAM: &str = "
SELECT sid FROM streams
 WHERE workflow_id = ?2 AND recipient = ?3 AND tenant = ?1 AND lease_token = ?4";

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

/// Takes the lease of streams whose first pending message is due.
pub(crate) async fn claim(
    conn: &mut SqliteConnection,
    claim: &Claim,
) -> Result<Vec<ClaimedStream>, sqlx::Error> {
    let now = claim.now.as_ms();
    let until = now.saturating_add(claim.lease_ms);
    let found = sqlx::query(CLAIMABLE)
        .bind(now)
        .bind(until)
        .bind(i64::from(claim.limit))
        .fetch_all(&mut *conn)
        .await?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let mut streams = Vec::with_capacity(found.len());
    for row in &found {
        let mut columns = Columns::new(row, 0);
        let sid = columns.next::<i64>()?;
        let (tenant, workflow_id) = decode::workflow_name(&mut columns)?;
        let recipient = columns.text()?.to_owned();
        let stream = ClaimedStream {
            tenant,
            workflow_id,
            recipient,
            token: claim.token.clone(),
            rows: Vec::new(),
        };
        streams.push((sid, stream));
    }
    let ids: Vec<i64> = streams.iter().map(|(sid, _)| *sid).collect();
    let ids = serde_json::Value::from(ids).to_string();
    sqlx::query(LEASE).bind(&claim.token.0).bind(until).bind(&ids).execute(&mut *conn).await?;
    let mut rows = rows_of(conn, &ids).await?;
    for (sid, stream) in &mut streams {
        stream.rows = rows.remove(sid).unwrap_or_default();
        // A row that is not due hides the rows behind it.
        let due = |row: &OutboxRow| row.status.next_attempt_at <= claim.now;
        let hidden = stream.rows.iter().position(|row| !due(row));
        stream.rows.truncate(hidden.unwrap_or(stream.rows.len()));
    }
    Ok(streams.into_iter().map(|(_, stream)| stream).collect())
}

async fn rows_of(
    conn: &mut SqliteConnection,
    streams: &str,
) -> Read<BTreeMap<i64, Vec<OutboxRow>>> {
    let rows = sqlx::query(ROWS).bind(streams).bind(ROWS_MAX).fetch_all(conn).await?;
    let mut found: BTreeMap<i64, Vec<OutboxRow>> = BTreeMap::new();
    for row in &rows {
        let mut columns = Columns::new(row, 0);
        let sid = columns.next()?;
        found.entry(sid).or_default().push(decode::outbox(&mut columns)?);
    }
    Ok(found)
}

/// Records what became of messages; false, and nothing written, when the lease is somebody else's.
pub(crate) async fn settle(
    conn: &mut SqliteConnection,
    settlement: &Settlement,
) -> Result<bool, sqlx::Error> {
    let stream = sqlx::query(STREAM)
        .bind(settlement.tenant.as_str())
        .bind(settlement.workflow_id.as_str())
        .bind(&settlement.recipient)
        .bind(&settlement.token.0)
        .fetch_optional(&mut *conn)
        .await?;
    let Some(stream) = stream else {
        return Ok(false);
    };
    let sid = Columns::new(&stream, 0).next::<i64>()?;
    for (id, settled) in &settlement.results {
        let (state, failures, next, delivered, error) = match settled {
            Settled::Delivered => ("delivered", 0, None, Some(settlement.now), None),
            Settled::Retry { at, error } => ("pending", 1, Some(*at), None, Some(error)),
            Settled::Dead { error } => ("dead", 1, None, None, Some(error)),
        };
        sqlx::query(SETTLE)
            .bind(sid)
            .bind(id)
            .bind(state)
            .bind(failures)
            .bind(next.map(Timestamp::as_ms))
            .bind(delivered.map(Timestamp::as_ms))
            .bind(error)
            .execute(&mut *conn)
            .await?;
    }
    sqlx::query(RELEASE).bind(sid).execute(conn).await?;
    Ok(true)
}

/// Makes a dead message pending again.
pub(crate) async fn revive(
    conn: &mut SqliteConnection,
    id: &str,
    now: Timestamp,
) -> Result<bool, sqlx::Error> {
    let revived = sqlx::query(REVIVE).bind(id).bind(now.as_ms()).fetch_all(&mut *conn).await?;
    for row in &revived {
        let sid = Columns::new(row, 0).next::<i64>()?;
        sqlx::query(DUE_AGAIN).bind(sid).execute(&mut *conn).await?;
    }
    Ok(!revived.is_empty())
}
