//! Judging a value: what it is, whether it can be true, whether it is good. Called by `policy`, reads `procedure`.

use serde_json::{Value, json};
use wf_core::errors::ErrorCode;
use wf_core::models::{Reading, Recipient};
use wf_core::policy::{Accepted, BlockCause, Judgement, Offered, Refusal};

use crate::decimal::Decimal;
use crate::procedure::{Kind, Measure, Named, Problem, Range, Step};

/// What to do with a value for this step.
pub(crate) fn judge(step: &Step, offered: &Offered<'_>) -> Judgement {
    match &step.kind {
        Kind::Confirm => confirm(step, offered),
        Kind::Number(measure) => number(step, measure, offered),
        Kind::Choice { choices, block_on } => choice(step, choices, block_on, offered),
        Kind::Text { chars_max } => text(step, *chars_max, offered),
    }
}

/// The refusal of a value for a step that the table does not have.
pub(crate) fn unknown_step() -> Judgement {
    refuse(
        ErrorCode::ValidationError,
        "there is no such step".to_owned(),
        "I do not know that step.",
        [],
    )
}

/// A recorded value in words.
pub(crate) fn spoken(step: &Step, value: &str) -> String {
    match &step.kind {
        Kind::Number(measure) => {
            let unit = if value == "1" { measure.unit.one } else { measure.unit.many };
            format!("{value} {unit}")
        }
        Kind::Choice { choices, .. } => {
            let chosen = choices.iter().find(|c| c.id == value);
            chosen.map_or(value, |c| c.say).to_owned()
        }
        Kind::Confirm | Kind::Text { .. } => value.to_owned(),
    }
}

fn confirm(step: &Step, offered: &Offered<'_>) -> Judgement {
    match offered.value.trim().to_ascii_lowercase().as_str() {
        "yes" | "done" | "confirmed" => Judgement::Accept(accepted(step, offered, "yes")),
        "no" => Judgement::Decline,
        _ => refuse(
            ErrorCode::ValidationError,
            "value: yes or no".to_owned(),
            "Please say yes or no.",
            [("valid", json!(["yes", "no"]))],
        ),
    }
}

fn number(step: &Step, measure: &Measure, offered: &Offered<'_>) -> Judgement {
    let unit = measure.unit.symbol;
    if offered.unit.is_some_and(|said| said != unit) {
        return refuse(
            ErrorCode::UnitMismatch,
            format!("unit: {unit}"),
            &format!("I need it in {}.", measure.unit.many),
            [("unit", json!(unit))],
        );
    }
    let places = usize::try_from(measure.decimals).unwrap_or(0);
    let Some(value) = Decimal::parse(offered.value, places) else {
        return refuse(
            ErrorCode::ValidationError,
            format!("value: a decimal with at most {places} decimals, for example 4.2"),
            "Please say the number again.",
            [("decimals", json!(measure.decimals))],
        );
    };
    if !measure.instrument.holds(value) {
        return refuse(
            ErrorCode::ImplausibleValue,
            format!("the instrument shows {} {unit}", between(measure.instrument)),
            &format!("{value} cannot be. What does the instrument show?"),
            [
                ("min", json!(measure.instrument.min)),
                ("max", json!(measure.instrument.max)),
                ("unit", json!(unit)),
            ],
        );
    }
    let mut accepted = accepted(step, offered, &value.to_string());
    accepted.reading.given_unit = Some(unit.to_owned());
    accepted.reading.unit = Some(unit.to_owned());
    if measure.accept.holds(value) {
        if !measure.warn.holds(value) {
            let limits = between(measure.warn);
            accepted.warnings.push(format!("Unusual: it should be {limits} {unit}.").into());
        }
        return Judgement::Accept(accepted);
    }
    let limits = between(measure.accept);
    let read_back = format!(
        "I heard {}, and the limits are {limits}. Is that right?",
        spoken(step, offered.value)
    );
    accepted.out_of_range = true;
    accepted.read_back = Some(read_back.into());
    stop(step, accepted)
}

fn choice(
    step: &Step,
    choices: &[Named<&'static str>],
    block_on: &str,
    offered: &Offered<'_>,
) -> Judgement {
    let said = offered.value.trim().to_lowercase();
    let Some(chosen) = choices.iter().find(|c| c.id == said) else {
        let ids: Vec<&str> = choices.iter().map(|c| c.id).collect();
        return refuse(
            ErrorCode::ValidationError,
            format!("value: one of {}", ids.join(", ")),
            &format!("Please say {}.", ids.join(" or ")),
            [("valid", json!(ids))],
        );
    };
    let accepted = accepted(step, offered, chosen.id);
    if chosen.id == block_on { stop(step, accepted) } else { Judgement::Accept(accepted) }
}

fn text(step: &Step, chars_max: usize, offered: &Offered<'_>) -> Judgement {
    let words = offered.value.trim();
    if words.is_empty() || words.chars().count() > chars_max {
        return refuse(
            ErrorCode::ValidationError,
            format!("value: 1 to {chars_max} characters"),
            "Please say it again, in fewer words.",
            [("chars_max", json!(chars_max))],
        );
    }
    Judgement::Accept(accepted(step, offered, words))
}

/// Record it, and stop the work where the table says so.
fn stop(step: &Step, accepted: Accepted) -> Judgement {
    match &step.problem {
        Some(problem) => Judgement::Block(accepted, cause(problem)),
        None => Judgement::Accept(accepted),
    }
}

fn cause(problem: &Problem) -> BlockCause {
    BlockCause {
        code: problem.code.clone(),
        severity: problem.severity,
        escalation: vec![Recipient::last(problem.escalate_to)],
    }
}

/// The value as given is kept beside the value as understood.
fn accepted(step: &Step, offered: &Offered<'_>, value: &str) -> Accepted {
    Accepted {
        reading: Reading {
            given: offered.value.to_owned(),
            value: value.to_owned(),
            ..Reading::default()
        },
        out_of_range: false,
        deviation: None,
        warnings: Vec::new(),
        read_back: None,
        spoken: spoken(step, value).into(),
    }
}

fn refuse<const N: usize>(
    code: ErrorCode,
    message: String,
    say: &str,
    details: [(&str, Value); N],
) -> Judgement {
    let details = details.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect();
    Judgement::Reject(Refusal { code, message, say: say.into(), details, after_ms: None })
}

fn between(range: Range) -> String {
    format!("{} to {}", range.min, range.max)
}
