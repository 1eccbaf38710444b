//! Pages of lock rows.

use wf_core::locks::LockRow;
use wf_core::models::TenantId;
use wf_core::ports::{Cursor, Page, ReadError};

use super::{after, cursor, cut, probe};
use crate::codec::decode;
use crate::readers::Readers;

/// Tenant, asset after which, limit.
pub(crate) const LIST_IN_TENANT: &str = "
SELECT tenant, asset_id, fence, holder, owner, owner_name, acquired_at FROM locks
 WHERE tenant = ?1 AND asset_id > ?2
 ORDER BY asset_id
 LIMIT ?3";

/// Tenant and asset after which, limit.
pub(crate) const LIST: &str = "
SELECT tenant, asset_id, fence, holder, owner, owner_name, acquired_at FROM locks
 WHERE (tenant, asset_id) > (?1, ?2)
 ORDER BY tenant, asset_id
 LIMIT ?3";

/// A page of lock rows by tenant and asset.
pub(crate) async fn list(
    readers: &Readers,
    tenant: Option<&TenantId>,
    from: Option<&Cursor>,
    limit: u32,
) -> Result<Page<LockRow>, ReadError> {
    let (after_tenant, asset) = after(from)?;
    let (sql, first) = match tenant {
        Some(only) => (LIST_IN_TENANT, only.as_str()),
        None => (LIST, after_tenant),
    };
    let arguments = (first.to_owned(), asset.to_owned(), probe(limit));
    let rows = readers
        .rows(sql, arguments, |columns| {
            let tenant = columns.parsed("a tenant")?;
            let asset = columns.parsed("an asset id")?;
            decode::lock(tenant, asset, columns)
        })
        .await?;
    let (items, more) = cut(rows, limit);
    let next =
        items.last().filter(|_| more).map(|row| cursor(row.tenant.as_str(), row.asset_id.as_str()));
    Ok(Page { items, next })
}
