//! Pages of outbox rows, what is not delivered, and whether there is anything to claim.

use wf_core::models::Timestamp;
use wf_core::ports::{
    Backlog, Claim, DamagedMessage, Finished, Message, OutboxPage, OutboxPurge, OutboxQuery,
    ReadError, latest_live_expiry,
};

use super::{after, cursor, cut, probe};
use crate::codec::{decode, outbox_state};
use crate::readers::Readers;

/// Message id and stream after which, limit.
pub(crate) const LIST: &str = "
SELECT sid, id, state, message, state, attempts, next_attempt_at, last_error FROM outbox
 WHERE (id, sid) > (?1, ?2)
 ORDER BY id, sid
 LIMIT ?3";

/// Message id and stream after which, state, limit.
pub(crate) const LIST_BY_STATE: &str = "
SELECT sid, id, state, message, state, attempts, next_attempt_at, last_error FROM outbox
 WHERE state = ?3 AND (id, sid) > (?1, ?2)
 ORDER BY id, sid
 LIMIT ?4";

/// Now, and the latest expiry that a live lease can have.
pub(crate) const ANY_STREAM_DUE: &str = "
SELECT 1 FROM streams
 WHERE due_at <= ?1 AND (lease_until IS NULL OR lease_until <= ?1 OR lease_until > ?2)
 LIMIT 1";

/// State, limit: how many there are up to the limit, and which of them was written first. The index has all of it.
const BACKLOG: &str = "
SELECT count(*), min(oid) FROM (SELECT oid FROM outbox WHERE state = ?1 LIMIT ?2)";

/// A message.
const BODY: &str = "SELECT message FROM outbox WHERE oid = ?1";

/// The latest end that is old enough, limit.
const OLD_DELIVERED: &str = "
SELECT count(*) FROM (SELECT 1 FROM outbox WHERE delivered_at <= ?1 LIMIT ?2)";

/// The latest end that is old enough, limit.
const OLD_DEAD: &str = "
SELECT count(*) FROM (SELECT 1 FROM outbox WHERE state = 'dead' AND next_attempt_at <= ?1 LIMIT ?2)";

/// A page of outbox rows by message id.
pub(crate) async fn list(readers: &Readers, query: &OutboxQuery) -> Result<OutboxPage, ReadError> {
    let (stream, id) = after(query.after.as_ref())?;
    let stream: i64 = match &query.after {
        Some(_) => stream.parse().map_err(|_| ReadError::BadCursor)?,
        None => 0,
    };
    let (id, limit) = (id.to_owned(), probe(query.limit));
    let row = |columns: &mut decode::Columns<'_>| {
        let (stream, id) = (columns.next::<i64>()?, columns.text()?.to_owned());
        let state = decode::outbox_state(columns.text()?).ok();
        Ok((stream, id, state, decode::readable(decode::outbox(columns))?))
    };
    let rows = match query.state.map(outbox_state) {
        Some(state) => readers.rows(LIST_BY_STATE, (id, stream, state, limit), row).await?,
        None => readers.rows(LIST, (id, stream, limit), row).await?,
    };
    let (rows, more) = cut(rows, query.limit);
    let next = rows.last().filter(|_| more).map(|(stream, id, ..)| cursor(&stream.to_string(), id));
    let mut page = OutboxPage { next, ..OutboxPage::default() };
    for (_, id, state, row) in rows {
        match row {
            Ok(row) => page.items.push(row),
            Err(error) => page.damaged.push(DamagedMessage { id, state, error }),
        }
    }
    Ok(page)
}

/// What is pending and dead, and since when the first of the pending waits.
pub(crate) async fn backlog(readers: &Readers, limit: u32) -> Result<Backlog, ReadError> {
    let counted = |columns: &mut decode::Columns<'_>| {
        Ok((columns.unsigned("a count")?, columns.next::<Option<i64>>()?))
    };
    let mut counts = [(0, None); 2];
    for (count, state) in counts.iter_mut().zip(["pending", "dead"]) {
        let found = readers.rows(BACKLOG, (state, limit), counted).await?;
        *count = found.first().copied().unwrap_or_default();
    }
    let [(pending, first), (dead, _)] = counts;
    let mut oldest_pending = None;
    if let Some(oid) = first {
        // Damaged or gone by now: it is put aside, and the next look finds another.
        let time = |columns: &mut decode::Columns<'_>| {
            let message = decode::json::<Message>("a message", columns.text()?);
            Ok(decode::readable(message)?.ok().map(|message| message.time))
        };
        oldest_pending = readers.rows(BODY, [oid], time).await?.pop().flatten();
    }
    Ok(Backlog { pending, dead, oldest_pending })
}

/// How many messages a purge would delete.
pub(crate) async fn purgeable(readers: &Readers, purge: &OutboxPurge) -> Result<u64, ReadError> {
    let sql = match purge.which {
        Finished::Delivered => OLD_DELIVERED,
        Finished::Dead => OLD_DEAD,
    };
    let until = Timestamp::as_ms(purge.until);
    let count = |columns: &mut decode::Columns<'_>| columns.unsigned("a count");
    Ok(readers.rows(sql, (until, purge.limit), count).await?.pop().unwrap_or_default())
}

/// Whether a claim would find a stream. Spares an idle store its write transactions.
pub(crate) async fn any_stream_due(readers: &Readers, claim: &Claim) -> Result<bool, ReadError> {
    let now = claim.now.as_ms();
    let latest = latest_live_expiry(claim.now, claim.lease_ms).as_ms();
    let found = readers.rows(ANY_STREAM_DUE, (now, latest), |_| Ok(())).await?;
    Ok(!found.is_empty())
}
