//! Evaluation of a checked expression over the facts of one workflow. Total and exact.

use std::cmp::Ordering;

use serde_json::{Map, Value as Json};
use wf_core::models::{HeldAsset, Reading};

use super::{Arithmetic, Compare, Expr, Expression, Flag, Quantifier, Which};
use crate::decimal::{self, Decimal, Exact};

/// A value of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// An exact decimal.
    Number(Exact),
    /// Text.
    Text(String),
}

/// Why an expression has no value now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// A step whose value it needs is still to be done.
    Yet,
    /// It needs something that will not come: a skipped step, a step that does not apply, an absent input.
    Ever,
}

/// The value of a step as it is kept. Few steps are looked at by an expression, so it is read only then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept<'a> {
    /// There is none, or one that is withheld.
    Nothing,
    /// A confirmation.
    Confirmed,
    /// A number in the step's unit.
    Number(&'a Reading),
    /// A text or a choice.
    Text(&'a str),
}

impl Kept<'_> {
    fn value(self) -> Option<Value> {
        match self {
            Kept::Nothing => None,
            Kept::Confirmed => Some(Value::Bool(true)),
            Kept::Number(reading) => exact(reading).map(Value::Number),
            Kept::Text(text) => Some(Value::Text(text.to_owned())),
        }
    }
}

/// The unrounded value of a number reading in the step's unit.
pub(crate) fn exact(reading: &Reading) -> Option<Exact> {
    match &reading.exact {
        Some(fraction) => decimal::from_fraction(fraction),
        None => Decimal::parse(&reading.value).map(|d| d.exact),
    }
}

/// One step as expressions see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepFacts<'a> {
    /// Its id.
    pub(crate) id: &'a str,
    /// Its current value.
    pub(crate) kept: Kept<'a>,
    /// It is still to be done, or it is not known yet whether it is.
    pub(crate) to_do: bool,
    /// It has a current value, perhaps one that is withheld.
    pub(crate) recorded: bool,
    /// Its current value is out of range.
    pub(crate) out_of_range: bool,
    /// It was skipped.
    pub(crate) skipped: bool,
}

/// What expressions are evaluated over.
#[derive(Debug, Clone)]
pub(crate) struct Facts<'a> {
    /// The steps in the definition's order; at least those before the step whose expression it is.
    pub(crate) steps: Vec<StepFacts<'a>>,
    /// The inputs, without sensitive ones.
    pub(crate) inputs: &'a Map<String, Json>,
    /// The assets.
    pub(crate) assets: &'a [HeldAsset],
}

type Answer = Result<Value, Missing>;

impl Expression {
    /// Its value.
    pub(crate) fn value(&self, facts: &Facts<'_>) -> Answer {
        eval(&self.root, facts, None)
    }

    /// Its value as a condition.
    pub(crate) fn holds(&self, facts: &Facts<'_>) -> Result<bool, Missing> {
        as_bool(&self.value(facts)?)
    }

    /// Its value as a bound.
    pub(crate) fn number(&self, facts: &Facts<'_>) -> Result<Exact, Missing> {
        self.value(facts).and_then(as_number)
    }
}

fn as_bool(value: &Value) -> Result<bool, Missing> {
    match value {
        Value::Bool(b) => Ok(*b),
        Value::Number(_) | Value::Text(_) => Err(Missing::Ever),
    }
}

fn as_number(value: Value) -> Result<Exact, Missing> {
    match value {
        Value::Number(n) => Ok(n),
        Value::Bool(_) | Value::Text(_) => Err(Missing::Ever),
    }
}

