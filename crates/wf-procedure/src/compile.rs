//! Document → [`Rules`]: everything that is well formed and still wrong is found here.

mod blocks;
mod inputs;
mod numbers;
mod steps;

use std::collections::{BTreeMap, BTreeSet};

use wf_core::limits::{ASSETS_MAX, STEPS_MAX};
use wf_core::models::{AssetRole, ReasonCode, ResultId, StepId, Text};
use wf_core::policy::Choice;

use crate::asset_id::IdForm;
use crate::expr::{Expression, Fault, InputType, Scope, StepType, Type};
use crate::format::{
    Asset, AssetIdForm, Cel, Document, Id, LeadingZeros, Located, Reason, ResultSpec, Say,
    fields::hint_for,
};
use crate::problem::{Position, Problems, one_of};
use crate::rules::{AssetRule, ResultRule, Rules, StepRule};
use crate::words;

/// Events that `notify` may name.
const EVENT_KINDS: [&str; 19] = [
    "workflow_started",
    "orchestration_acknowledged",
    "step_recorded",
    "step_corrected",
    "recheck_required",
    "step_not_needed",
    "wait_started",
    "step_skipped",
    "workflow_blocked",
    "problem_noted",
    "block_resolved",
    "block_acknowledged",
    "ownership_offered",
    "offer_withdrawn",
    "ownership_transferred",
    "lock_released",
    "workflow_completed",
    "deadline_passed",
    "escalated",
];

/// Gives a document its meaning; `None`, with problems, when it has none.
pub(crate) fn compile(document: &Document, problems: &mut Problems) -> Option<Rules> {
    let assets = assets(document, problems);
    let inputs = document.inputs.as_ref().and_then(|schema| inputs::compile(schema, problems));
    let reasons = reasons(document, problems);
    let types = steps::types(document, problems);
    let input_types: BTreeMap<String, InputType> = inputs
        .iter()
        .flat_map(|rules| &rules.inputs)
        .map(|input| (input.needed.name.clone(), input.kind.clone()))
        .collect();
    let roles: Vec<String> = assets.iter().map(|a| a.role.as_str().to_owned()).collect();
    let scope = Scope { steps: &types, before: types.len(), inputs: &input_types, roles: &roles };
    let blocks = blocks::default(document.blocks.as_ref(), problems)?;
    let steps: Vec<StepRule> = steps::compile(document, &scope, &blocks, problems);
    steps::reasons_are_there(document, &steps, &reasons, problems);
    steps::used_by_few(document, &steps, problems);
    steps::few_waits(document, problems);
    steps::few_signatures(document, problems);
    let deadlines = blocks::deadlines(document, problems);
    let results = results(document, &scope, problems);
    let notify = notify(document, problems);
    let timezone = timezone(document, problems);
    if !problems.is_empty() {
        return None;
    }
    let index = steps.iter().enumerate().map(|(i, step)| (step.id.clone(), i)).collect();
    Some(Rules {
        title: document.title.value.0.clone(),
        order: document.order.unwrap_or(crate::format::Order::Sequence),
        assets,
        inputs,
        stale_after_ms: document.stale_after.as_ref().map(|d| d.value.0),
        timezone,
        reasons,
        steps,
        index,
        deadlines,
        blocks,
        results,
        notify,
        expression_failed: ReasonCode::parse("EXPRESSION_FAILED").ok()?,
    })
}

/// The words somebody wrote, else the words of the id.
fn say_or(say: Option<&Located<Say>>, id: &str) -> Text {
    say.map_or_else(|| Text::from(words::of_id(id)), |s| s.value.0.clone())
}

/// Notes ids that stand twice. Returns the first of each.
fn once<'a, T>(
    what: &str,
    items: impl Iterator<Item = (&'a Located<Id>, T)>,
    problems: &mut Problems,
) -> Vec<(&'a Located<Id>, T)> {
    let mut first: BTreeMap<&str, Position> = BTreeMap::new();
    let mut kept = Vec::new();
    for (id, item) in items {
        if let Some(before) = first.get(id.value.0.as_str()) {
            let message = format!("{what} \"{}\" stands twice", id.value.0);
            let hint = format!("the first is in line {}; give this one another", before.line);
            problems.add(id.at, message, hint);
        } else {
            first.insert(&id.value.0, id.at);
            kept.push((id, item));
        }
    }
    kept
}

/// Checks an expression and notes what is wrong with it, at its place inside the text.
fn expression(
    cel: &Cel,
    at: Position,
    expected: Type,
    scope: &Scope<'_>,
    problems: &mut Problems,
) -> Option<Expression> {
    match Expression::check(&cel.source, expected, scope) {
        Ok(expression) => Some(expression),
        Err(Fault { offset, message, hint }) => {
            let at = match cel.shift {
                Some(shift) if at.line > 0 => {
                    Position { line: at.line, column: at.column + shift + offset }
                }
                Some(_) | None => at,
            };
            problems.add(at, message, hint);
            None
        }
    }
}

fn assets(document: &Document, problems: &mut Problems) -> Vec<AssetRule> {
    let Some(written) = &document.assets else {
        return Vec::new();
    };
    if written.value.len() > ASSETS_MAX {
        let message = format!("{} assets", written.value.len());
        problems.add(written.at, message, format!("use at most {ASSETS_MAX}"));
    }
    let roles = written.value.iter().map(|a| (&a.role, a));
    once("the role", roles, problems)
        .into_iter()
        .filter_map(|(_, asset)| asset_rule(asset, problems))
        .collect()
}

