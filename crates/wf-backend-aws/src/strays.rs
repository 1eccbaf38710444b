//! What only this backend can see: items that belong to nothing, and copies that differ from what they copy. The other
//! half of `wf_core::engine::verify`, which sees only what the port shows.
//!
//! The table is read by a parallel scan, a page at a time, and with each page the items that those of the page must agree
//! with (`judge`). A scan is no snapshot: what looks wrong is looked at once more, each by itself, before it is told.

mod judge;

use std::collections::{BTreeMap, BTreeSet};

use crate::copy;
use crate::fault::Fail;
use crate::item::Item;
use crate::keys::Key;
use crate::link::Link;
use crate::place;

/// Items of a page of each segment of the scan.
const PAGE: u32 = 250;
/// Lines about one kind of fault at most.
const LINES_MAX: usize = 20;

/// Items by their keys, as they were read beside others.
type Beside = BTreeMap<Key, Item>;

/// Looks at everything. One line for each thing that is wrong.
pub(crate) async fn look(link: &Link) -> Result<Vec<String>, Fail> {
    let mut told: BTreeMap<String, usize> = BTreeMap::new();
    let mut lines = Vec::new();
    let mut after = None;
    loop {
        let (items, next) = copy::items(link, after.as_ref(), PAGE).await?;
        for key in suspicious(link, &items).await? {
            let Some(item) = link.get(&key).await? else { continue };
            let Some(what) = second_look(link, &key, &item).await? else { continue };
            let count = told.entry(what.clone()).or_default();
            *count += 1;
            if *count <= LINES_MAX {
                lines.push(format!("{} {}: {what}", key.pk, key.sk));
            }
        }
        match next {
            Some(next) => after = Some(next),
            None => return Ok(lines),
        }
    }
}

/// Items of a page that something is wrong with.
async fn suspicious(link: &Link, items: &[Item]) -> Result<Vec<Key>, Fail> {
    let mut wanted = BTreeSet::new();
    for item in items {
        let key = item.key()?;
        // What cannot be read is judged below.
        if let Ok(place) = place::of(&key) {
            wanted.extend(judge::wants(&place, &key, item).unwrap_or_default());
        }
    }
    let beside = read(link, wanted).await?;
    let mut found = Vec::new();
    for item in items {
        let key = item.key()?;
        if fault(link, &key, item, &beside).await?.is_some() {
            found.push(key);
        }
    }
    Ok(found)
}

async fn read(link: &Link, wanted: BTreeSet<Key>) -> Result<Beside, Fail> {
    let keys: Vec<Key> = wanted.into_iter().collect();
    let items = link.get_each(&keys).await?;
    Ok(keys.into_iter().zip(items).filter_map(|(key, item)| Some((key, item?))).collect())
}

/// The same question about an item that was just read again.
async fn second_look(link: &Link, key: &Key, item: &Item) -> Result<Option<String>, Fail> {
    let wanted = match place::of(key) {
        Ok(place) => judge::wants(&place, key, item).unwrap_or_default(),
        Err(_) => Vec::new(),
    };
    let beside = read(link, wanted.into_iter().collect()).await?;
    fault(link, key, item, &beside).await
}

/// What is wrong with an item. One that cannot be read is damaged; a table that does not answer is an error.
async fn fault(
    link: &Link,
    key: &Key,
    item: &Item,
    beside: &Beside,
) -> Result<Option<String>, Fail> {
    let judged = match place::of(key) {
        Ok(place) => match judge::judge(&place, key, item, beside) {
            Ok(None) => judge::partition(link, &place, key, item).await,
            judged => judged,
        },
        Err(_) => Ok(Some("it belongs to nothing")),
    };
    match judged {
        Ok(what) => Ok(what.map(str::to_owned)),
        Err(Fail::Unreadable(why)) => Ok(Some(format!("it cannot be read ({why})"))),
        Err(trouble) => Err(trouble),
    }
}
