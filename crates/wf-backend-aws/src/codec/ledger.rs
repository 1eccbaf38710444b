//! Rows of the ledger. `etag` is a hash of the whole row, so that "still exactly this row" is one comparison.

use wf_core::idempotency::{LedgerEntry, sha256_hex};
use wf_core::models::WorkflowId;
use wf_core::ports::{LedgerKey, LedgerRow};

use super::indexed;
use crate::action::Expression;
use crate::fault::Fail;
use crate::item::{Attributes, Item, Value, json};
use crate::keys::{self, by_state};

/// After its expiry a row is kept this long for the sweep, which counts what it deletes, before TTL may take it; seconds.
const TTL_GRACE_S: i64 = 7 * 24 * 3_600;

/// The attributes that say when a row expires.
pub(crate) fn expiry(attributes: &mut Attributes, key: &keys::Key, at_ms: i64) {
    attributes.insert("expires_at", Value::n(at_ms));
    attributes.insert("ttl_at", Value::n(at_ms.div_euclid(1_000).saturating_add(TTL_GRACE_S)));
    let sk = format!("{}#{}", keys::time(at_ms), key.pk);
    indexed(attributes, keys::BY_STATE, by_state::EXPIRY.to_owned(), sk);
}

/// The item of a row.
pub(crate) fn write(row: &LedgerRow) -> Result<Attributes, Fail> {
    let LedgerRow { entry, .. } = row;
    let mut attributes = Attributes::from([
        // The key of the item has only a hash of it: a copy of the store needs it whole.
        ("actor", Value::s(row.key.actor.to_string())),
        ("key", Value::s(row.key.key.as_str())),
        ("workflow", Value::s(row.workflow_id.as_str())),
        ("seq", Value::n(row.seq)),
        ("mark", Value::s(&row.mark)),
        ("operation", Value::s(&entry.operation)),
        ("fingerprint", Value::s(entry.fingerprint.to_string())),
        ("result_version", Value::n(entry.result_version)),
        ("result", Value::s(&entry.result)),
        ("fields", Value::S(json(&row.fields, "fields")?)),
        ("created_at", Value::n(entry.created_at_ms)),
        ("etag", Value::S(etag(row)?)),
    ]);
    if let Some(at) = entry.expires_at_ms {
        expiry(&mut attributes, &keys::ledger(&row.key), at);
    }
    Ok(attributes)
}

/// A row as it was written.
pub(crate) fn read(key: LedgerKey, item: &Item) -> Result<LedgerRow, Fail> {
    Ok(LedgerRow {
        key,
        entry: entry(item)?,
        workflow_id: item.parsed("workflow")?,
        seq: item.number("seq")?,
        mark: item.text("mark")?.to_owned(),
        fields: item.json("fields")?,
    })
}

fn entry(item: &Item) -> Result<LedgerEntry, Fail> {
    Ok(LedgerEntry {
        operation: item.text("operation")?.to_owned(),
        fingerprint: item.parsed("fingerprint")?,
        result_version: item.number("result_version")?,
        result: item.text("result")?.to_owned(),
        created_at_ms: item.number("created_at")?,
        expires_at_ms: item.opt_number("expires_at")?,
    })
}

/// Gives the row of `workflow` that an item is an expiry: the update, and the condition that the row is still the same.
/// None when it has one already, or is another workflow's by now.
pub(crate) fn expire(
    key: &keys::Key,
    item: &Item,
    workflow: &WorkflowId,
    at_ms: i64,
) -> Result<Option<(Expression, Expression)>, Fail> {
    let mut entry = entry(item)?;
    if entry.expires_at_ms.is_some() || item.text("workflow")? != workflow.as_str() {
        return Ok(None);
    }
    entry.expires_at_ms = Some(at_ms);
    let rest = (workflow.as_str(), item.number("seq")?, item.text("mark")?);
    let etag = tag(&entry, item.text("fields")?, rest)?;
    let mut set = Attributes::new();
    expiry(&mut set, key, at_ms);
    let mut value = |name| set.remove(name).unwrap_or_else(|| Value::n(0));
    let update = Expression::new(
        "SET expires_at = :at, ttl_at = :ttl, state_pk = :list, state_sk = :place, etag = :etag",
        [
            (":at", value("expires_at")),
            (":ttl", value("ttl_at")),
            (":list", value(keys::BY_STATE.pk)),
            (":place", value(keys::BY_STATE.sk)),
            (":etag", Value::S(etag)),
        ],
    );
    let before = Value::s(item.text("etag")?);
    Ok(Some((update, Expression::new("etag = :before", [(":before", before)]))))
}

/// The row still is what its `etag` was made of.
pub(crate) fn is_whole(row: &LedgerRow, item: &Item) -> Result<bool, Fail> {
    Ok(item.text("etag")? == etag(row)?)
}

/// A hash of everything in a row but its key.
fn etag(row: &LedgerRow) -> Result<String, Fail> {
    let rest = (row.workflow_id.as_str(), row.seq, row.mark.as_str());
    tag(&row.entry, &json(&row.fields, "fields")?, rest)
}

fn tag(entry: &LedgerEntry, fields: &str, rest: (&str, u64, &str)) -> Result<String, Fail> {
    let entry = json(entry, "a ledger entry")?;
    Ok(sha256_hex(json(&(entry, fields, rest), "a ledger row")?.as_bytes()))
}

/// There is no row, or it still is exactly the one that may be replaced.
pub(crate) fn condition(replaces: Option<&LedgerRow>) -> Result<Expression, Fail> {
    Ok(match replaces {
        None => crate::action::absent(),
        Some(row) => Expression::new(
            "attribute_not_exists(PK) OR etag = :etag",
            [(":etag", Value::S(etag(row)?))],
        ),
    })
}
