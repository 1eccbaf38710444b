//! The end of data: sensitive values that are erased. What asks for it is `engine::erase`.

use crate::models::{TenantId, WorkflowId};
use crate::state_machine::SensitiveValue;

/// What takes the place of everything that stands beside one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The tenant.
    pub tenant: TenantId,
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// The event.
    pub seq: u64,
    /// What stands beside it, as it was read; never empty.
    pub was: Vec<SensitiveValue>,
    /// What is left of that.
    pub becomes: Vec<SensitiveValue>,
}
