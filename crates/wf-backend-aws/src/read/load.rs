//! Everything that a decision needs, in one consistent read.
//!
//! The lock rows of a workflow's own assets are not asked for: as long as it holds them, its head says what they say
//! (`codec::head`). Only those that it lost are read; a second read brings them when nothing told of them before.

use std::collections::BTreeSet;
use std::sync::Arc;

use wf_core::locks::LockRow;
use wf_core::models::{AssetId, Workflow};
use wf_core::ports::{LoadQuery, Snapshot};

use crate::codec::head::{self, Known};
use crate::codec::{ledger, lock};
use crate::fault::{Cause, Fail, Trouble};
use crate::item::Item;
use crate::keys::{self, Key};
use crate::known::Memory;
use crate::link::Link;

/// How often assets may turn up that were not asked for; they are fixed at the start, so twice is enough.
const LOOKS_MAX: u32 = 3;

/// Reads the snapshot.
pub(crate) async fn load(
    link: &Link,
    memory: &Memory,
    query: &LoadQuery,
) -> Result<Snapshot, Fail> {
    let head = query.workflow.as_ref().map(|id| keys::head(&query.tenant, id));
    let mut assets: BTreeSet<AssetId> = query.assets.iter().cloned().collect();
    if let Some(known) = head.as_ref().and_then(|key| memory.get(key)) {
        assets.extend(known.loose.iter().cloned());
    }
    for _ in 0..LOOKS_MAX {
        let seen = look(link, query, head.as_ref(), &assets).await?;
        let known = seen.workflow.as_ref().map(|(_, known)| Arc::new(known.clone()));
        if let (Some(key), Some(known)) = (&head, &known) {
            memory.put(key.clone(), Arc::clone(known));
        }
        let loose = known.iter().flat_map(|known| &known.loose);
        let missing: Vec<_> = loose.filter(|id| !assets.contains(*id)).cloned().collect();
        if missing.is_empty() {
            return Ok(together(query, seen, &assets, memory.fence_base()));
        }
        assets.extend(missing);
    }
    let cause = Cause::said("the assets of the workflow change faster than they can be read");
    Err(Trouble::Contended(cause).into())
}

/// What one look brings.
struct Seen {
    workflow: Option<(Workflow, Known)>,
    snapshot: Snapshot,
}

async fn look(
    link: &Link,
    query: &LoadQuery,
    head: Option<&Key>,
    assets: &BTreeSet<AssetId>,
) -> Result<Seen, Fail> {
    let row = query.ledger.as_ref().map(keys::ledger);
    let count = query.count_open_of.as_ref().map(|who| keys::open_count(&query.tenant, who));
    let locks = assets.iter().map(|id| keys::lock(&query.tenant, id));
    let wanted: Vec<Key> =
        head.cloned().into_iter().chain(row.clone()).chain(count.clone()).chain(locks).collect();
    let mut items = link.get_together(&wanted).await?.into_iter();
    let mut next = |asked: bool| if asked { items.next().flatten() } else { None };
    let workflow = next(head.is_some()).as_ref().map(head::read).transpose()?;
    let ledger = match (next(row.is_some()), &query.ledger) {
        (Some(item), Some(key)) => Some(ledger::read(key.clone(), &item)?),
        _ => None,
    };
    let open_count = next(count.is_some()).map(|item| item.number("open_count")).transpose()?;
    let locks: Result<Vec<LockRow>, Fail> =
        items.flatten().map(|item: Item| lock::read(&item)).collect();
    let (locks, open_count) = (locks?, open_count.unwrap_or(0));
    let snapshot = Snapshot { workflow: None, ledger, locks, open_count };
    Ok(Seen { workflow, snapshot })
}

/// Adds the rows that the head stands for.
fn together(
    query: &LoadQuery,
    seen: Seen,
    assets: &BTreeSet<AssetId>,
    fence_base: u64,
) -> Snapshot {
    let mut snapshot = seen.snapshot;
    if let Some((workflow, known)) = seen.workflow {
        let own = workflow.assets.iter().map(|asset| &asset.id).filter(|id| !assets.contains(*id));
        let rows: Vec<_> = own.filter_map(|id| known.lock(&workflow, id)).collect();
        snapshot.locks.extend(rows);
        // What the memory told of and the workflow no longer has was asked for in vain.
        let named = |row: &LockRow| {
            query.assets.contains(&row.asset_id)
                || workflow.assets.iter().any(|asset| asset.id == row.asset_id)
        };
        snapshot.locks.retain(named);
        snapshot.workflow = Some(workflow);
    }
    if fence_base > 0 {
        add_forgotten(query, fence_base, &mut snapshot.locks);
    }
    snapshot.locks.sort_by(|a, b| a.asset_id.cmp(&b.asset_id));
    snapshot.locks.dedup_by(|a, b| a.asset_id == b.asset_id);
    snapshot
}

/// In a store that was restored, an asset without a row may have been held in the time that was lost: it is free, with a
/// fence above those of that time.
fn add_forgotten(query: &LoadQuery, fence: u64, locks: &mut Vec<LockRow>) {
    for asset_id in &query.assets {
        if locks.iter().all(|lock| lock.asset_id != *asset_id) {
            let (tenant, asset_id) = (query.tenant.clone(), asset_id.clone());
            locks.push(LockRow { tenant, asset_id, fence, holder: None });
        }
    }
}
