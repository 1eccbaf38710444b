//! The history of one workflow, piece by piece.

use wf_core::models::{TenantId, WorkflowId};
use wf_core::ports::ReadError;
use wf_core::state_machine::Event;

use super::Readers;
use crate::codec::decode::{self, Columns};

/// Tenant, workflow id, seq after which, limit.
pub(crate) const EVENTS: &str = "
SELECT e.body, s.body
  FROM workflows w
 CROSS JOIN events e ON e.wid = w.wid AND e.seq > ?3
  LEFT JOIN sensitive_values s ON s.wid = e.wid AND s.seq = e.seq
 WHERE w.tenant = ?1 AND w.id = ?2
 ORDER BY e.seq
 LIMIT ?4";

/// Events after `after`, ascending.
pub(crate) async fn events(
    readers: &Readers,
    tenant: &TenantId,
    workflow: &WorkflowId,
    after: u64,
    limit: u32,
) -> Result<Vec<Event>, ReadError> {
    let ask = sqlx::query(EVENTS)
        .bind(tenant.as_str())
        .bind(workflow.as_str())
        .bind(i64::try_from(after).unwrap_or(i64::MAX))
        .bind(i64::from(limit));
    readers
        .decoded(ask, |row| {
            let mut columns = Columns::new(row, 0);
            let body = columns.text()?;
            decode::event(body, columns.next()?)
        })
        .await
}
