//! What a table says of the copy in it. The mark stands where a store has its identity and holds the keys of the store to
//! be, but no id: a build that knows nothing of copies finds no identity it can read.

use wf_core::ports::Cursor;
use wf_core::ports::copy::{Begun, StoreFacts};

use super::read;
use crate::action::{Action, Expression, absent};
use crate::fault::{Cause, Fail, Trouble};
use crate::item::{Attributes, Item, Value};
use crate::keys;
use crate::link::{Changed, Link, Unsent};
use crate::open::{self, SCHEMA};

/// Which store it will be: only an unfinished copy has this attribute.
const COPY_OF: &str = "copy_of";

/// The item that stands for an identity is the mark of an unfinished copy.
pub(crate) fn is_unfinished(item: &Item) -> Result<bool, Fail> {
    Ok(item.opt_text(COPY_OF)?.is_some())
}

/// What the store, or the store to be, is known by.
pub(super) async fn facts(link: &Link) -> Result<StoreFacts, Fail> {
    let item = link.get(&keys::identity()).await?;
    let item = item.ok_or_else(|| Fail::unreadable("the store", "it has no identity"))?;
    let id = match item.opt_text(COPY_OF)? {
        Some(id) => id.to_owned(),
        None => item.text("store_id")?.to_owned(),
    };
    let identity = open::with_secrets(&item, id)?;
    Ok(StoreFacts { identity, fence_base: open::fence_base(&item)? })
}

fn kept(source: &StoreFacts) -> Result<Attributes, Fail> {
    let mut kept = open::secrets(&source.identity.secrets)?;
    kept.insert("schema", Value::n(SCHEMA));
    if source.fence_base > 0 {
        kept.insert("fence_base", Value::n(source.fence_base));
    }
    Ok(kept)
}

/// Begins, or finds where a copy stopped; or says why it must not.
pub(super) async fn begin(link: &Link, source: &StoreFacts) -> Result<Result<Begun, String>, Fail> {
    let id = &source.identity.id;
    let found = link.get(&keys::identity()).await?;
    let mut condition = absent();
    if let Some(item) = &found {
        if let Some(of) = item.opt_text(COPY_OF)? {
            let why =
                format!("holds an unfinished copy of another store ({of}): take an empty table");
            return if of == id { Ok(Ok(so_far(item)?)) } else { Ok(Err(why)) };
        }
        let there = item.text("store_id")?;
        if there == id {
            return Ok(Ok(Begun::Finished));
        }
        condition = Expression::new("store_id = :there", [(":there", Value::s(there))]);
    }
    if read::holds_anything(link).await? {
        return Ok(Err("is not empty: take a new one".to_owned()));
    }
    let mut mark = kept(source)?;
    mark.insert(COPY_OF, Value::s(id));
    mark.insert("copied", Value::n(0));
    match put(link, mark, condition).await? {
        true => Ok(Ok(Begun::Copying { after: None, records: 0 })),
        false => Ok(Err("was just begun to be used by somebody else: try again".to_owned())),
    }
}

async fn put(link: &Link, item: Attributes, condition: Expression) -> Result<bool, Fail> {
    match link.transact(&[Action::put(keys::identity(), item).when(condition)]).await {
        Ok(met) => Ok(met.is_none()),
        Err(Unsent { fail, .. }) => Err(fail),
    }
}

fn so_far(mark: &Item) -> Result<Begun, Fail> {
    let records = mark.number("copied")?;
    if mark.opt_number::<u8>("copied_all")?.is_some() {
        return Ok(Begun::Copied { records });
    }
    let after = mark.opt_text("copied_to")?.map(|text| Cursor(text.to_owned()));
    Ok(Begun::Copying { after, records })
}

/// The copy is not finished: what is written now is not written into a store.
pub(super) async fn check(link: &Link) -> Result<(), Fail> {
    let item = link.get(&keys::identity()).await?;
    match item.as_ref().map(is_unfinished).transpose()? {
        Some(true) => Ok(()),
        Some(false) | None => Err(no_copy()),
    }
}

/// The source goes on at `next`, or has no more.
pub(super) async fn remember(
    link: &Link,
    next: Option<&Cursor>,
    records: usize,
) -> Result<(), Fail> {
    let more = (":more", Value::n(records));
    let update = match next {
        Some(Cursor(place)) => Expression::new(
            "SET copied_to = :to, copied = copied + :more",
            [(":to", Value::s(place)), more],
        ),
        None => Expression::new(
            "SET copied_all = :one, copied = copied + :more",
            [(":one", Value::n(1)), more],
        ),
    };
    let begun = Expression::new("attribute_exists(copy_of)", []);
    match link.update(&keys::identity(), &update, &begun).await? {
        Changed::Done => Ok(()),
        Changed::Not { .. } => Err(no_copy()),
    }
}

fn no_copy() -> Fail {
    Trouble::Refused(Cause::said("no copy was begun in this table, or another process ended it"))
        .into()
}

/// Makes a store of it.
pub(super) async fn finish(link: &Link, source: &StoreFacts) -> Result<(), Fail> {
    let id = &source.identity.id;
    let mut identity = kept(source)?;
    identity.insert("store_id", Value::s(id));
    let whole = Expression::new(
        "copy_of = :id AND copied_all = :one",
        [(":id", Value::s(id)), (":one", Value::n(1))],
    );
    if put(link, identity, whole).await? {
        return Ok(());
    }
    // An answer that was lost, or another process that compared the same.
    let item = link.get(&keys::identity()).await?;
    let there = item.as_ref().map(|item| item.opt_text("store_id")).transpose()?.flatten();
    if there == Some(id.as_str()) { Ok(()) } else { Err(no_copy()) }
}
