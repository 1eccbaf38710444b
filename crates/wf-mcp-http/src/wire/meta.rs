//! `_meta` of a request: the keys of MCP 2026-07-28 that the front looks at, and our own.

use serde_json::{Map, Value};
use wf_core::engine::CallMeta;
use wf_core::models::Locale;
use wf_core::state_machine::Rejection;

/// Revision of MCP that the request speaks (MCP 2026-07-28).
pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What the client can do (MCP 2026-07-28).
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Language of the answer.
pub(crate) const LOCALE: &str = "checkpoint/locale";
/// Refuse when the workflow has another revision.
pub(crate) const EXPECTED_REVISION: &str = "checkpoint/expectedRevision";

/// Our own keys. The language is taken as soon as it is one, so that even a refusal speaks it.
pub(crate) fn read(meta: Option<&Map<String, Value>>) -> (CallMeta, Result<(), Rejection>) {
    let mut read = CallMeta::default();
    let mut verdict = Ok(());
    let present = |key: &str| meta.and_then(|m| m.get(key)).filter(|v| !v.is_null());
    if let Some(value) = present(EXPECTED_REVISION) {
        read.expected_revision = value.as_u64();
        if read.expected_revision.is_none() {
            verdict = Err(invalid(EXPECTED_REVISION, "must be an integer, 0 or more"));
        }
    }
    if let Some(value) = present(LOCALE) {
        read.locale = value.as_str().and_then(Locale::parse);
        if read.locale.is_none() {
            verdict = Err(invalid(LOCALE, "must be a language tag such as en or de-CH"));
        }
    }
    (read, verdict)
}

fn invalid(key: &str, rule: &str) -> Rejection {
    Rejection::invalid(&format!("_meta.{key}"), rule)
}

/// Adds `text` under `key`, if there is one.
pub(crate) fn insert_text(meta: &mut Map<String, Value>, key: &str, text: Option<String>) {
    if let Some(text) = text {
        meta.insert(key.to_owned(), text.into());
    }
}

/// Adds an empty object under `key`.
pub(crate) fn insert_object(meta: &mut Map<String, Value>, key: &str) {
    meta.insert(key.to_owned(), Value::Object(Map::new()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn our_keys_are_read_and_checked() {
        let read = |meta: Value| {
            let (meta, verdict) = read(meta.as_object());
            (
                meta.expected_revision,
                meta.locale.map(|l| l.as_str().to_owned()),
                verdict.map_err(|r| r.message),
            )
        };
        assert_eq!(read(json!({})), (None, None, Ok(())));
        assert_eq!(
            read(json!({EXPECTED_REVISION: 7, LOCALE: "de_CH", "other": []})),
            (Some(7), Some("de-ch".into()), Ok(()))
        );
        for bad in [json!("7"), json!(-1), json!(1.5)] {
            assert!(read(json!({ EXPECTED_REVISION: bad })).2.is_err());
        }
        let (_, locale, verdict) = read(json!({EXPECTED_REVISION: "x", LOCALE: "de"}));
        assert_eq!(locale.as_deref(), Some("de"));
        assert!(verdict.is_err());
        assert!(read(json!({ LOCALE: "not a tag!" })).2.is_err());
    }
}
