//! Numbers: read the digits, understand the unit, convert exactly, compare unrounded, round for display only.

use serde_json::json;
use wf_core::errors::ErrorCode;
use wf_core::models::{Reading, Text};
use wf_core::policy::{Accepted, BlockCause, Judgement};

use super::{accepted, read_back, reject, shown};
use crate::decimal::{self, Decimal, Exact, NUMBER_CHARS_MAX, Rounding};
use crate::expr::{Facts, Missing};
use crate::range::Span;
use crate::rules::{NumberRule, StepRule};
use crate::units::{self, StepUnit};
use crate::{speech, words};

/// Decimals of a converted value's display, when the step names none.
const CONVERTED_DECIMALS: u32 = 3;

/// A number and the unit it was given in.
struct Given<'r> {
    decimal: Decimal,
    unit: Option<&'r StepUnit>,
}

/// The ranges of a step, evaluated.
struct Spans {
    instrument: Option<Span>,
    accept: Option<Span>,
    warn: Option<Span>,
}

/// Judges a number.
pub(super) fn judge(
    step: &StepRule,
    rule: &NumberRule,
    facts: &Facts<'_>,
    value: &str,
    unit: Option<&str>,
) -> Judgement {
    let Some((decimal, trailing)) = split(value) else {
        return not_a_number(step, rule, value);
    };
    let unit = unit.map(str::trim).filter(|u| !u.is_empty());
    let said = match understand(step, rule, unit, trailing) {
        Ok(said) => said,
        Err(refusal) => return *refusal,
    };
    let Ok(spans) = spans(rule, facts) else {
        return bounds_unknown(step);
    };
    let named = said.is_some();
    let given = Given { decimal, unit: said.or(rule.unit.as_ref()) };
    let other = meant_in_another_unit(rule, &spans, &given.decimal.exact);
    let Some(other) = other.filter(|_| !named && !step.sensitive) else {
        return settle(step, rule, &spans, &given, None);
    };
    let possible = spans.instrument.as_ref().is_none_or(|s| s.contains(&given.decimal.exact));
    if possible {
        // A "yes" that nobody thought about must not turn an alarming value into a good one.
        let asked = ask_own_unit(&given, other);
        settle(step, rule, &spans, &given, Some(asked))
    } else {
        let asked = ask_other_unit(&given, other);
        settle(step, rule, &spans, &Given { unit: Some(other), ..given }, Some(asked))
    }
}

/// The digits at the start and the unit after them: `3.2 bar` → 3.2, `bar`.
fn split(value: &str) -> Option<(Decimal, Option<&str>)> {
    let end = value
        .char_indices()
        .find(|(i, c)| !(c.is_ascii_digit() || *c == '.' || (*i == 0 && *c == '-')))
        .map_or(value.len(), |(i, _)| i);
    let (digits, rest) = value.split_at(end);
    let decimal = Decimal::parse(digits)?;
    let rest = rest.trim();
    if rest.is_empty() {
        return Some((decimal, None));
    }
    // What follows must look like a unit: 4,2 and 1e5 and "3 4" are no numbers with units.
    let exponent = rest
        .strip_prefix(['e', 'E'])
        .is_some_and(|e| e.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+'));
    let unit_like = rest.starts_with(|c: char| {
        c.is_alphabetic() || matches!(c, '°' | 'º' | '˚' | '%' | '‰' | 'µ' | '"')
    });
    (unit_like && !exponent).then_some((decimal, Some(rest)))
}

fn not_a_number(step: &StepRule, rule: &NumberRule, value: &str) -> Judgement {
    let message = format!(
        "{} is not a number: write -?digits[.digits] with ASCII digits, at most {NUMBER_CHARS_MAX} characters, optionally followed by a unit",
        shown(step, value)
    );
    let unit = speech::unit_after(rule.unit.as_ref());
    let say = words::map(&step.say, |what| {
        if unit.is_empty() {
            format!("Please say the {what} as a plain number.")
        } else {
            format!("Please say the {what} as a plain number in{unit}.")
        }
    });
    let details = json!({"field": "value", "rule": "-?digits[.digits]"});
    reject(ErrorCode::ValidationError, message, say, details)
}

/// The unit that was said, in `unit` or after the digits; `None` when none was.
fn understand<'r>(
    step: &StepRule,
    rule: &'r NumberRule,
    unit: Option<&str>,
    trailing: Option<&str>,
) -> Result<Option<&'r StepUnit>, Box<Judgement>> {
    let find = |said: &str| {
        rule.unit
            .iter()
            .chain(&rule.other_units)
            .find(|u| u.is_said(said))
            .ok_or_else(|| Box::new(unit_mismatch(step, rule, said)))
    };
    match (unit, trailing) {
        (None, None) => Ok(None),
        (Some(said), None) | (None, Some(said)) => find(said).map(Some),
        (Some(unit), Some(trailing)) => {
            let (first, second) = (find(unit)?, find(trailing)?);
            if first.symbol() == second.symbol() {
                return Ok(Some(first));
            }
            let message = format!(
                "unit says {}, value says {}; send one of them",
                first.symbol(),
                second.symbol()
            );
            let details = json!({"field": "unit", "accepted_units": symbols(rule)});
            let say = ask_for_unit(step, rule);
            Err(Box::new(reject(ErrorCode::UnitMismatch, message, say, details)))
        }
    }
}

