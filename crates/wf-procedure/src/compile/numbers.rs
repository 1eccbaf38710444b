//! Number steps: units, ranges and what happens outside them.

use wf_core::models::ReasonCode;
use wf_core::policy::UnitWords;

use super::{blocks, expression};
use crate::expr::{Scope, Type};
use crate::format::{self, Action, Id, Located, Number, OutOfRange, UnitSpec, fields::hint_for};
use crate::problem::{Position, Problems};
use crate::rules::{Block, Bound, Bounds, NumberRule};
use crate::units::{self, StepUnit};

/// The rule of a number step.
pub(super) fn compile(
    id: &Located<Id>,
    number: &Number,
    scope: &Scope<'_>,
    default: &Block,
    problems: &mut Problems,
) -> Option<NumberRule> {
    let unit = number.unit.as_ref().map(|u| unit(u, problems));
    // A unit that is wrong has been noted; without one the rest can still be looked at.
    let unit = unit.flatten();
    let other_units = other_units(number, unit.as_ref(), problems);
    let decimals = number.decimals.as_ref().map(|d| d.value);
    let range = number.range.as_ref();
    let mut take = |written: Option<&Located<format::Bounds>>| {
        written.and_then(|w| bounds(w, scope, problems).map(|b| (b, w.at)))
    };
    let instrument = take(range.and_then(|r| r.instrument.as_ref()));
    let accept = take(range.and_then(|r| r.accept.as_ref()));
    let warn = take(range.and_then(|r| r.warn.as_ref()));
    inside("accept", accept.as_ref(), "instrument", instrument.as_ref(), problems);
    inside("warn", warn.as_ref(), "accept", accept.as_ref(), problems);
    if accept.is_none() {
        inside("warn", warn.as_ref(), "instrument", instrument.as_ref(), problems);
    }
    let accept_written = range.is_some_and(|r| r.accept.is_some());
    let outside = outside(id, number.out_of_range.as_ref(), accept_written, default, problems)?;
    Some(NumberRule {
        unit,
        other_units,
        decimals,
        instrument: instrument.map(|(b, _)| b),
        accept: accept.map(|(b, _)| b),
        warn: warn.map(|(b, _)| b),
        block: outside.block,
        deviation: outside.deviation,
    })
}

/// Steps that the ranges of a number look at.
pub(super) fn uses(rule: &NumberRule) -> impl Iterator<Item = usize> {
    rule.ranges().flat_map(|b| [&b.low, &b.high]).flat_map(|bound| match bound {
        Bound::Fixed { .. } => Vec::new(),
        Bound::Computed(expression) => expression.uses.iter().copied().collect(),
    })
}

fn unit(written: &Located<UnitSpec>, problems: &mut Problems) -> Option<StepUnit> {
    match &written.value {
        UnitSpec::Symbol(symbol) => {
            known_unit(symbol, written.at, problems).map(StepUnit::of_table)
        }
        UnitSpec::Words(spec) => {
            let symbol = spec.symbol.value.trim();
            if symbol.is_empty()
                || symbol.chars().count() > 20
                || symbol.chars().any(char::is_control)
                || symbol.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-'))
            {
                let hint = "use 1 to 20 characters that do not start like a number";
                problems.add(spec.symbol.at, "not a unit symbol", hint);
                return None;
            }
            let known = units::by_symbol(symbol);
            let symbol = known.map_or(symbol, |k| k.symbol);
            Some(StepUnit {
                words: UnitWords {
                    symbol: symbol.to_owned(),
                    one: spec.one.value.0.clone(),
                    many: spec.many.value.0.clone(),
                },
                known,
            })
        }
    }
}

fn known_unit(symbol: &str, at: Position, problems: &mut Problems) -> Option<&'static units::Unit> {
    let found = units::by_symbol(symbol);
    if found.is_none() {
        let by_words = units::said(symbol).map(|u| format!("write its symbol: {}", u.symbol));
        let hint = by_words.unwrap_or_else(|| {
            hint_for(symbol, units::symbols(), "give it words: { symbol: …, one: …, many: … }")
        });
        let shown = wf_core::redaction::Quoted(symbol);
        problems.add(at, format!("the unit {shown} is not known"), hint);
    }
    found
}

