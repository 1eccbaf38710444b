//! Readings in words.

use wf_core::models::{Locale, Reading, Text};
use wf_core::policy::UnitWords;

use crate::decimal::{Decimal, without_trailing_zeros};
use crate::rules::{NumberRule, StepKind, StepRule};
use crate::units::StepUnit;
use crate::words;

/// Longest text answer that is spoken, in characters.
const SPOKEN_ANSWER_CHARS_MAX: usize = 80;

/// A reading in words, in every language that the procedure has words in.
pub(crate) fn reading(step: &StepRule, reading: &Reading) -> Text {
    if step.sensitive || reading.withheld {
        return Text::from("withheld");
    }
    match &step.kind {
        StepKind::Confirm => Text::from("yes"),
        StepKind::Wait { .. } => Text::from("that the wait is over"),
        StepKind::Sign { .. } => Text::from("the signature"),
        StepKind::Number(number) => number_reading(number, reading),
        StepKind::Choice(choice) => choice
            .choices
            .iter()
            .find(|c| c.id == reading.value)
            .map_or_else(|| Text::from(reading.value.as_str()), |c| c.say.clone()),
        StepKind::Text { .. } => {
            let line = reading.value.split_whitespace().collect::<Vec<_>>().join(" ");
            Text::from(words::cut(&line, SPOKEN_ANSWER_CHARS_MAX))
        }
    }
}

fn number_reading(number: &NumberRule, reading: &Reading) -> Text {
    let given = Decimal::parse(&reading.given).map_or_else(|| reading.given.clone(), |d| d.plain());
    let given_unit = reading.given_unit.as_deref().and_then(|s| unit_of(number, s));
    let as_given = quantity(&given, given_unit);
    if reading.given_unit == reading.unit {
        return as_given;
    }
    let value = without_trailing_zeros(&reading.value);
    let converted = quantity(value, number.unit.as_ref());
    let about = if reading.exact.is_some() { "about " } else { "" };
    words::compose(&[&as_given, &converted], |w| match w {
        [given, converted] => format!("{given}, that is {about}{converted}"),
        _ => String::new(),
    })
}

/// Words of a reading that the sentence goes on after: the conversion in them is closed with a comma.
pub(crate) fn subject(reading: &str) -> String {
    if reading.contains(", ") { format!("{reading},") } else { reading.to_owned() }
}

fn unit_of<'a>(number: &'a NumberRule, symbol: &str) -> Option<&'a StepUnit> {
    number.unit.iter().chain(&number.other_units).find(|u| u.symbol() == symbol)
}

/// Digits with their unit: "1 bar", "3.2 kilopascals".
pub(crate) fn quantity(digits: &str, unit: Option<&StepUnit>) -> Text {
    match unit {
        None => Text::from(digits),
        Some(unit) => words::map(unit_word(digits, &unit.words), |w| format!("{digits} {w}")),
    }
}

fn unit_word<'a>(digits: &str, words: &'a UnitWords) -> &'a Text {
    if matches!(digits, "1" | "-1") { &words.one } else { &words.many }
}

/// The words for several of a unit, with a space before; nothing without one.
pub(crate) fn unit_after(unit: Option<&StepUnit>) -> String {
    unit.map_or_else(String::new, |u| format!(" {}", u.words.many.get(&Locale::default())))
}
