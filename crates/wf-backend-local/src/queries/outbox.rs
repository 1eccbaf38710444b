//! Pages of outbox rows, and whether there is anything to claim.

use wf_core::ports::{Claim, OutboxQuery, OutboxRow, Page, ReadError, latest_live_expiry};

use super::{after, cursor, cut, probe};
use crate::codec::{decode, outbox_state};
use crate::readers::Readers;

/// Message id and stream after which, limit.
pub(crate) const LIST: &str = "
SELECT sid, message, state, attempts, next_attempt_at, last_error FROM outbox
 WHERE (id, sid) > (?1, ?2)
 ORDER BY id, sid
 LIMIT ?3";

/// Message id and stream after which, state, limit.
pub(crate) const LIST_BY_STATE: &str = "
SELECT sid, message, state, attempts, next_attempt_at, last_error FROM outbox
 WHERE state = ?3 AND (id, sid) > (?1, ?2)
 ORDER BY id, sid
 LIMIT ?4";

/// Now, and the latest expiry that a live lease can have.
pub(crate) const ANY_STREAM_DUE: &str = "
SELECT 1 FROM streams
 WHERE due_at <= ?1 AND (lease_until IS NULL OR lease_until <= ?1 OR lease_until > ?2)
 LIMIT 1";

/// A page of outbox rows by message id.
pub(crate) async fn list(
    readers: &Readers,
    query: &OutboxQuery,
) -> Result<Page<OutboxRow>, ReadError> {
    let (stream, id) = after(query.after.as_ref())?;
    let stream: i64 = stream.parse().unwrap_or(0);
    let (id, limit) = (id.to_owned(), probe(query.limit));
    let row = |columns: &mut decode::Columns<'_>| {
        let stream = columns.next::<i64>()?;
        Ok((stream, decode::outbox(columns)?))
    };
    let rows = match query.state.map(outbox_state) {
        Some(state) => readers.rows(LIST_BY_STATE, (id, stream, state, limit), row).await?,
        None => readers.rows(LIST, (id, stream, limit), row).await?,
    };
    let (rows, more) = cut(rows, query.limit);
    let next = rows
        .last()
        .filter(|_| more)
        .map(|(stream, row)| cursor(&stream.to_string(), &row.message.id));
    Ok(Page { items: rows.into_iter().map(|(_, row)| row).collect(), next })
}

/// Whether a claim would find a stream. Spares an idle store its write transactions.
pub(crate) async fn any_stream_due(readers: &Readers, claim: &Claim) -> Result<bool, ReadError> {
    let now = claim.now.as_ms();
    let latest = latest_live_expiry(claim.now, claim.lease_ms).as_ms();
    let found = readers.rows(ANY_STREAM_DUE, (now, latest), |_| Ok(())).await?;
    Ok(!found.is_empty())
}
