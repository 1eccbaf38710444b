//! The file format: one Rust type per map of a procedure file, as written, with places.
//!
//! `format::read` fills these types from a tree and refuses what has the wrong shape; `compile` gives them meaning. The
//! JSON Schema under docs/ is generated from them (`schema`).

pub(crate) mod fields;
pub(crate) mod read;
mod steps;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;
use wf_core::limits::SPOKEN_TEXT_CHARS_MAX;
use wf_core::models::{Severity, Text};
use wf_core::policy::Effect;

use crate::decimal::Decimal;
use crate::problem::Position;
use crate::tree::Node;

/// What `schema:` must say.
pub(crate) const SCHEMA: &str = "checkpoint/procedure/v1";

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

/// A procedure.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename = "Procedure", deny_unknown_fields)]
pub(crate) struct Document {
    /// The format of this file.
    pub(crate) schema: SchemaName,
    /// The procedure's id.
    pub(crate) id: Located<Id>,
    /// Grows with every change: a changed file with the same version is refused.
    #[schemars(range(min = 1))]
    pub(crate) version: Located<u32>,
    /// What people call it.
    pub(crate) title: Located<Say>,
    /// Whether steps are taken one after the other (the default) or in any order.
    pub(crate) order: Option<Order>,
    /// What a workflow holds while it is open.
    #[schemars(length(max = 16))]
    pub(crate) assets: Option<Located<Vec<Asset>>>,
    /// What must be given to start.
    pub(crate) inputs: Option<Located<InputsSchema>>,
    /// When a silent holder may be relieved; never when absent.
    pub(crate) stale_after: Option<Located<DurationMs>>,
    /// The IANA time zone that times are spoken in.
    pub(crate) timezone: Option<Located<String>>,
    /// Reasons for skips and corrections, in their spoken order.
    pub(crate) reasons: Option<Located<Vec<Reason>>>,
    /// The steps, in order.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) steps: Located<Vec<Step>>,
    /// How reported problems and blocking choices are escalated and decided.
    pub(crate) blocks: Option<Blocks>,
    /// Ways to finish; done when absent. Abandoned always exists.
    pub(crate) results: Option<Located<Vec<ResultSpec>>>,
    /// Kinds of events that are told to whoever subscribed.
    pub(crate) notify: Option<Located<Vec<Located<String>>>>,
}

/// The format's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SchemaName;

impl JsonSchema for SchemaName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SchemaName".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": SCHEMA })
    }
}

/// In which order steps are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum Order {
    /// One after the other.
    Sequence,
    /// Any open step may be taken.
    Any,
}

/// A thing that a workflow holds.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Asset {
    /// The part it plays.
    pub(crate) role: Located<Id>,
    /// How it is called; the words of the role when absent.
    pub(crate) say: Option<Located<Say>>,
    /// How its ids look.
    pub(crate) id: Located<AssetIdForm>,
    /// An id, for help texts.
    pub(crate) example: Option<Located<String>>,
}

/// How ids of an asset look.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum AssetIdForm {
    /// A prefix and a number; case, spaces and hyphens do not count when somebody says one.
    Numbered(NumberedId),
    /// Whatever matches a pattern as a whole.
    Pattern(PatternId),
}

/// Ids of a prefix and a number.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NumberedId {
    /// What every id starts with, for example PUMP-.
    pub(crate) prefix: Located<Id>,
    /// The number.
    pub(crate) digits: DigitsSpec,
}

/// The number of a numbered id.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct DigitsSpec {
    /// How many digits it has at most.
    #[schemars(range(min = 1, max = 18))]
    pub(crate) max: Located<u32>,
    /// Whether 007 is 7 (drop, the default) or another id (keep).
    pub(crate) leading_zeros: Option<LeadingZeros>,
}

/// What leading zeros mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum LeadingZeros {
    /// Nothing: 007 is 7.
    Drop,
    /// They count: 007 is not 7.
    Keep,
}

/// Ids by pattern.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct PatternId {
    /// A regular expression that the whole id matches.
    pub(crate) pattern: Located<String>,
}

/// A reason for a skip or a correction.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Reason {
    /// What a call sends.
    pub(crate) code: Located<Id>,
    /// How it is called; the words of the code when absent.
    pub(crate) say: Option<Located<Say>>,
}

/// One item of the procedure.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Step {
    /// Its id.
    pub(crate) id: Located<Id>,
    /// The question.
    pub(crate) prompt: Located<Say>,
    /// How it is called where its id could be heard; the words of the id when absent.
    pub(crate) say: Option<Located<Say>>,
    /// The workflow cannot pass without it; true when absent.
    pub(crate) required: Option<Located<bool>>,
    /// When it may be skipped; never for required steps and freely for others when absent.
    pub(crate) skip: Option<Located<Skip>>,
    /// The step is done only where this holds.
    pub(crate) when: Option<Located<Cel>>,
    /// Its values are stored, and in no result, log, notification or speech.
    pub(crate) sensitive: Option<Located<bool>>,
    /// Whether a value is read back before it is recorded; never when absent.
    pub(crate) confirm: Option<Located<Confirm>>,
    /// What is asked.
    #[schemars(flatten)]
    pub(crate) kind: Kind,
}

/// When a step may be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum Skip {
    /// Never.
    Never,
    /// With a reason.
    Reason,
    /// With a reason, by a supervisor.
    Supervisor,
}

/// Whether a value is read back before it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum Confirm {
    /// Never.
    Never,
    /// When it is outside what is accepted.
    OutOfRange,
    /// Always.
    Always,
}

/// What a step asks.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Yes, or not yet.
    Confirm,
    /// A number.
    Number(Box<Number>),
    /// One of several.
    Choice(Choice),
    /// Words.
    Text(TextSpec),
}

