//! What may go: ledger rows past their expiry, delivered messages. Bounded work per call.

use sqlx::SqliteConnection;
use wf_core::models::Timestamp;
use wf_core::ports::Swept;

/// Retention in milliseconds, limit. Goes through completed workflows whose rows have no expiry yet.
pub(crate) const SET_EXPIRY: &str = "
UPDATE ledger
   SET expires_at = (SELECT w.completed_at + ?1 FROM workflows w WHERE w.wid = ledger.wid)
 WHERE lid IN (SELECT l.lid
                 FROM workflows w CROSS JOIN ledger l ON l.wid = w.wid AND l.expires_at IS NULL
                WHERE w.completed_at IS NOT NULL AND w.swept = 0
                ORDER BY w.completed_at
                LIMIT ?2)";

/// Limit. Workflows that have no row without expiry any more are not looked at again.
pub(crate) const SWEPT: &str = "
UPDATE workflows SET swept = 1
 WHERE wid IN (SELECT w.wid FROM workflows w
                WHERE w.completed_at IS NOT NULL AND w.swept = 0
                  AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.wid = w.wid AND l.expires_at IS NULL)
                ORDER BY w.completed_at
                LIMIT ?1)";

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
pub(crate) async fn sweep(
    conn: &mut SqliteConnection,
    now: Timestamp,
    retention_ms: i64,
    limit: u32,
) -> Result<Swept, sqlx::Error> {
    let limit = i64::from(limit);
    let set = sqlx::query(SET_EXPIRY).bind(retention_ms).bind(limit).execute(&mut *conn).await?;
    sqlx::query(SWEPT).bind(limit).execute(&mut *conn).await?;
    let deleted =
        sqlx::query(DELETE_EXPIRED).bind(now.as_ms()).bind(limit).execute(&mut *conn).await?;
    let delivered = sqlx::query(DELETE_DELIVERED)
        .bind(now.as_ms().saturating_sub(retention_ms))
        .bind(limit)
        .fetch_all(&mut *conn)
        .await?;
    let mut streams = Vec::with_capacity(delivered.len());
    for row in &delivered {
        streams.push(crate::codec::decode::Columns::new(row, 0).next::<i64>()?);
    }
    if !streams.is_empty() {
        sqlx::query(DELETE_EMPTY_STREAMS)
            .bind(serde_json::Value::from(streams).to_string())
            .execute(conn)
            .await?;
    }
    Ok(Swept {
        expiries_set: set.rows_affected(),
        ledger_deleted: deleted.rows_affected(),
        outbox_deleted: u64::try_from(delivered.len()).unwrap_or(u64::MAX),
    })
}
