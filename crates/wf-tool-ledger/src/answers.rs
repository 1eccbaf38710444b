//! What callers are told that the tool itself does not say. A refusal is an error result with a sentence for people and
//! models, and the same for programs in `_meta`; the structured content is left to the tool and its schema.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Value, json};
use wf_idempotency::{LedgerEntry, canonical_string, replay};

/// In `_meta` of a result, `true`: this is the stored answer of an earlier call.
pub const META_DUPLICATE: &str = "checkpoint/duplicate";
/// In `_meta` of a refusal: `{"code", "retry": "same_call" | "changed_call" | "no", "after_ms"?}`.
pub const META_RETRY: &str = "checkpoint/retry";

/// Largest answer that is stored, in bytes.
const RESULT_BYTES_MAX: usize = 1024 * 1024;

/// Why a call was not answered by its tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The key is missing or none.
    Key(String),
    /// The arguments have no canonical form.
    Arguments(String),
    /// The key was used for another call.
    Other { operation: String },
    /// The same call is running.
    Running { after_ms: i64 },
    /// Nobody knows what the call did.
    Unknown,
    /// The ledger does not work; nothing was done.
    Ledger,
}

impl Refusal {
    pub(crate) fn result(&self) -> CallToolResult {
        let (code, retry, after_ms, text) = match self {
            Self::Key(rule) => ("VALIDATION_ERROR", "changed_call", None, rule.clone()),
            Self::Arguments(rule) => ("VALIDATION_ERROR", "changed_call", None, rule.clone()),
            Self::Other { operation } => (
                "IDEMPOTENCY_CONFLICT",
                "changed_call",
                None,
                format!(
                    "This idempotency_key was used for another call, of {operation}. Nothing was done. To repeat that \
                     call, send it unchanged; for a new one, use a new key."
                ),
            ),
            Self::Running { after_ms } => (
                "IN_PROGRESS",
                "same_call",
                Some(*after_ms),
                "The same call is being worked on. Send the very same call again later.".to_owned(),
            ),
            Self::Unknown => (
                "OUTCOME_UNKNOWN",
                "no",
                None,
                "Nobody knows whether this call did what it was asked to: it was begun and not finished. It will not be \
                 repeated under this key. Look whether it happened; only if not, make a new call with a new key."
                    .to_owned(),
            ),
            Self::Ledger => (
                "LEDGER_UNAVAILABLE",
                "same_call",
                Some(1_000),
                "Nothing was done: calls cannot be recorded at the moment. Send the very same call again later."
                    .to_owned(),
            ),
        };
        let mut told = json!({ "code": code, "retry": retry });
        if let (Some(after_ms), Some(told)) = (after_ms, told.as_object_mut()) {
            told.insert("after_ms".to_owned(), after_ms.into());
        }
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result.meta = Some(meta(META_RETRY, told));
        result
    }
}

fn meta(key: &str, value: Value) -> MetaObject {
    let mut meta = MetaObject::default();
    meta.insert(key.to_owned(), value);
    meta
}

/// The text that is stored of an answer. One that cannot be stored is replaced by one that says so: the call must not be
/// repeated for want of its words.
pub(crate) fn stored(result: &CallToolResult) -> String {
    let whole = serde_json::to_value(result).ok();
    let text = whole.and_then(|value| canonical_string(&value).ok());
    text.filter(|text| text.len() <= RESULT_BYTES_MAX).unwrap_or_else(|| {
        // Written out: what is left to do when nothing else can be must not be able to fail.
        r#"{"content":[{"text":"This was done. What was answered then could not be kept.","type":"text"}],"isError":false}"#
            .to_owned()
    })
}

/// The stored answer, marked. `None` when the row is damaged: the call must not be repeated then either.
pub(crate) fn again(entry: &LedgerEntry) -> Option<CallToolResult> {
    let Value::Object(mut stored) = replay(entry).ok()? else {
        return None;
    };
    // The mark of `replay` is for results of our own shape; this one belongs to MCP, so it goes into the metadata.
    stored.remove("duplicate");
    let mut result: CallToolResult = serde_json::from_value(Value::Object(stored)).ok()?;
    result.meta.get_or_insert_default().insert(META_DUPLICATE.to_owned(), Value::Bool(true));
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wf_idempotency::Fingerprint;

    fn entry(result: String) -> LedgerEntry {
        LedgerEntry {
            operation: "t".to_owned(),
            fingerprint: Fingerprint::of("t", &serde_json::Map::new(), &[]).unwrap(),
            result_version: 1,
            result,
            created_at_ms: 0,
            expires_at_ms: None,
        }
    }

    #[test]
    fn a_stored_answer_comes_back_unchanged_but_for_its_mark() {
        let mut first = CallToolResult::structured(json!({ "sent": true, "duplicate": "mine" }));
        first.meta = Some(meta("own", json!(1)));
        let mut second = again(&entry(stored(&first))).unwrap();
        let marked = second.meta.as_mut().unwrap().remove(META_DUPLICATE);
        assert_eq!(marked, Some(Value::Bool(true)));
        assert_eq!(second, first);
    }

    #[test]
    fn what_cannot_be_stored_is_not_done_again() {
        for answer in [json!(9_007_199_254_740_993_u64), json!("x".repeat(RESULT_BYTES_MAX))] {
            let answer = CallToolResult::structured(json!({ "answer": answer }));
            let again = again(&entry(stored(&answer))).unwrap();
            assert_eq!(again.is_error, Some(false));
        }
        assert!(again(&entry("damaged".to_owned())).is_none());
    }
}
