//! The history of one workflow, piece by piece.

use wf_core::models::{TenantId, WorkflowId};
use wf_core::ports::ReadError;
use wf_core::state_machine::Event;

use crate::codec::decode;
use crate::readers::Readers;

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
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    readers
        .rows(EVENTS, (tenant.to_string(), workflow.to_string(), after, limit), |columns| {
            decode::event(columns.text()?, columns.optional_text()?)
        })
        .await
}
