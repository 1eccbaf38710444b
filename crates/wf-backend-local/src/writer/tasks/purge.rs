//! A workflow is deleted with all that belongs to it, a bounded number of rows at a time. Its tombstone comes first; its head
//! goes last, so that the next call finds what is left. What is deleted is overwritten, as by an erasure (`erase`).

use rusqlite::Connection;
use wf_core::models::Phase;
use wf_core::ports::{Purge, Purged};

use crate::codec::decode::{self, Read};
use crate::connection::{int, int_of, rows, run};
use crate::fault::unreadable;

/// Rows of each kind that go at once.
const AT_ONCE: i64 = 1_000;

/// Tenant, id.
pub(crate) const HEAD: &str =
    "SELECT wid, phase, revision FROM workflows WHERE tenant = ?1 AND id = ?2";
/// Workflow, now, the expiry of a row that has none.
pub(crate) const COUNTS: &str =
    "SELECT 1 FROM ledger WHERE wid = ?1 AND coalesce(expires_at, ?3) > ?2 LIMIT 1";
/// Workflow id, tenant.
pub(crate) const UNDELIVERED: &str = "
SELECT count(*) FROM streams s CROSS JOIN outbox o ON o.sid = s.sid AND o.state IN ('pending', 'dead')
 WHERE s.workflow_id = ?1 AND s.tenant = ?2";
/// Tenant, id.
pub(crate) const TOMBSTONE: &str = "SELECT body FROM purged WHERE tenant = ?1 AND id = ?2";
/// Tenant, id, when, all of it.
pub(crate) const BURY: &str = "
INSERT INTO purged (tenant, id, purged_at, body) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (tenant, id) DO NOTHING";

/// Workflow, limit.
pub(crate) const LEDGER: &str =
    "DELETE FROM ledger WHERE lid IN (SELECT lid FROM ledger WHERE wid = ?1 LIMIT ?2)";
/// Workflow id, tenant, limit.
pub(crate) const MESSAGES: &str = "
DELETE FROM outbox WHERE oid IN (SELECT o.oid FROM streams s CROSS JOIN outbox o ON o.sid = s.sid
                                  WHERE s.workflow_id = ?1 AND s.tenant = ?2 LIMIT ?3)";
/// Workflow id, tenant.
pub(crate) const STREAMS: &str = "DELETE FROM streams WHERE workflow_id = ?1 AND tenant = ?2";
/// Workflow, limit.
pub(crate) const BESIDE: &str = "
DELETE FROM sensitive_values WHERE wid = ?1
   AND seq IN (SELECT seq FROM sensitive_values WHERE wid = ?1 ORDER BY seq LIMIT ?2)";
/// Workflow, limit.
pub(crate) const EVENTS: &str = "
DELETE FROM events WHERE wid = ?1 AND seq IN (SELECT seq FROM events WHERE wid = ?1 ORDER BY seq LIMIT ?2)";
/// Workflow, each.
pub(crate) const DEADLINES: &str = "DELETE FROM deadlines WHERE wid = ?1";
pub(crate) const ASSETS: &str = "DELETE FROM workflow_assets WHERE wid = ?1";
pub(crate) const GONE: &str = "DELETE FROM workflows WHERE wid = ?1";

/// Purges, or says why not.
pub(crate) fn purge(conn: &Connection, purge: &Purge) -> Read<Purged> {
    let left = &purge.tombstone;
    let (tenant, id) = (left.tenant.as_str(), left.workflow_id.as_str());
    let head = rows(conn, HEAD, (tenant, id), |columns| {
        Ok((columns.next::<i64>()?, columns.text()?.to_owned(), columns.unsigned("a revision")?))
    })?;
    let Some((wid, phase, revision)) = head.into_iter().next() else {
        let buried = !rows(conn, TOMBSTONE, (tenant, id), decode::one::<String>)?.is_empty();
        return Ok(if buried { Purged::Done } else { Purged::Changed });
    };
    if phase != Phase::Completed.as_str() || revision != left.revision {
        return Ok(Purged::Changed);
    }
    let now = left.purged_at.as_ms();
    if int_of(conn, COUNTS, (wid, now, purge.expiry_ms()))?.is_some() {
        return Ok(Purged::KeysCount);
    }
    let undelivered = int_of(conn, UNDELIVERED, (id, tenant))?.unwrap_or(0);
    if undelivered > 0 && !purge.undelivered_too {
        return Ok(Purged::Undelivered(u64::try_from(undelivered).unwrap_or(u64::MAX)));
    }
    if purge.check_only {
        return Ok(Purged::Done);
    }
    let body = serde_json::to_string(left).map_err(|error| unreadable("a tombstone", error))?;
    run(conn, BURY, (tenant, id, now, body))?;
    int(conn, "PRAGMA secure_delete = ON")?;
    let done = delete(conn, wid, (id, tenant));
    int(conn, "PRAGMA secure_delete = OFF")?;
    done
}

fn delete(conn: &Connection, wid: i64, (id, tenant): (&str, &str)) -> Read<Purged> {
    let most = u64::try_from(AT_ONCE).unwrap_or(u64::MAX);
    // Each belongs to the one after it: nothing is ever there without what it belongs to.
    if run(conn, LEDGER, (wid, AT_ONCE))? == most
        || run(conn, MESSAGES, (id, tenant, AT_ONCE))? == most
        || run(conn, BESIDE, (wid, AT_ONCE))? == most
        || run(conn, EVENTS, (wid, AT_ONCE))? == most
    {
        return Ok(Purged::More);
    }
    run(conn, STREAMS, (id, tenant))?;
    for sql in [DEADLINES, ASSETS, GONE] {
        run(conn, sql, [wid])?;
    }
    Ok(Purged::Done)
}
