//! `blocks:` and `out_of_range:` → how blocks are escalated and decided.

use wf_core::models::{DecisionId, ReasonCode, Recipient, Severity, Text};
use wf_core::policy::{DecisionOption, Effect};

use super::say_or;
use crate::format::read::KNOWN_DECISIONS;
use crate::format::{
    Blocks, Decision, EffectName, Escalate, Id, Located, OutOfRange, SeverityName,
};
use crate::problem::Problems;
use crate::rules::Block;

/// How reported problems are handled, and everything that says nothing else.
pub(super) fn default(blocks: Option<&Blocks>, problems: &mut Problems) -> Option<Block> {
    let written = blocks.map(|b| &b.default);
    let code = written.and_then(|w| w.code.as_ref());
    Some(Block {
        code: reason_code(code, "PROBLEM_REPORTED")?,
        question: written.and_then(|w| w.question.as_ref().map(|q| q.value.0.clone())),
        escalation: written.and_then(|w| w.escalate.as_ref()).map(escalation).unwrap_or_default(),
        severity: severity(written.and_then(|w| w.escalate.as_ref()), Severity::High),
        decisions: written
            .and_then(|w| w.decisions.as_ref())
            .map_or_else(default_decisions, |d| decisions(d, problems)),
    })
}

/// How a value of the step `step` that is out of range is handled.
pub(super) fn of_value(
    step: &str,
    written: Option<&OutOfRange>,
    default: &Block,
    problems: &mut Problems,
) -> Option<Block> {
    let escalate = written.and_then(|w| w.escalate.as_ref());
    let code = written.and_then(|w| w.code.as_ref());
    Some(Block {
        code: reason_code(code, &format!("{}_OUT_OF_RANGE", shout(step)))?,
        question: written.and_then(|w| w.question.as_ref().map(|q| q.value.0.clone())),
        escalation: escalate.map_or_else(|| default.escalation.clone(), escalation),
        severity: severity(escalate, default.severity),
        decisions: written
            .and_then(|w| w.decisions.as_ref())
            .map_or_else(|| default.decisions.clone(), |d| decisions(d, problems)),
    })
}

/// The code of a block by a choice: `SEAL_LEAKING`.
pub(super) fn choice_code(step: &str, choice: &str) -> Option<ReasonCode> {
    reason_code(None, &format!("{}_{}", shout(step), shout(choice)))
}

/// An id as codes are written: upper case, `_` between words.
fn shout(id: &str) -> String {
    id.to_ascii_uppercase().replace(['-', '.', ':'], "_")
}

/// The written code, else `otherwise`, cut to the length of a code. Both are made of checked ids.
pub(super) fn reason_code(written: Option<&Located<Id>>, otherwise: &str) -> Option<ReasonCode> {
    let text = written.map_or(otherwise, |w| w.value.0.as_str());
    let text: String = text.chars().take(128).collect();
    ReasonCode::parse(&text).ok()
}

fn severity(escalate: Option<&Located<Escalate>>, otherwise: Severity) -> Severity {
    escalate.and_then(|e| e.value.severity).map_or(otherwise, SeverityName::severity)
}

/// Who is told.
fn escalation(escalate: &Located<Escalate>) -> Vec<Recipient> {
    vec![Recipient::last(escalate.value.to.value.0.clone())]
}

fn default_decisions() -> Vec<DecisionOption> {
    ["carry_on", "abort"]
        .iter()
        .filter_map(|name| option(name, None, known_effect(name)?))
        .collect()
}

fn known_effect(name: &str) -> Option<Effect> {
    KNOWN_DECISIONS.iter().find(|(known, _)| *known == name).map(|(_, effect)| effect.effect())
}

fn option(id: &str, say: Option<Text>, effect: Effect) -> Option<DecisionOption> {
    Some(DecisionOption {
        id: DecisionId::parse(id).ok()?,
        say: say.unwrap_or_else(|| Text::from(crate::words::of_id(id))),
        effect,
    })
}

fn decisions(written: &Located<Vec<Decision>>, problems: &mut Problems) -> Vec<DecisionOption> {
    if written.value.is_empty() {
        let hint = "write at least one, like [accept_deviation, require_redo, abort]";
        problems.add(written.at, "no decisions", hint);
    }
    let ids = written.value.iter().map(|decision| match decision {
        Decision::Short(id) => (id, decision),
        Decision::Long(long) => (&long.id, decision),
    });
    super::once("the decision", ids, problems)
        .into_iter()
        .filter_map(|(id, decision)| {
            if id.value.0 == "corrected" {
                let hint = "a correction of the value closes the block by itself; use another id";
                problems.add(id.at, "the decision \"corrected\" is taken", hint);
            }
            match decision {
                Decision::Short(id) => option(&id.value.0, None, known_effect(&id.value.0)?),
                Decision::Long(long) => option(
                    &id.value.0,
                    Some(say_or(long.say.as_ref(), &id.value.0)),
                    EffectName::effect(long.effect),
                ),
            }
        })
        .collect()
}
