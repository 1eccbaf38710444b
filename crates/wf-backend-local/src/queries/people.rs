//! People of a tenant.

use wf_core::models::{Person, TenantId};
use wf_core::ports::ReadError;

use crate::codec::decode;
use crate::readers::Readers;

/// Tenant, limit.
pub(crate) const PEOPLE: &str = "
SELECT actor, name FROM people
 WHERE tenant = ?1
 ORDER BY seen_at DESC, actor DESC
 LIMIT ?2";

/// People named last, newest first.
pub(crate) async fn people(
    readers: &Readers,
    tenant: &TenantId,
    limit: u32,
) -> Result<Vec<Person>, ReadError> {
    readers.rows(PEOPLE, (tenant.to_string(), limit), decode::person).await
}
