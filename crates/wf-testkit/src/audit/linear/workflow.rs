//! A workflow as a register of revisions: commits move it on, everything else that shows a revision reads it.

use std::collections::BTreeMap;

use super::super::call::Fate;
use super::super::found::Found;
use super::{History, Judge, Machine, Point, Span, Timed};

/// What a call did to the revision, or saw of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// From one revision to another.
    Commit { from: u64, to: u64 },
    /// It is this.
    Read { is: u64 },
}

struct Register;

impl Machine for Register {
    type State = u64;
    type Input = Access;

    fn start(&self) -> u64 {
        0
    }

    fn step(&self, state: &u64, input: &Access) -> Option<u64> {
        match *input {
            Access::Commit { from, to } => (from == *state).then_some(to),
            Access::Read { is } => (is == *state).then_some(is),
        }
    }
}

pub(super) fn check(history: &History<'_, '_, '_>, found: &mut Found, left_out: &mut Vec<String>) {
    let mut accesses: BTreeMap<(&str, &str), Vec<Timed<Access>>> = BTreeMap::new();
    for ((place, last), span) in &history.spans {
        if let Some(commit) = history.books.commit(place, *last) {
            let input = Access::Commit { from: commit.first.saturating_sub(1), to: commit.last };
            let of_work = accesses.entry((place.0.as_str(), place.1.as_str())).or_default();
            of_work.push(timed(*span, input));
        }
    }
    for call in history.calls.iter().filter(|call| call.fate != Fate::Done) {
        if let Some((workflow, is)) = call.current()
            && let Some(of_work) = accesses.get_mut(&(call.attempt.tenant.as_str(), workflow))
        {
            of_work.push(timed(Span::of(call), Access::Read { is }));
        }
    }
    let mut judge = Judge { found, left_out: std::collections::BTreeSet::new() };
    for ((_, workflow), accesses) in &accesses {
        let points: Vec<Point> = accesses.iter().map(point).collect();
        judge.order(workflow, &points);
        judge.search(workflow, &Register, accesses);
    }
    left_out.extend(judge.left_out);
}

fn timed(span: Span, input: Access) -> Timed<Access> {
    Timed { sent: span.sent, over: span.over, input }
}

fn point(access: &Timed<Access>) -> Point {
    let (low, high, what) = match access.input {
        Access::Commit { from, to } => (from, to, format!("the commit of revision {to}")),
        Access::Read { is } => (is, is, format!("a look at revision {is}")),
    };
    let (sent, over) = (access.sent, access.over);
    let what = format!("{what} (sent {sent})");
    Point { low, high, sent, over, what }
}
