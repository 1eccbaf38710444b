//! Names and labels of this crate's metrics, in one place. Labels come from closed or bounded sets, never from what a
//! request says.
//!
//! `layers::trace` counts requests, `handler` counts calls, `exchange` counts what is in flight.

mod tenants;

use std::time::Duration;

use http::StatusCode;
use wf_core::engine::Reply;
use wf_core::models::TenantId;

use tenants::Tenants;

static TENANTS: Tenants = Tenants::new();

/// One more (`1.0`) or one less (`-1.0`) MCP request in flight.
pub(crate) fn in_flight(change: f64) {
    metrics::gauge!("checkpoint_requests_in_flight").increment(change);
}

/// One more (`1.0`) or one less (`-1.0`) open connection.
pub(crate) fn connections(change: f64) {
    metrics::gauge!("checkpoint_connections").increment(change);
}

/// One more (`1.0`) or one less (`-1.0`) who listens for changes.
pub(crate) fn listeners(change: f64) {
    metrics::gauge!("checkpoint_subscriptions").increment(change);
}

/// One request was answered; without a status its client left first.
pub(crate) fn request(route: &'static str, status: Option<StatusCode>) {
    let status = status.map_or_else(|| "none".to_owned(), |s| s.as_str().to_owned());
    metrics::counter!(
        "checkpoint_http_requests_total",
        "route" => route,
        "status" => status
    )
    .increment(1);
}

/// One tool call of somebody of `tenant` was answered after `took`.
pub(crate) fn tool_call(tenant: &TenantId, tool: &'static str, reply: &Reply, took: Duration) {
    let code = reply.error.map_or("", |code| code.as_str());
    metrics::counter!(
        "checkpoint_tool_calls_total",
        "tenant" => TENANTS.label(tenant),
        "tool" => tool,
        "outcome" => reply.outcome.as_str(),
        "code" => code,
        "duplicate" => if reply.duplicate { "true" } else { "false" }
    )
    .increment(1);
    metrics::histogram!("checkpoint_tool_seconds", "tool" => tool).record(took.as_secs_f64());
}

/// One call of a guest's tool by somebody of `tenant` was answered after `took`. The guest knows so many tools by name
/// and no more.
pub(crate) fn guests_call(tenant: &TenantId, tool: String, outcome: &'static str, took: Duration) {
    metrics::counter!(
        "checkpoint_tool_calls_total",
        "tenant" => TENANTS.label(tenant),
        "tool" => tool.clone(),
        "outcome" => outcome,
        "code" => "",
        "duplicate" => "false"
    )
    .increment(1);
    metrics::histogram!("checkpoint_tool_seconds", "tool" => tool).record(took.as_secs_f64());
}

/// One credential did not pass `check`.
pub(crate) fn refused(check: &'static str) {
    metrics::counter!("checkpoint_credentials_refused_total", "check" => check).increment(1);
}
