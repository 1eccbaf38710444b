//! A document as a tree in which every part knows its place: what `format` reads.
//!
//! It is built from a YAML or JSON text (`tree::yaml`) or from a stored JSON document, which has no places. Numbers
//! keep their written digits.

pub(crate) mod yaml;

use serde_json::{Map, Number, Value};

use crate::problem::Position;

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// Where it starts.
    pub(crate) at: Position,
    /// Columns from `at` to the first character of a text, where the text is written without escapes on one line.
    pub(crate) shift: Option<usize>,
    /// What it is.
    pub(crate) content: Content,
}

/// What a part of a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing, or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, by its digits: `-?digits[.digits]`.
    Number(String),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map, in the written order, without duplicate keys.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// Where the key stands.
    pub(crate) key_at: Position,
    /// The value.
    pub(crate) value: Node,
}

impl Node {
    /// What it is, in words for messages.
    pub(crate) fn what(&self) -> &'static str {
        match self.content {
            Content::Null => "nothing",
            Content::Bool(_) => "true or false",
            Content::Number(_) => "a number",
            Content::Text(_) => "text",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }

    /// Its value under `key`, when it is a map that has one.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.content {
            Content::Map(entries) => entries.iter().find(|e| e.key == key).map(|e| &e.value),
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::Text(_)
            | Content::List(_) => None,
        }
    }

    /// The deepest part that the JSON Pointer segments lead to.
    pub(crate) fn deepest<'a>(&self, segments: impl Iterator<Item = &'a str>) -> &Self {
        let mut node = self;
        for segment in segments {
            let next = match &node.content {
                Content::List(items) => segment.parse().ok().and_then(|i: usize| items.get(i)),
                Content::Map(_) => node.get(segment),
                Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }

    /// How many parts it has, itself included.
    fn size(&self) -> usize {
        1 + match &self.content {
            Content::List(items) => items.iter().map(Self::size).sum(),
            Content::Map(entries) => entries.iter().map(|e| e.value.size()).sum(),
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => 0,
        }
    }

    /// The document as JSON, nothing added. Numbers were checked to survive (`yaml::number`).
    pub(crate) fn to_json(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(b) => Value::Bool(*b),
            Content::Number(digits) => json_number(digits),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Content::Map(entries) => Value::Object(
                entries.iter().map(|e| (e.key.clone(), e.value.to_json())).collect::<Map<_, _>>(),
            ),
        }
    }

    /// The tree of a stored document.
    pub(crate) fn from_json(value: &Value) -> Self {
        let content = match value {
            Value::Null => Content::Null,
            Value::Bool(b) => Content::Bool(*b),
            Value::Number(n) => Content::Number(digits_of(n)),
            Value::String(text) => Content::Text(text.clone()),
            Value::Array(items) => Content::List(items.iter().map(Self::from_json).collect()),
            Value::Object(members) => Content::Map(
                members
                    .iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        key_at: Position::default(),
                        value: Self::from_json(value),
                    })
                    .collect(),
            ),
        };
        Self { at: Position::default(), shift: None, content }
    }
}

/// The JSON number with these digits; the nearest double when it has a fraction.
fn json_number(digits: &str) -> Value {
    digits
        .parse::<i64>()
        .map(Number::from)
        .ok()
        .or_else(|| digits.parse().ok().and_then(Number::from_f64))
        .map_or(Value::Null, Value::Number)
}

/// The digits of a JSON number without exponent. A double gives its shortest digits, which are the written ones of
/// every number that was accepted from a file.
pub(crate) fn digits_of(number: &Number) -> String {
    match number.as_f64() {
        Some(double) if number.is_f64() => format!("{double}"),
        Some(_) | None => number.to_string(),
    }
}