fn asset_rule(asset: &Asset, problems: &mut Problems) -> Option<AssetRule> {
    let role = AssetRole::parse(&asset.role.value.0).ok()?;
    let say = say_or(asset.say.as_ref(), &asset.role.value.0);
    let id = match &asset.id.value {
        AssetIdForm::Numbered(form) => {
            let digits_max = usize::try_from(form.digits.max.value).ok()?;
            if form.prefix.value.0.len() + digits_max > 128 {
                problems.add(form.prefix.at, "ids would be too long", "use a shorter prefix");
            }
            if form.prefix.value.0.ends_with(|c: char| c.is_ascii_digit()) {
                let hint = "end the prefix with a letter or a hyphen";
                problems.add(form.prefix.at, "a prefix that ends with a digit", hint);
            }
            IdForm::Numbered {
                prefix: form.prefix.value.0.clone(),
                digits_max,
                leading_zeros: form.digits.leading_zeros.unwrap_or(LeadingZeros::Drop),
            }
        }
        AssetIdForm::Pattern(form) => match IdForm::by_pattern(&form.pattern.value) {
            Ok(form) => form,
            Err(error) => {
                let last = error.to_string();
                let last = last.lines().last().unwrap_or_default().trim().to_owned();
                let message = format!("not a regular expression: {last}");
                let hint = "see https://docs.rs/regex/latest/regex/#syntax";
                problems.add(form.pattern.at, message, hint);
                return None;
            }
        },
    };
    let example = asset.example.as_ref().and_then(|example| {
        if id.canonical(&example.value, &say).is_none() {
            let message =
                format!("{} is no id of this asset", wf_core::redaction::Quoted(&example.value));
            problems.add(example.at, message, "write one that the id rule accepts");
            return None;
        }
        Some(example.value.clone())
    });
    Some(AssetRule { role, say, id, example })
}

fn reasons(document: &Document, problems: &mut Problems) -> Vec<Choice> {
    let Some(written) = &document.reasons else {
        return Vec::new();
    };
    let codes = written.value.iter().map(|r: &Reason| (&r.code, r));
    once("the reason", codes, problems)
        .into_iter()
        .map(|(code, reason)| Choice {
            id: code.value.0.clone(),
            say: say_or(reason.say.as_ref(), &code.value.0),
        })
        .collect()
}

fn results(document: &Document, scope: &Scope<'_>, problems: &mut Problems) -> Vec<ResultRule> {
    let abandoned = ResultId::abandoned();
    let mut rules: Vec<ResultRule> = Vec::new();
    let Some(written) = &document.results else {
        rules.extend(ResultId::parse("done").map(|id| ResultRule {
            id,
            say: Text::from("done"),
            when: None,
        }));
        rules.push(abandoned_rule());
        return rules;
    };
    let ids = written.value.iter().map(|r: &ResultSpec| (&r.id, r));
    for (id, result) in once("the result", ids, problems) {
        let when = result.when.as_ref().and_then(|when| {
            if id.value.0 == abandoned.as_str() {
                let hint = "remove when: a workflow can be abandoned at any time";
                problems.add(when.at, "abandoned with a condition", hint);
                return None;
            }
            expression(&when.value, when.at, Type::Bool, scope, problems)
        });
        if let Ok(parsed) = ResultId::parse(&id.value.0) {
            rules.push(ResultRule {
                id: parsed,
                say: say_or(result.say.as_ref(), &id.value.0),
                when,
            });
        }
    }
    if rules.iter().all(|r| r.id == abandoned) {
        let hint = "add one besides abandoned, or remove results: for done";
        problems.add(written.at, "no result to finish with", hint);
    }
    if rules.iter().all(|r| r.id != abandoned) {
        rules.push(abandoned_rule());
    }
    rules
}

fn abandoned_rule() -> ResultRule {
    ResultRule { id: ResultId::abandoned(), say: Text::from("abandoned"), when: None }
}

fn notify(document: &Document, problems: &mut Problems) -> BTreeSet<String> {
    let mut kinds = BTreeSet::new();
    for kind in document.notify.iter().flat_map(|n| &n.value) {
        if EVENT_KINDS.contains(&kind.value.as_str()) {
            kinds.insert(kind.value.clone());
        } else {
            let shown = wf_core::redaction::Quoted(&kind.value);
            let message = format!("there is no event {shown}");
            problems.add(kind.at, message, one_of(&kind.value, &EVENT_KINDS));
        }
    }
    kinds
}

fn timezone(document: &Document, problems: &mut Problems) -> Option<String> {
    let zone = document.timezone.as_ref()?;
    if jiff::tz::TimeZone::get(&zone.value).is_ok() {
        return Some(zone.value.clone());
    }
    let shown = wf_core::redaction::Quoted(&zone.value);
    let message = format!("the time zone {shown} is not known");
    let known: Vec<String> = jiff::tz::db().available().map(|z| z.to_string()).collect();
    let hint = hint_for(
        &zone.value,
        known.iter().map(String::as_str),
        "write an IANA name like Europe/Berlin",
    );
    problems.add(zone.at, message, hint);
    None
}

/// Parses a step id that `format` has already checked.
fn step_id(id: &Located<Id>) -> Option<StepId> {
    StepId::parse(&id.value.0).ok()
}

/// More than the core can hold.
fn too_many_steps(document: &Document, problems: &mut Problems) {
    let count = document.steps.value.len();
    if count > STEPS_MAX {
        let hint = format!("use at most {STEPS_MAX}, or split the procedure");
        problems.add(document.steps.at, format!("{count} steps"), hint);
    } else if count == 0 {
        problems.add(document.steps.at, "no steps", "add at least one");
    }
}

/// The type of a step as expressions see it.
fn step_type(id: &str, value: Type, choices: Option<Vec<String>>, sensitive: bool) -> StepType {
    StepType { id: id.to_owned(), value, choices, sensitive }
}
