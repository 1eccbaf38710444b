//! Which conflict it is: from the items that failed conditions met, or from a look at them.

use wf_core::ports::{Commit, Conflict};

use super::build::{About, Built};
use crate::codec::{head, ledger, lock};
use crate::fault::Fail;
use crate::item::Item;
use crate::keys;
use crate::link::Link;

/// The conflict that failed conditions mean. The old item of the ledger is handed on as the row that it is: whoever gets it
/// compares its fingerprint, for it may be that of another call.
pub(super) fn met(
    commit: &Commit,
    built: &Built,
    failed: &[(usize, Option<Item>)],
) -> Result<Conflict, Fail> {
    for (index, item) in failed {
        let Some((about, _)) = built.judged.get(*index) else { continue };
        let item = item.as_ref();
        match about {
            About::Ledger => {
                let item = item.ok_or_else(|| Fail::unreadable("a ledger row", "not sent"))?;
                let row = ledger::read(commit.ledger.key.clone(), item)?;
                return Ok(Conflict::Ledger(Box::new(row)));
            }
            // A release is no condition; the head has moved on, which is told next.
            About::Lock(wf_core::locks::LockChange::Release { .. }) => {}
            About::Lock(change) => {
                let asset_id = change.asset_id().clone();
                let row = item.map(lock::read).transpose()?;
                return Ok(Conflict::Asset { asset_id, row });
            }
            About::Head => {
                let current = item.map(|item| item.number("rev")).transpose()?.unwrap_or(0);
                return Ok(Conflict::Revision { current });
            }
        }
    }
    Err(Fail::unreadable("a workflow", "what it holds or its history differs from its head"))
}

/// The conflict that the items show as they are together now; none when nothing speaks against the commit.
pub(super) async fn look(
    link: &Link,
    commit: &Commit,
    fence_base: u64,
) -> Result<Option<Conflict>, Fail> {
    let next = &commit.next;
    let mut wanted = vec![keys::ledger(&commit.ledger.key), keys::head(&next.tenant, &next.id)];
    wanted.extend(commit.locks.iter().map(|change| keys::lock(&next.tenant, change.asset_id())));
    let items = link.get_together(&wanted).await?;
    let mut items = items.into_iter();
    let (row, state) = (items.next().flatten(), items.next().flatten());
    if let Some(item) = row {
        let row = ledger::read(commit.ledger.key.clone(), &item)?;
        if commit.replaces.as_ref() != Some(&row) {
            return Ok(Some(Conflict::Ledger(Box::new(row))));
        }
    }
    for (change, item) in commit.locks.iter().zip(items) {
        let row = item.as_ref().map(lock::read).transpose()?;
        if !lock::holds(change, row.as_ref(), &next.id, fence_base) {
            return Ok(Some(Conflict::Asset { asset_id: change.asset_id().clone(), row }));
        }
    }
    let current = state.as_ref().map(head::read_state).transpose()?;
    let current = current.map_or(0, |state| state.revision);
    Ok((current != commit.expected).then_some(Conflict::Revision { current }))
}
