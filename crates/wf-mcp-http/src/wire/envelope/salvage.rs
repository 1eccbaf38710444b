//! The message around arguments that were refused: enough of it to answer the call.
//!
//! Only typed fields are taken, never a free JSON value: a lenient reader may be tricked by exactly what was refused.
//! What is no JSON to the lenient reader either ends here; what only the strict one refuses (a lone surrogate, for
//! example, is grammatical JSON by RFC 8259 section 8.2) is a fault of the arguments.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use wf_core::idempotency::StrictError;

use super::{Arguments, CALL, Request};
use crate::wire::meta::{
    CLIENT_CAPABILITIES, LOCALE, PROTOCOL_VERSION, insert_object, insert_text,
};

// A field that comes twice is an error of the derived reader, which is what is wanted.
#[derive(Deserialize)]
struct Around {
    jsonrpc: String,
    id: Id,
    method: String,
    params: Params,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Number(i64),
    Text(String),
}

#[derive(Deserialize)]
struct Params {
    name: String,
    #[serde(rename = "arguments")]
    _arguments: IgnoredAny,
    #[serde(rename = "_meta", default)]
    meta: Meta,
}

#[derive(Deserialize, Default)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<IgnoredAny>,
    #[serde(rename = "checkpoint/locale")]
    locale: Option<String>,
}

/// The call whose arguments broke a rule at `path`; `None` when the message around them is not sound either.
pub(super) fn read(bytes: &[u8], path: &str, error: &StrictError) -> Option<Request> {
    let around: Around = serde_json::from_slice(bytes).ok()?;
    if around.jsonrpc != "2.0" || around.method != CALL {
        return None;
    }
    let mut meta = Map::new();
    insert_text(&mut meta, PROTOCOL_VERSION, around.params.meta.version);
    insert_text(&mut meta, LOCALE, around.params.meta.locale);
    if around.params.meta.capabilities.is_some() {
        insert_object(&mut meta, CLIENT_CAPABILITIES);
    }
    let mut params = Map::new();
    params.insert("name".to_owned(), around.params.name.into());
    params.insert("_meta".to_owned(), Value::Object(meta));
    Some(Request {
        id: match around.id {
            Id::Number(number) => number.into(),
            Id::Text(text) => text.into(),
        },
        method: around.method,
        params: Some(params),
        arguments: Arguments::Unsafe {
            field: if path.is_empty() {
                "arguments".to_owned()
            } else {
                path.trim_start_matches('/').replace('/', ".")
            },
            rule: rule(error).to_owned(),
        },
    })
}

fn rule(error: &StrictError) -> &'static str {
    match error {
        StrictError::DuplicateKey { .. } => "must appear only once",
        StrictError::NumberOutOfRange { .. } => {
            "must be a number between -(2^53-1) and 2^53-1; send larger ones as strings"
        }
        StrictError::TooDeep { .. } => "must not be nested deeper than 32 levels",
        StrictError::PrivateKey { .. } => "has a reserved name",
        StrictError::Syntax { .. } => "must be Unicode: it has half of a surrogate pair",
        StrictError::TooLarge { .. } => "must be smaller",
    }
}
