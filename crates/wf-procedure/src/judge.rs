//! What to do with a value: accept, block, decline, reject.
//!
//! Messages are for developers, `say` for people; neither ever repeats a value of a sensitive step.

mod number;

use serde_json::{Map, Value as Json, json};
use wf_core::errors::ErrorCode;
use wf_core::limits::VALUE_CHARS_MAX;
use wf_core::models::{Reading, Text, Timestamp, Workflow};
use wf_core::policy::{Accepted, BlockCause, Judgement, Offered, Refusal};
use wf_core::redaction::Quoted;

use crate::format::Confirm;
use crate::rules::{ChoiceRule, Rules, StepKind, StepRule};
use crate::standing::Standing;
use crate::{duration, expr, speech, words};

/// Judges a value.
pub(crate) fn judge(rules: &Rules, workflow: &Workflow, offered: &Offered<'_>) -> Judgement {
    let Some((_, step)) = rules.step(offered.step_id) else {
        let message = format!("there is no step {}", offered.step_id);
        let say = Text::from("I do not know that step.");
        return reject(ErrorCode::ValidationError, message, say, json!({"field": "step_id"}));
    };
    let value = offered.value.trim();
    if value.is_empty() || value.chars().count() > VALUE_CHARS_MAX {
        let message = format!("value must have 1 to {VALUE_CHARS_MAX} characters");
        let details = json!({"field": "value", "rule": message});
        return reject(ErrorCode::ValidationError, message, step.prompt.clone(), details);
    }
    match &step.kind {
        StepKind::Number(rule) => {
            let standing = Standing::of(rules, workflow);
            number::judge(step, rule, &standing.facts, value, offered.unit)
        }
        StepKind::Confirm
        | StepKind::Choice(_)
        | StepKind::Text { .. }
        | StepKind::Wait { .. }
        | StepKind::Sign { .. } => {
            if offered.unit.is_some_and(|u| !u.trim().is_empty()) {
                return no_unit(step);
            }
            match &step.kind {
                StepKind::Choice(rule) => choice(step, rule, value),
                StepKind::Text { chars_max } => text(step, *chars_max, value),
                StepKind::Wait { duration_ms } => {
                    let until = workflow.waits.get(&step.id).map_or_else(
                        // Its beginning is always recorded; if it were not, the wait would not be over early.
                        || workflow.updated_at.plus_ms(*duration_ms),
                        |wait| wait.until,
                    );
                    wait(step, value, until, offered.at)
                }
                StepKind::Confirm | StepKind::Sign { .. } | StepKind::Number(_) => {
                    confirm(step, value)
                }
            }
        }
    }
}

/// Whether two readings of a step mean the same. Numbers do when they are equal, however they were written.
pub(crate) fn same(step: &StepRule, one: &Reading, other: &Reading) -> bool {
    match &step.kind {
        StepKind::Number(_) => match (expr::exact(one), expr::exact(other)) {
            (Some(one), Some(other)) => one == other,
            (Some(_) | None, _) => false,
        },
        StepKind::Confirm
        | StepKind::Choice(_)
        | StepKind::Text { .. }
        | StepKind::Wait { .. }
        | StepKind::Sign { .. } => one.value == other.value,
    }
}

/// A refusal without effect.
fn reject(code: ErrorCode, message: String, say: Text, details: Json) -> Judgement {
    let details = match details {
        Json::Object(map) => map,
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            Map::new()
        }
    };
    Judgement::Reject(Refusal { code, message, say, details, after_ms: None })
}

/// The value for a developer's message; never one of a sensitive step.
fn shown(step: &StepRule, value: &str) -> String {
    if step.sensitive { "the value".to_owned() } else { Quoted(value).to_string() }
}

fn no_unit(step: &StepRule) -> Judgement {
    let message = format!("a {} step has no unit; leave unit away", step.kind.name());
    let details = json!({"field": "unit", "accepted_units": []});
    reject(ErrorCode::UnitMismatch, message, step.prompt.clone(), details)
}

/// Yes and no in one language.
struct YesNo {
    language: &'static str,
    yes: &'static [&'static str],
    no: &'static [&'static str],
}

/// English counts everywhere; another language where the prompt has words in it.
const YES_NO: [YesNo; 2] = [
    YesNo { language: "en", yes: &["yes", "confirmed", "done", "true"], no: &["no", "false"] },
    YesNo { language: "de", yes: &["ja", "bestätigt", "erledigt"], no: &["nein"] },
];

/// Whether `value` says yes; `None` when it says neither yes nor no.
fn is_yes(step: &StepRule, value: &str) -> Option<bool> {
    let word = said(value);
    let spoken = |language: &str| match &step.prompt {
        Text::One(_) => language == "en",
        Text::Many(prompts) => {
            language == "en" || prompts.keys().any(|tag| tag.split('-').next() == Some(language))
        }
    };
    let mut languages = YES_NO.iter().filter(|words| spoken(words.language));
    languages.find_map(|words| {
        let yes = words.yes.contains(&word.as_str());
        (yes || words.no.contains(&word.as_str())).then_some(yes)
    })
}

