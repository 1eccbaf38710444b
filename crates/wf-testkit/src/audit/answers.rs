//! What single answers say, held against the store and against what their caller saw before.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wf_core::errors::ErrorCode;
use wf_core::models::{Actor, Phase};
use wf_core::ports::LedgerKey;
use wf_core::state_machine::Outcome as Word;

use super::Invariant;
use super::books::{Applied, Books, place_of};
use super::call::{Answer, Call, Fate, Seen};
use super::found::Found;
use super::history::Outcome;

pub(super) fn check(books: &Books, calls: &[Call<'_>], found: &mut Found) {
    let foreign = Foreign::of(books, calls);
    for call in calls {
        if let (Outcome::Answered { .. }, None) = (&call.attempt.outcome, &call.answer) {
            found.add(Invariant::I8, call.place(), "the answer is no result object");
        }
        let Some(answer) = &call.answer else { continue };
        states(call, answer, found);
        codes(call, answer, found);
        foreign.check(call, found);
        if let Some(seen) = &answer.seen {
            pinned(books, call, seen, found);
        }
        if matches!(call.fate, Fate::Done | Fate::Repeated) {
            acknowledged(books, call, answer, found);
        }
    }
    monotonic(calls, found);
}

/// I8: every state is one of the four; COMPLETED and a result come together.
fn states(call: &Call<'_>, answer: &Answer, found: &mut Found) {
    let known = |state: &&String| Phase::ALL.iter().all(|phase| phase.as_str() != state.as_str());
    if let Some(state) = answer.states.iter().find(known) {
        found.add(Invariant::I8, call.place(), format!("it tells of the state {state}"));
    }
    if let Some(seen) = &answer.seen
        && (seen.state == Phase::Completed.as_str()) != seen.result.is_some()
    {
        let message = format!("it tells of {} with result {:?}", seen.state, seen.result);
        found.add(Invariant::I8, call.place(), message);
    }
    if answer.outcome.is_none() {
        found.add(Invariant::I8, call.place(), "the outcome is none that there is");
    }
}

/// A refusal is one of the closed list and says truly whether to call again. An `INTERNAL` is one: a bench that makes the
/// server panic asked for it, and the others look for panics in the log.
fn codes(call: &Call<'_>, answer: &Answer, found: &mut Found) {
    let Some(code) = &answer.error else {
        if !answer.ok || answer.outcome == Some(Word::Error) {
            found.add(Invariant::Codes, call.place(), "it is refused without a code");
        }
        return;
    };
    let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
    let message = match known {
        None => format!("it is refused with {code}, which is no code"),
        Some(known) if answer.retry.as_deref() != Some(known.retry().as_str()) => {
            format!("{code} says retry {:?}", answer.retry)
        }
        Some(_) if answer.ok => format!("{code} and ok"),
        Some(_) => return,
    };
    found.add(Invariant::Codes, call.place(), message);
}

/// I12: a workflow is shown with the definition that it started with.
fn pinned(books: &Books, call: &Call<'_>, seen: &Seen, found: &mut Found) {
    let started = place_of(&call.attempt.tenant, &seen.workflow)
        .and_then(|place| books.works.get(&place)?.started.as_ref().map(|p| p.digest.to_string()));
    if started.is_some_and(|digest| digest != seen.digest) {
        let message = format!("{} is shown with the definition {}", seen.workflow, seen.digest);
        found.add(Invariant::I12, call.place(), message);
    }
}

/// I1: what was acknowledged is in the history of its workflow, and its ledger row holds the bytes that were answered.
fn acknowledged(books: &Books, call: &Call<'_>, answer: &Answer, found: &mut Found) {
    let Some(seen) = &answer.seen else {
        found.add(Invariant::I1, call.place(), "it is acknowledged without saying what changed");
        return;
    };
    let place = place_of(&call.attempt.tenant, &seen.workflow);
    let commit = place.as_ref().and_then(|place| books.commit(place, seen.revision));
    let (Some((tenant, _)), Some(commit)) = (place, commit) else {
        let message = format!(
            "it was acknowledged, and {} has no commit that ends with event {}",
            seen.workflow, seen.revision
        );
        found.add(Invariant::I1, call.place(), message);
        return;
    };
    if let Some(message) = another(call, commit) {
        let message = format!("it was acknowledged as event {}, which {message}", seen.revision);
        found.add(Invariant::I1, call.place(), message);
        return;
    }
    let key = LedgerKey { tenant, actor: commit.actor.clone(), key: commit.cause.key.clone() };
    match books.rows.get(&key) {
        None => found.add(Invariant::I1, call.place(), "its ledger row is gone"),
        Some(row) if answer.first.as_ref().is_some_and(|bytes| *bytes != row.result) => {
            found.add(Invariant::I7, call.place(), "its ledger row holds another result");
        }
        Some(_) => {}
    }
}

/// Why a commit is not what the call asked for.
fn another(call: &Call<'_>, commit: &Applied) -> Option<&'static str> {
    if Actor::parse(&call.attempt.actor).ok().as_ref() != Some(&commit.actor) {
        return Some("somebody else caused");
    }
    let keyless_repeat = call.key.is_none() && call.fate == Fate::Repeated;
    if call.key.is_some_and(|key| key != commit.cause.key.as_str()) {
        return Some("another key caused");
    }
    if !keyless_repeat && !call.payload.is_some_and(|payload| commit.is_of(&payload)) {
        return Some("another payload caused");
    }
    (!has_effect(call, commit)).then_some("does not do what was asked for")
}

/// The commit did what the tool is for, to what the arguments name.
fn has_effect(call: &Call<'_>, commit: &Applied) -> bool {
    let about = |kind: &str, subject: Option<&str>, value: Option<&str>| {
        commit.effects.iter().any(|effect| {
            let named = effect.subject.as_deref();
            let given = effect.value.as_deref().map(str::trim);
            effect.kind == kind
                && (subject.is_none() || named == subject)
                && value.zip(given).is_none_or(|(value, given)| is_said(value.trim(), given))
        })
    };
    let (step, value) = (call.said("step_id"), call.said("value"));
    match call.attempt.tool.as_str() {
        "start_workflow" => about("workflow_started", call.said("procedure_id"), None),
        // A step whose rule cannot be evaluated blocks and records nothing.
        "submit_step" => {
            about("step_recorded", step, value) || about("workflow_blocked", None, None)
        }
        "correct_step" => about("step_corrected", step, value),
        "skip_step" => about("step_skipped", step, None),
        "report_problem" => {
            // Without a key an open block of the same step answers a report, whatever its words.
            let repeats = call.key.is_none() && call.fate == Fate::Repeated;
            let words = call.said("summary").filter(|_| !repeats);
            about("problem_noted", None, words) || about("workflow_blocked", None, words)
        }
        "resolve_block" => about("block_resolved", call.said("block_id"), call.said("decision")),
        "transfer_workflow" => match call.said("action") {
            Some("offer") => about("ownership_offered", None, None),
            Some("withdraw" | "decline") => about("offer_withdrawn", None, None),
            _ => about("ownership_transferred", None, None),
        },
        "finish_workflow" => about("workflow_completed", None, call.said("result")),
        _ => true,
    }
}

/// What was given is what was said, which may be a number with its unit after it.
fn is_said(said: &str, given: &str) -> bool {
    let number = given.ends_with(|c: char| c.is_ascii_digit());
    said.strip_prefix(given).is_some_and(|rest| {
        rest.is_empty() || number && !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    })
}

/// I11: ids of workflows that a tenant must never read.
struct Foreign {
    /// Workflow → the tenants that have one of this id.
    owners: BTreeMap<String, BTreeSet<String>>,
    several: bool,
}

impl Foreign {
    fn of(books: &Books, calls: &[Call<'_>]) -> Self {
        let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (tenant, id) in books.works.keys() {
            owners.entry(id.to_string()).or_default().insert(tenant.to_string());
        }
        let tenants = owners.values().flatten().map(String::as_str);
        let tenants: BTreeSet<&str> =
            tenants.chain(calls.iter().map(|c| c.attempt.tenant.as_str())).collect();
        let several = tenants.len() > 1;
        Self { owners, several }
    }

    fn check(&self, call: &Call<'_>, found: &mut Found) {
        let Outcome::Answered { text } = &call.attempt.outcome else { return };
        if !self.several {
            return;
        }
        // Ids that the caller sent come back in refusals and tell nothing.
        let mut sent = BTreeSet::new();
        call.attempt.arguments.values().for_each(|value| texts(value, &mut sent));
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)));
        let words = words.map(|word| word.trim_matches(['.', '-', '_']));
        for word in words.filter(|word| !sent.contains(*word)) {
            let owners = self.owners.get(word);
            if owners.is_some_and(|owners| !owners.contains(&call.attempt.tenant)) {
                let message = format!("it tells {} of {word}", call.attempt.tenant);
                found.add(Invariant::I11, call.place(), message);
            }
        }
        // Sent or not: nobody is shown a workflow of somebody else.
        let seen = call.answer.as_ref().and_then(|answer| answer.seen.as_ref());
        let owners = seen.and_then(|seen| self.owners.get(&seen.workflow));
        if owners.is_some_and(|owners| !owners.contains(&call.attempt.tenant)) {
            let message = format!("it shows {} another tenant's work", call.attempt.tenant);
            found.add(Invariant::I11, call.place(), message);
        }
    }
}

