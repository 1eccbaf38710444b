//! Random JSON values, and random ways to write one value down.

use proptest::prelude::*;
use serde_json::{Map, Number, Value};

const MAX_SAFE: i64 = 9_007_199_254_740_991;

/// Text with what JSON finds special in it.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{0,2}",
        "[\"\\\\/\u{0}-\u{1f}\u{7f}\u{2028}é😀\u{fb33}a$]{0,6}",
        any::<String>(),
    ]
}

fn exact_number() -> impl Strategy<Value = Number> {
    prop_oneof![
        (-12_i64..12).prop_map(Number::from),
        (-MAX_SAFE..=MAX_SAFE).prop_map(Number::from),
        Just(Number::from(MAX_SAFE)),
        prop::num::f64::NORMAL.prop_filter_map("beyond 2^53-1", |double| {
            let exact = double.abs() <= 9_007_199_254_740_991.0;
            Number::from_f64(double).filter(|_| exact)
        }),
        (-1e6..1e6).prop_filter_map("not finite", Number::from_f64),
        Just(0.0).prop_filter_map("not finite", Number::from_f64),
        Just(-0.0).prop_filter_map("not finite", Number::from_f64),
        Just(5e-324).prop_filter_map("not finite", Number::from_f64),
    ]
}

fn value_of(number: impl Strategy<Value = Number> + 'static) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number.prop_map(Value::Number),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((text(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
    .boxed()
}

/// Values whose numbers the strict reader takes.
pub(crate) fn exact_value() -> BoxedStrategy<Value> {
    value_of(exact_number())
}

/// Values with finite doubles of any size.
pub(crate) fn any_value() -> BoxedStrategy<Value> {
    value_of(prop_oneof![
        exact_number(),
        any::<f64>().prop_filter_map("not finite", Number::from_f64),
        Just(9_007_199_254_740_992.0).prop_filter_map("not finite", Number::from_f64),
    ])
}

/// Objects of [`exact_value`]s.
pub(crate) fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((text(), exact_value()), 0..6)
        .prop_map(|members| members.into_iter().collect())
}

/// Values so small that two of them are often equal, or nearly so.
pub(crate) fn tiny_value() -> BoxedStrategy<Value> {
    let number = prop_oneof![
        (-1_i64..2).prop_map(Number::from),
        prop::sample::select(vec![-1.0, -0.0, 0.0, 0.5, 1.0])
            .prop_filter_map("not finite", Number::from_f64),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        number.prop_map(Value::Number),
        "[01]?".prop_map(Value::String),
    ];
    leaf.prop_recursive(2, 5, 2, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec(("[ab]?", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
    .boxed()
}

/// Whether two values mean the same: numbers as doubles, objects without order.
pub(crate) fn same_json(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_json(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same_json(a, b)))
        }
        _ => a == b,
    }
}

/// A stream of choices, repeated when it ends.
#[derive(Debug)]
pub(crate) struct Choices {
    bytes: Vec<u8>,
    at: usize,
}

impl Choices {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0 }
    }

    fn below(&mut self, n: usize) -> usize {
        let byte = self.bytes.get(self.at % self.bytes.len().max(1)).copied();
        self.at += 1;
        usize::from(byte.unwrap_or(0)) % n
    }
}

pub(crate) fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..200)
}

/// One of the many texts that mean `value`: members in any order, any space, any escapes, numbers in
/// any notation.
pub(crate) fn written(value: &Value, choices: &mut Choices) -> String {
    let mut out = String::new();
    write_value(value, choices, &mut out);
    space(choices, &mut out);
    out
}

fn space(choices: &mut Choices, out: &mut String) {
    out.push_str(["", "", " ", "\n", "\t\r ", ""][choices.below(6)]);
}

fn write_value(value: &Value, choices: &mut Choices, out: &mut String) {
    space(choices, out);
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(&flag.to_string()),
        Value::Number(number) => write_number(number, choices, out),
        Value::String(text) => write_text(text, choices, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_value(item, choices, out);
                space(choices, out);
            }
            space(choices, out);
            out.push(']');
        }
        Value::Object(members) => {
            let mut left: Vec<_> = members.iter().collect();
            out.push('{');
            while !left.is_empty() {
                let (key, value) = left.swap_remove(choices.below(left.len()));
                space(choices, out);
                write_text(key, choices, out);
                space(choices, out);
                out.push(':');
                write_value(value, choices, out);
                space(choices, out);
                out.push_str(if left.is_empty() { "" } else { "," });
            }
            space(choices, out);
            out.push('}');
        }
    }
}

fn write_number(number: &Number, choices: &mut Choices, out: &mut String) {
    let double = number.as_f64().unwrap();
    if double == 0.0 {
        out.push_str(["0", "-0", "0.0", "-0.0", "0e7", "0E-0"][choices.below(6)]);
    } else if let Some(n) = number.as_i64() {
        out.push_str(&match choices.below(6) {
            0 => format!("{n}.0"),
            1 => format!("{n}e0"),
            2 => format!("{n}0e-1"),
            3 => format!("{n}.000E+0"),
            4 => format!("{double:e}"),
            _ => format!("{n}"),
        });
    } else {
        // Both are the shortest text of exactly this double.
        out.push_str(&match choices.below(3) {
            0 => format!("{double:e}"),
            1 => format!("{double:E}"),
            _ => format!("{double}"),
        });
    }
}

fn write_text(text: &str, choices: &mut Choices, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        let choice = choices.below(6);
        let short = match c {
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '/' => Some("\\/"),
            '\n' => Some("\\n"),
            '\r' => Some("\\r"),
            '\t' => Some("\\t"),
            '\u{8}' => Some("\\b"),
            '\u{c}' => Some("\\f"),
            _ => None,
        };
        match short {
            Some(short) if choice < 3 => out.push_str(short),
            _ if choice < 5 && c >= ' ' && c != '"' && c != '\\' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&if choice.is_multiple_of(2) {
                        format!("\\u{unit:04x}")
                    } else {
                        format!("\\u{unit:04X}")
                    });
                }
            }
        }
    }
    out.push('"');
}