/// A wait is done when its time is over, and says until when it is not.
fn wait(step: &StepRule, value: &str, until: Timestamp, now: Timestamp) -> Judgement {
    let left = until.since_ms(now);
    if left == 0 || is_yes(step, value) != Some(true) {
        return confirm(step, value);
    }
    let say = Text::from(format!("Please wait {} more.", duration::spoken(left)));
    let details = Map::from_iter([("due_at".to_owned(), Json::from(until.to_string()))]);
    Judgement::Reject(Refusal {
        code: ErrorCode::TooEarly,
        message: format!("the wait is over at {until}, in {left} ms"),
        say,
        details,
        after_ms: Some(left),
    })
}

/// The value that saying yes to a step records.
fn yes(step: &StepRule) -> &'static str {
    match &step.kind {
        StepKind::Wait { .. } | StepKind::Sign { .. } => "done",
        StepKind::Confirm | StepKind::Number(_) | StepKind::Choice(_) | StepKind::Text { .. } => {
            "yes"
        }
    }
}

fn confirm(step: &StepRule, value: &str) -> Judgement {
    match is_yes(step, value) {
        Some(true) => {
            let reading = Reading {
                given: value.to_owned(),
                value: yes(step).to_owned(),
                ..Reading::default()
            };
            let read_back = read_back(step, false, &Text::from(yes(step)));
            Judgement::Accept(accepted(step, reading, false, read_back))
        }
        Some(false) => Judgement::Decline,
        None => {
            let message = format!("{} is neither {} nor no", shown(step, value), yes(step));
            let (yes, no) = (yes(step), "no");
            let say = words::map(&step.prompt, |p| format!("Please answer {yes} or no. {p}"));
            let details =
                json!({"field": "value", "rule": format!("{yes} or no"), "choices": [yes, no]});
            reject(ErrorCode::ValidationError, message, say, details)
        }
    }
}

/// What somebody says, in one form: lower case, single spaces.
pub(crate) fn said(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn choice(step: &StepRule, rule: &ChoiceRule, value: &str) -> Judgement {
    let exact = rule.choices.iter().find(|c| c.id == value);
    let word = said(value);
    let found = exact.or_else(|| {
        rule.choices
            .iter()
            .find(|c| said(&c.id) == word || c.say.wordings().any(|wording| said(wording) == word))
    });
    let Some(found) = found else {
        let ids: Vec<&str> = rule.choices.iter().map(|c| c.id.as_str()).collect();
        let message = format!("{} is none of the choices {}", shown(step, value), ids.join(", "));
        let details =
            json!({"field": "value", "rule": "one of the choices", "choices": rule.choices});
        return reject(ErrorCode::ValidationError, message, ask_choices(rule), details);
    };
    let reading =
        Reading { given: value.to_owned(), value: found.id.clone(), ..Reading::default() };
    let code = rule.block_on.get(&found.id);
    let out = code.is_some();
    let accepted = accepted(step, reading, out, read_back(step, out, &found.say));
    match code {
        None => Judgement::Accept(accepted),
        Some(code) => Judgement::Block(
            accepted,
            BlockCause {
                code: code.clone(),
                // The policy's default block says how bad and who is told; see `policy`.
                severity: wf_core::models::Severity::High,
                escalation: Vec::new(),
            },
        ),
    }
}

/// At most three options are named aloud.
fn ask_choices(rule: &ChoiceRule) -> Text {
    const NAMED_MAX: usize = 3;
    let named: Vec<&Text> = rule.choices.iter().take(NAMED_MAX).map(|c| &c.say).collect();
    let more = rule.choices.len() > NAMED_MAX;
    words::compose(&named, |w| {
        let list = match w {
            [] => String::new(),
            [one] => (*one).to_owned(),
            [first @ .., last] => {
                let joint = if more { ", " } else { " or " };
                format!("{}{joint}{last}", first.join(", "))
            }
        };
        let more = if more { ", or another" } else { "" };
        format!("Please say {list}{more}.")
    })
}

fn text(step: &StepRule, chars_max: usize, value: &str) -> Judgement {
    let chars = value.chars().count();
    if chars > chars_max {
        let message = format!("the text has {chars} characters; at most {chars_max} are allowed");
        let say =
            Text::from(format!("That is too long. Please use at most {chars_max} characters."));
        let details = json!({"field": "value", "rule": format!("at most {chars_max} characters"), "max_length": chars_max});
        return reject(ErrorCode::ValidationError, message, say, details);
    }
    let reading =
        Reading { given: value.to_owned(), value: value.to_owned(), ..Reading::default() };
    let spoken = speech::reading(step, &reading);
    let read_back = read_back(step, false, &spoken);
    Judgement::Accept(accepted(step, reading, false, read_back))
}

/// A value to record, with its words.
fn accepted(
    step: &StepRule,
    reading: Reading,
    out_of_range: bool,
    read_back: Option<Text>,
) -> Accepted {
    Accepted {
        spoken: speech::reading(step, &reading),
        reading,
        out_of_range,
        deviation: None,
        warnings: Vec::new(),
        read_back,
    }
}

/// What is read back before a value is recorded, where the step asks for that.
fn read_back(step: &StepRule, out_of_range: bool, spoken: &Text) -> Option<Text> {
    let asks = match step.confirm {
        Confirm::Never => false,
        Confirm::OutOfRange => out_of_range,
        Confirm::Always => true,
    };
    asks.then(|| {
        words::compose(&[&step.say, spoken], |w| match w {
            [what, value] => format!("{}: {value}. Is that right?", words::sentence(what)),
            _ => String::new(),
        })
    })
}
