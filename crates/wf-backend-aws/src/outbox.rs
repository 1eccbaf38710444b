//! Messages under lease. A stream (workflow, recipient) has a head with its lease and the time when its first pending
//! message is due; the index by state finds heads by that time. What the index finds is looked at again in the table.
//!
//! A message or a stream that cannot be read back is put aside by whoever meets it, so that it keeps no other waiting.
//!
//! A query beside a commit may show the stream as the commit left it and its messages not yet. The head names the messages
//! that joined last, so that nobody ends a stream in which one of them waits unseen.

use std::collections::{BTreeMap, BTreeSet};

use wf_core::models::{TenantId, Timestamp, WorkflowId};
use wf_core::ports::{
    Claim, ClaimedStream, OutboxRow, OutboxState, SettleError, Settled, Settlement,
};

use crate::action::{Action, Expression};
use crate::codec::outbox;
use crate::fault::{Cause, Fail, Trouble};
use crate::item::{Item, Value};
use crate::keys::{self, BY_ID, BY_STATE, Key, by_id, by_state};
use crate::leases;
use crate::link::{Link, Met, Range, Unsent};

/// Most rows of one claimed stream.
const STREAM_ROWS_MAX: usize = 16;
/// Streams looked at in one page of the index.
const PAGE: u32 = 50;
/// How often a settlement starts again because messages joined the stream meanwhile.
const SETTLE_LOOKS_MAX: u32 = 8;
/// How often a stream is read that a commit is only just writing to, with pauses.
const READ_LOOKS_MAX: u32 = 6;

/// A stream as it was read: its head, and its rows in order.
struct Stream {
    head: Key,
    lease: Option<String>,
    joined: u64,
    rows: Vec<(Key, OutboxRow)>,
}

/// The messages of a stream, lowest place first.
struct Rows {
    read: Vec<(Key, OutboxRow)>,
    /// Sort keys of all that are there, damaged ones included.
    places: BTreeSet<String>,
}

/// Takes the lease of streams that are due.
pub(crate) async fn claim(link: &Link, claim: &Claim) -> Result<Vec<ClaimedStream>, Fail> {
    let most = usize::try_from(claim.limit).unwrap_or(usize::MAX);
    let until = format!("{}{}", keys::time(claim.now.as_ms()), keys::LAST);
    let mut range = Range::between(by_state::STREAMS.to_owned(), " ", until).of(BY_STATE);
    range.limit = Some(PAGE);
    let mut claimed = Vec::new();
    while claimed.len() < most {
        let (found, next) = link.query(&range).await?;
        let keys = found.iter().map(Item::key).collect::<Result<Vec<_>, Fail>>()?;
        for (key, head) in keys.iter().zip(link.get_each(&keys).await?) {
            let Some(head) = head else { continue };
            if claimed.len() == most {
                break;
            }
            match take(link, key, &head, claim).await {
                Ok(stream) => claimed.extend(stream),
                Err(Fail::Unreadable(why)) => never_due(link, key, &why).await?,
                Err(trouble) => return Err(trouble),
            }
        }
        range.start = next;
        if range.start.is_none() {
            break;
        }
    }
    Ok(claimed)
}

/// The stream, if it is due and its lease can be taken.
async fn take(
    link: &Link,
    key: &Key,
    head: &Item,
    claim: &Claim,
) -> Result<Option<ClaimedStream>, Fail> {
    if is_due(head, claim)? && leases::take(link, key, "due_at", claim).await? {
        return bring(link, head, claim).await;
    }
    Ok(None)
}

/// A stream that cannot be read is left alone.
async fn never_due(link: &Link, key: &Key, why: &str) -> Result<(), Fail> {
    metrics::counter!("checkpoint_notifications_damaged_total").increment(1);
    tracing::error!(key = key.pk, why, "a stream of messages is damaged and is left alone");
    let remove = Expression::new("REMOVE due_at, state_pk, state_sk", []);
    link.update(key, &remove, &Expression::new("attribute_exists(PK)", [])).await?;
    Ok(())
}

