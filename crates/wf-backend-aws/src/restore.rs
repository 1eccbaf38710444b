//! Marking a table as one that went back in time: a point-in-time recovery makes a new table that knows nothing of what was
//! acknowledged after that time, but the world remembers it.
//!
//! So the store gets a new id and a new signing key, fences above all of the lost time, and no leases. A *free* lock row
//! gets its fence raised by [`FENCES_RAISED_BY`]; a *held* row keeps the fence that its workflow's history names and gets a
//! floor instead, in the row and in the copy in its head; an asset without a row has the store's base fence.
//!
//! While that is done the identity says so, and nobody opens the table. Whoever has it open notices within a few seconds
//! and writes no more (`guard`); that time is waited for. Interrupted anywhere, it is run again: a fence that is raised
//! twice is as good.

use tokio::task::JoinSet;
use wf_core::ports::{Cursor, OpenError};

use crate::action::{Action, Expression};
use crate::codec::head::{self, Held};
use crate::config::AwsConfig;
use crate::fault::{Cause, Fail, Trouble};
use crate::item::{Item, Value, json};
use crate::keys::{self, Key};
use crate::link::{Changed, Link, Unsent};
use crate::open::{self, RESTORING, SCHEMA};
use crate::place::{self, Place};
use crate::{client, copy, guard};

/// By how much fences are raised: more than an asset changes hands in the time that a recovery may miss.
pub const FENCES_RAISED_BY: u64 = 1_000_000;

/// Items of a page of each segment of the scan.
const PAGE: u32 = 250;
/// Items that are changed at once.
const CHANGES_MAX: usize = 16;

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restamped {
    /// The new id of the store.
    pub store_id: String,
    /// Lock rows whose next fence was raised.
    pub locks: u64,
    /// Leases that were taken away.
    pub leases: u64,
    /// An earlier run was interrupted; this one completed it.
    pub resumed: bool,
}