/// `each` is the step that a quantifier has come to.
fn eval(expr: &Expr, facts: &Facts<'_>, each: Option<&StepFacts<'_>>) -> Answer {
    let bool_of = |e: &Expr| as_bool(&eval(e, facts, each)?);
    let number_of = |e: &Expr| eval(e, facts, each).and_then(as_number);
    match expr {
        Expr::Bool(b) => Ok(Value::Bool(*b)),
        Expr::Number(n) => Ok(Value::Number(n.clone())),
        Expr::Text(t) => Ok(Value::Text(t.clone())),
        Expr::Input(name) => input(facts, name).ok_or(Missing::Ever),
        Expr::HasInput(name) => Ok(Value::Bool(facts.inputs.contains_key(name))),
        Expr::Asset(role) => asset(facts, role).ok_or(Missing::Ever),
        Expr::StepId => each.map(|s| Value::Text(s.id.to_owned())).ok_or(Missing::Ever),
        Expr::StepValue(index) => step_value(facts, *index),
        Expr::HasStepValue(index) => {
            Ok(Value::Bool(facts.steps.get(*index).is_some_and(|s| s.recorded)))
        }
        Expr::StepFlag(which, flag) => flag_of(facts, each, *which, *flag),
        Expr::Not(e) => bool_of(e).map(|b| Value::Bool(!b)),
        Expr::And(a, b) => both(bool_of(a), || bool_of(b), false).map(Value::Bool),
        Expr::Or(a, b) => both(bool_of(a), || bool_of(b), true).map(Value::Bool),
        Expr::If(condition, yes, no) => {
            let branch = if bool_of(condition)? { yes } else { no };
            eval(branch, facts, each)
        }
        Expr::Compare(op, a, b) => compare(*op, &eval(a, facts, each)?, &eval(b, facts, each)?),
        Expr::Arithmetic(op, a, b) => {
            let (a, b) = (number_of(a)?, number_of(b)?);
            Ok(Value::Number(match op {
                Arithmetic::Add => a + b,
                Arithmetic::Subtract => a - b,
                Arithmetic::Multiply => a * b,
            }))
        }
        Expr::Negate(e) => number_of(e).map(|n| Value::Number(-n)),
        Expr::In(needle, list) => {
            let needle = eval(needle, facts, each)?;
            for item in list {
                if eval(item, facts, each)? == needle {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        Expr::OverSteps { quantifier, before, body } => {
            over_steps(*quantifier, *before, body, facts).map(Value::Bool)
        }
    }
}

/// `&&` and `||` as CEL defines them: a side that decides wins over a side that has no value, in either order.
/// `decisive` is the value that decides: `false` for `&&`, `true` for `||`.
fn both(
    a: Result<bool, Missing>,
    b: impl FnOnce() -> Result<bool, Missing>,
    decisive: bool,
) -> Result<bool, Missing> {
    if a == Ok(decisive) {
        return Ok(decisive);
    }
    match (a, b()) {
        (_, Ok(b)) if b == decisive => Ok(decisive),
        // A value that is still to come may decide.
        (Err(Missing::Yet), _) | (_, Err(Missing::Yet)) => Err(Missing::Yet),
        (Err(Missing::Ever), _) | (_, Err(Missing::Ever)) => Err(Missing::Ever),
        (Ok(_), Ok(_)) => Ok(!decisive),
    }
}

fn over_steps(
    quantifier: Quantifier,
    before: usize,
    body: &Expr,
    facts: &Facts<'_>,
) -> Result<bool, Missing> {
    let mut answers =
        facts.steps.iter().take(before).map(|step| as_bool(&eval(body, facts, Some(step))?));
    match quantifier {
        Quantifier::Exists | Quantifier::All => {
            // As CEL expands the macros: one chain of || or &&, so a later step may still decide.
            let decisive = quantifier == Quantifier::Exists;
            let mut so_far = Ok(!decisive);
            for answer in answers {
                so_far = both(so_far, || answer, decisive);
            }
            so_far
        }
        Quantifier::ExistsOne => {
            let count = answers.try_fold(0_usize, |n, a| a.map(|b| n + usize::from(b)))?;
            Ok(count == 1)
        }
    }
}

fn compare(op: Compare, a: &Value, b: &Value) -> Answer {
    let order = match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(_) | Value::Text(_) | Value::Bool(_), _) => return Err(Missing::Ever),
    };
    Ok(Value::Bool(match op {
        Compare::Equal => order == Ordering::Equal,
        Compare::NotEqual => order != Ordering::Equal,
        Compare::Less => order == Ordering::Less,
        Compare::LessOrEqual => order != Ordering::Greater,
        Compare::Greater => order == Ordering::Greater,
        Compare::GreaterOrEqual => order != Ordering::Less,
    }))
}

fn step_value(facts: &Facts<'_>, index: usize) -> Answer {
    let step = facts.steps.get(index).ok_or(Missing::Ever)?;
    step.kept.value().ok_or(if step.to_do { Missing::Yet } else { Missing::Ever })
}

fn flag_of(facts: &Facts<'_>, each: Option<&StepFacts<'_>>, which: Which, flag: Flag) -> Answer {
    let step = match which {
        Which::Fixed(index) => facts.steps.get(index),
        Which::Each => each,
    };
    let step = step.ok_or(Missing::Ever)?;
    Ok(Value::Bool(match flag {
        Flag::OutOfRange => step.out_of_range,
        Flag::Skipped => step.skipped,
        Flag::Recorded => step.recorded,
    }))
}

fn input(facts: &Facts<'_>, name: &str) -> Option<Value> {
    match facts.inputs.get(name)? {
        Json::Bool(b) => Some(Value::Bool(*b)),
        Json::String(text) => Some(Value::Text(text.clone())),
        // A double counts by its shortest digits: 7.1 is 7.1.
        Json::Number(n) => {
            Decimal::parse(&crate::tree::digits_of(n)).map(|d| Value::Number(d.exact))
        }
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

fn asset(facts: &Facts<'_>, role: &str) -> Option<Value> {
    facts
        .assets
        .iter()
        .find(|a| a.role.as_str() == role)
        .map(|a| Value::Text(a.id.as_str().to_owned()))
}