fn is_due(head: &Item, claim: &Claim) -> Result<bool, Fail> {
    let due: Option<i64> = head.opt_number("due_at")?;
    let due = due.is_some_and(|due| due <= claim.now.as_ms());
    Ok(due && !leases::is_live(head, claim.now, claim.lease_ms)?)
}

/// The stream with the rows that are due, now that its lease is taken. None when there are none: others settled it
/// between our look and our lease.
async fn bring(link: &Link, head: &Item, claim: &Claim) -> Result<Option<ClaimedStream>, Fail> {
    let (tenant, workflow_id): (TenantId, WorkflowId) =
        (head.parsed("tenant")?, head.parsed("workflow")?);
    let recipient = head.text("recipient")?.to_owned();
    let rows = rows(link, &keys::stream(&tenant, &workflow_id, &recipient)).await?;
    let pending = rows.read.into_iter().map(|(_, row)| row).filter(is_pending);
    let due = pending.take_while(|row| row.status.next_attempt_at <= claim.now);
    let rows: Vec<_> = due.take(STREAM_ROWS_MAX).collect();
    let stream = ClaimedStream { tenant, workflow_id, recipient, token: claim.token.clone(), rows };
    if stream.rows.is_empty() {
        let nothing = Settlement {
            tenant: stream.tenant,
            workflow_id: stream.workflow_id,
            recipient: stream.recipient,
            token: stream.token,
            now: claim.now,
            results: Vec::new(),
        };
        return match settle(link, &nothing).await {
            Ok(()) | Err(SettleError::LeaseLost | SettleError::Unavailable { .. }) => Ok(None),
        };
    }
    Ok(Some(stream))
}

fn is_pending(row: &OutboxRow) -> bool {
    row.status.state == OutboxState::Pending
}