/// Marks the store in a table as restored: a new id, a new key, fences raised, no leases. All servers must be stopped.
/// `servers` is how they reach the table, which says how long they may go on; `progress` is told how many items were
/// looked at.
///
/// # Errors
/// [`OpenError`]; its message says what to do. After an error the table is refused by servers until this is run again.
pub async fn restamp(
    servers: AwsConfig,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Restamped, OpenError> {
    let settled = guard::settled_after(&servers);
    let link = patient(servers).await;
    let (store_id, resumed) = begin(&link).await?;
    tokio::time::sleep(settled).await;
    let mut done = Restamped { store_id, locks: 0, leases: 0, resumed };
    let (mut after, mut seen): (Option<Cursor>, u64) = (None, 0);
    loop {
        let (items, next) = copy::items(&link, after.as_ref(), PAGE).await?;
        seen = seen.saturating_add(u64::try_from(items.len()).unwrap_or(u64::MAX));
        change(&link, items, &mut done).await?;
        progress(seen);
        match next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    finish(&link, &done.store_id).await?;
    Ok(done)
}

/// A pass over a table takes long, and nobody waits for a single answer.
async fn patient(mut config: AwsConfig) -> Link {
    config.attempt_timeout_ms = config.attempt_timeout_ms.max(20_000);
    config.patience_ms = config.patience_ms.max(120_000);
    config.attempts_max = config.attempts_max.max(200);
    Link::new(client::connect(&config).await, config)
}

fn refused(message: String) -> OpenError {
    OpenError::Refused { message }
}

/// Says in the identity that the store is being marked, and as which. Answers its id to be, and whether that was said
/// before.
async fn begin(link: &Link) -> Result<(String, bool), OpenError> {
    let table = &link.config().table;
    let Some(item) = link.get(&keys::identity()).await? else {
        return Err(refused(format!("there is no store in the table {table}")));
    };
    open::check(link, &item)?;
    if let Some(id) = open::restoring(&item)? {
        return Ok((id.to_owned(), true));
    }
    let id = open::fresh_id()?;
    let mark = Expression::new(format!("SET {RESTORING} = :id"), [(":id", Value::s(&id))]);
    let whole = Expression::new(
        format!("store_id = :was AND attribute_not_exists({RESTORING})"),
        [(":was", Value::s(item.text("store_id")?))],
    );
    match link.update(&keys::identity(), &mark, &whole).await? {
        Changed::Done => Ok((id, false)),
        // An answer that was lost.
        Changed::Not { met: Some(met), .. } if open::restoring(&met)? == Some(&id) => {
            Ok((id, false))
        }
        Changed::Not { .. } => {
            Err(refused(format!("somebody else changes the table {table}: try again")))
        }
    }
}

/// What one item needs.
enum Change {
    Free(Key),
    Held(Box<Item>),
    Leased(Key),
}

fn needed(item: Item) -> Result<Option<Change>, Fail> {
    let key = item.key()?;
    Ok(match place::of(&key)? {
        Place::Head { .. } => Some(Change::Held(Box::new(item))),
        Place::Lock if item.opt_text("holder")?.is_none() => Some(Change::Free(key)),
        Place::Stream | Place::Deadline | Place::Lease => {
            item.opt_text("lease_token")?.map(|_| Change::Leased(key))
        }
        Place::Lock
        | Place::Event { .. }
        | Place::Binding { .. }
        | Place::Ledger { .. }
        | Place::Tombstone { .. }
        | Place::Count { .. }
        | Place::Person { .. }
        | Place::Message
        | Place::Definition
        | Place::Version
        | Place::Attention
        | Place::Sweep
        | Place::Index
        | Place::Identity => None,
    })
}

async fn change(link: &Link, items: Vec<Item>, done: &mut Restamped) -> Result<(), Fail> {
    let mut running = JoinSet::new();
    for item in items {
        let Some(change) = needed(item)? else { continue };
        if running.len() == CHANGES_MAX {
            count(running.join_next().await, done)?;
        }
        let link = link.clone();
        running.spawn(async move { apply(&link, change).await });
    }
    while let Some(ended) = running.join_next().await {
        count(Some(ended), done)?;
    }
    Ok(())
}

/// Lock rows and leases.
type Counts = (u64, u64);

fn count(
    ended: Option<Result<Result<Counts, Fail>, tokio::task::JoinError>>,
    done: &mut Restamped,
) -> Result<(), Fail> {
    let Some(ended) = ended else { return Ok(()) };
    let lost = |error: tokio::task::JoinError| Trouble::Silent(Cause::said(error.to_string()));
    let (locks, leases) = ended.map_err(lost)??;
    done.locks += locks;
    done.leases += leases;
    Ok(())
}

async fn apply(link: &Link, change: Change) -> Result<Counts, Fail> {
    match change {
        Change::Free(key) => {
            let raise = Expression::new(
                "SET fence = fence + :raise",
                [(":raise", Value::n(FENCES_RAISED_BY))],
            );
            let free =
                Expression::new("attribute_exists(fence) AND attribute_not_exists(holder)", []);
            match link.update(&key, &raise, &free).await? {
                Changed::Done => Ok((1, 0)),
                Changed::Not { .. } => Err(in_use()),
            }
        }
        Change::Held(item) => raise_held(link, &item).await,
        Change::Leased(key) => {
            let free = Expression::new("REMOVE lease_token, lease_until", []);
            let there = Expression::new("attribute_exists(PK)", []);
            match link.update(&key, &free, &there).await? {
                Changed::Done => Ok((0, 1)),
                Changed::Not { .. } => Err(in_use()),
            }
        }
    }
}

/// Gives what a workflow holds a floor, in its head and in the lock rows, in one transaction.
async fn raise_held(link: &Link, item: &Item) -> Result<Counts, Fail> {
    let (workflow, known) = head::read(item)?;
    if known.held.is_empty() {
        return Ok((0, 0));
    }
    let (mut held, mut rows) = (known.held.clone(), Vec::with_capacity(known.held.len()));
    for (asset, Held { fence, floor, .. }) in &mut held {
        *floor = (*fence).max(*floor).saturating_add(FENCES_RAISED_BY);
        let raise = Expression::new("SET floor = :floor", [(":floor", Value::n(*floor))]);
        let mine = Expression::new(
            "holder = :me AND fence = :fence",
            [(":me", Value::s(workflow.id.as_str())), (":fence", Value::n(*fence))],
        );
        rows.push(Action::update(keys::lock(&workflow.tenant, asset), raise).when(mine));
    }
    let raise =
        Expression::new("SET held = :held", [(":held", Value::S(json(&held, "held assets")?))]);
    let as_read = Expression::new(
        "rev = :rev AND held = :was",
        [(":rev", Value::n(workflow.revision)), (":was", Value::s(item.text("held")?))],
    );
    let mut actions =
        vec![Action::update(keys::head(&workflow.tenant, &workflow.id), raise).when(as_read)];
    let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    actions.extend(rows);
    match link.transact(&actions).await {
        Ok(None) => Ok((count, 0)),
        // Our own work, whose answer was lost.
        Ok(Some(met)) if met.after_unknown => Ok((count, 0)),
        Ok(Some(_)) => Err(in_use()),
        Err(Unsent { fail, .. }) => Err(fail),
    }
}

fn in_use() -> Fail {
    Trouble::Refused(Cause::said(
        "somebody writes to the table, or its lock rows contradict its workflows: stop all servers, run this again, then \
         `wf-cli workflow verify`",
    ))
    .into()
}

/// Makes it a store again, under its new id.
async fn finish(link: &Link, store_id: &str) -> Result<(), OpenError> {
    let item = link.get(&keys::identity()).await?;
    let gone = || refused("somebody else ended this: look at the table again".to_owned());
    let item = item.ok_or_else(gone)?;
    if item.opt_text("store_id")? == Some(store_id) {
        return Ok(());
    }
    let old = open::read(&item)?;
    let mut secrets = vec![open::fresh_secret()?];
    secrets.extend(old.secrets);
    let base = open::fence_base(&item)?.saturating_add(FENCES_RAISED_BY);
    let mut identity = open::secrets(&secrets)?;
    identity.insert("schema", Value::n(SCHEMA));
    identity.insert("store_id", Value::s(store_id));
    identity.insert("fence_base", Value::n(base));
    let ours = Expression::new(format!("{RESTORING} = :id"), [(":id", Value::s(store_id))]);
    match link.transact(&[Action::put(keys::identity(), identity).when(ours)]).await {
        Ok(None) => Ok(()),
        Ok(Some(met)) if met.after_unknown => Ok(()),
        Ok(Some(_)) => Err(gone()),
        Err(Unsent { fail, .. }) => Err(fail.into()),
    }
}
