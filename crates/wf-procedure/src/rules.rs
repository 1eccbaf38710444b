//! A procedure with its meaning: what `compile` makes of a file and the policy asks.

use std::collections::{BTreeMap, BTreeSet};

use wf_core::models::{
    AssetRole, ReasonCode, Recipient, ResultId, Severity, StartDeadline, StepId, Text,
};
use wf_core::policy::{Choice, DecisionOption, NeededInput, SkipRule};

use crate::asset_id::IdForm;
use crate::decimal::Exact;
use crate::expr::{Expression, InputType};
use crate::format::{Confirm, Order};
use crate::units::StepUnit;

/// Everything a procedure says.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) title: Text,
    pub(crate) order: Order,
    pub(crate) assets: Vec<AssetRule>,
    pub(crate) inputs: Option<InputRules>,
    pub(crate) stale_after_ms: Option<i64>,
    pub(crate) timezone: Option<String>,
    pub(crate) reasons: Vec<Choice>,
    pub(crate) steps: Vec<StepRule>,
    pub(crate) index: BTreeMap<StepId, usize>,
    pub(crate) deadlines: Vec<StartDeadline>,
    pub(crate) blocks: Block,
    pub(crate) results: Vec<ResultRule>,
    pub(crate) notify: BTreeSet<String>,
    /// The code of steps whose condition or bounds cannot be evaluated.
    pub(crate) expression_failed: ReasonCode,
}

impl Rules {
    /// The step with this id and its place, from 0.
    pub(crate) fn step(&self, id: &StepId) -> Option<(usize, &StepRule)> {
        let index = *self.index.get(id)?;
        self.steps.get(index).map(|step| (index, step))
    }
}

/// An asset and how its ids look.
#[derive(Debug)]
pub(crate) struct AssetRule {
    pub(crate) role: AssetRole,
    pub(crate) say: Text,
    pub(crate) id: IdForm,
    pub(crate) example: Option<String>,
}

/// What inputs must be.
#[derive(Debug)]
pub(crate) struct InputRules {
    pub(crate) validator: jsonschema::Validator,
    /// In the order they are asked for: required ones as `required` lists them, then the others by name.
    pub(crate) inputs: Vec<InputRule>,
}

/// One input.
#[derive(Debug)]
pub(crate) struct InputRule {
    pub(crate) needed: NeededInput,
    pub(crate) kind: InputType,
}

/// One step.
#[derive(Debug)]
pub(crate) struct StepRule {
    pub(crate) id: StepId,
    pub(crate) say: Text,
    pub(crate) prompt: Text,
    pub(crate) required: bool,
    pub(crate) skip: SkipRule,
    pub(crate) when: Option<Expression>,
    pub(crate) role: Option<String>,
    pub(crate) sensitive: bool,
    pub(crate) confirm: Confirm,
    pub(crate) kind: StepKind,
    /// Steps whose values its condition or bounds look at, or that it signs, by index.
    pub(crate) uses: BTreeSet<usize>,
}

/// What a step asks.
#[derive(Debug)]
pub(crate) enum StepKind {
    Confirm,
    Number(Box<NumberRule>),
    Choice(ChoiceRule),
    Text { chars_max: usize },
    Wait { duration_ms: i64 },
    Sign { not_performer: bool },
}

impl StepKind {
    /// The kind's name in results.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Number(_) => "number",
            Self::Choice(_) => "choice",
            Self::Text { .. } => "text",
            Self::Wait { .. } => "wait",
            Self::Sign { .. } => "sign",
        }
    }
}

/// A number step.
#[derive(Debug)]
pub(crate) struct NumberRule {
    pub(crate) unit: Option<StepUnit>,
    /// Units an answer may come in, besides `unit`.
    pub(crate) other_units: Vec<StepUnit>,
    pub(crate) decimals: Option<u32>,
    pub(crate) instrument: Option<Bounds>,
    pub(crate) accept: Option<Bounds>,
    pub(crate) warn: Option<Bounds>,
    /// What a value outside `accept` does; a warning when absent.
    pub(crate) block: Option<Block>,
    /// What a value outside `accept` is called that only warns.
    pub(crate) deviation: Option<ReasonCode>,
}

impl NumberRule {
    /// Its ranges, for whoever looks at all of them.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = &Bounds> {
        [&self.instrument, &self.accept, &self.warn].into_iter().flatten()
    }
}

/// A range; both ends belong to it.
#[derive(Debug)]
pub(crate) struct Bounds {
    pub(crate) low: Bound,
    pub(crate) high: Bound,
}

/// One end of a range.
#[derive(Debug)]
pub(crate) enum Bound {
    /// By its digits.
    Fixed { written: String, exact: Exact },
    /// By an expression.
    Computed(Expression),
}

/// A choice step.
#[derive(Debug)]
pub(crate) struct ChoiceRule {
    pub(crate) choices: Vec<Choice>,
    /// Choices that block, and the codes of their blocks.
    pub(crate) block_on: BTreeMap<String, ReasonCode>,
}

/// How a block is escalated and decided.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) code: ReasonCode,
    /// As the file words it; made from the step otherwise.
    pub(crate) question: Option<Text>,
    pub(crate) escalation: Vec<Recipient>,
    pub(crate) severity: Severity,
    pub(crate) decisions: Vec<DecisionOption>,
}

/// A way to finish.
#[derive(Debug)]
pub(crate) struct ResultRule {
    pub(crate) id: ResultId,
    pub(crate) say: Text,
    pub(crate) when: Option<Expression>,
}
