//! A workflow is deleted with all that belongs to it. Its tombstone comes first and is in the partition of the workflow; its
//! head goes last, in one transaction with what leads to it, so that whoever goes on later finds what is left.
//!
//! What may not be purged is judged on the head, which nobody changes any more once it is completed, on the ledger rows that
//! its events name, and on its messages as the index by id finds them, each looked at again in the table.

use wf_core::models::{Phase, TenantId, WorkflowId};
use wf_core::ports::{OutboxState, Purge, Purged, Tombstone};

use crate::action::{Action, Expression};
use crate::codec::{head, outbox};
use crate::definitions::put_new;
use crate::fault::{Cause, Fail, Trouble};
use crate::item::{Attributes, Item, Value, json};
use crate::keys::{self, BY_ID, Key, by_id};
use crate::link::{Link, Range, Unsent};

/// Items that go at once.
const AT_ONCE: u32 = 100;

/// The item of a tombstone.
pub(crate) fn item(left: &Tombstone) -> Result<Attributes, Fail> {
    Ok(Attributes::from([("body", Value::S(json(left, "a tombstone")?))]))
}

/// What is left of a workflow.
pub(crate) async fn tombstone(
    link: &Link,
    tenant: &TenantId,
    id: &WorkflowId,
) -> Result<Option<Tombstone>, Fail> {
    let item = link.get(&keys::tombstone(tenant, id)).await?;
    item.map(|item| item.json("body")).transpose()
}

/// Purges some of it, or says why not.
pub(crate) async fn purge(link: &Link, purge: &Purge) -> Result<Purged, Fail> {
    let left = &purge.tombstone;
    let (tenant, id) = (&left.tenant, &left.workflow_id);
    let key = keys::head(tenant, id);
    let buried = tombstone(link, tenant, id).await?.is_some();
    let Some(stored) = link.get(&key).await? else {
        return Ok(if buried { Purged::Done } else { Purged::Changed });
    };
    let workflow = head::read_state(&stored)?;
    if workflow.phase != Phase::Completed || workflow.revision != left.revision {
        return Ok(Purged::Changed);
    }
    let messages = messages(link, id, tenant).await?;
    if !buried {
        if keys_count(link, purge).await? {
            return Ok(Purged::KeysCount);
        }
        let undelivered = messages.iter().filter(|message| message.undelivered).count();
        if undelivered > 0 && !purge.undelivered_too {
            return Ok(Purged::Undelivered(u64::try_from(undelivered).unwrap_or(u64::MAX)));
        }
        if purge.check_only {
            return Ok(Purged::Done);
        }
        put_new(link, keys::tombstone(tenant, id), item(left)?).await?;
    }
    if purge.check_only {
        return Ok(Purged::Done);
    }
    for message in &messages {
        delete(link, &message.key).await?;
        delete(link, &Key::new(message.key.pk.clone(), "STREAM")).await?;
    }
    let (events, more) = events(link, tenant, id).await?;
    for event in &events {
        if let Some(partition) = event.opt_text("ledger")? {
            ledger_row(link, partition, id).await?;
        }
        delete(link, &event.key()?).await?;
    }
    if more {
        return Ok(Purged::More);
    }
    last(link, &key, &workflow).await
}

/// A message of the workflow.
struct Sent {
    key: Key,
    undelivered: bool,
}

/// Messages are named `<workflow>/<seq>/<recipient>`, by which the index by id finds them.
async fn messages(link: &Link, id: &WorkflowId, tenant: &TenantId) -> Result<Vec<Sent>, Fail> {
    let prefix = keys::encoded(&format!("{id}/"));
    let range = Range::prefix(by_id::MESSAGES.to_owned(), &prefix).of(BY_ID);
    let found = link.query_all(range, usize::MAX).await?;
    let places = found.iter().map(Item::key).collect::<Result<Vec<_>, Fail>>()?;
    // Another tenant may have a workflow of this name.
    let of_it = format!("T#{tenant}#OUT#");
    let places: Vec<Key> = places.into_iter().filter(|key| key.pk.starts_with(&of_it)).collect();
    let mut sent = Vec::with_capacity(places.len());
    for (key, item) in places.iter().zip(link.get_each(&places).await?) {
        if let Some(item) = item {
            // One that cannot be read was put aside: it was not delivered.
            let delivered = outbox::state(&item).is_ok_and(|is| is == OutboxState::Delivered);
            sent.push(Sent { key: key.clone(), undelivered: !delivered });
        }
    }
    Ok(sent)
}

fn history(tenant: &TenantId, id: &WorkflowId) -> Range {
    Range::between(keys::workflow(tenant, id), keys::event(0), keys::event(u64::MAX))
}

/// The next events to go, and whether there are others.
async fn events(
    link: &Link,
    tenant: &TenantId,
    id: &WorkflowId,
) -> Result<(Vec<Item>, bool), Fail> {
    let (found, next) = link.query(&history(tenant, id).limit(AT_ONCE)).await?;
    Ok((found, next.is_some()))
}

/// A ledger row of the workflow has not expired.
async fn keys_count(link: &Link, purge: &Purge) -> Result<bool, Fail> {
    let left = &purge.tombstone;
    let mut range = history(&left.tenant, &left.workflow_id).limit(AT_ONCE);
    loop {
        let (events, next) = link.query(&range).await?;
        let mut rows = Vec::new();
        for event in &events {
            let partition = event.opt_text("ledger")?;
            rows.extend(partition.map(|partition| Key::new(partition.to_owned(), "IDEM")));
        }
        for row in link.get_each(&rows).await?.into_iter().flatten() {
            let of_it = row.text("workflow")? == left.workflow_id.as_str();
            let expires: Option<i64> = row.opt_number("expires_at")?;
            if of_it && expires.unwrap_or_else(|| purge.expiry_ms()) > left.purged_at.as_ms() {
                return Ok(true);
            }
        }
        range.start = next;
        if range.start.is_none() {
            return Ok(false);
        }
    }
}

/// Deletes the row unless it is another workflow's by now.
async fn ledger_row(link: &Link, partition: &str, id: &WorkflowId) -> Result<(), Fail> {
    let key = Key::new(partition.to_owned(), "IDEM");
    let of_it = Expression::new("workflow = :workflow", [(":workflow", Value::s(id.as_str()))]);
    link.delete(&key, &of_it).await.map(drop)
}

async fn delete(link: &Link, key: &Key) -> Result<(), Fail> {
    link.delete(key, &Expression::new("attribute_exists(PK)", [])).await.map(drop)
}

/// The head with everything that leads to it and what stands beside it.
async fn last(
    link: &Link,
    key: &Key,
    workflow: &wf_core::models::Workflow,
) -> Result<Purged, Fail> {
    let same = Expression::new("rev = :rev", [(":rev", Value::n(workflow.revision))]);
    let mut actions = vec![Action::delete(key.clone()).when(same)];
    actions.extend(head::index(workflow).into_keys().map(Action::delete));
    let (tenant, id) = (&workflow.tenant, &workflow.id);
    actions.push(Action::delete(head::to_sweep(workflow).0));
    actions.push(Action::delete(keys::binding(tenant, id)));
    actions.push(Action::delete(keys::attention(tenant, id)));
    match link.transact(&actions).await {
        // Met: an attempt whose answer was lost did it, or somebody else who purges.
        Ok(_) => {}
        Err(Unsent { fail, .. }) => return Err(fail),
    }
    match link.get(key).await? {
        None => Ok(Purged::Done),
        Some(_) => {
            let cause = Cause::said("a completed workflow was changed");
            Err(Trouble::Contended(cause).into())
        }
    }
}