fn symbols(rule: &NumberRule) -> Vec<&str> {
    rule.unit.iter().chain(&rule.other_units).map(StepUnit::symbol).collect()
}

fn unit_mismatch(step: &StepRule, rule: &NumberRule, said: &str) -> Judgement {
    let accepted = symbols(rule);
    let message = if accepted.is_empty() {
        "this step takes a number without a unit".to_owned()
    } else {
        format!(
            "the unit {} is not accepted here; accepted: {}",
            wf_core::redaction::Quoted(said),
            accepted.join(", ")
        )
    };
    let details = json!({"field": "unit", "accepted_units": accepted});
    reject(ErrorCode::UnitMismatch, message, ask_for_unit(step, rule), details)
}

fn ask_for_unit(step: &StepRule, rule: &NumberRule) -> Text {
    let Some(own) = &rule.unit else {
        return words::map(&step.say, |what| {
            format!("Please say the {what} as a number without a unit.")
        });
    };
    words::compose(&[&step.say, &own.words.many], |w| match w {
        [what, unit] => format!("I cannot convert that unit. Please say the {what} in {unit}."),
        _ => String::new(),
    })
}

fn spans(rule: &NumberRule, facts: &Facts<'_>) -> Result<Spans, Missing> {
    let span = |bounds: &Option<crate::rules::Bounds>| {
        bounds.as_ref().map(|b| Span::of(b, facts, rule.decimals)).transpose()
    };
    Ok(Spans {
        instrument: span(&rule.instrument)?,
        accept: span(&rule.accept)?,
        warn: span(&rule.warn)?,
    })
}

/// The core does not ask for a judgement of a step that is not open; this is for whoever checks a value beforehand.
fn bounds_unknown(step: &StepRule) -> Judgement {
    let message = format!("the limits of step {} need a value that is not there", step.id);
    let say = words::map(&step.say, |what| format!("The limits for the {what} are not known yet."));
    let details = json!({"field": "step_id", "rule": "limits are known"});
    reject(ErrorCode::ValidationError, message, say, details)
}

/// The only other accepted unit in which the number would be inside, when it is outside in the step's own.
fn meant_in_another_unit<'r>(
    rule: &'r NumberRule,
    spans: &Spans,
    number: &Exact,
) -> Option<&'r StepUnit> {
    let accept = spans.accept.as_ref()?;
    if accept.contains(number) {
        return None;
    }
    let mut inside = rule
        .other_units
        .iter()
        .filter(|unit| accept.contains(&in_own_unit(rule, number, Some(unit))));
    let first = inside.next()?;
    inside.next().is_none().then_some(first)
}

/// `number` of `unit` in the step's own unit.
fn in_own_unit(rule: &NumberRule, number: &Exact, unit: Option<&StepUnit>) -> Exact {
    let own = rule.unit.as_ref().and_then(|u| u.known);
    match (unit.and_then(|u| u.known), own) {
        (Some(from), Some(to)) => units::convert(number, from, to),
        (Some(_) | None, _) => number.clone(),
    }
}

/// Asks for the unit of a number that is possible in the step's own, and out of range in it.
fn ask_own_unit(given: &Given<'_>, other: &StepUnit) -> Text {
    let own = speech::quantity(&given.decimal.plain(), given.unit);
    words::compose(&[&own, &other.words.many], |w| match w {
        [own, other] => format!("Do you mean {own}, which is out of range, and not {other}?"),
        _ => String::new(),
    })
}

/// Asks for the unit of a number that is impossible in the step's own.
fn ask_other_unit(given: &Given<'_>, other: &StepUnit) -> Text {
    let own = speech::quantity(&given.decimal.plain(), given.unit);
    let meant = speech::quantity(&given.decimal.plain(), Some(other));
    words::compose(&[&own, &meant], |w| match w {
        [own, meant] => format!("{own} is not possible. Did you mean {meant}?"),
        _ => String::new(),
    })
}

