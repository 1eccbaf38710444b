//! Lists of workflows. Each reads an index in order and stops at its limit.

use wf_core::models::{Actor, Phase, TenantId, Workflow};
use wf_core::ports::{ListQuery, Page, ReadError, Recent};

use super::{Ask, Readers, after, cursor, cut, probe};
use crate::codec::ANYBODY;
use crate::codec::decode::{self, Columns};

/// Tenant, owner, limit.
pub(crate) const OPEN_OF: &str = "
SELECT state FROM workflows
 WHERE tenant = ?1 AND owner = ?2 AND completed_at IS NULL
 ORDER BY last_activity DESC, id
 LIMIT ?3";

/// Tenant, offeree, limit.
pub(crate) const OFFERED_TO: &str = "
SELECT state FROM workflows
 WHERE tenant = ?1 AND offered_to IN (?2, ?4) AND offered_to IS NOT NULL
 ORDER BY offered_at, id
 LIMIT ?3";

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

async fn states(readers: &Readers, ask: Ask<'_>) -> Result<Vec<Workflow>, ReadError> {
    readers.decoded(ask, |row| decode::workflow(Columns::new(row, 0).text()?)).await
}

/// Open workflows of an owner.
pub(crate) async fn open_of(
    readers: &Readers,
    tenant: &TenantId,
    actor: &Actor,
    limit: u32,
) -> Result<Vec<Workflow>, ReadError> {
    let ask =
        sqlx::query(OPEN_OF).bind(tenant.as_str()).bind(actor.to_string()).bind(i64::from(limit));
    states(readers, ask).await
}

/// Open workflows offered to somebody or to anybody.
pub(crate) async fn offered_to(
    readers: &Readers,
    tenant: &TenantId,
    actor: &Actor,
    limit: u32,
) -> Result<Vec<Workflow>, ReadError> {
    let ask = sqlx::query(OFFERED_TO)
        .bind(tenant.as_str())
        .bind(actor.to_string())
        .bind(i64::from(limit))
        .bind(ANYBODY);
    states(readers, ask).await
}

/// Blocked workflows.
pub(crate) async fn blocked(
    readers: &Readers,
    tenant: &TenantId,
    limit: u32,
) -> Result<Vec<Workflow>, ReadError> {
    let ask = sqlx::query(BLOCKED).bind(tenant.as_str()).bind(i64::from(limit));
    states(readers, ask).await
}

/// The workflow completed last.
pub(crate) async fn last_completed(
    readers: &Readers,
    tenant: &TenantId,
    whose: &Recent,
) -> Result<Option<Workflow>, ReadError> {
    let ask = match whose {
        Recent::OwnedBy(actor) => {
            sqlx::query(LAST_COMPLETED_OF).bind(tenant.as_str()).bind(actor.to_string())
        }
        Recent::OfAsset(asset) => {
            sqlx::query(LAST_COMPLETED_WITH).bind(tenant.as_str()).bind(asset.as_str())
        }
    };
    Ok(states(readers, ask).await?.pop())
}

/// A page of workflows by id, then tenant.
pub(crate) async fn list(
    readers: &Readers,
    query: &ListQuery,
) -> Result<Page<Workflow>, ReadError> {
    let (id, tenant) = after(query.after.as_ref())?;
    let phase = query.phase.map(Phase::as_str);
    let ask = match &query.tenant {
        Some(only) => {
            let open = query.phase.is_some_and(Phase::is_open);
            let sql = if open { LIST_OPEN_IN_TENANT } else { LIST_IN_TENANT };
            sqlx::query(sql).bind(only.as_str()).bind(id)
        }
        None => sqlx::query(LIST).bind(id).bind(tenant),
    };
    let ask = ask.bind(phase).bind(probe(query.limit));
    let rows = readers
        .decoded(ask, |row| {
            let mut columns = Columns::new(row, 0);
            let place = cursor(columns.text()?, columns.text()?);
            Ok((place, decode::workflow(columns.text()?)?))
        })
        .await?;
    let (rows, more) = cut(rows, query.limit);
    let next = rows.last().filter(|_| more).map(|(place, _)| place.clone());
    Ok(Page { items: rows.into_iter().map(|(_, workflow)| workflow).collect(), next })
}