fn other_units(number: &Number, own: Option<&StepUnit>, problems: &mut Problems) -> Vec<StepUnit> {
    let Some(written) = &number.accept_units else {
        return Vec::new();
    };
    if number.unit.is_none() {
        let hint = "add unit: the unit that ranges are meant in";
        problems.add(written.at, "accept_units without unit", hint);
        return Vec::new();
    }
    let Some(own) = own else {
        return Vec::new();
    };
    let mut others: Vec<StepUnit> = Vec::new();
    for symbol in &written.value {
        if symbol.value == own.symbol() {
            continue;
        }
        let Some(unit) = known_unit(&symbol.value, symbol.at, problems) else {
            continue;
        };
        if own.known.is_some_and(|k| k.symbol == unit.symbol) {
            continue;
        }
        match own.known {
            Some(known) if known.quantity == unit.quantity => {
                if others.iter().any(|u| u.symbol() == unit.symbol) {
                    let message = format!("{} stands twice", unit.symbol);
                    problems.add(symbol.at, message, "keep one of them");
                } else {
                    others.push(StepUnit::of_table(unit));
                }
            }
            Some(known) => {
                let message = format!("{} does not convert to {}", unit.symbol, known.symbol);
                let same: Vec<&str> = units::symbols_of(known.quantity).collect();
                problems.add(symbol.at, message, format!("write one of: {}", same.join(", ")));
            }
            None => {
                let message = format!("{} does not convert to {}", unit.symbol, own.symbol());
                let hint = "remove accept_units: a unit with its own words converts into nothing";
                problems.add(symbol.at, message, hint);
            }
        }
    }
    others
}

fn bounds(
    written: &Located<format::Bounds>,
    scope: &Scope<'_>,
    problems: &mut Problems,
) -> Option<Bounds> {
    let low = bound(&written.value.low, scope, problems);
    let high = bound(&written.value.high, scope, problems);
    let (low, high) = (low?, high?);
    if let (Bound::Fixed { exact: l, .. }, Bound::Fixed { exact: h, .. }) = (&low, &high)
        && l > h
    {
        let message = "an empty range: the lower bound is above the upper one";
        problems.add(written.at, message, "write [low, high]");
    }
    Some(Bounds { low, high })
}

fn bound(
    written: &Located<format::Bound>,
    scope: &Scope<'_>,
    problems: &mut Problems,
) -> Option<Bound> {
    match &written.value {
        format::Bound::Fixed(decimal) => {
            Some(Bound::Fixed { written: decimal.plain(), exact: decimal.exact.clone() })
        }
        format::Bound::Computed(cel) => {
            expression(cel, written.at, Type::Number, scope, problems).map(Bound::Computed)
        }
    }
}

/// A range that must lie inside another, as far as both are written as numbers.
fn inside(
    inner_name: &str,
    inner: Option<&(Bounds, Position)>,
    outer_name: &str,
    outer: Option<&(Bounds, Position)>,
    problems: &mut Problems,
) {
    let (Some((inner, at)), Some((outer, _))) = (inner, outer) else {
        return;
    };
    let below = |a: &Bound, b: &Bound| match (a, b) {
        (Bound::Fixed { exact: a, .. }, Bound::Fixed { exact: b, .. }) => a < b,
        (Bound::Fixed { .. } | Bound::Computed(_), _) => false,
    };
    if below(&inner.low, &outer.low) || below(&outer.high, &inner.high) {
        let message = format!("{inner_name} reaches beyond {outer_name}");
        let hint = format!("keep {inner_name} inside {outer_name}");
        problems.add(*at, message, hint);
    }
}

/// What a value outside `accept` does: it blocks, or warns under a name if it has one.
#[derive(Default)]
struct Outside {
    block: Option<Block>,
    deviation: Option<ReasonCode>,
}

/// What a value outside `accept` does; `None` when that cannot be said.
fn outside(
    id: &Located<Id>,
    written: Option<&Located<OutOfRange>>,
    accept: bool,
    default: &Block,
    problems: &mut Problems,
) -> Option<Outside> {
    let blocks = |block| Outside { block: Some(block), deviation: None };
    let Some(written) = written else {
        return blocks::of_value(&id.value.0, None, default, problems).map(blocks);
    };
    if !accept {
        let hint = "add range: { accept: [low, high] }, or remove out_of_range";
        problems.add(written.at, "out_of_range without range.accept", hint);
    }
    let action = written.value.action.as_ref().map_or(Action::Block, |a| a.value);
    match action {
        Action::Block => {
            blocks::of_value(&id.value.0, Some(&written.value), default, problems).map(blocks)
        }
        Action::Warn => {
            let escalate = written.value.escalate.as_ref().map(|e| e.at);
            let decisions = written.value.decisions.as_ref().map(|d| d.at);
            let question = written.value.question.as_ref().map(|q| q.at);
            for at in [escalate, decisions, question].into_iter().flatten() {
                let hint = "remove it, or write action: block";
                problems.add(at, "this has no effect with action: warn", hint);
            }
            let code = written.value.code.as_ref();
            let deviation = code.and_then(|c| blocks::reason_code(Some(c), &c.value.0));
            Some(Outside { block: None, deviation })
        }
    }
}