/// A number step.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub(crate) struct Number {
    /// The unit values are meant in; none for a bare number.
    pub(crate) unit: Option<Located<UnitSpec>>,
    /// Units an answer may come in; the server converts. The step's own when absent.
    pub(crate) accept_units: Option<Located<Vec<Located<String>>>>,
    /// How many decimals a value may have.
    #[schemars(range(max = 12))]
    pub(crate) decimals: Option<Located<u32>>,
    /// What is possible, accepted and usual, in the step's unit.
    pub(crate) range: Option<Range>,
    /// What happens to a value outside what is accepted; it blocks when absent.
    pub(crate) out_of_range: Option<Located<OutOfRange>>,
}

/// A unit by its symbol, or with words of its own.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum UnitSpec {
    /// A known symbol.
    Symbol(String),
    /// A symbol and how it is spoken. One that is not known converts into nothing.
    Words(UnitWordsSpec),
}

/// A symbol and how it is spoken.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct UnitWordsSpec {
    /// As written.
    pub(crate) symbol: Located<String>,
    /// As spoken for one.
    pub(crate) one: Located<Say>,
    /// As spoken for several.
    pub(crate) many: Located<Say>,
}

/// Ranges of a number, in the step's unit.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Range {
    /// Outside is impossible: not recorded, asked again.
    pub(crate) instrument: Option<Located<Bounds>>,
    /// Outside is recorded and out of range.
    pub(crate) accept: Option<Located<Bounds>>,
    /// Outside is recorded with a warning.
    pub(crate) warn: Option<Located<Bounds>>,
}

/// What happens to a value outside what is accepted.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct OutOfRange {
    /// Block (the default) or warn.
    pub(crate) action: Option<Located<Action>>,
    /// The code of the block; the step's id with _OUT_OF_RANGE when absent.
    pub(crate) code: Option<Located<Id>>,
    /// What is asked of the decider.
    pub(crate) question: Option<Located<Say>>,
    /// Who is told; as under blocks when absent.
    pub(crate) escalate: Option<Located<Escalate>>,
    /// What may be decided; as under blocks when absent.
    pub(crate) decisions: Option<Located<Vec<Decision>>>,
}

/// What a value out of range does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum Action {
    /// It blocks the workflow.
    Block,
    /// It is recorded with a warning.
    Warn,
}

/// Who is told of a block.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Escalate {
    /// A recipient of the server's configuration.
    pub(crate) to: Located<Id>,
    /// How bad it is; high when absent.
    pub(crate) severity: Option<SeverityName>,
}

/// How bad a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum SeverityName {
    /// Not urgent.
    Low,
    /// Urgent.
    High,
}

impl SeverityName {
    pub(crate) fn severity(self) -> Severity {
        match self {
            Self::Low => Severity::Low,
            Self::High => Severity::High,
        }
    }
}

/// One way to resolve a block.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Decision {
    /// A decision whose effect is known by its name: accept_deviation, carry_on, continue, require_redo, redo, abort.
    Short(Located<Id>),
    /// A decision with its words and effect.
    Long(LongDecision),
}

/// A decision with its words and effect.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct LongDecision {
    /// What a call sends.
    pub(crate) id: Located<Id>,
    /// How it is called; the words of the id when absent.
    pub(crate) say: Option<Located<Say>>,
    /// What it leads to.
    pub(crate) effect: EffectName,
}

/// What a decision leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum EffectName {
    /// Go on with the value as it is.
    Continue,
    /// The step opens again.
    Redo,
    /// The workflow is abandoned.
    Abort,
}

impl EffectName {
    pub(crate) fn effect(self) -> Effect {
        match self {
            Self::Continue => Effect::Continue,
            Self::Redo => Effect::Redo,
            Self::Abort => Effect::Abort,
        }
    }
}

/// A choice step.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub(crate) struct Choice {
    /// What may be chosen, in the spoken order.
    pub(crate) choices: Located<Vec<ChoiceOption>>,
    /// Choices that block the workflow.
    pub(crate) block_on: Option<Located<Vec<Located<Id>>>>,
}

/// One of several things to choose.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum ChoiceOption {
    /// An id that is also the words.
    Short(Located<Id>),
    /// An id with its words.
    Long(LongChoice),
}

/// A choice with its words.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct LongChoice {
    /// What a call sends.
    pub(crate) id: Located<Id>,
    /// How it is called.
    pub(crate) say: Located<Say>,
}

/// A text step.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub(crate) struct TextSpec {
    /// Longest answer, in characters; 200 when absent. A call carries at most 200.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) max_length: Option<Located<u32>>,
}

/// How blocks are escalated and decided.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Blocks {
    /// For reported problems, blocking choices, and values whose step says nothing else.
    pub(crate) default: DefaultBlock,
}

/// How blocks are escalated and decided where nothing else is said.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct DefaultBlock {
    /// The code of a reported problem; PROBLEM_REPORTED when absent.
    pub(crate) code: Option<Located<Id>>,
    /// What is asked of the decider.
    pub(crate) question: Option<Located<Say>>,
    /// Who is told; nobody when absent.
    pub(crate) escalate: Option<Located<Escalate>>,
    /// What may be decided; carry_on and abort when absent.
    pub(crate) decisions: Option<Located<Vec<Decision>>>,
}

/// A way to finish.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename = "Result", deny_unknown_fields)]
pub(crate) struct ResultSpec {
    /// What a call sends.
    pub(crate) id: Located<Id>,
    /// How it is called; the words of the id when absent.
    pub(crate) say: Option<Located<Say>>,
    /// Available only where this holds.
    pub(crate) when: Option<Located<Cel>>,
}
