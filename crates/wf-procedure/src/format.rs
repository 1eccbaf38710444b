//! The file format: one Rust type per map of a procedure file, as written, with places.
//!
//! `format::read` fills these types from a tree and refuses what has the wrong shape; `compile` gives them meaning. The
//! JSON Schema under docs/ is generated from them (`schema`).

mod escalate;
pub(crate) mod fields;
pub(crate) mod read;
mod scalar;
mod step;
mod steps;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

pub(crate) use escalate::{Escalate, SeverityName, Then};
pub(crate) use scalar::{Bound, Bounds, Cel, DurationMs, Id, InputsSchema, Located, Say};
pub(crate) use step::{
    Action, Choice, ChoiceOption, Confirm, Decision, EffectName, Kind, LongChoice, LongDecision,
    Number, OutOfRange, Range, SignSpec, Skip, Step, TextSpec, UnitSpec, UnitWordsSpec, WaitSpec,
};

/// What `schema:` must say.
pub(crate) const SCHEMA: &str = "checkpoint/procedure/v1";

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
    /// Time limits on the whole workflow.
    #[schemars(length(max = 4))]
    pub(crate) deadlines: Option<Located<Vec<Deadline>>>,
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

/// A time limit on the whole workflow. Who is told when it passes; the work goes on.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Deadline {
    /// Its name in the history and in messages.
    pub(crate) id: Located<Id>,
    /// How long after the start it is due.
    pub(crate) after: Located<DurationMs>,
    /// What the time is counted from; the start when absent.
    pub(crate) from: Option<DeadlineFrom>,
    /// Who is told: a recipient of the server's configuration.
    pub(crate) notify: Located<Id>,
}

/// What the time of a deadline is counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum DeadlineFrom {
    /// The start of the workflow.
    Start,
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
