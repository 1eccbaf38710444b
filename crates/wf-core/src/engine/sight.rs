//! What a caller sees through the engine: a workflow that is not theirs to see is answered like one that never was.
//!
//! The rule is `access`; `status`, `find`, `check` and `twin` ask here before they tell, `attempt` before it decides.

use crate::models::{Principal, StepId, Workflow, WorkflowId};
use crate::state_machine::Rejection;

use super::Engine;
use super::attempt::Attempting;
use super::call::Request;

impl Engine {
    /// The caller may be told of this workflow.
    pub(super) fn sees(&self, by: &Principal, workflow: &Workflow) -> bool {
        self.parts.settings.visibility.sees(by, workflow)
    }

    /// The workflow with this id, where the caller sees it.
    pub(super) async fn seen(
        &self,
        by: &Principal,
        id: &WorkflowId,
    ) -> Result<Option<Workflow>, Rejection> {
        Ok(self.workflow(by, id).await?.filter(|workflow| self.sees(by, workflow)))
    }
}

impl Attempting<'_> {
    /// The call may be about this workflow: the caller sees it, or has the role that the named step asks for. Whoever
    /// comes to sign need not see anything before.
    pub(super) async fn reaches(&self, workflow: &Workflow) -> bool {
        let by = self.principal;
        if self.engine.sees(by, workflow) {
            return true;
        }
        let Some(step_id) = step(&self.call.request) else { return false };
        if by.roles.is_empty() || by.tenant != workflow.tenant {
            return false;
        }
        // A definition that cannot be read now asks for no role: the workflow stays out of sight.
        let pinned = self.engine.pinned(workflow).await.ok().flatten();
        let role =
            pinned.and_then(|policy| policy.describe(workflow, step_id)).and_then(|d| d.role);
        role.is_some_and(|role| by.has_role(&role))
    }
}

/// The step that somebody else than the owner may do.
fn step(request: &Request) -> Option<&StepId> {
    match request {
        Request::SubmitStep { step_id, .. }
        | Request::CorrectStep { step_id, .. }
        | Request::SkipStep { step_id, .. } => Some(step_id),
        Request::Start { .. }
        | Request::ReportProblem { .. }
        | Request::ResolveBlock { .. }
        | Request::AcknowledgeBlock { .. }
        | Request::DeadlineReached { .. }
        | Request::AcknowledgeOrchestration { .. }
        | Request::Transfer { .. }
        | Request::ReleaseLock { .. }
        | Request::Finish { .. } => None,
    }
}