fn texts<'v>(value: &'v Value, into: &mut BTreeSet<&'v str>) {
    match value {
        Value::String(text) => {
            into.insert(text);
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(members) => members.values().for_each(|member| texts(member, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What one caller sees of a workflow never goes back, and its own commit is always further than what it saw before.
fn monotonic(calls: &[Call<'_>], found: &mut Found) {
    let mut by_caller: Vec<&Call<'_>> = calls.iter().collect();
    by_caller.sort_by_key(|call| (call.attempt.caller, call.attempt.sent_ns));
    let mut seen: BTreeMap<(u32, &str, String), u64> = BTreeMap::new();
    for call in by_caller {
        let attempt = call.attempt;
        if let Some((workflow, revision)) = call.current() {
            let whose = (attempt.caller, attempt.tenant.as_str(), workflow.to_owned());
            let before = seen.entry(whose).or_default();
            let back = revision < *before || call.fate == Fate::Done && revision == *before;
            if back {
                let message =
                    format!("it shows {workflow} at {revision}, after it was seen at {before}");
                found.add(Invariant::Monotonic, call.place(), message);
            }
            *before = revision.max(*before);
        } else if let (Fate::Repeated, Some(answer)) = (call.fate, &call.answer)
            && let Some(told) = &answer.seen
        {
            // A repeat tells an old state, but what it acknowledges is there from now on.
            let whose = (attempt.caller, attempt.tenant.as_str(), told.workflow.clone());
            let before = seen.entry(whose).or_default();
            *before = told.revision.max(*before);
        }
    }
}
