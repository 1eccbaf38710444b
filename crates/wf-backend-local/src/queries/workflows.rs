//! Lists of workflows. Each reads an index in order and stops at its limit.

use rusqlite::Params;
use wf_core::models::{Actor, Phase, TenantId, Workflow};
use wf_core::ports::{ListQuery, Page, ReadError, Recent};

use super::{after, cursor, cut, probe};
use crate::codec::{ANYBODY, decode};
use crate::readers::Readers;

/// Tenant, owner, limit.
pub(crate) const OPEN_OF: &str = "
SELECT state FROM workflows
 WHERE tenant = ?1 AND owner = ?2 AND completed_at IS NULL
 ORDER BY last_activity DESC, id
 LIMIT ?3";

/// Tenant, offeree, anybody, limit.
pub(crate) const OFFERED_TO: &str = "
SELECT state FROM workflows
 WHERE tenant = ?1 AND offered_to IN (?2, ?3) AND offered_to IS NOT NULL
 ORDER BY offered_at, id
 LIMIT ?4";

/// Tenant, limit.
pub(crate) const BLOCKED: &str = "
SELECT state FROM workflows
 WHERE tenant = ?1 AND blocked_since IS NOT NULL
 ORDER BY blocked_since, id
 LIMIT ?2";

/// Tenant, owner.
pub(crate) const LAST_COMPLETED_OF: &str = "
SELECT state FROM workflows
 WHERE tenant = ?1 AND owner = ?2 AND completed_at IS NOT NULL
 ORDER BY completed_at DESC, id DESC
 LIMIT 1";

/// Tenant, asset.
pub(crate) const LAST_COMPLETED_WITH: &str = "
SELECT w.state
  FROM workflow_assets a CROSS JOIN workflows w ON w.wid = a.wid
 WHERE a.tenant = ?1 AND a.asset_id = ?2 AND a.completed_at IS NOT NULL
 ORDER BY a.completed_at DESC, a.workflow_id DESC
 LIMIT 1";

/// Tenant, id after which, phase or null, limit.
pub(crate) const LIST_IN_TENANT: &str = "
SELECT id, tenant, state FROM workflows
 WHERE tenant = ?1 AND id > ?2 AND (?3 IS NULL OR phase = ?3)
 ORDER BY id
 LIMIT ?4";

/// Tenant, id after which, open phase, limit.
pub(crate) const LIST_OPEN_IN_TENANT: &str = "
SELECT id, tenant, state FROM workflows
 WHERE completed_at IS NULL AND phase = ?3 AND tenant = ?1 AND id > ?2
 ORDER BY id
 LIMIT ?4";

/// Id and tenant after which, phase or null, limit.
pub(crate) const LIST: &str = "
SELECT id, tenant, state FROM workflows
 WHERE (id, tenant) > (?1, ?2) AND (?3 IS NULL OR phase = ?3)
 ORDER BY id, tenant
 LIMIT ?4";

/// Id and tenant after which, open phase, limit. By the index of open ones, which are few beside those that are finished: by
/// the order of ids all of them would be looked at for the few that are blocked.
pub(crate) const LIST_OPEN: &str = "
SELECT w.id, w.tenant, w.state
  FROM (SELECT wid FROM workflows INDEXED BY workflows_open
         WHERE completed_at IS NULL AND phase = ?3 AND (id, tenant) > (?1, ?2)
         ORDER BY id, tenant LIMIT ?4) q
 CROSS JOIN workflows w ON w.wid = q.wid
 ORDER BY w.id, w.tenant";

async fn states(
    readers: &Readers,
    sql: &'static str,
    arguments: impl Params + Send + 'static,
) -> Result<Vec<Workflow>, ReadError> {
    readers.rows(sql, arguments, |columns| decode::workflow(columns.text()?)).await
}

/// Open workflows of an owner.
pub(crate) async fn open_of(
    readers: &Readers,
    tenant: &TenantId,
    actor: &Actor,
    limit: u32,
) -> Result<Vec<Workflow>, ReadError> {
    states(readers, OPEN_OF, (tenant.to_string(), actor.to_string(), limit)).await
}

/// Open workflows offered to somebody or to anybody.
pub(crate) async fn offered_to(
    readers: &Readers,
    tenant: &TenantId,
    actor: &Actor,
    limit: u32,
) -> Result<Vec<Workflow>, ReadError> {
    states(readers, OFFERED_TO, (tenant.to_string(), actor.to_string(), ANYBODY, limit)).await
}

/// Blocked workflows.
pub(crate) async fn blocked(
    readers: &Readers,
    tenant: &TenantId,
    limit: u32,
) -> Result<Vec<Workflow>, ReadError> {
    states(readers, BLOCKED, (tenant.to_string(), limit)).await
}

/// The workflow completed last.
pub(crate) async fn last_completed(
    readers: &Readers,
    tenant: &TenantId,
    whose: &Recent,
) -> Result<Option<Workflow>, ReadError> {
    let (sql, whose) = match whose {
        Recent::OwnedBy(actor) => (LAST_COMPLETED_OF, actor.to_string()),
        Recent::OfAsset(asset) => (LAST_COMPLETED_WITH, asset.to_string()),
    };
    Ok(states(readers, sql, (tenant.to_string(), whose)).await?.pop())
}

/// A page of workflows by id, then tenant.
pub(crate) async fn list(
    readers: &Readers,
    query: &ListQuery,
) -> Result<Page<Workflow>, ReadError> {
    let (id, tenant) = after(query.after.as_ref())?;
    let phase = query.phase.map(Phase::as_str);
    let (sql, first, second) = match &query.tenant {
        Some(only) if query.phase.is_some_and(Phase::is_open) => {
            (LIST_OPEN_IN_TENANT, only.as_str(), id)
        }
        Some(only) => (LIST_IN_TENANT, only.as_str(), id),
        None if query.phase.is_some_and(Phase::is_open) => (LIST_OPEN, id, tenant),
        None => (LIST, id, tenant),
    };
    let arguments = (first.to_owned(), second.to_owned(), phase, probe(query.limit));
    let rows = readers
        .rows(sql, arguments, |columns| {
            let place = cursor(columns.text()?, columns.text()?);
            Ok((place, decode::workflow(columns.text()?)?))
        })
        .await?;
    let (rows, more) = cut(rows, query.limit);
    let next = rows.last().filter(|_| more).map(|(place, _)| place.clone());
    Ok(Page { items: rows.into_iter().map(|(_, workflow)| workflow).collect(), next })
}