async fn rows(link: &Link, pk: &str) -> Result<Rows, Fail> {
    let range = Range::prefix(pk.to_owned(), keys::MESSAGE);
    let items = link.query_all(range, usize::MAX).await?;
    let mut rows = Rows { read: Vec::with_capacity(items.len()), places: BTreeSet::new() };
    for item in &items {
        let key = item.key()?;
        rows.places.insert(key.sk.clone());
        match outbox::read(item) {
            Ok(row) => rows.read.push((key, row)),
            Err(Fail::Unreadable(why)) => put_aside(link, &key, item, &why).await?,
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(rows)
}

/// A message that cannot be read is dead, and stays as it is for who looks into it.
async fn put_aside(link: &Link, key: &Key, item: &Item, why: &str) -> Result<(), Fail> {
    if item.opt_text("delivery")? == Some(outbox::name(OutboxState::Dead)) {
        return Ok(());
    }
    metrics::counter!("checkpoint_notifications_damaged_total").increment(1);
    tracing::error!(key = key.pk, place = key.sk, why, "a message is damaged and is given up");
    let place = item.opt_text(BY_ID.sk)?.unwrap_or(&key.sk);
    let dead = Expression::new(
        "SET delivery = :dead, last_error = :why, state_pk = :list, state_sk = :place",
        [
            (":dead", Value::s(outbox::name(OutboxState::Dead))),
            (":why", Value::s(why)),
            (":list", Value::s(by_state::DEAD)),
            (":place", Value::s(place)),
        ],
    );
    link.update(key, &dead, &Expression::new("attribute_exists(PK)", [])).await?;
    Ok(())
}

async fn read(link: &Link, head: Key) -> Result<Option<Stream>, Fail> {
    let mut patience = link.looks(READ_LOOKS_MAX);
    loop {
        let Some(item) = link.get(&head).await? else { return Ok(None) };
        let rows = rows(link, &head.pk).await?;
        if !is_torn(link, &head, &item, &rows.places).await? {
            let lease = item.opt_text("lease_token")?.map(str::to_owned);
            let joined = item.number("joined")?;
            return Ok(Some(Stream { head, lease, joined, rows: rows.read }));
        }
        if !patience.pause().await {
            let cause = Cause::said("a commit does not come to its end");
            return Err(Trouble::Contended(cause).into());
        }
    }
}

/// One of the messages that joined last is in the table and was not seen. Read together with the head it is seen, or the
/// commit is waited for. One that is not there was swept.
async fn is_torn(
    link: &Link,
    head: &Key,
    item: &Item,
    seen: &BTreeSet<String>,
) -> Result<bool, Fail> {
    let joined: Vec<String> = item.opt_json("joined_last")?.unwrap_or_default();
    let unseen = joined.into_iter().filter(|place| !seen.contains(place));
    let unseen: Vec<Key> = unseen.map(|place| Key::new(head.pk.clone(), place)).collect();
    if unseen.is_empty() {
        return Ok(false);
    }
    let wanted: Vec<Key> = std::iter::once(head.clone()).chain(unseen).collect();
    let found = link.get_together(&wanted).await?;
    Ok(found.iter().skip(1).any(Option::is_some))
}

impl Stream {
    /// The rows that `results` name are as they say.
    fn shows(&self, results: &BTreeMap<&str, &Settled>) -> bool {
        self.rows.iter().all(|(_, row)| match results.get(row.message.id.as_str()) {
            None => true,
            Some(Settled::Delivered) => row.status.state == OutboxState::Delivered,
            Some(Settled::Dead { .. }) => row.status.state == OutboxState::Dead,
            Some(Settled::Retry { at, .. }) => is_pending(row) && row.status.next_attempt_at == *at,
        })
    }

    /// The action on the head that belongs to changed rows: when the stream is due next, and that more was read than is
    /// there only if nothing joined.
    fn turn(&self, release: bool, condition: &str, values: Vec<(&'static str, Value)>) -> Action {
        let due = self.rows.iter().map(|(_, row)| row).find(|row| is_pending(row));
        let mut set = vec!["joined = :next"];
        let mut remove = Vec::new();
        let mut update = vec![(":next", Value::n(self.joined.saturating_add(1)))];
        match due.map(|row| row.status.next_attempt_at.as_ms()) {
            Some(due) => {
                set.extend(["due_at = :due", "state_pk = :streams", "state_sk = :place"]);
                let place = format!("{}#{}", keys::time(due), self.head.pk);
                update.extend([
                    (":due", Value::n(due)),
                    (":streams", Value::s(by_state::STREAMS)),
                    (":place", Value::S(place)),
                ]);
            }
            None => remove.extend(["due_at", "state_pk", "state_sk"]),
        }
        if release {
            remove.extend(["lease_token", "lease_until"]);
        }
        let mut text = format!("SET {}", set.join(", "));
        if !remove.is_empty() {
            text = format!("{text} REMOVE {}", remove.join(", "));
        }
        let mut condition =
            Expression { text: condition.to_owned(), values: values.into_iter().collect() };
        condition.values.insert(":joined", Value::n(self.joined));
        let update = Expression { text, values: update.into_iter().collect() };
        Action::update(self.head.clone(), update).when(condition)
    }
}

/// Records what became of claimed messages and releases the lease. An answer that was lost does no harm: the repeat meets
/// its own work.
pub(crate) async fn settle(link: &Link, settlement: &Settlement) -> Result<(), SettleError> {
    let Settlement { tenant, workflow_id, recipient, token, now, results } = settlement;
    let results: BTreeMap<&str, _> = results.iter().map(|(id, s)| (id.as_str(), s)).collect();
    let mut unknown = false;
    for _ in 0..SETTLE_LOOKS_MAX {
        let head = keys::stream_head(tenant, workflow_id, recipient);
        let stream = read(link, head).await.map_err(SettleError::from)?;
        let Some(mut stream) = stream else { return Err(SettleError::LeaseLost) };
        if stream.lease.as_ref() != Some(&token.0) {
            let done = unknown && stream.shows(&results);
            return if done { Ok(()) } else { Err(SettleError::LeaseLost) };
        }
        let mut changes = Vec::new();
        for (key, row) in &mut stream.rows {
            let settled = results.get(row.message.id.as_str());
            if let Some(settled) = settled.filter(|_| is_pending(row)) {
                let change = outbox::settle(row, settled, *now);
                let pending = outbox::is(OutboxState::Pending);
                changes.push(Action::update(key.clone(), change).when(pending));
            }
        }
        let mine = vec![(":token", Value::s(&token.0))];
        let turn = stream.turn(true, "joined = :joined AND lease_token = :token", mine);
        changes.insert(0, turn);
        match apply(link, &changes).await? {
            None => return Ok(()),
            Some(met) => unknown |= met.after_unknown,
        }
    }
    let cause = Cause::said("messages keep joining the stream");
    Err(Fail::from(Trouble::Contended(cause)).into())
}

/// None when the actions were applied; what was met when somebody changed the stream since it was read.
async fn apply(link: &Link, actions: &[Action]) -> Result<Option<Met>, SettleError> {
    link.transact(actions).await.map_err(|Unsent { fail, .. }| fail.into())
}

/// Makes a dead row pending again; false when there is none with this id. An answer that was lost does no harm: the repeat
/// meets a row that is not dead any more.
pub(crate) async fn revive(link: &Link, id: &str, now: Timestamp) -> Result<bool, SettleError> {
    let range = Range::prefix(by_id::MESSAGES.to_owned(), &outbox::listed_prefix(id)).of(BY_ID);
    let (found, _) = link.query(&range).await.map_err(SettleError::from)?;
    for item in found {
        let key = item.key().map_err(SettleError::from)?;
        if revive_at(link, &key, now).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn revive_at(link: &Link, key: &Key, now: Timestamp) -> Result<bool, SettleError> {
    let mut unknown = false;
    for _ in 0..SETTLE_LOOKS_MAX {
        let head = Key::new(key.pk.clone(), "STREAM");
        let Some(mut stream) = read(link, head).await.map_err(SettleError::from)? else {
            return Ok(false);
        };
        let row = stream.rows.iter_mut().find(|(at, _)| at == key).map(|(_, row)| row);
        let Some(row) = row else { return Ok(false) };
        if row.status.state != OutboxState::Dead {
            return Ok(unknown);
        }
        let change = outbox::revive(row, now);
        let change = Action::update(key.clone(), change).when(outbox::is(OutboxState::Dead));
        let turn = stream.turn(false, "joined = :joined", Vec::new());
        match apply(link, &[turn, change]).await? {
            None => return Ok(true),
            Some(met) => unknown |= met.after_unknown,
        }
    }
    let cause = Cause::said("the stream of the message keeps changing");
    Err(Fail::from(Trouble::Contended(cause)).into())
}

/// Deletes messages delivered at `until` or before, at most `limit`.
pub(crate) async fn sweep(link: &Link, until: i64, limit: u32) -> Result<u64, Fail> {
    let to = format!("{}{}", keys::time(until), keys::LAST);
    let range = Range::between(by_state::DELIVERED.to_owned(), " ", to).of(BY_STATE);
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = link.query_all(range.limit(limit), most).await?;
    let old = Expression::new(
        "delivery = :is AND delivered_at <= :until",
        [(":is", Value::s(outbox::name(OutboxState::Delivered))), (":until", Value::n(until))],
    );
    let mut deleted = 0;
    for item in found {
        deleted += u64::from(link.delete(&item.key()?, &old).await?.is_gone());
    }
    Ok(deleted)
}
