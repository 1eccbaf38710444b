//! Items as records, by a parallel scan. A page has a piece of every segment; the cursor says how far each one is.
//!
//! Items that lead to others (indexes, counts of what is there, leases) are left out: whoever makes a store of the records
//! makes them anew. What stands beside a head is read with it.

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use wf_core::models::{Person, Phase, TenantId, Timestamp};
use wf_core::policy::Definition;
use wf_core::ports::copy::{LockRecord, Record, WorkflowRecord};
use wf_core::ports::{Cursor, Deadline, LedgerKey, OutboxState, Page};

use crate::codec::{self, head, ledger, lock, outbox};
use crate::fault::{Cause, Fail, Trouble};
use crate::item::{Item, json};
use crate::keys::{self, Key};
use crate::link::{Link, Segment};
use crate::place::{self, Place};

/// Into how many parts the table is cut.
const SEGMENTS: usize = 4;

/// Where a segment goes on.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Reached {
    Start,
    After(String, String),
    End,
}

fn start() -> Vec<Reached> {
    vec![Reached::Start; SEGMENTS]
}

/// The table holds something besides an identity.
pub(super) async fn holds_anything(link: &Link) -> Result<bool, Fail> {
    let mut segment = Segment { number: 0, of: 1, after: None, limit: 2 };
    loop {
        let (items, next) = link.scan(&segment).await?;
        for item in &items {
            if item.key()? != keys::identity() {
                return Ok(true);
            }
        }
        match next {
            Some(next) => segment.after = Some(next),
            None => return Ok(false),
        }
    }
}

