//! Expiry of ledger rows and the end of old messages. TTL only collects what the sweep forgot; whether a row counts is
//! judged by its own time.

use wf_core::models::{TenantId, Timestamp, WorkflowId};
use wf_core::ports::{SettleError, Swept};

use crate::action::Expression;
use crate::codec::{head, ledger};
use crate::fault::Fail;
use crate::item::Value;
use crate::keys::{self, BY_STATE, Key, by_state};
use crate::link::{Changed, Link, Range};
use crate::outbox;

/// Sweeps once.
pub(crate) async fn sweep(
    link: &Link,
    now: Timestamp,
    retention_ms: i64,
    limit: u32,
) -> Result<Swept, SettleError> {
    let expiries_set = set_expiries(link, retention_ms, limit).await?;
    let ledger_deleted = delete_expired(link, now, limit).await?;
    let old = now.as_ms().saturating_sub(retention_ms);
    let outbox_deleted = if old < 0 { 0 } else { outbox::sweep(link, old, limit).await? };
    Ok(Swept { expiries_set, ledger_deleted, outbox_deleted })
}

/// How much of a workflow has its expiry.
enum Expired {
    /// All rows; the workflow leaves the list.
    All,
    /// Not all of its history can be seen: the commit that ended it is only just being written, or an event is missing.
    NotSeen,
    /// The limit was reached before the last row.
    UpToLimit,
}

/// Gives the rows of completed workflows their expiry, at most `limit`; workflows that are done leave the list.
async fn set_expiries(link: &Link, retention_ms: i64, limit: u32) -> Result<u64, Fail> {
    let mut range = Range::prefix(keys::SWEEP.to_owned(), "").limit(limit);
    let (mut count, mut left) = (0, 0);
    loop {
        let (over, next) = link.query(&range).await?;
        for item in &over {
            let (tenant, id): (TenantId, WorkflowId) =
                (item.parsed("tenant")?, item.parsed("workflow")?);
            match expire_rows(link, &tenant, &id, retention_ms, limit, &mut count).await? {
                Expired::All => {
                    let there = Expression::new("attribute_exists(PK)", []);
                    link.delete(&item.key()?, &there).await?;
                    left += 1;
                }
                // It stays on the list, and keeps no other waiting.
                Expired::NotSeen => {}
                Expired::UpToLimit => return Ok(count),
            }
        }
        range.start = next;
        if range.start.is_none() || left >= limit {
            return Ok(count);
        }
    }
}

/// Gives the rows of one workflow their expiry, until `limit` is reached.
async fn expire_rows(
    link: &Link,
    tenant: &TenantId,
    id: &WorkflowId,
    retention_ms: i64,
    limit: u32,
    count: &mut u64,
) -> Result<Expired, Fail> {
    let Some(item) = link.get(&keys::head(tenant, id)).await? else { return Ok(Expired::All) };
    let workflow = head::read_state(&item)?;
    if workflow.phase.is_open() {
        // As one reads it beside the commit that ends it.
        return Ok(Expired::NotSeen);
    }
    let at = Timestamp::from_ms(head::completed_at(&workflow)).plus_ms(retention_ms).as_ms();
    let pk = keys::workflow(tenant, id);
    let mut range = Range::between(pk, keys::event(0), keys::event(u64::MAX));
    let mut seen = 0;
    loop {
        let (events, next) = link.query(&range).await?;
        for event in &events {
            seen += 1;
            let Some(partition) = event.opt_text("ledger")? else { continue };
            if *count >= u64::from(limit) {
                return Ok(Expired::UpToLimit);
            }
            let key = Key::new(partition.to_owned(), "IDEM");
            *count += u64::from(expire(link, &key, id, at).await?);
        }
        range.start = next;
        if range.start.is_none() {
            break;
        }
    }
    Ok(if seen < workflow.revision { Expired::NotSeen } else { Expired::All })
}

/// Gives one row its expiry; false when it has one, is gone, or is another workflow's by now.
async fn expire(link: &Link, key: &Key, workflow: &WorkflowId, at: i64) -> Result<bool, Fail> {
    let Some(item) = link.get(key).await? else { return Ok(false) };
    let Some((update, same)) = ledger::expire(key, &item, workflow, at)? else {
        return Ok(false);
    };
    Ok(match link.update(key, &update, &same).await? {
        Changed::Done => true,
        // Ours, where the answer was lost.
        Changed::Not { met: Some(item), after_unknown: true } => {
            item.opt_number::<i64>("expires_at")? == Some(at)
        }
        Changed::Not { .. } => false,
    })
}

/// Deletes expired rows, at most `limit`.
async fn delete_expired(link: &Link, now: Timestamp, limit: u32) -> Result<u64, Fail> {
    let to = format!("{}{}", keys::time(now.as_ms()), keys::LAST);
    let range = Range::between(by_state::EXPIRY.to_owned(), " ", to).of(BY_STATE);
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = link.query_all(range.limit(limit), most).await?;
    let expired = Expression::new("expires_at <= :now", [(":now", Value::n(now.as_ms()))]);
    let mut deleted = 0;
    for item in found {
        deleted += u64::from(link.delete(&item.key()?, &expired).await?.is_gone());
    }
    Ok(deleted)
}
