//! Where two JSON values differ.

use serde_json::{Map, Value};

/// Where `read` says something else than `written`: a JSON Pointer (RFC 6901) to the first such place. Numbers are equal when
/// their RFC 8785 forms are.
pub(super) fn difference(written: &Value, read: &Value) -> Option<String> {
    match (written, read) {
        (Value::Object(one), Value::Object(other)) => members(one, other),
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(at, (a, b))| difference(a, b).map(|below| format!("/{at}{below}")))
        }
        (Value::Number(_), Value::Number(_)) => {
            let form = |value: &Value| wf_idempotency::canonical_string(value).ok();
            (form(written) != form(read)).then(String::new)
        }
        (one, other) => (one != other).then(String::new),
    }
}

fn members(one: &Map<String, Value>, other: &Map<String, Value>) -> Option<String> {
    let below = |name: &str, rest: &str| {
        let name: String = name.chars().take(NAME_CHARS_SHOWN).collect();
        format!("/{}{rest}", name.replace('~', "~0").replace('/', "~1"))
    };
    for (name, value) in one {
        match other.get(name) {
            Some(same) => {
                if let Some(rest) = difference(value, same) {
                    return Some(below(name, &rest));
                }
            }
            None => return Some(below(name, "")),
        }
    }
    other.keys().find(|name| !one.contains_key(*name)).map(|name| below(name, ""))
}

/// Characters of a member's name that are shown: it comes from the document.
const NAME_CHARS_SHOWN: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_difference_is_named() {
        let of = |one: Value, other: Value| difference(&one, &other);
        assert_eq!(of(json!({"a": [1, {"b": 1.0}]}), json!({"a": [1, {"b": 1}]})), None);
        assert_eq!(
            of(json!({"a": [1, {"b/c": 2}]}), json!({"a": [1, {"b/c": 3}]})).as_deref(),
            Some("/a/1/b~1c")
        );
        assert_eq!(of(json!({"a": 1, "b": 2}), json!({"a": 1})).as_deref(), Some("/b"));
        assert_eq!(of(json!({"a": 1}), json!({"a": 1, "c": null})).as_deref(), Some("/c"));
        assert_eq!(of(json!([1]), json!([1, 2])).as_deref(), Some(""));
        assert_eq!(of(json!("1"), json!(1)).as_deref(), Some(""));
    }
}
