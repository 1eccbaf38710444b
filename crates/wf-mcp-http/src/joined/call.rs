//! One call of a guest's tool: the right to it, its arguments, a task of its own, a deadline, a line in the log.

use std::sync::Arc;
use std::time::Instant;

use http::request::Parts;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use tokio::time::timeout_at;
use tracing::Instrument;

use crate::guest::Guest;
use crate::handler::{Caller, Sent};
use crate::telemetry;
use crate::wire::envelope::Arguments;

/// Answers a call of a tool that is the guest's.
pub(super) async fn guests_tool(
    guest: &Guest,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let started = Instant::now();
    let Some(needs) = guest.needs_of(&request.name) else {
        return Err(ErrorData::invalid_params("unknown tool", None));
    };
    let parts = context.extensions.get::<Parts>();
    let sent = parts.and_then(|parts| parts.extensions.get::<Sent>()).cloned();
    let (Some(Sent(sent)), Some(caller)) = (sent, parts.and_then(Caller::of)) else {
        return Err(ErrorData::internal_error("the request lost its parts", None));
    };
    let (tool, span) = (request.name.to_string(), caller.span.clone());
    let principal = Arc::clone(&caller.principal);
    let answer = if let Err(rejection) = needs.of(&principal) {
        Ok(refused(rejection.message))
    } else if let Some(problem) = unfit(&sent) {
        Ok(refused(problem))
    } else {
        begun(guest.clone(), request, context, caller).await
    };
    span.record("tenant", principal.tenant.as_str());
    span.record("tool", tool.as_str());
    let outcome = outcome(answer.as_ref().ok());
    span.record("outcome", outcome);
    telemetry::guests_call(&principal.tenant, tool, outcome, started.elapsed());
    answer
}

/// Lets the guest work, in a task of its own.
async fn begun(
    guest: Guest,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
    caller: Caller,
) -> Result<CallToolResponse, ErrorData> {
    let Caller { principal: _, request_id, span, deadlines, place } = caller;
    let cancelled = context.ct.clone();
    let work = async move {
        let answer = guest.hosted().call_tool(request, context).await;
        drop(place);
        answer
    };
    match timeout_at(deadlines.answer_by, tokio::spawn(work.instrument(span))).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => {
            let incident = &*request_id.0;
            tracing::error!(incident, "a guest's tool panicked");
            Err(ErrorData::internal_error(format!("a bug; it is logged as {incident}"), None))
        }
        Err(_) => {
            cancelled.cancel();
            Ok(refused("no answer in time: the outcome is unknown".to_owned()))
        }
    }
}

/// What is wrong with the arguments. What is right with them is in the message.
fn unfit(sent: &Arguments) -> Option<String> {
    match sent {
        Arguments::Object(_) => None,
        Arguments::NoObject(kind) => Some(format!("arguments must be an object, not {kind}")),
        Arguments::Unsafe { field, rule } => Some(format!("{field} {rule}")),
    }
}

/// A result that a model can read, since it is the model that sent what is wrong (MCP, tools, error handling).
fn refused(why: String) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(why)]).into()
}

fn outcome(answer: Option<&CallToolResponse>) -> &'static str {
    match answer {
        Some(CallToolResponse::InputRequired(_)) => "input_required",
        Some(CallToolResponse::Complete(result)) if result.is_error == Some(true) => "error",
        Some(CallToolResponse::Complete(_)) => "complete",
        Some(_) => "other",
        None => "error",
    }
}
