//! What an orchestrator outside the process asks for, once the rules of [`reconcile`](crate::reconcile) say so (R1): that a
//! start is acknowledged, that what is due in one workflow is fired. Both are commands, decided like any other.
//!
//! Neighbour: `schedule`, which fires what is due in all workflows.

use serde_json::{Map, Value};
use wf_idempotency::IdempotencyKey;

use crate::errors::{ErrorCode, Retry};
use crate::models::{Actor, Principal, TenantId, WorkflowId};

use super::call::{Call, CallMeta, Request};
use super::{Engine, schedule};

/// The operation's name in the ledger.
const OPERATION: &str = "acknowledge_orchestration";

impl Engine {
    /// Says that the execution with this fence runs. Changes a workflow that was just started, and no other.
    ///
    /// # Errors
    /// The code of the refusal; after one with [`Retry::SameCall`] the same again is right.
    pub async fn acknowledge_orchestration(
        &self,
        tenant: &TenantId,
        workflow_id: &WorkflowId,
        fence: u64,
    ) -> Result<(), ErrorCode> {
        let by = Principal::part(tenant.clone(), Actor::orchestrator());
        let arguments = Map::from_iter([
            ("workflow_id".to_owned(), Value::from(workflow_id.as_str())),
            ("fence".to_owned(), Value::from(fence)),
        ]);
        let request = Request::AcknowledgeOrchestration { workflow_id: workflow_id.clone(), fence };
        let meta = CallMeta::default();
        // Deciding it twice changes nothing, so it needs no key.
        let call = Call { operation: OPERATION, arguments, key: None, request, meta };
        self.execute(&by, &call).await.error.map_or(Ok(()), Err)
    }

    /// Fires what is due in one workflow, in order, without a lease: each deadline's id lets it happen once. How many were
    /// fired; one that nothing waits for any more is none.
    ///
    /// # Errors
    /// The code of the first refusal after which the same again is right; those behind it stay, too.
    pub async fn fire_due_of(
        &self,
        tenant: &TenantId,
        workflow_id: &WorkflowId,
    ) -> Result<usize, ErrorCode> {
        let by = Principal::part(tenant.clone(), Actor::clock());
        let workflow = self.workflow(&by, workflow_id).await.map_err(|refused| refused.code)?;
        let now = self.parts.clock.now();
        let deadlines = workflow.map(|workflow| workflow.deadlines).unwrap_or_default();
        let mut due: Vec<_> =
            deadlines.into_iter().filter(|(_, deadline)| deadline.fire_at <= now).collect();
        due.sort_by(|(a, at), (b, other)| (at.fire_at, a).cmp(&(other.fire_at, b)));
        let mut fired = 0;
        for (id, _) in due {
            let Ok(key) = IdempotencyKey::parse(&id) else { continue };
            let reply = self.execute(&by, &schedule::call(workflow_id, &id, key)).await;
            match reply.error {
                None => fired += 1,
                // A build that knows the definition must fire it.
                Some(ErrorCode::ProcedureNotFound) => return Err(ErrorCode::ProcedureNotFound),
                Some(code) if code.retry() == Retry::SameCall => return Err(code),
                Some(_) => {}
            }
        }
        Ok(fired)
    }
}