/// At most `limit` items of each segment from `after` on, and where to go on. About half of a table leads to the rest and
/// is no record; and DynamoDB ends a page after 1 MB.
pub(crate) async fn items(
    link: &Link,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<(Vec<Item>, Option<Cursor>), Fail> {
    let mut reached = match after {
        None => start(),
        Some(Cursor(text)) => {
            serde_json::from_str(text).map_err(|_| Fail::from(Trouble::BadCursor))?
        }
    };
    let of = i32::try_from(reached.len()).map_err(|_| Fail::from(Trouble::BadCursor))?;
    let mut running = JoinSet::new();
    for (number, at) in (0..of).zip(&reached) {
        let after = match at {
            Reached::Start => None,
            Reached::After(pk, sk) => Some(Key::new(pk.clone(), sk.clone())),
            Reached::End => continue,
        };
        let (link, segment) = (link.clone(), Segment { number, of, after, limit });
        running.spawn(async move { (number, link.scan(&segment).await) });
    }
    let mut found = Vec::new();
    while let Some(ended) = running.join_next().await {
        let lost = |error: tokio::task::JoinError| Trouble::Silent(Cause::said(error.to_string()));
        let (number, scanned) = ended.map_err(lost)?;
        let (items, next) = scanned?;
        found.extend(items);
        let at = usize::try_from(number).ok().and_then(|number| reached.get_mut(number));
        if let Some(at) = at {
            *at = next.map_or(Reached::End, |key| Reached::After(key.pk, key.sk));
        }
    }
    let ended = reached.iter().all(|at| matches!(at, Reached::End));
    let next = if ended { None } else { Some(Cursor(json(&reached, "a cursor")?)) };
    Ok((found, next))
}

/// A page of records.
pub(super) async fn page(
    link: &Link,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<Record>, Fail> {
    let (found, next) = items(link, after, limit).await?;
    let mut records = Vec::with_capacity(found.len());
    let mut heads = Vec::new();
    for item in &found {
        let key = item.key()?;
        let place = place::of(&key)?;
        if matches!(place, Place::Head { .. }) {
            heads.push(item);
        } else {
            records.extend(record(&key, &place, item)?);
        }
    }
    records.extend(workflows(link, &heads).await?);
    Ok(Page { items: records, next })
}

fn record(key: &Key, place: &Place, item: &Item) -> Result<Option<Record>, Fail> {
    Ok(Some(match place {
        Place::Event { tenant, .. } => {
            let (event, last) = codec::read_event(item)?;
            Record::Event { tenant: tenant.clone(), event: Box::new(event), last }
        }
        Place::Ledger { tenant } => {
            let (actor, idempotency) = (item.parsed("actor")?, item.parsed("key")?);
            let named = LedgerKey { tenant: tenant.clone(), actor, key: idempotency };
            if keys::ledger(&named) != *key {
                return Err(Fail::unreadable("a ledger row", "it is in the place of another key"));
            }
            Record::Ledger(Box::new(ledger::read(named, item)?))
        }
        Place::Lock => {
            Record::Lock(LockRecord { row: lock::read(item)?, floor: lock::floor(item)? })
        }
        Place::Count { tenant, actor } => match item.number("open_count")? {
            0 => return Ok(None),
            open => Record::Owner { tenant: tenant.clone(), actor: actor.clone(), open },
        },
        Place::Person { tenant } => {
            let name = item.opt_text("called")?.map(str::to_owned);
            let person = Person { id: item.parsed("actor")?, name };
            let seen_at = Timestamp::from_ms(item.number("seen_at")?);
            Record::Person { tenant: tenant.clone(), person, seen_at }
        }
        Place::Stream => Record::Stream {
            tenant: item.parsed::<TenantId>("tenant")?,
            workflow_id: item.parsed("workflow")?,
            recipient: item.text("recipient")?.to_owned(),
            due_at: item.opt_number("due_at")?.map(Timestamp::from_ms),
        },
        Place::Message => {
            let row = Box::new(outbox::read(item)?);
            let at = item.opt_number("delivered_at")?.map(Timestamp::from_ms);
            let delivered_at = at.filter(|_| row.status.state == OutboxState::Delivered);
            Record::Message { row, delivered_at }
        }
        Place::Tombstone { .. } => Record::Tombstone(Box::new(item.json("body")?)),
        Place::Definition => Record::Definition(Box::new(item.json::<Definition>("body")?)),
        Place::Version => {
            let (id, version) = key
                .sk
                .rsplit_once('#')
                .and_then(|(id, version)| Some((id.parse().ok()?, version.parse().ok()?)))
                .ok_or_else(|| Fail::unreadable("a version", &key.sk))?;
            Record::Version { id, version, digest: item.parsed("digest")? }
        }
        // Heads are read with what stands beside them, all others follow from them.
        Place::Head { .. }
        | Place::Binding { .. }
        | Place::Deadline
        | Place::Attention
        | Place::Sweep
        | Place::Index
        | Place::Identity
        | Place::Lease => return Ok(None),
    }))
}

/// Heads with their deadlines and whether the sweep has been there.
async fn workflows(link: &Link, heads: &[&Item]) -> Result<Vec<Record>, Fail> {
    let mut read = Vec::with_capacity(heads.len());
    let mut beside: Vec<Key> = Vec::new();
    for item in heads {
        let (state, known) = head::read(item)?;
        let due = known.due.iter();
        beside.extend(due.map(|(id, at)| keys::deadline(&state.tenant, &state.id, id, *at)));
        if state.phase == Phase::Completed {
            beside.push(head::to_sweep(&state).0);
        }
        read.push((state, known));
    }
    let there: Vec<bool> = link.get_each(&beside).await?.iter().map(Option::is_some).collect();
    let mut there = there.into_iter();
    let mut records = Vec::with_capacity(read.len());
    for (state, known) in read {
        let mut deadlines = Vec::new();
        for (id, at) in &known.due {
            // One whose firing was refused is gone before the head knows.
            if there.next().unwrap_or(false) {
                deadlines.push(Deadline { id: id.clone(), fire_at: Timestamp::from_ms(*at) });
            }
        }
        let swept = state.phase == Phase::Completed && !there.next().unwrap_or(false);
        let row = |asset| known.lock(&state, asset);
        let held = known
            .held
            .iter()
            .filter_map(|(asset, held)| Some(LockRecord { row: row(asset)?, floor: held.floor }));
        let held = held.collect();
        records.push(Record::Workflow(Box::new(WorkflowRecord { state, swept, deadlines, held })));
    }
    Ok(records)
}
