//! How an error of the core reaches whoever reads a resource or asks for a prompt: as a JSON-RPC error, for there is no
//! result that could carry it.
//!
//! -32002 (-32602 since MCP 2026-07-28, SEP-2164) where there is nothing, which is also said of what is not theirs to see;
//! -32602 where the caller must change something, -32603 where they need not. `data` has the core's code and what to do.

use rmcp::ErrorData;
use serde_json::{Value, json};
use wf_core::errors::ErrorCode;
use wf_core::state_machine::Rejection;

/// Characters of an address that are told back.
const SHOWN_CHARS_MAX: usize = 200;

/// There is nothing at this address. The same for an address that is none, for what never was, and for what others have.
pub(crate) fn nothing_at(uri: &str) -> ErrorData {
    let shown: String = uri.chars().take(SHOWN_CHARS_MAX).collect();
    ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": shown })))
}

/// What the core says of a resource.
pub(crate) fn unread(rejection: &Rejection, uri: &str) -> ErrorData {
    carried(rejection, || nothing_at(uri))
}

/// The same for what has no address.
pub(crate) fn unasked(rejection: &Rejection) -> ErrorData {
    carried(rejection, || changed_call(rejection))
}

/// An error of the core, `nothing` where there is none of what was meant. Listed one by one so that a new code is thought
/// about.
fn carried(rejection: &Rejection, nothing: impl FnOnce() -> ErrorData) -> ErrorData {
    match rejection.code {
        ErrorCode::WorkflowNotFound | ErrorCode::ProcedureNotFound => nothing(),
        ErrorCode::BackendUnavailable | ErrorCode::Internal => {
            ErrorData::internal_error(rejection.message.clone(), Some(told(rejection)))
        }
        ErrorCode::ValidationError
        | ErrorCode::IdempotencyConflict
        | ErrorCode::VersionConflict
        | ErrorCode::AssetLocked
        | ErrorCode::LockLost
        | ErrorCode::InvalidTransition
        | ErrorCode::StepNotOpen
        | ErrorCode::StepAlreadyRecorded
        | ErrorCode::ImplausibleValue
        | ErrorCode::UnitMismatch
        | ErrorCode::TooEarly
        | ErrorCode::ReasonRequired
        | ErrorCode::NotAllowed
        | ErrorCode::DecisionNotAllowed
        | ErrorCode::LimitExceeded => changed_call(rejection),
    }
}

fn changed_call(rejection: &Rejection) -> ErrorData {
    ErrorData::invalid_params(rejection.message.clone(), Some(told(rejection)))
}

fn told(rejection: &Rejection) -> Value {
    json!({
        "code": rejection.code.as_str(),
        "retry": rejection.code.retry().as_str(),
        "details": rejection.details,
    })
}
