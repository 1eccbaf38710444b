//! Pages of outbox rows, and whether there is anything to claim.

use wf_core::ports::{Claim, OutboxQuery, OutboxRow, Page, ReadError};

use super::{Ask, Readers, after, cursor, cut, probe};
use crate::codec::decode::{self, Columns};
use crate::codec::outbox_state;

/// Message id and stream after which, limit.
pub(crate) const LIST: &str = "
SELECT sid, message, state, attempts, next_attempt_at, last_error FROM outbox
 WHERE (id, sid) > (?1, ?2)
 ORDER BY id, sid
 LIMIT ?3";

/// Message id and stream after which, limit, state.
pub(crate) const LIST_BY_STATE: &str = "
SELECT sid, message, state, attempts, next_attempt_at, last_error FROM outbox
 WHERE state = ?4 AND (id, sid) > (?1, ?2)
 ORDER BY id, sid
 LIMIT ?3";

/// Now, and the latest expiry that a live lease can have.
pub(crate) const ANY_STREAM_DUE: &str = "
SELECT 1 FROM streams
 WHERE due_at <= ?1 AND (lease_until IS NULL OR lease_until <= ?1 OR lease_until > ?2)
 LIMIT 1";

/// Now, and the latest expiry that a live lease can have.
pub(crate) const ANY_DEADLINE_DUE: &str = "
SELECT 1 FROM deadlines
 WHERE fire_at <= ?1 AND (lease_until IS NULL OR lease_until <= ?1 OR lease_until > ?2)
 LIMIT 1";

/// A page of outbox rows by message id.
pub(crate) async fn list(
    readers: &Readers,
    query: &OutboxQuery,
) -> Result<Page<OutboxRow>, ReadError> {
    let (stream, id) = after(query.after.as_ref())?;
    let stream: i64 = stream.parse().unwrap_or(0);
    let sql = match query.state {
        Some(_) => LIST_BY_STATE,
        None => LIST,
    };
    let ask = sqlx::query(sql)
        .bind(id)
        .bind(stream)
        .bind(probe(query.limit))
        .bind(query.state.map(outbox_state));
    let rows = readers
        .decoded(ask, |row| {
            let mut columns = Columns::new(row, 0);
            let stream = columns.next::<i64>()?;
            Ok((stream, decode::outbox(&mut columns)?))
        })
        .await?;
    let (rows, more) = cut(rows, query.limit);
    let next = rows
        .last()
        .filter(|_| more)
        .map(|(stream, row)| cursor(&stream.to_string(), &row.message.id));
    Ok(Page { items: rows.into_iter().map(|(_, row)| row).collect(), next })
}

/// Whether a claim would find a stream. Spares an idle store its write transactions.
pub(crate) async fn any_stream_due(readers: &Readers, claim: &Claim) -> Result<bool, ReadError> {
    any(readers, due(ANY_STREAM_DUE, claim)).await
}

/// Whether a claim would find a deadline.
pub(crate) async fn any_deadline_due(readers: &Readers, claim: &Claim) -> Result<bool, ReadError> {
    any(readers, due(ANY_DEADLINE_DUE, claim)).await
}

fn due(sql: &'static str, claim: &Claim) -> Ask<'static> {
    sqlx::query(sql).bind(claim.now.as_ms()).bind(claim.now.as_ms().saturating_add(claim.lease_ms))
}

async fn any(readers: &Readers, ask: Ask<'_>) -> Result<bool, ReadError> {
    Ok(!readers.rows(ask).await?.is_empty())
}
