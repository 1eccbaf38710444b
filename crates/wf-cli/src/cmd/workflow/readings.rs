//! The readings of a workflow as rows: one for each value that was recorded, corrected or skipped. Pure; `export` writes
//! them as CSV.

use std::collections::BTreeMap;

use wf_core::models::{Actor, Locale, StepId, Timestamp, Workflow};
use wf_core::state_machine::{Event, EventBody, Recording};

/// The columns, in order.
pub(super) const COLUMNS: [&str; 26] = [
    "tenant",
    "workflow_id",
    "label",
    "procedure_id",
    "procedure_version",
    "assets",
    "workflow_state",
    "workflow_result",
    "seq",
    "step_id",
    "attempt",
    "kind",
    "outcome",
    "deviation",
    "value_given",
    "unit_given",
    "value",
    "unit",
    "sensitive",
    "by",
    "by_name",
    "at",
    "reason_code",
    "note",
    "corrected_by",
    "corrected_at",
];

/// What a reader may see of sensitive values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    Masked,
    Whole,
}

/// Which values were replaced by a correction: event of the value → who corrected it and when.
#[derive(Debug, Default)]
pub(super) struct Corrections {
    newest: BTreeMap<StepId, u64>,
    by: BTreeMap<u64, (Actor, Timestamp)>,
}

impl Corrections {
    /// Takes notice of the next event.
    pub(super) fn see(&mut self, event: &Event) {
        let Some(recording) = event.body.recording() else { return };
        let before = self.newest.insert(recording.step_id.clone(), event.seq);
        if let (Some(before), EventBody::StepCorrected { .. }) = (before, &event.body) {
            self.by.insert(before, (event.actor.clone(), event.at));
        }
    }
}

/// The cells of an event, in the order of [`COLUMNS`]; none when it is no reading.
pub(super) fn cells(
    workflow: &Workflow,
    event: &Event,
    corrections: &Corrections,
    sight: Sight,
) -> Option<Vec<String>> {
    let reading = Reading::of(event, sight)?;
    let assets: Vec<&str> = workflow.assets.iter().map(|asset| asset.id.as_str()).collect();
    let corrected = corrections.by.get(&event.seq);
    Some(vec![
        workflow.tenant.to_string(),
        workflow.id.to_string(),
        workflow.label.get(&Locale::default()).to_owned(),
        workflow.procedure.id.to_string(),
        workflow.procedure.version.to_string(),
        assets.join(" "),
        workflow.phase.as_str().to_owned(),
        workflow.result.as_ref().map(ToString::to_string).unwrap_or_default(),
        event.seq.to_string(),
        reading.step_id,
        reading.attempt,
        reading.kind.to_owned(),
        reading.outcome.to_owned(),
        reading.deviation,
        reading.given,
        reading.given_unit,
        reading.value,
        reading.unit,
        reading.sensitive.to_owned(),
        event.actor.to_string(),
        event.actor_name.clone().unwrap_or_default(),
        event.at.to_string(),
        reading.reason,
        reading.note,
        corrected.map(|(by, _)| by.to_string()).unwrap_or_default(),
        corrected.map(|(_, at)| at.to_string()).unwrap_or_default(),
    ])
}

#[derive(Debug, Default)]
struct Reading {
    step_id: String,
    attempt: String,
    kind: &'static str,
    outcome: &'static str,
    deviation: String,
    given: String,
    given_unit: String,
    value: String,
    unit: String,
    sensitive: &'static str,
    reason: String,
    note: String,
}

impl Reading {
    fn of(event: &Event, sight: Sight) -> Option<Self> {
        if let EventBody::StepSkipped { step_id, reason_code, note } = &event.body {
            return Some(Self {
                step_id: step_id.to_string(),
                kind: "skipped",
                outcome: "skipped",
                reason: reason_code.as_ref().map(ToString::to_string).unwrap_or_default(),
                note: note.clone().unwrap_or_default(),
                ..Self::default()
            });
        }
        let recording = event.body.recording()?;
        let reason = if let EventBody::StepCorrected { reason_code, .. } = &event.body {
            Some(reason_code.to_string())
        } else {
            None
        };
        let reading = Self {
            step_id: recording.step_id.to_string(),
            attempt: recording.attempt.to_string(),
            kind: if reason.is_some() { "corrected" } else { "recorded" },
            outcome: outcome(recording),
            deviation: recording.deviation.as_ref().map(ToString::to_string).unwrap_or_default(),
            reason: reason.unwrap_or_default(),
            ..Self::default()
        };
        Some(reading.with_value(event, recording, sight))
    }

    fn with_value(self, event: &Event, recording: &Recording, sight: Sight) -> Self {
        let Recording { reading, note, .. } = recording;
        let given_unit = reading.given_unit.clone().unwrap_or_default();
        let (note, unit) =
            (note.clone().unwrap_or_default(), reading.unit.clone().unwrap_or_default());
        if !reading.withheld {
            let (given, value) = (reading.given.clone(), reading.value.clone());
            return Self { given, given_unit, value, unit, note, ..self };
        }
        let masked = match sight {
            Sight::Masked => true,
            Sight::Whole => false,
        };
        // A note on a withheld value may repeat it.
        let note = if masked { String::new() } else { note };
        let whole = Self { given_unit, unit, note, ..self };
        match event.sensitive.first().filter(|beside| beside.erased.is_none()) {
            None => Self { sensitive: "erased", ..whole },
            Some(_) if masked => Self { sensitive: "withheld", ..whole },
            Some(beside) => {
                let part = |name: &str| {
                    beside
                        .value
                        .get(name)
                        .and_then(|text| text.as_str())
                        .unwrap_or_default()
                        .to_owned()
                };
                Self { sensitive: "shown", given: part("given"), value: part("value"), ..whole }
            }
        }
    }
}

fn outcome(recording: &Recording) -> &'static str {
    if recording.out_of_range {
        "out_of_range"
    } else if recording.deviation.is_some() {
        "deviation"
    } else {
        "accepted"
    }
}

/// A cell that no spreadsheet takes for a formula (OWASP, CSV Injection): text that begins with `=`, `+`, `-`, `@`, a tab
/// or a line end, or one of the first four as a full-width character, gets an apostrophe in front. A plain decimal number
/// such as `-4.2` is none and stays as it is.
pub(super) fn tamed(cell: String) -> String {
    let risky = cell.starts_with([
        '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ]);
    if risky && !is_number(&cell) { format!("'{cell}") } else { cell }
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    match unsigned.split_once('.') {
        Some((whole, rest)) => digits(whole) && digits(rest),
        None => digits(unsigned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_tamed_and_numbers_are_not() {
        for formula in [
            "=1+1",
            "+SUM(A1)",
            "-2+3",
            "@A1",
            "\tx",
            "\r=1",
            "\n=1",
            "\u{ff1d}1",
            "-",
            "+1.",
            "-1e5",
        ] {
            assert_eq!(tamed(formula.to_owned()), format!("'{formula}"));
        }
        for plain in ["-4.2", "+7", "-0.001", "4.20", "", "a=b", "PUMP-204", "'=1"] {
            assert_eq!(tamed(plain.to_owned()), plain);
        }
    }
}
