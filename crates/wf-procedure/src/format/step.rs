//! Steps of a procedure file and what hangs on them.

use schemars::JsonSchema;
use wf_core::policy::Effect;

use super::{Bounds, Cel, DurationMs, Escalate, Id, Located, Say};

/// One item of the procedure.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(extend("if" = { "properties": { "kind": { "const": "wait" } } }, "else" = { "required": ["prompt"] }))]
pub(crate) struct Step {
    /// Its id.
    pub(crate) id: Located<Id>,
    /// The question. Only a wait may leave it out: then it is made of the duration.
    pub(crate) prompt: Option<Located<Say>>,
    /// How it is called where its id could be heard; the words of the id when absent.
    pub(crate) say: Option<Located<Say>>,
    /// The workflow cannot pass without it; true when absent.
    pub(crate) required: Option<Located<bool>>,
    /// When it may be skipped; never for required steps and freely for others when absent.
    pub(crate) skip: Option<Located<Skip>>,
    /// The step is done only where this holds.
    pub(crate) when: Option<Located<Cel>>,
    /// Only somebody with this role may do it; whoever drives the workflow when absent.
    pub(crate) role: Option<Located<Id>>,
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
    /// Time that has to pass, by the server's clock, from the moment the step opens.
    Wait(WaitSpec),
    /// A signature on what is recorded before it.
    Sign(SignSpec),
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
    /// The code of the block, the step's id with _OUT_OF_RANGE when absent; with action: warn, what the record calls it.
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

/// A wait.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub(crate) struct WaitSpec {
    /// How long; earlier answers are refused and told how much is left.
    pub(crate) duration: Located<DurationMs>,
}

/// A signature.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub(crate) struct SignSpec {
    /// Whoever recorded something that is signed may not sign it; false when absent.
    pub(crate) not_performer: Option<Located<bool>>,
}
