//! `steps:` → step rules.

use std::collections::{BTreeMap, BTreeSet};

use wf_core::limits::{DEPENDANTS_MAX, SIGNATURES_MAX, WAITS_BEGIN_MAX};
use wf_core::models::Text;
use wf_core::policy::{Choice, SkipRule};

use super::{blocks, expression, numbers, once, say_or, step_id, step_type, too_many_steps};
use crate::duration;
use crate::expr::{Scope, StepType, Type};
use crate::format::{
    self, ChoiceOption, Confirm, Document, Kind, Located, Order, SignSpec, Skip, Step,
};
use crate::problem::{Problems, one_of};
use crate::rules::{Block, ChoiceRule, StepKind, StepRule};
use crate::words;

/// The steps as expressions see them, in order. Also notes ids that stand twice and a count beyond the limit.
pub(super) fn types(document: &Document, problems: &mut Problems) -> Vec<StepType> {
    too_many_steps(document, problems);
    let steps = &document.steps.value;
    once("the step", steps.iter().map(|s| (&s.id, s)), problems);
    steps
        .iter()
        .map(|step| {
            let (value, choices) = match &step.kind {
                Kind::Confirm | Kind::Wait(_) | Kind::Sign(_) => (Type::Bool, None),
                Kind::Number(_) => (Type::Number, None),
                Kind::Choice(choice) => (Type::Text, Some(ids_of(choice))),
                Kind::Text(_) => (Type::Text, None),
            };
            let sensitive = step.sensitive.as_ref().is_some_and(|s| s.value);
            step_type(&step.id.value.0, value, choices, sensitive)
        })
        .collect()
}

fn ids_of(choice: &format::Choice) -> Vec<String> {
    choice
        .choices
        .value
        .iter()
        .map(|option| match option {
            ChoiceOption::Short(id) => id.value.0.clone(),
            ChoiceOption::Long(long) => long.id.value.0.clone(),
        })
        .collect()
}

/// The rules of all steps. `scope` reaches over all of them; each step sees the ones before it.
pub(super) fn compile(
    document: &Document,
    scope: &Scope<'_>,
    default: &Block,
    problems: &mut Problems,
) -> Vec<StepRule> {
    document
        .steps
        .value
        .iter()
        .enumerate()
        .filter_map(|(index, step)| {
            let scope = Scope { before: index, ..scope.clone() };
            step_rule(step, &scope, default, problems)
        })
        .collect()
}

fn step_rule(
    step: &Step,
    scope: &Scope<'_>,
    default: &Block,
    problems: &mut Problems,
) -> Option<StepRule> {
    let required = step.required.as_ref().is_none_or(|r| r.value);
    let sensitive = step.sensitive.as_ref().is_some_and(|s| s.value);
    let confirm = confirm(step, sensitive, problems);
    let skip = skip(step, required, problems);
    let when = step
        .when
        .as_ref()
        .and_then(|when| expression(&when.value, when.at, Type::Bool, scope, problems));
    let say = say_or(step.say.as_ref(), &step.id.value.0);
    let mut uses: BTreeSet<usize> = when.iter().flat_map(|w| w.uses.iter().copied()).collect();
    let kind = match &step.kind {
        Kind::Confirm => StepKind::Confirm,
        Kind::Number(number) => {
            let rule = numbers::compile(&step.id, number, scope, default, problems)?;
            uses.extend(numbers::uses(&rule));
            StepKind::Number(Box::new(rule))
        }
        Kind::Choice(choice) => StepKind::Choice(choice_rule(step, choice, problems)?),
        Kind::Text(text) => StepKind::Text {
            chars_max: text
                .max_length
                .as_ref()
                .and_then(|m| usize::try_from(m.value).ok())
                .unwrap_or(wf_core::limits::VALUE_CHARS_MAX),
        },
        Kind::Wait(wait) => StepKind::Wait { duration_ms: wait.duration.value.0 },
        Kind::Sign(sign) => {
            // A signature stands for everything before it: what changes there is signed again.
            uses.extend(0..scope.before);
            StepKind::Sign { not_performer: not_performer(step, sign, problems) }
        }
    };
    Some(StepRule {
        id: step_id(&step.id)?,
        prompt: step.prompt.as_ref().map_or_else(|| words_of(&kind, &say), |p| p.value.0.clone()),
        say,
        required,
        skip,
        when,
        role: step.role.as_ref().map(|role| role.value.0.clone()),
        sensitive,
        confirm,
        kind,
        uses,
    })
}

