//! Writes a call as bytes, in any of the ways that mean the same.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::call::Style;

/// The largest whole number that is written with a point or an exponent.
const PLAIN_MAX: u64 = 1 << 40;

/// The body of a `tools/call`. `broken` names one argument twice, which has no one meaning.
pub(super) fn body(
    tool: &str,
    arguments: &Map<String, Value>,
    expects: Option<u64>,
    style: Style,
    broken: bool,
) -> String {
    let mut written = value(&Value::Object(arguments.clone()), style);
    if let (true, Some((name, again))) = (broken, arguments.iter().next()) {
        written.truncate(written.rfind('}').unwrap_or(written.len()));
        let (name, again) = (text(name, style), value(again, style));
        let _ = write!(written, ",{name}:{again}}}");
    }
    let meta = expects.map_or_else(String::new, |revision| {
        format!(r#""_meta":{{"checkpoint/expectedRevision":{revision}}},"#)
    });
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}",{meta}"arguments":{written}}}}}"#
    )
}

fn value(json: &Value, style: Style) -> String {
    let (space, line) = if style.spaced { ("\t ", " \r\n ") } else { ("", "") };
    match json {
        Value::Object(members) => {
            let mut parts: Vec<String> = members
                .iter()
                .map(|(name, member)| {
                    format!("{line}{}{space}:{space}{}", text(name, style), value(member, style))
                })
                .collect();
            if style.reversed {
                parts.reverse();
            }
            format!("{{{}{line}}}", parts.join(","))
        }
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().map(|item| value(item, style)).collect();
            format!("[{space}{}{space}]", parts.join(","))
        }
        Value::String(string) => text(string, style),
        Value::Number(number) => {
            match (number.as_u64().filter(|n| *n < PLAIN_MAX), style.numbers) {
                (Some(n), 1) => format!("{n}.0"),
                (Some(0), 2) => "0e-1".to_owned(),
                (Some(n), 2) => format!("{n}0e-1"),
                (Some(_) | None, _) => number.to_string(),
            }
        }
        Value::Null | Value::Bool(_) => json.to_string(),
    }
}

fn text(string: &str, style: Style) -> String {
    if !style.escaped {
        return Value::from(string).to_string();
    }
    let mut written = String::from("\"");
    for unit in string.encode_utf16() {
        // Writing to a String cannot fail.
        let _ = write!(written, "\\u{unit:04x}");
    }
    written.push('"');
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_style_means_the_same() {
        let asked = json!({"b": {"count": 7, "text": "Gerät 𝄞 \"x\""}, "a": ["y", 0]});
        let arguments = asked.as_object().expect("an object");
        let mut written = std::collections::BTreeSet::new();
        for bits in 0..24_u8 {
            let style = Style {
                reversed: bits & 1 > 0,
                escaped: bits & 2 > 0,
                spaced: bits & 4 > 0,
                numbers: bits / 8,
            };
            let body = body("tool", arguments, Some(3), style, false);
            let read: Value = serde_json::from_str(&body).expect("JSON");
            let read = &read["params"]["arguments"];
            assert_eq!(read["a"][0], asked["a"][0]);
            assert_eq!(read["a"][1].as_f64(), Some(0.0), "{body}");
            assert_eq!(read["b"]["count"].as_f64(), Some(7.0), "{body}");
            assert_eq!(read["b"]["text"], asked["b"]["text"]);
            written.insert(body);
        }
        assert_eq!(written.len(), 24, "each style has its own bytes");
    }

    #[test]
    fn a_broken_call_names_an_argument_twice() {
        let arguments = Map::from_iter([("a".to_owned(), json!("x"))]);
        let body = body("tool", &arguments, None, Style::default(), true);
        assert!(body.ends_with(r#""arguments":{"a":"x","a":"x"}}}"#), "{body}");
    }
}
