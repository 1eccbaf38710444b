//! What may go: ledger rows past their expiry, delivered messages. Bounded work per call.

use rusqlite::Connection;
use wf_core::models::Timestamp;
use wf_core::ports::Swept;

use crate::codec::decode::{self, Read};
use crate::connection::{rows, run};

/// Retention in milliseconds, limit. Goes through completed workflows whose rows have no expiry yet.
pub(crate) const SET_EXPIRY: &str = "
UPDATE ledger
   SET expires_at = (SELECT w.completed_at + ?1 FROM workflows w WHERE w.wid = ledger.wid)
 WHERE lid IN (SELECT l.lid
                 FROM workflows w CROSS JOIN ledger l ON l.wid = w.wid AND l.expires_at IS NULL
                WHERE w.completed_at IS NOT NULL AND w.swept = 0
                ORDER BY w.completed_at
                LIMIT ?2)";

/// Limit. Workflows that have no row without expiry any more are not looked at again. Of those that wait only the first are
/// looked at, which the statement above has just gone through: behind them, where there are many, none is ready.
pub(crate) const SWEPT: &str = "
UPDATE workflows SET swept = 1
 WHERE wid IN (SELECT q.wid
                 FROM (SELECT w.wid FROM workflows w
                        WHERE w.completed_at IS NOT NULL AND w.swept = 0
                        ORDER BY w.completed_at
                        LIMIT ?1) q
                WHERE NOT EXISTS (SELECT 1 FROM ledger l WHERE l.wid = q.wid AND l.expires_at IS NULL))";

/// Now, limit.
pub(crate) const DELETE_EXPIRED: &str = "
DELETE FROM ledger
 WHERE lid IN (SELECT lid FROM ledger WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)";

/// The latest delivery that is old enough, limit. Answers the streams.
pub(crate) const DELETE_DELIVERED: &str = "
DELETE FROM outbox
 WHERE oid IN (SELECT oid FROM outbox WHERE delivered_at <= ?1 ORDER BY delivered_at LIMIT ?2)
RETURNING sid";

/// Streams as a JSON array. Those without a message and without a lease go.
pub(crate) const DELETE_EMPTY_STREAMS: &str = "
DELETE FROM streams
 WHERE sid IN (SELECT value FROM json_each(?1))
   AND lease_token IS NULL
   AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.sid = streams.sid)";

/// Sweeps.
pub(crate) fn sweep(
    conn: &Connection,
    now: Timestamp,
    retention_ms: i64,
    limit: u32,
) -> Read<Swept> {
    let now = now.as_ms();
    let expiries_set = run(conn, SET_EXPIRY, (retention_ms, limit))?;
    run(conn, SWEPT, [limit])?;
    let ledger_deleted = run(conn, DELETE_EXPIRED, (now, limit))?;
    let old = Timestamp::from_ms(now.saturating_sub(retention_ms));
    let outbox_deleted = delete_messages(conn, DELETE_DELIVERED, old, limit)?;
    Ok(Swept { expiries_set, ledger_deleted, outbox_deleted })
}

/// Deletes messages by a statement that answers their streams, and streams that are empty then; how many messages.
pub(super) fn delete_messages(
    conn: &Connection,
    sql: &'static str,
    until: Timestamp,
    limit: u32,
) -> Read<u64> {
    let streams = rows(conn, sql, (until.as_ms(), limit), decode::one::<i64>)?;
    let deleted = u64::try_from(streams.len()).unwrap_or(u64::MAX);
    if !streams.is_empty() {
        run(conn, DELETE_EMPTY_STREAMS, [serde_json::Value::from(streams).to_string()])?;
    }
    Ok(deleted)
}