/// The prompt of a step that words none: a wait, by the format.
fn words_of(kind: &StepKind, say: &Text) -> Text {
    match kind {
        StepKind::Wait { duration_ms } => {
            Text::from(format!("Wait for {}.", duration::spoken(*duration_ms)))
        }
        StepKind::Confirm
        | StepKind::Number(_)
        | StepKind::Choice(_)
        | StepKind::Text { .. }
        | StepKind::Sign { .. } => say.clone(),
    }
}

/// Whether a second person must sign. Without a role only whoever drives the workflow could.
fn not_performer(step: &Step, sign: &SignSpec, problems: &mut Problems) -> bool {
    let Some(written) = &sign.not_performer else { return false };
    if written.value && step.role.is_none() {
        let message = "a second person signs, and nobody is named";
        let hint = "add role: with the role of those who may, like supervisor";
        problems.add(written.at, message, hint);
    }
    written.value
}

/// Whether values are read back. What is sensitive is never spoken, so it cannot be.
fn confirm(step: &Step, sensitive: bool, problems: &mut Problems) -> Confirm {
    let Some(confirm) = &step.confirm else {
        return Confirm::Never;
    };
    if sensitive && confirm.value != Confirm::Never {
        let hint = "write confirm: never, or remove sensitive";
        let message = "a sensitive value cannot be read back";
        problems.add(confirm.at, message, hint);
    }
    let can_be_out = match &step.kind {
        Kind::Number(number) => number.range.as_ref().is_some_and(|r| r.accept.is_some()),
        Kind::Choice(choice) => choice.block_on.is_some(),
        Kind::Confirm | Kind::Text(_) | Kind::Wait(_) | Kind::Sign(_) => false,
    };
    if confirm.value == Confirm::OutOfRange && !can_be_out {
        let message = "no value of this step is out of range";
        let hint = "add range: { accept: [low, high] } or block_on:, or write confirm: always";
        problems.add(confirm.at, message, hint);
    }
    confirm.value
}

fn skip(step: &Step, required: bool, problems: &mut Problems) -> SkipRule {
    match &step.skip {
        None if required => SkipRule::Never,
        None => SkipRule::Free,
        Some(Located { value, at }) => {
            if *value == Skip::Never && !required {
                let message = "a step that is not required and may never be skipped";
                let hint = "remove skip: never, or required: false";
                problems.add(*at, message, hint);
            }
            match value {
                Skip::Never => SkipRule::Never,
                Skip::Reason => SkipRule::Reason,
                Skip::Supervisor => SkipRule::Supervisor,
            }
        }
    }
}

/// Notes steps that too many others look at, themselves or by way of a condition: a correction looks after all of them in
/// its own commit.
pub(super) fn used_by_few(document: &Document, rules: &[StepRule], problems: &mut Problems) {
    for (index, step) in document.steps.value.iter().enumerate() {
        let mut reached = BTreeSet::from([index]);
        // Steps look back only, so one pass in their order finds all.
        for (later, rule) in rules.iter().enumerate().skip(index + 1) {
            let by_condition =
                |of: &usize| *of == index || rules.get(*of).is_some_and(|rule| rule.when.is_some());
            if rule.uses.iter().any(|of| reached.contains(of) && by_condition(of)) {
                reached.insert(later);
            }
        }
        let count = reached.len() - 1;
        if count > DEPENDANTS_MAX {
            let message = format!("{count} later steps look at step \"{}\"", step.id.value.0);
            let hint = format!("at most {DEPENDANTS_MAX} can be checked again after a correction");
            problems.add(step.id.at, message, hint);
        }
    }
}

