//! `blocks:` and `out_of_range:` → how blocks are escalated and decided; `deadlines:`.

use wf_core::limits::{ESCALATION_MAX, START_DEADLINES_MAX};
use wf_core::models::{DecisionId, ReasonCode, Recipient, Severity, StartDeadline, Text};
use wf_core::policy::{DecisionOption, Effect};

use super::say_or;
use crate::format::read::KNOWN_DECISIONS;
use crate::format::{
    Blocks, Decision, Document, EffectName, Escalate, Id, Located, OutOfRange, SeverityName, Then,
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
        escalation: written
            .and_then(|w| w.escalate.as_ref())
            .map(|e| escalation(e, problems))
            .unwrap_or_default(),
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
        escalation: escalate
            .map_or_else(|| default.escalation.clone(), |e| escalation(e, problems)),
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

/// Who is told, one after another.
fn escalation(escalate: &Located<Escalate>, problems: &mut Problems) -> Vec<Recipient> {
    let first = &escalate.value;
    let mut chain: Vec<Recipient> = Vec::new();
    let mut link = Some((&first.to, first.respond_within.as_ref(), first.then.as_deref()));
    while let Some((to, respond_within, then)) = link {
        if chain.iter().any(|told| told.to == to.value.0) {
            let message = format!("\"{}\" is told twice", to.value.0);
            problems.add(to.at, message, "name each recipient once");
        }
        if chain.len() == ESCALATION_MAX {
            let hint = format!("name at most {ESCALATION_MAX}, one after another");
            problems.add(to.at, "too many recipients", hint);
        }
        chain.push(Recipient {
            to: to.value.0.clone(),
            respond_within_ms: respond_within.map(|within| within.value.0),
        });
        if then.is_some() && respond_within.is_none() {
            let message = format!("nobody would be told after \"{}\"", to.value.0);
            let hint = "add respond_within: how long they have, like 15m; or remove then";
            problems.add(to.at, message, hint);
        }
        link = then.map(|then| match then {
            Then::Last(to) => (to, None, None),
            Then::Further(next) => (&next.to, next.respond_within.as_ref(), next.then.as_deref()),
        });
    }
    chain
}

/// Time limits on the whole workflow.
pub(super) fn deadlines(document: &Document, problems: &mut Problems) -> Vec<StartDeadline> {
    let Some(written) = &document.deadlines else {
        return Vec::new();
    };
    if written.value.len() > START_DEADLINES_MAX {
        let message = format!("{} deadlines", written.value.len());
        problems.add(written.at, message, format!("use at most {START_DEADLINES_MAX}"));
    }
    let ids = written.value.iter().map(|deadline| (&deadline.id, deadline));
    super::once("the deadline", ids, problems)
        .into_iter()
        .map(|(id, deadline)| StartDeadline {
            id: id.value.0.clone(),
            after_ms: deadline.after.value.0,
            notify: deadline.notify.value.0.clone(),
        })
        .collect()
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
