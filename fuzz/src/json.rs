//! JSON a second time, to compare with: what `serde_json` makes of a text and what it saw on the way ([`Witness`]), and one of
//! the many texts of a value ([`written`]). Nothing here is the product's.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// 2^53-1.
const EXACT: u64 = 9_007_199_254_740_991;

/// What a text holds, as far as `serde_json` reads it.
#[derive(Debug, Default, Clone)]
pub struct Witness {
    /// The value; of equal keys the last.
    pub value: Value,
    /// Some object has a key twice.
    pub duplicate: bool,
    /// Most arrays and objects that are open at once.
    pub depth: usize,
    /// Some number is beyond ±(2^53-1).
    pub inexact: bool,
    /// Some key begins as those that `serde_json` has for itself.
    pub private: bool,
}

/// What `serde_json` sees in one document; `None` where it sees none.
#[must_use]
pub fn witness(bytes: &[u8]) -> Option<Witness> {
    let mut seen = Witness::default();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Node { seen: &mut seen, depth: 0 }.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    seen.value = value;
    Some(seen)
}

struct Node<'a> {
    seen: &'a mut Witness,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        self.seen.inexact |= number.unsigned_abs() > EXACT;
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        self.seen.inexact |= number > EXACT;
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        self.seen.inexact |= number.abs() > EXACT as f64;
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let depth = self.depth + 1;
        self.seen.depth = self.seen.depth.max(depth);
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(Node { seen: self.seen, depth })? {
            all.push(item);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let depth = self.depth + 1;
        self.seen.depth = self.seen.depth.max(depth);
        let (mut all, mut keys) = (Map::new(), BTreeSet::new());
        while let Some(key) = members.next_key::<String>()? {
            self.seen.duplicate |= !keys.insert(key.clone());
            self.seen.private |= key.starts_with("$serde_json::private::");
            let value = members.next_value_seed(Node { seen: self.seen, depth })?;
            all.insert(key, value);
        }
        Ok(all.into())
    }
}

/// Whether two values mean the same: numbers as doubles, objects without order.
#[must_use]
pub fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let found =
                |(key, one): (&String, &Value)| other.get(key).is_some_and(|o| same(one, o));
            one.len() == other.len() && one.iter().all(found)
        }
        _ => one == other,
    }
}

/// A stream of choices; zeros when it ends.
#[derive(Debug)]
pub struct Choices<'a>(pub &'a [u8]);

impl<'a> Choices<'a> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// The next bytes, at most `count`.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Some text, of at most 15 bytes.
    pub fn text(&mut self) -> String {
        let count = self.below(16);
        String::from_utf8_lossy(self.take(count)).into_owned()
    }

    /// Any finite double.
    pub fn double(&mut self) -> f64 {
        let mut bytes = [0; 8];
        for byte in &mut bytes {
            *byte = self.byte();
        }
        let double = f64::from_le_bytes(bytes);
        if double.is_finite() { double } else { 0.1 }
    }

    /// A value of at most `depth` levels.
    pub fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth > 0 { 9 } else { 6 }) {
            0 => Value::Null,
            1 => Value::from(self.byte() % 2 == 0),
            2 => Value::from(self.text()),
            3 => Value::from(self.double()),
            // Whole numbers, small ones and those about 2^53.
            4 => Value::from(i64::from(self.byte()) - 128),
            5 => Value::from(EXACT - 2 + u64::from(self.byte() % 5)),
            6 => {
                let count = self.below(6);
                Value::from((0..count).map(|_| self.value(depth - 1)).collect::<Vec<_>>())
            }
            _ => {
                let count = self.below(6);
                Value::Object((0..count).map(|_| (self.text(), self.value(depth - 1))).collect())
            }
        }
    }
}

/// One of the many texts that mean `value`: members in any order, any space, any escapes, numbers in any notation.
#[must_use]
pub fn written(value: &Value, choices: &mut Choices<'_>) -> String {
    let mut out = String::new();
    write(value, choices, &mut out);
    space(choices, &mut out);
    out
}

fn space(choices: &mut Choices<'_>, out: &mut String) {
    out.push_str(["", "", " ", "\n", "\t\r ", ""][choices.below(6)]);
}

fn write(value: &Value, choices: &mut Choices<'_>, out: &mut String) {
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
                write(item, choices, out);
                space(choices, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut left: Vec<_> = members.iter().collect();
            out.push('{');
            while !left.is_empty() {
                let (key, value) = left.swap_remove(choices.below(left.len().min(255)));
                space(choices, out);
                write_text(key, choices, out);
                space(choices, out);
                out.push(':');
                write(value, choices, out);
                space(choices, out);
                out.push_str(if left.is_empty() { "" } else { "," });
            }
            out.push('}');
        }
    }
}

fn write_number(number: &Number, choices: &mut Choices<'_>, out: &mut String) {
    let double = number.as_f64().unwrap_or_default();
    let text = if double == 0.0 {
        ["0", "-0", "0.0", "-0.0", "0e7", "0E-0"][choices.below(6)].to_owned()
    } else if let Some(n) = number.as_i64() {
        match choices.below(6) {
            0 => format!("{n}.0"),
            1 => format!("{n}e0"),
            2 => format!("{n}0e-1"),
            3 => format!("{n}.000E+0"),
            4 => format!("{double:e}"),
            _ => format!("{n}"),
        }
    } else {
        // All of them are the shortest text of exactly this double.
        match choices.below(3) {
            0 => format!("{double:e}"),
            1 => format!("{double:E}"),
            _ => format!("{double}"),
        }
    };
    out.push_str(&text);
}

fn write_text(text: &str, choices: &mut Choices<'_>, out: &mut String) {
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
                    let even = choice.is_multiple_of(2);
                    out.push_str(&if even {
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