/// Notes waits that could all begin at once, more than one commit holds.
pub(super) fn few_waits(document: &Document, problems: &mut Problems) {
    if document.order != Some(Order::Any) {
        return;
    }
    let waits = document.steps.value.iter().filter(|step| matches!(step.kind, Kind::Wait(_)));
    if let Some(one_too_many) = waits.clone().nth(WAITS_BEGIN_MAX) {
        let message = format!("{} waits that may begin at once", waits.count());
        let hint = format!("use at most {WAITS_BEGIN_MAX}, or order: sequence");
        problems.add(one_too_many.id.at, message, hint);
    }
}

/// Notes signatures beyond what one correction can ask for again.
pub(super) fn few_signatures(document: &Document, problems: &mut Problems) {
    let signatures = document.steps.value.iter().filter(|s| matches!(s.kind, Kind::Sign(_)));
    if let Some(one_too_many) = signatures.clone().nth(SIGNATURES_MAX) {
        let message = format!("{} steps that sign", signatures.count());
        let hint = format!("use at most {SIGNATURES_MAX}: a correction asks for all of them again");
        problems.add(one_too_many.id.at, message, hint);
    }
}

/// Steps that are skipped with a reason need reasons to choose from.
pub(super) fn reasons_are_there(
    document: &Document,
    steps: &[StepRule],
    reasons: &[Choice],
    problems: &mut Problems,
) {
    if !reasons.is_empty() {
        return;
    }
    for step in &document.steps.value {
        let asks = steps.iter().any(|rule| {
            rule.id.as_str() == step.id.value.0
                && matches!(rule.skip, SkipRule::Reason | SkipRule::Supervisor)
        });
        if let (true, Some(skip)) = (asks, &step.skip) {
            let hint = "add reasons: with a code and the words for it";
            problems.add(skip.at, "a skip with a reason, and no reasons", hint);
        }
    }
}

fn choice_rule(
    step: &Step,
    choice: &format::Choice,
    problems: &mut Problems,
) -> Option<ChoiceRule> {
    let options = choice.choices.value.iter().map(|option| match option {
        ChoiceOption::Short(id) => (id, Text::from(words::of_id(&id.value.0))),
        ChoiceOption::Long(long) => (&long.id, long.say.value.0.clone()),
    });
    let choices: Vec<Choice> = once("the choice", options, problems)
        .into_iter()
        .map(|(id, say)| Choice { id: id.value.0.clone(), say })
        .collect();
    if choices.len() < 2 {
        let hint = "write at least two, or use kind: confirm";
        problems.add(choice.choices.at, "fewer than two choices", hint);
    }
    said_once(choice, &choices, problems);
    let mut block_on = BTreeMap::new();
    for id in choice.block_on.iter().flat_map(|b| &b.value) {
        if choices.iter().any(|c| c.id == id.value.0) {
            let code = blocks::choice_code(&step.id.value.0, &id.value.0)?;
            block_on.insert(id.value.0.clone(), code);
        } else {
            let known: Vec<&str> = choices.iter().map(|c| c.id.as_str()).collect();
            let message = format!("\"{}\" is none of the choices", id.value.0);
            problems.add(id.at, message, one_of(&id.value.0, &known));
        }
    }
    Some(ChoiceRule { choices, block_on })
}

/// What somebody says must mean one choice, whatever its case.
fn said_once(written: &format::Choice, choices: &[Choice], problems: &mut Problems) {
    let mut said: BTreeMap<String, &str> = BTreeMap::new();
    for choice in choices {
        let words = choice.say.wordings().chain([choice.id.as_str()]);
        for word in words {
            let word = crate::judge::said(word);
            if let Some(other) = said.insert(word.clone(), &choice.id)
                && other != choice.id
            {
                let message = format!("\"{word}\" is said for {other} and for {}", choice.id);
                problems.add(written.choices.at, message, "give each choice its own words");
            }
        }
    }
}
