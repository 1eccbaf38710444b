//! The outbox as operators see it: pages of messages, how many are not delivered, and the end of old ones.
//!
//! The index by state finds them; what it finds is read again from the table, and deleted only as it was read.

use wf_core::ports::{
    Backlog, DamagedMessage, Finished, OutboxPage, OutboxPurge, OutboxQuery, OutboxState, Page,
};

use crate::action::Expression;
use crate::codec::outbox;
use crate::fault::Fail;
use crate::item::{Item, Value};
use crate::keys::{BY_ID, BY_STATE, LAST, by_id, by_state, time};
use crate::link::{Link, Range};
use crate::read::lists;

/// Pending messages that are looked at to find the oldest.
const OLDEST_OF: u32 = 100;
/// Messages of one page of the index.
const PAGE: u32 = 1_000;

/// A page of messages. Those of one state that is not for ever are read by state, all others by id.
pub(crate) async fn list(link: &Link, query: &OutboxQuery) -> Result<OutboxPage, Fail> {
    let range = match query.state {
        Some(OutboxState::Pending) => Range::prefix(by_state::PENDING.to_owned(), "").of(BY_STATE),
        Some(OutboxState::Dead) => Range::prefix(by_state::DEAD.to_owned(), "").of(BY_STATE),
        Some(OutboxState::Delivered) | None => {
            Range::prefix(by_id::MESSAGES.to_owned(), "").of(BY_ID)
        }
    };
    let keep = |item: &Item| {
        let (state, row) = match outbox::read(item) {
            Ok(row) => (Some(row.status.state), Ok(row)),
            Err(Fail::Unreadable(error)) => {
                let state = outbox::state(item).ok();
                (state, Err(DamagedMessage { id: outbox::stored_id(item), state, error }))
            }
            Err(trouble @ Fail::Trouble(_)) => return Err(trouble),
        };
        Ok(query.state.is_none_or(|asked| state.is_none_or(|is| is == asked)).then_some(row))
    };
    let page = lists::page_of(link, range, query.after.as_ref(), query.limit, keep).await?;
    let Page { items, next } = page;
    let mut page = OutboxPage { next, ..OutboxPage::default() };
    for row in items {
        match row {
            Ok(row) => page.items.push(row),
            Err(damaged) => page.damaged.push(damaged),
        }
    }
    Ok(page)
}

/// What is pending and what was given up. Only keys are read, and of the first pending the messages.
pub(crate) async fn backlog(link: &Link, limit: u32) -> Result<Backlog, Fail> {
    let (pending, first) = count(link, by_state::PENDING, limit).await?;
    let (dead, _) = count(link, by_state::DEAD, limit).await?;
    let keys = first.iter().map(Item::key).collect::<Result<Vec<_>, Fail>>()?;
    let rows = link.get_each(&keys).await?;
    let readable = rows.iter().flatten().filter_map(|item| outbox::read(item).ok());
    let oldest_pending = readable
        .filter(|row| row.status.state == OutboxState::Pending)
        .map(|row| row.message.time)
        .min();
    Ok(Backlog { pending, dead, oldest_pending })
}

/// How many messages of a state there are, up to the limit, and the first of them.
async fn count(link: &Link, state: &str, limit: u32) -> Result<(u64, Vec<Item>), Fail> {
    let mut range = Range::prefix(state.to_owned(), "").of(BY_STATE).limit(limit.min(PAGE));
    let (mut count, mut first) = (0, Vec::new());
    loop {
        let (found, next) = link.query(&range).await?;
        count += u64::try_from(found.len()).unwrap_or(u64::MAX);
        if first.is_empty() {
            first = found.into_iter().take(usize::try_from(OLDEST_OF).unwrap_or(0)).collect();
        }
        range.start = next;
        if range.start.is_none() || count >= u64::from(limit) {
            return Ok((count.min(limit.into()), first));
        }
    }
}

/// Deletes messages that nobody delivers any more, or counts them.
pub(crate) async fn purge(link: &Link, purge: &OutboxPurge) -> Result<u64, Fail> {
    let until = purge.until.as_ms();
    let (partition, to, state, when) = match purge.which {
        Finished::Delivered => {
            let to = format!("{}{LAST}", time(until));
            (by_state::DELIVERED, to, OutboxState::Delivered, "delivered_at")
        }
        Finished::Dead => (by_state::DEAD, LAST.to_string(), OutboxState::Dead, "next_attempt_at"),
    };
    if until < 0 {
        return Ok(0);
    }
    let old = Expression::new(
        format!("delivery = :is AND {when} <= :until"),
        [(":is", Value::s(outbox::name(state))), (":until", Value::n(until))],
    );
    let mut range = Range::between(partition.to_owned(), " ", to).of(BY_STATE);
    range.limit = Some(purge.limit.clamp(1, PAGE));
    let mut purged = 0;
    loop {
        let (found, next) = link.query(&range).await?;
        let keys = found.iter().map(Item::key).collect::<Result<Vec<_>, Fail>>()?;
        for (key, item) in keys.iter().zip(link.get_each(&keys).await?) {
            if purged >= u64::from(purge.limit) {
                return Ok(purged);
            }
            let Some(item) = item else { continue };
            let is = outbox::state(&item).is_ok_and(|is| is == state);
            let at = item.opt_number::<i64>(when).ok().flatten();
            if is && at.is_some_and(|at| at <= until) {
                purged += u64::from(purge.count_only || link.delete(key, &old).await?.is_gone());
            }
        }
        range.start = next;
        if range.start.is_none() {
            return Ok(purged);
        }
    }
}
