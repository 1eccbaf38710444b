//! The small parts of a procedure file: texts, ids, durations, bounds, expressions.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;
use wf_core::limits::SPOKEN_TEXT_CHARS_MAX;
use wf_core::models::Text;

use crate::decimal::Decimal;
use crate::problem::Position;
use crate::tree::Node;

/// Something with its place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) at: Position,
}

impl<T: JsonSchema> JsonSchema for Located<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

/// Spoken text: one wording, or one per language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Say(pub(crate) Text);

impl JsonSchema for Say {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = serde_json::json!({ "type": "string", "minLength": 1, "maxLength": SPOKEN_TEXT_CHARS_MAX });
        json_schema!({
            "description": "Plain text to show or speak: one wording, or one per language tag, as { en: …, de: … }.",
            "anyOf": [words.clone(), { "type": "object", "minProperties": 1, "propertyNames": { "pattern": "^[a-z0-9-]{1,35}$" },
                                       "additionalProperties": words }],
        })
    }
}

/// An identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Id(pub(crate) String);

impl JsonSchema for Id {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Id".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$" })
    }
}

/// A duration in milliseconds, written `90s`, `15m`, `4h`, `2d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DurationMs(pub(crate) i64);

impl JsonSchema for DurationMs {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "For example 90s, 15m, 4h, 2d.", "type": "string", "pattern": "^[1-9][0-9]{0,8}[smhd]$" })
    }
}

/// A CEL expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cel {
    pub(crate) source: String,
    /// Columns from the place to the first character, where known.
    pub(crate) shift: Option<usize>,
}

impl JsonSchema for Cel {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cel".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "A CEL expression over inputs, assets and earlier steps.", "type": ["string", "boolean"], "maxLength": 1000 })
    }
}

/// One end of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bound {
    Fixed(Decimal),
    Computed(Cel),
}

impl JsonSchema for Bound {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bound".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "A decimal, or a CEL expression that is a number.", "type": ["number", "string"] })
    }
}

/// A lower and an upper bound; both belong to the range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) low: Located<Bound>,
    pub(crate) high: Located<Bound>,
}

impl JsonSchema for Bounds {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bounds".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bound = generator.subschema_for::<Bound>();
        json_schema!({ "description": "Lower and upper bound, both included.", "type": "array", "items": bound, "minItems": 2, "maxItems": 2 })
    }
}

/// The JSON Schema of the inputs, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputsSchema(pub(crate) Node);

impl InputsSchema {
    pub(crate) fn json(&self) -> Value {
        self.0.to_json()
    }
}

impl JsonSchema for InputsSchema {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Inputs".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A JSON Schema (2020-12) of type object. A property may also have say (how it is called) and sensitive.",
            "type": "object",
            "properties": { "type": { "const": "object" }, "properties": { "type": "object" }, "required": { "type": "array" } },
            "required": ["type"],
        })
    }
}
