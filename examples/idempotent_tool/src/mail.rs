//! The tool, written as if nobody ever asked twice. Two lines of it know of attempts: the name of the mail, and the doubt.

use std::process;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use wf_tool_ledger::Attempt;

use crate::post::{Delivered, Post, PostError};

/// The name of the tool.
pub(crate) const SEND: &str = "send_email";

/// Longest address and subject, in bytes.
const LINE_BYTES_MAX: usize = 200;
/// Longest text, in bytes.
const TEXT_BYTES_MAX: usize = 10_000;

/// An `rmcp` handler with one tool.
#[derive(Debug, Clone)]
pub(crate) struct Mail {
    post: Post,
}

impl Mail {
    pub(crate) fn new(post: Post) -> Self {
        Self { post }
    }

    async fn send(
        &self,
        to: &str,
        subject: &str,
        text: &str,
        attempt: Option<&Attempt>,
    ) -> CallToolResult {
        let name = attempt.map_or_else(unguarded, |attempt| attempt.effect_key().to_owned());
        let id = format!("<{name}@example.com>");
        let mail = format!("To: {to}\r\nSubject: {subject}\r\nMessage-ID: {id}\r\n\r\n{text}\r\n");
        let post = self.post.clone();
        let delivered = spawn_blocking(move || post.deliver(&name, &mail)).await;
        let delivered = match delivered {
            Ok(Ok(delivered)) => delivered,
            Ok(Err(PostError::NotDelivered(error))) => {
                return refused(&format!("It was not sent: {error}."));
            }
            Ok(Err(PostError::Unknown(_))) | Err(_) => {
                if let Some(attempt) = attempt {
                    attempt.in_doubt();
                }
                return refused("It may have been sent.");
            }
        };
        self.post.says_so().await;
        let before = delivered == Delivered::Before;
        CallToolResult::structured(json!({ "to": to, "message_id": id, "sent_before": before }))
    }
}

/// A name for a mail that nobody guards: a new one for each.
fn unguarded() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", now.as_nanos(), process::id())
}

fn refused(text: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::new()
        }
    }
}

fn tool() -> Tool {
    let text = |max: usize| json!({ "type": "string", "minLength": 1, "maxLength": max });
    let schema = json!({
        "type": "object",
        "properties": {
            "to": text(LINE_BYTES_MAX), "subject": text(LINE_BYTES_MAX), "text": text(TEXT_BYTES_MAX),
        },
        "required": ["to", "subject", "text"],
        "additionalProperties": false,
    });
    let output = json!({
        "type": "object",
        "properties": {
            "to": { "type": "string" },
            "message_id": { "type": "string" },
            "sent_before": { "type": "boolean" },
        },
        "required": ["to", "message_id", "sent_before"],
        "additionalProperties": false,
    });
    Tool::new(SEND, "Sends an e-mail.", Arc::new(object(schema)))
        .with_raw_output_schema(Arc::new(object(output)))
        .with_annotations(ToolAnnotations::new().read_only(false).destructive(true))
}

/// One line of a mail's head: nothing in it may begin another.
fn line<'a>(arguments: &'a JsonObject, name: &str) -> Option<&'a str> {
    let text = arguments.get(name)?.as_str()?;
    let fits = (1..=LINE_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control);
    fits.then_some(text)
}

impl ServerHandler for Mail {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == SEND).then(tool)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![tool()]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != SEND {
            return Err(ErrorData::invalid_params("unknown tool", None));
        }
        let arguments = request.arguments.unwrap_or_default();
        let to = line(&arguments, "to").filter(|to| to.contains('@'));
        let text = arguments.get("text").and_then(Value::as_str);
        let text = text.filter(|text| (1..=TEXT_BYTES_MAX).contains(&text.len()));
        let (Some(to), Some(subject), Some(text)) = (to, line(&arguments, "subject"), text) else {
            return Ok(refused("An address, a subject of one line and a text are needed.").into());
        };
        let attempt = context.extensions.get::<Attempt>();
        Ok(self.send(to, subject, text, attempt).await.into())
    }
}
