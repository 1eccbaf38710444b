//! What a supervisor does here: decide on a block, release a lock. Through [`Engine::execute`](wf_core::engine::Engine::execute),
//! like the tool and the command: the same rights, the same ledger. A form carries a random key, so that sending it twice is
//! a replay.

use bytes::Bytes;
use http::Response;
use serde_json::{Map, Value};
use wf_core::engine::{Call, Request};
use wf_core::models::{AssetId, BlockId, DecisionId, WorkflowId};
use wf_idempotency::IdempotencyKey;

use crate::answer;
use crate::console::{Console, Visitor};
use crate::notices::Notice;
use crate::pages::{self, Problem};
use crate::request::{self, Fields, ROOT};
use crate::times::Times;

/// Decides on a block.
pub(crate) async fn resolve(
    console: &Console,
    visitor: &Visitor,
    id: &WorkflowId,
    form: &Fields,
    times: &Times,
) -> Response<Bytes> {
    let block = form.get("block_id").and_then(|text| BlockId::parse(text).ok());
    let (Some(key), Some(block_id)) = (key(form), block) else {
        return pages::problem(times, Problem::NoForm);
    };
    let comment = form.get("comment").unwrap_or_default().trim();
    let Some(decision) = form.get("decision").and_then(|text| DecisionId::parse(text).ok()) else {
        return told(console, visitor, id, unsaid("Choose a decision."));
    };
    let arguments = [
        ("workflow_id", id.as_str()),
        ("block_id", block_id.as_str()),
        ("decision", decision.as_str()),
        ("comment", comment),
    ];
    let request = Request::ResolveBlock {
        workflow_id: id.clone(),
        block_id: block_id.clone(),
        decision: decision.clone(),
        comment: comment.to_owned(),
    };
    execute(console, visitor, id, ("resolve_block", &arguments, request, key)).await
}

/// Releases a lock.
pub(crate) async fn release(
    console: &Console,
    visitor: &Visitor,
    id: &WorkflowId,
    form: &Fields,
    times: &Times,
) -> Response<Bytes> {
    let asset = form.get("asset_id").and_then(|text| AssetId::parse(text).ok());
    let (Some(key), Some(asset_id)) = (key(form), asset) else {
        return pages::problem(times, Problem::NoForm);
    };
    let reason = form.get("reason").unwrap_or_default().trim();
    let arguments =
        [("workflow_id", id.as_str()), ("asset_id", asset_id.as_str()), ("reason", reason)];
    let request = Request::ReleaseLock {
        workflow_id: id.clone(),
        asset_id: asset_id.clone(),
        reason: reason.to_owned(),
    };
    execute(console, visitor, id, ("release_lock", &arguments, request, key)).await
}

fn key(form: &Fields) -> Option<IdempotencyKey> {
    form.get("key").and_then(|text| IdempotencyKey::parse(text).ok())
}

type Asked<'a> = (&'static str, &'a [(&'static str, &'a str)], Request, IdempotencyKey);

async fn execute(
    console: &Console,
    visitor: &Visitor,
    id: &WorkflowId,
    (operation, arguments, request, key): Asked<'_>,
) -> Response<Bytes> {
    let arguments: Map<String, Value> =
        arguments.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
    let call = Call { operation, arguments, key: Some(key), request, meta: Console::meta() };
    let reply = console.engine.execute(&visitor.principal, &call).await;
    let refused = reply.error.map(wf_core::errors::ErrorCode::as_str);
    tracing::info!(
        operation,
        workflow = id.as_str(),
        duplicate = reply.duplicate,
        code = refused,
        "somebody acted at the console"
    );
    told(console, visitor, id, Notice { text: reply.speech, refused, again: reply.duplicate })
}

fn unsaid(text: &str) -> Notice {
    Notice { text: text.to_owned(), refused: Some("VALIDATION_ERROR"), again: false }
}

/// Goes on to the page of the workflow, which says what became of it.
fn told(console: &Console, visitor: &Visitor, id: &WorkflowId, notice: Notice) -> Response<Bytes> {
    let kept = console.ids.random_hex();
    console.notices.keep(kept.clone(), &visitor.principal, notice);
    let place = format!("{ROOT}/workflows/{id}");
    answer::see_other(&request::link(&place, &[("notice", &kept)]))
}
