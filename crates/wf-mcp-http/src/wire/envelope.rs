//! The JSON-RPC message in a body, read strictly.
//!
//! rmcp reads leniently (of two equal keys the last counts) and answers what it cannot read with a bare 415, so the
//! bytes are read here first. What is well-formed JSON but unsafe to hash *inside the arguments of a tool* is no fault
//! of the message: it goes on as [`Arguments::Unsafe`] and becomes a VALIDATION_ERROR of that tool, as long as the
//! message around it is sound (`salvage`).

mod salvage;

use serde_json::{Map, Value};
use wf_core::idempotency::{StrictError, StrictLimits, parse_strict};
use wf_core::limits::JSON_DEPTH_MAX;

use crate::fault::{RpcFault, RpcKind};

/// A message, the arguments of a tool taken out of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// Wants an answer.
    Request(Request),
    /// Wants none.
    Notification,
    /// Answers a request that this server never sent.
    Response,
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    /// A string or an integer.
    pub(crate) id: Value,
    /// The method.
    pub(crate) method: String,
    /// Its parameters; of `tools/call` without the arguments.
    pub(crate) params: Option<Map<String, Value>>,
    /// Of `tools/call` only.
    pub(crate) arguments: Arguments,
}

/// The arguments of a tool as the client sent them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arguments {
    /// An object; empty when there were none.
    Object(Map<String, Value>),
    /// Something else: its JSON type.
    NoObject(&'static str),
    /// Something with two meanings: where it is below the arguments, and the broken rule.
    Unsafe {
        /// The argument, with `.` between levels.
        field: String,
        /// What is wrong and what would be right.
        rule: String,
    },
}

impl Default for Arguments {
    fn default() -> Self {
        Self::Object(Map::new())
    }
}

const CALL: &str = "tools/call";
const ARGUMENTS: &str = "/params/arguments";
/// What a call may have besides its arguments; the last two answer what was asked back (MCP 2026-07-28).
const KEPT: &[&str] = &["name", "_meta", "inputResponses", "requestState"];

/// Reads the message of a body.
pub(crate) fn read(bytes: &[u8]) -> Result<Message, RpcFault> {
    let limits = StrictLimits {
        // The layers have bounded the size.
        max_bytes: bytes.len(),
        max_depth: JSON_DEPTH_MAX,
    };
    match parse_strict(bytes, limits) {
        Ok(value) => message(value),
        Err(error) => {
            let inside = error.path().and_then(|path| path.strip_prefix(ARGUMENTS));
            let salvaged = inside.and_then(|path| salvage::read(bytes, path, &error));
            let kind = match error {
                StrictError::Syntax { .. } => RpcKind::Parse,
                StrictError::TooLarge { .. }
                | StrictError::TooDeep { .. }
                | StrictError::DuplicateKey { .. }
                | StrictError::NumberOutOfRange { .. }
                | StrictError::PrivateKey { .. } => RpcKind::InvalidRequest,
            };
            salvaged
                .map(Message::Request)
                .ok_or_else(|| RpcFault::new(None, kind, error.to_string()))
        }
    }
}

fn message(value: Value) -> Result<Message, RpcFault> {
    let invalid =
        |id: Option<&Value>, text: &str| Err(RpcFault::new(id, RpcKind::InvalidRequest, text));
    let mut fields = match value {
        Value::Object(fields) => fields,
        Value::Array(_) => return invalid(None, "batches are not accepted: send one message"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return invalid(None, "a message is a JSON object");
        }
    };
    let id = match fields.remove("id") {
        None => None,
        Some(id) if id.is_string() || id.is_i64() => Some(id),
        Some(_) => return invalid(None, "id must be a string or an integer"),
    };
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(id.as_ref(), "jsonrpc must be \"2.0\"");
    }
    let method = match fields.remove("method") {
        Some(Value::String(method)) => method,
        Some(_) => return invalid(id.as_ref(), "method must be a string"),
        None if fields.contains_key("result") || fields.contains_key("error") => {
            return Ok(Message::Response);
        }
        None => return invalid(id.as_ref(), "method is missing"),
    };
    let params = match fields.remove("params") {
        // Some clients write null for nothing.
        None | Some(Value::Null) => None,
        Some(Value::Object(params)) => Some(params),
        Some(_) => return invalid(id.as_ref(), "params must be an object"),
    };
    let Some(id) = id else {
        if method.starts_with("notifications/") {
            return Ok(Message::Notification);
        }
        // Not done silently: whoever calls a method waits for its answer.
        return invalid(None, "a request needs an id");
    };
    request(id, method, params).map(Message::Request)
}

fn request(
    id: Value,
    method: String,
    mut params: Option<Map<String, Value>>,
) -> Result<Request, RpcFault> {
    let mut arguments = Arguments::default();
    if method == CALL {
        let params = params.get_or_insert_default();
        if !params.get("name").is_some_and(Value::is_string) {
            let text = "params.name must be the name of a tool";
            return Err(RpcFault::new(Some(&id), RpcKind::InvalidParams, text));
        }
        arguments = match params.remove("arguments") {
            None | Some(Value::Null) => Arguments::default(),
            Some(Value::Object(map)) => Arguments::Object(map),
            Some(other) => Arguments::NoObject(json_type(&other)),
        };
        // What else a client may send with a call (a task, for example) is not offered here, and rmcp would take a
        // call with one that it cannot read for an unknown method.
        params.retain(|key, _| KEPT.contains(&key.as_str()));
    }
    Ok(Request { id, method, params, arguments })
}

/// The name of a value's JSON type.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

impl Request {
    /// The message without the arguments, for rmcp: it must not read, nor log, them again.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut fields = Map::new();
        fields.insert("jsonrpc".to_owned(), "2.0".into());
        fields.insert("id".to_owned(), self.id.clone());
        fields.insert("method".to_owned(), self.method.clone().into());
        if let Some(params) = &self.params {
            fields.insert("params".to_owned(), Value::Object(params.clone()));
        }
        Value::Object(fields).to_string().into_bytes()
    }

    /// Puts the arguments back into the message, where they are an object. What is kept then are none.
    pub(crate) fn restore(&mut self) {
        match std::mem::take(&mut self.arguments) {
            Arguments::Object(map) => {
                self.params.get_or_insert_default().insert("arguments".to_owned(), map.into());
            }
            unfit @ (Arguments::NoObject(_) | Arguments::Unsafe { .. }) => self.arguments = unfit,
        }
    }

    /// The name of the tool, for `tools/call`.
    pub(crate) fn tool(&self) -> Option<&str> {
        let params = self.params.as_ref().filter(|_| self.method == CALL)?;
        params.get("name")?.as_str()
    }

    /// The request's metadata.
    pub(crate) fn meta(&self) -> Option<&Map<String, Value>> {
        self.params.as_ref()?.get("_meta")?.as_object()
    }
}

#[cfg(test)]
mod tests;
