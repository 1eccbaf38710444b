//! The order of a mutating call: scope, ledger, expected revision, ownership, decide, commit. Before it, the same on a guess.

use serde_json::Map;

use crate::access;
use crate::errors::ErrorCode;
use crate::limits::DECIDE_ATTEMPTS_MAX;
use crate::models::Principal;
use crate::state_machine::Rejection;

use super::Engine;
use super::attempt::{Attempt, Attempting};
use super::call::{Call, Reply, Request};
use super::ledger;

/// A refusal, with what the result shows beside the error.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) rejection: Rejection,
    pub(super) parts: Map<String, serde_json::Value>,
}

impl From<Rejection> for Refused {
    fn from(rejection: Rejection) -> Self {
        Self { rejection, parts: Map::new() }
    }
}

/// How long to wait before calling again when others keep changing the workflow, in milliseconds.
const BUSY_AFTER_MS: i64 = 50;

impl Engine {
    /// Executes a mutating call. Every refusal is an answer; nothing is written unless the answer says so.
    pub async fn execute(&self, principal: &Principal, call: &Call) -> Reply {
        match self.run(principal, call).await {
            Ok(reply) => reply,
            Err(refused) => {
                let frame = self.frame(None, &call.meta);
                let parts = self.with_needs(call, &refused, &frame);
                frame.refusal(&refused.rejection, parts)
            }
        }
    }

    async fn run(&self, principal: &Principal, call: &Call) -> Result<Reply, Refused> {
        scope(principal, &call.request)?;
        super::bounds::bounds(&call.request)?;
        let cause = ledger::cause(call, &self.parts.ids.random_hex())?;
        let attempting = Attempting {
            engine: self,
            principal,
            call,
            cause,
            salt: self.parts.ids.random_hex(),
            keys: self.signing.keys(),
            workflow_id: call.request.workflow_id().map_or_else(
                || super::attempt::minted(self.parts.ids.as_ref()),
                |id| Ok(id.clone()),
            )?,
        };
        if let Some(reply) = attempting.guessed().await? {
            return Ok(reply);
        }
        for _ in 0..DECIDE_ATTEMPTS_MAX {
            match attempting.once().await? {
                Attempt::Answered(reply) => return Ok(*reply),
                Attempt::Again => {}
            }
        }
        let busy = "others keep changing this workflow; send the same call again";
        Err(Rejection::unavailable(busy, Some(BUSY_AFTER_MS)).into())
    }

    /// A start that was refused for its arguments says what a start needs.
    fn with_needs(
        &self,
        call: &Call,
        refused: &Refused,
        frame: &crate::view::Frame<'_>,
    ) -> Map<String, serde_json::Value> {
        let mut parts = refused.parts.clone();
        let code = refused.rejection.code;
        if code != ErrorCode::ValidationError && code != ErrorCode::ProcedureNotFound {
            return parts;
        }
        if let Request::Start { procedure_id, .. } = &call.request {
            parts.extend(self.startable_parts(Some(procedure_id), frame));
        }
        parts
    }
}

/// What the caller's scopes must allow before anything is looked up: a replay, too, is not for a caller who lost them.
fn scope(principal: &Principal, request: &Request) -> Result<(), Rejection> {
    match request {
        Request::ResolveBlock { .. } => access::may_supervise(principal),
        Request::AcknowledgeBlock { .. } => access::may_acknowledge(principal),
        Request::DeadlineReached { .. } => access::is_clock(principal),
        Request::AcknowledgeOrchestration { .. } => access::is_orchestrator(principal),
        Request::ReleaseLock { .. } => access::may_release(principal),
        Request::Start { .. }
        | Request::SubmitStep { .. }
        | Request::CorrectStep { .. }
        | Request::SkipStep { .. }
        | Request::ReportProblem { .. }
        | Request::Transfer { .. }
        | Request::Finish { .. } => access::may_write(principal),
    }
}