/// Judges a number whose unit is clear. `asked` replaces the step's own read-back.
fn settle(
    step: &StepRule,
    rule: &NumberRule,
    spans: &Spans,
    given: &Given<'_>,
    asked: Option<Text>,
) -> Judgement {
    let own = rule.unit.as_ref();
    let converted = given.unit.map(StepUnit::symbol) != own.map(StepUnit::symbol);
    if let Some(most) = rule.decimals.filter(|_| !converted)
        && usize::try_from(most).is_ok_and(|most| given.decimal.decimals > most)
    {
        return too_many_decimals(step, most);
    }
    let exact = in_own_unit(rule, &given.decimal.exact, given.unit);
    let reading = reading(rule, given, &exact, converted);
    let spoken = speech::reading(step, &reading);
    if let Some(instrument) = spans.instrument.as_ref().filter(|s| !s.contains(&exact)) {
        return implausible(step, rule, instrument, &spoken);
    }
    let out = spans.accept.as_ref().filter(|s| !s.contains(&exact));
    let asked =
        asked.or_else(|| read_back(step, out.is_some(), &outside(step, rule, out, &spoken)));
    let mut accepted = accepted(step, reading, out.is_some(), asked);
    accepted.warnings = warnings(step, rule, spans, out, &exact, &accepted);
    if out.is_some() {
        accepted.deviation.clone_from(&rule.deviation);
    }
    match (out, &rule.block) {
        (Some(_), Some(block)) => Judgement::Block(
            accepted,
            BlockCause {
                code: block.code.clone(),
                severity: block.severity,
                escalation: block.escalation.clone(),
            },
        ),
        (Some(_) | None, _) => Judgement::Accept(accepted),
    }
}

fn reading(rule: &NumberRule, given: &Given<'_>, exact: &Exact, converted: bool) -> Reading {
    let unit = rule.unit.as_ref().map(|u| u.symbol().to_owned());
    let (value, lost) = if converted {
        match rule.decimals {
            Some(decimals) => decimal::rounded(exact, decimals, Rounding::HalfEven),
            None => {
                let (value, lost) = decimal::rounded(exact, CONVERTED_DECIMALS, Rounding::HalfEven);
                (decimal::without_trailing_zeros(&value).to_owned(), lost)
            }
        }
    } else {
        (given.decimal.plain(), false)
    };
    Reading {
        given: given.decimal.written.clone(),
        given_unit: given.unit.map(|u| u.symbol().to_owned()),
        value,
        unit,
        exact: lost.then(|| decimal::to_fraction(exact)),
        withheld: false,
    }
}

fn too_many_decimals(step: &StepRule, most: u32) -> Judgement {
    let message = format!("the value has more than {most} decimals");
    let say = words::map(&step.say, |what| match most {
        0 => format!("Please say the {what} without decimals."),
        1 => format!("Please say the {what} with at most one decimal."),
        _ => format!("Please say the {what} with at most {most} decimals."),
    });
    let details =
        json!({"field": "value", "rule": format!("at most {most} decimals"), "decimals": most});
    reject(ErrorCode::ValidationError, message, say, details)
}

fn implausible(step: &StepRule, rule: &NumberRule, instrument: &Span, spoken: &Text) -> Judgement {
    let unit = rule.unit.as_ref().map(StepUnit::symbol);
    let suffix = unit.map_or_else(String::new, |u| format!(" {u}"));
    let message = format!(
        "outside what the instrument can show, {}{suffix}; read it again",
        instrument.words()
    );
    let details = json!({
        "field": "value", "rule": "inside the instrument's range", "unit": unit,
        "min": instrument.low_shown, "max": instrument.high_shown,
    });
    let sensitive = step.sensitive;
    let say = words::compose(&[&step.say, spoken], |w| match w {
        [what, _] if sensitive => format!("That {what} is not possible. Please read it again."),
        [what, value] => {
            let value = speech::subject(value);
            format!("{value} is not possible. Please read the {what} again.")
        }
        _ => String::new(),
    });
    reject(ErrorCode::ImplausibleValue, message, say, details)
}

/// The value in words, and that it is outside, when it is.
fn outside(step: &StepRule, rule: &NumberRule, out: Option<&Span>, spoken: &Text) -> Text {
    let Some(span) = out else {
        return spoken.clone();
    };
    let limits = limits(rule, span);
    if step.sensitive {
        return words::map(&limits, |l| format!("outside {l}"));
    }
    words::compose(&[spoken, &limits], |w| match w {
        [value, limits] => format!("{value}, outside {limits}"),
        _ => String::new(),
    })
}

/// `1.5 to 6.0 bar`.
fn limits(rule: &NumberRule, span: &Span) -> Text {
    match &rule.unit {
        None => Text::from(span.words()),
        Some(unit) => words::map(&unit.words.many, |u| format!("{} {u}", span.words())),
    }
}

fn warnings(
    step: &StepRule,
    rule: &NumberRule,
    spans: &Spans,
    out: Option<&Span>,
    exact: &Exact,
    accepted: &Accepted,
) -> Vec<Text> {
    let words_of = |span: &Span, which: &'static str| {
        let limits = limits(rule, span);
        let value = if step.sensitive { &step.say } else { &accepted.spoken };
        words::compose(&[value, &limits], |w| match w {
            [value, limits] => {
                let value = speech::subject(value);
                words::sentence(&format!("{value} is outside the {which} {limits}."))
            }
            _ => String::new(),
        })
    };
    match (out, &spans.warn) {
        (Some(accept), _) => vec![words_of(accept, "accepted")],
        (None, Some(warn)) if !warn.contains(exact) => vec![words_of(warn, "usual")],
        (None, _) => Vec::new(),
    }
}
