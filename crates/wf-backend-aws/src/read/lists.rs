//! Lists. Those of a decision are read from items that commits wrote in the same transaction; those for operators go by
//! an index, and what they find is read again from the table. Either way the head has the last word.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use wf_core::locks::LockRow;
use wf_core::models::{Actor, Person, Phase, TenantId, Workflow, WorkflowId};
use wf_core::ports::{Cursor, ListQuery, Page, Recent};

use crate::codec::{head, lock};
use crate::fault::{Fail, Trouble};
use crate::item::Item;
use crate::keys::{self, BY_ID, BY_STATE, Index, Key, by_id, by_state};
use crate::link::{Link, Range};

/// Most rows of a page of an index.
const PAGE_MAX: u32 = 1_000;

fn rows(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// The workflows that index items are about, as they are now.
async fn named(link: &Link, items: &[Item]) -> Result<Vec<Workflow>, Fail> {
    let keys: Result<BTreeSet<Key>, Fail> =
        items.iter().map(|item| head::named_by(item).map(|(_, key)| key)).collect();
    let keys: Vec<Key> = keys?.into_iter().collect();
    let heads = link.get_each(&keys).await?;
    heads.iter().flatten().map(head::read_state).collect()
}

/// Walks a partition of index items until `limit` workflows are found that are as they should be. What changed since its
/// item was read makes room for what comes behind it.
async fn walk(
    link: &Link,
    mut range: Range,
    limit: u32,
    keep: impl Fn(&Workflow) -> bool,
) -> Result<BTreeMap<WorkflowId, Workflow>, Fail> {
    range = range.limit(limit.min(PAGE_MAX));
    let mut found = BTreeMap::new();
    while found.len() < rows(limit) {
        let (items, next) = link.query(&range).await?;
        let right = named(link, &items).await?.into_iter().filter(|w| keep(w));
        found.extend(right.map(|w| (w.id.clone(), w)));
        range.start = next;
        if range.start.is_none() {
            break;
        }
    }
    Ok(found)
}

/// Open workflows of an owner, newest activity first.
pub(crate) async fn open_of(
    link: &Link,
    tenant: &TenantId,
    actor: &Actor,
    limit: u32,
) -> Result<Vec<Workflow>, Fail> {
    let range = Range::prefix(keys::who(tenant, actor), keys::OPEN);
    let items = link.query_all(range, usize::MAX).await?;
    let mut found = named(link, &items).await?;
    found.retain(|w| w.phase.is_open() && w.owner.id == *actor);
    found.sort_by(|a, b| (Reverse(a.last_activity), &a.id).cmp(&(Reverse(b.last_activity), &b.id)));
    found.truncate(rows(limit));
    Ok(found)
}

/// Open workflows offered to an actor or to anybody, oldest offer first.
pub(crate) async fn offered_to(
    link: &Link,
    tenant: &TenantId,
    actor: &Actor,
    limit: u32,
) -> Result<Vec<Workflow>, Fail> {
    let offered = |w: &Workflow| {
        let to = w.offer.as_ref().map(|offer| offer.to.as_ref());
        w.phase.is_open() && to.is_some_and(|to| to.is_none_or(|to| to.id == *actor))
    };
    let mut found = BTreeMap::new();
    for pk in [keys::who(tenant, actor), keys::anybody(tenant)] {
        found.extend(walk(link, Range::prefix(pk, keys::OFFER), limit, offered).await?);
    }
    let mut found: Vec<Workflow> = found.into_values().collect();
    found.sort_by(|a, b| {
        (a.offer.as_ref().map(|o| o.at), &a.id).cmp(&(b.offer.as_ref().map(|o| o.at), &b.id))
    });
    found.truncate(rows(limit));
    Ok(found)
}

/// Blocked workflows, longest blocked first.
pub(crate) async fn blocked(
    link: &Link,
    tenant: &TenantId,
    limit: u32,
) -> Result<Vec<Workflow>, Fail> {
    let range = Range::prefix(keys::blocked(tenant), "");
    let found = walk(link, range, limit, |w| w.phase == Phase::Blocked).await?;
    let mut found: Vec<Workflow> = found.into_values().collect();
    let since = |w: &Workflow| w.blocks.iter().map(|block| block.at).min();
    found.sort_by(|a, b| (since(a), &a.id).cmp(&(since(b), &b.id)));
    found.truncate(rows(limit));
    Ok(found)
}

/// The workflow completed last.
pub(crate) async fn last_completed(
    link: &Link,
    tenant: &TenantId,
    whose: &Recent,
) -> Result<Option<Workflow>, Fail> {
    let pk = match whose {
        Recent::OwnedBy(actor) => keys::who(tenant, actor),
        Recent::OfAsset(asset) => keys::asset(tenant, asset),
    };
    let (items, _) = link.query(&Range::prefix(pk, keys::DONE).backward().limit(1)).await?;
    Ok(named(link, &items).await?.pop())
}

/// People, named last first.
pub(crate) async fn people(
    link: &Link,
    tenant: &TenantId,
    limit: u32,
) -> Result<Vec<Person>, Fail> {
    let items = link.query_all(Range::prefix(keys::people(tenant), ""), usize::MAX).await?;
    let person = |item: &Item| {
        let id: Actor = item.parsed("actor")?;
        let name = item.opt_text("called")?.map(str::to_owned);
        Ok((item.number::<i64>("seen_at")?, id.to_string(), Person { id, name }))
    };
    let mut found = items.iter().map(person).collect::<Result<Vec<_>, Fail>>()?;
    found.sort_by(|a, b| (b.0, &b.1).cmp(&(a.0, &a.1)));
    Ok(found.into_iter().take(rows(limit)).map(|(_, _, person)| person).collect())
}

/// Walks an index (or a partition) from `after` until `limit` rows and one more are found.
async fn page<T>(
    link: &Link,
    mut range: Range,
    after: Option<&Cursor>,
    limit: u32,
    keep: impl Fn(&Item) -> Result<Option<T>, Fail>,
    base: impl Fn(&Item) -> Result<Key, Fail>,
) -> Result<Page<T>, Fail> {
    if let Some(Cursor(place)) = after {
        // With what follows it, no longer than a sort key can be.
        if place.len() >= 1_024 || place.is_empty() {
            return Err(Trouble::BadCursor.into());
        }
        // A cursor of another list leads out of this one, at most to its end.
        range.from = format!("{place}\0").max(range.from);
        if range.from > range.to {
            return Ok(Page { items: Vec::new(), next: None });
        }
    }
    let place_of = range.index.map_or(keys::SK, |index: Index| index.sk);
    let wanted = rows(limit.max(1));
    let mut found: Vec<(String, T)> = Vec::new();
    let mut seen: BTreeSet<Key> = BTreeSet::new();
    range.limit = Some(limit.saturating_add(1).min(PAGE_MAX));
    loop {
        let (items, next) = link.query(&range).await?;
        let keys = items.iter().map(&base).collect::<Result<Vec<_>, Fail>>()?;
        let whole = link.get_each(&keys).await?;
        for ((item, key), whole) in items.iter().zip(keys).zip(whole) {
            if !seen.insert(key) {
                continue;
            }
            if let Some(row) = whole.as_ref().map(&keep).transpose()?.flatten() {
                found.push((item.text(place_of)?.to_owned(), row));
            }
        }
        range.start = next;
        if found.len() > wanted || range.start.is_none() {
            break;
        }
    }
    let more = found.len() > wanted;
    found.truncate(wanted);
    let next = found.last().filter(|_| more).map(|(place, _)| Cursor(place.clone()));
    Ok(Page { items: found.into_iter().map(|(_, row)| row).collect(), next })
}

/// A page of workflows, oldest id first.
pub(crate) async fn list(link: &Link, query: &ListQuery) -> Result<Page<Workflow>, Fail> {
    let keep = |item: &Item| {
        let workflow = head::read_state(item)?;
        Ok(query.phase.is_none_or(|phase| workflow.phase == phase).then_some(workflow))
    };
    let named = |item: &Item| head::named_by(item).map(|(_, key)| key);
    let (after, limit) = (query.after.as_ref(), query.limit);
    match (&query.tenant, query.phase) {
        (Some(tenant), None) => {
            let range = Range::prefix(keys::all_of(tenant), "");
            page(link, range, after, limit, keep, named).await
        }
        (Some(tenant), Some(phase)) => {
            let range = Range::prefix(by_state::phase(tenant, phase), "").of(BY_STATE);
            page(link, range, after, limit, keep, Item::key).await
        }
        (None, _) => {
            let range = Range::prefix(by_id::WORKFLOWS.to_owned(), "").of(BY_ID);
            page(link, range, after, limit, keep, listed_head).await
        }
    }
}

/// The head that an item of `T#<tenant>#LIST` is about, from its key.
fn listed_head(item: &Item) -> Result<Key, Fail> {
    let key = item.key()?;
    let tenant = key.pk.strip_prefix("T#").and_then(|rest| rest.strip_suffix("#LIST"));
    let tenant = tenant.and_then(|tenant| TenantId::parse(tenant).ok());
    let id = WorkflowId::parse(&key.sk).ok();
    match (tenant, id) {
        (Some(tenant), Some(id)) => Ok(keys::head(&tenant, &id)),
        _ => Err(Fail::unreadable("the list of workflows", key.pk)),
    }
}

/// A page of lock rows, by tenant and asset id.
pub(crate) async fn locks(
    link: &Link,
    tenant: Option<&TenantId>,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<LockRow>, Fail> {
    let prefix = tenant.map_or_else(String::new, |tenant| format!("{tenant}#"));
    let range = Range::prefix(by_id::LOCKS.to_owned(), &prefix).of(BY_ID);
    page(link, range, after, limit, |item| lock::read(item).map(Some), Item::key).await
}

/// A page of what an index finds, as it is in the table; for `outbox`.
pub(crate) async fn page_of<T>(
    link: &Link,
    range: Range,
    after: Option<&Cursor>,
    limit: u32,
    keep: impl Fn(&Item) -> Result<Option<T>, Fail>,
) -> Result<Page<T>, Fail> {
    page(link, range, after, limit, keep, Item::key).await
}
