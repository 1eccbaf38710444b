//! The engine's reply as the result of a tool (mcp.md, "One result shape").

use rmcp::model::{CallToolResult, ContentBlock};
use wf_core::engine::Reply;
use wf_core::idempotency::{CanonicalError, canonical_string};

use crate::fault::carried_as_result;

/// Wraps a reply: `structuredContent` is its body, `content[0]` its speech, `content[1]` the body's canonical text, for
/// clients of 2025-03-26 that know no structured content.
pub(crate) fn wrap(reply: Reply) -> Result<CallToolResult, CanonicalError> {
    let text = match reply.text {
        Some(text) => text,
        None => canonical_string(&reply.body)?,
    };
    let content = vec![ContentBlock::text(reply.speech), ContentBlock::text(text)];
    let mut result = CallToolResult::success(content);
    result.is_error = Some(reply.error.is_some_and(carried_as_result));
    result.structured_content = Some(reply.body);
    Ok(result)
}
