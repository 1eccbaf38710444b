//! One order of all calls that explains every answer and agrees with real time: per workflow and per asset.
//!
//! Two checks. [`order`] is cheap and looks at histories of any length: revisions and fences number the commits, so what
//! was over before something else was sent must have the lower number. [`mod@search`] needs no numbers: it looks for an order
//! in which a small sequential machine gives the same answers, and so also finds two callers that both got a lock under
//! numbers that look well. What nobody knows is settled by the store: a call without an answer happened when its commit
//! is there, any time after it was sent.

mod asset;
pub mod order;
pub mod search;
mod workflow;

use std::collections::{BTreeMap, BTreeSet};

use wf_core::ports::LedgerKey;

use super::Invariant;
use super::books::{Applied, Books, Place};
use super::call::{Call, Fate};
use super::found::Found;
use super::keys::Keyed;
use order::{Point, disorder};
use search::{Machine, Searched, Timed, search};

/// Configurations that a search may look at for one object.
const BUDGET: usize = 200_000;

/// When a commit may have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    sent: u64,
    over: u64,
}

impl Span {
    /// Any time: nobody who is in the history did it.
    const ANY: Self = Self { sent: 0, over: u64::MAX };

    fn of(call: &Call<'_>) -> Self {
        Self { sent: call.attempt.sent_ns, over: call.attempt.over_ns }
    }
}

/// What happened to all workflows and assets, with times.
struct History<'b, 'c, 'a> {
    books: &'b Books,
    calls: &'c [Call<'a>],
    spans: BTreeMap<(&'b Place, u64), Span>,
}

/// Looks for what no order explains; says what it did not look at.
pub(super) fn check(
    books: &Books,
    calls: &[Call<'_>],
    keyed: &Keyed<'_, '_>,
    found: &mut Found,
) -> Vec<String> {
    let history = History { books, calls, spans: spans(books, calls, keyed) };
    let mut left_out = Vec::new();
    workflow::check(&history, found, &mut left_out);
    asset::check(&history, found, &mut left_out);
    left_out
}

/// When each commit may have happened, by its workflow and last event.
fn spans<'b>(
    books: &'b Books,
    calls: &[Call<'_>],
    keyed: &Keyed<'_, '_>,
) -> BTreeMap<(&'b Place, u64), Span> {
    let mut done: BTreeMap<(&str, &str, u64), Span> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.fate == Fate::Done) {
        if let Some(seen) = call.answer.as_ref().and_then(|answer| answer.seen.as_ref()) {
            let what = (call.attempt.tenant.as_str(), seen.workflow.as_str(), seen.revision);
            done.insert(what, Span::of(call));
        }
    }
    let mut spans = BTreeMap::new();
    for (place, commit) in books.commits() {
        let told = done.get(&(place.0.as_str(), place.1.as_str(), commit.last)).copied();
        let span = told.unwrap_or_else(|| settled(place, commit, keyed));
        spans.insert((place, commit.last), span);
    }
    spans
}

/// When a commit happened that nobody was told of as the first: after an attempt of its key was sent of which nobody
/// knows, and before an answer that repeats it.
fn settled(place: &Place, commit: &Applied, keyed: &Keyed<'_, '_>) -> Span {
    let key = LedgerKey {
        tenant: place.0.clone(),
        actor: commit.actor.clone(),
        key: commit.cause.key.clone(),
    };
    let attempts = || keyed.get(&key).into_iter().flatten();
    let open = attempts().filter(|call| call.fate == Fate::Open);
    let sent = open.map(|call| call.attempt.sent_ns).min();
    let repeated = attempts().filter(|call| call.fate == Fate::Repeated);
    let over = repeated.map(|call| call.attempt.over_ns).min();
    Span { sent: sent.unwrap_or(Span::ANY.sent), over: over.unwrap_or(Span::ANY.over) }
}

/// Runs both checks over what happened to one object.
struct Judge<'f> {
    found: &'f mut Found,
    left_out: BTreeSet<String>,
}

impl Judge<'_> {
    fn order(&mut self, place: &str, points: &[Point]) {
        if let Some((earlier, later)) = disorder(points) {
            let message = format!("{} was over before {} was sent", earlier.what, later.what);
            self.found.add(Invariant::Linearizable, place, message);
        }
    }

    fn search<M: Machine>(&mut self, place: &str, machine: &M, calls: &[Timed<M::Input>])
    where
        M::Input: std::fmt::Debug,
    {
        match search(machine, calls, BUDGET) {
            Searched::Explained => {}
            Searched::Contradiction { call } => {
                let told = calls
                    .get(call)
                    .map(|call| format!("no order explains {:?}, sent {}", call.input, call.sent));
                let message = told.unwrap_or_default();
                self.found.add(Invariant::Linearizable, place, message);
            }
            Searched::GaveUp { calls: looked_at } => {
                let all = calls.len();
                let note = format!("{place}: too many orders after {looked_at} of {all} calls");
                self.left_out.insert(note);
            }
        }
    }
}
