//! What a run did, counted, for its summary; and what it should have done but did not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use wf_testkit::audit::history::{Attempt, Outcome};

use crate::harness::workload::is_recorded;

use super::how::{DRAIN, POINTS};

/// Longest time from the start of the process to its first answer.
const RESTART_MAX: Duration = Duration::from_secs(2);
/// Kills after which it is no accident that something never happened.
const ENOUGH: u64 = 60;

/// Counts over all databases of a run.
#[derive(Debug, Default)]
pub(super) struct Tally {
    by_name: BTreeMap<&'static str, u64>,
    restarts: Vec<Duration>,
    attempts: usize,
    calls: usize,
    acknowledged: usize,
    lost_answers: usize,
    committed_unknown: usize,
    audits: u64,
    left_out: usize,
    fired: u64,
    transfers: BTreeMap<String, u64>,
}

impl Tally {
    /// A server was killed.
    pub(super) fn killed(&mut self, name: &'static str) {
        *self.by_name.entry(name).or_default() += 1;
    }

    /// A server answers so long after it was started.
    pub(super) fn started(&mut self, took: Duration) {
        self.restarts.push(took);
    }

    /// So many deadlines passed.
    pub(super) fn fired(&mut self, deadlines: u64) {
        self.fired += deadlines;
    }

    /// The database was held against its history, so many orders of calls not looked through.
    pub(super) fn audited(&mut self, left_out: usize) {
        self.audits += 1;
        self.left_out += left_out;
    }

    /// The history of the callers of one database, which is over.
    pub(super) fn add(&mut self, attempts: &[Attempt]) {
        let mut by_call: BTreeMap<u64, Vec<&Attempt>> = BTreeMap::new();
        for attempt in attempts.iter().filter(|a| a.arguments.contains_key("idempotency_key")) {
            by_call.entry(attempt.call).or_default().push(attempt);
        }
        self.attempts += attempts.len();
        self.calls += by_call.len();
        for mut call in by_call.into_values() {
            call.sort_by_key(|attempt| attempt.sent_ns);
            let recorded = call.iter().enumerate().find_map(|(at, attempt)| {
                attempt.outcome.result().filter(is_recorded).map(|result| (at, result))
            });
            let is_lost = |a: &&Attempt| matches!(a.outcome, Outcome::Unknown { .. });
            self.lost_answers += call.iter().copied().filter(is_lost).count();
            let Some((at, result)) = recorded else { continue };
            self.acknowledged += 1;
            let first = call.first().map(|attempt| &attempt.arguments);
            let action =
                first.and_then(|arguments| arguments.get("action")).and_then(Value::as_str);
            if let Some(action) = action {
                *self.transfers.entry(action.to_owned()).or_default() += 1;
            }
            let answer_was_lost = call.iter().take(at).copied().any(|a| is_lost(&a));
            if answer_was_lost && result.get("duplicate") == Some(&Value::Bool(true)) {
                self.committed_unknown += 1;
            }
        }
    }

    /// All kills so far.
    pub(super) fn kills(&self) -> u64 {
        self.by_name.values().sum()
    }

    /// What makes the run worthless, or too slow.
    pub(super) fn missing(&self, planned: u64) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(longest) = self.restarts.iter().max().filter(|took| **took > RESTART_MAX) {
            found.push(format!("a restart took {} ms", longest.as_millis()));
        }
        if planned < ENOUGH || self.kills() < planned {
            return found;
        }
        let names: BTreeSet<&str> = self.by_name.keys().copied().collect();
        for name in POINTS.iter().map(|point| point.name).chain([DRAIN]) {
            if !names.contains(name) {
                found.push(format!("the failpoint {name} never ended a server: it shows nothing"));
            }
        }
        let many = usize::try_from(planned).unwrap_or(usize::MAX);
        if self.acknowledged < many.saturating_mul(5) {
            found.push(format!(
                "only {} calls were acknowledged: too little work",
                self.acknowledged
            ));
        }
        for action in ["offer", "withdraw", "decline", "accept", "take_over"] {
            if !self.transfers.contains_key(action) {
                found.push(format!("no work was handed over by {action}: it shows nothing"));
            }
        }
        if self.fired < planned {
            found.push(format!("only {} deadlines passed: it shows nothing", self.fired));
        }
        if self.lost_answers == 0 || self.committed_unknown == 0 {
            found.push("no kill came between a commit and its answer: it shows nothing".to_owned());
        }
        found
    }

    /// For the summary.
    pub(super) fn lines(&self) -> Vec<String> {
        let by_name: Vec<String> =
            self.by_name.iter().map(|(name, times)| format!("{times} {name}")).collect();
        let mut restarts = self.restarts.clone();
        restarts.sort_unstable();
        let median = restarts.get(restarts.len() / 2).copied().unwrap_or_default();
        let longest = restarts.last().copied().unwrap_or_default();
        vec![
            format!("{} kills: {}", self.kills(), by_name.join(", ")),
            format!(
                "{} calls in {} attempts: {} acknowledged, {} answers lost, {} of those calls were committed",
                self.calls,
                self.attempts,
                self.acknowledged,
                self.lost_answers,
                self.committed_unknown
            ),
            format!(
                "{} deadlines passed; work was handed over by {}",
                self.fired,
                self.transfers
                    .iter()
                    .map(|(action, n)| format!("{action} {n}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            format!(
                "{} restarts: median {} ms, longest {} ms; {} audits, {} searches for an order given up",
                restarts.len(),
                median.as_millis(),
                longest.as_millis(),
                self.audits,
                self.left_out
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Tally;

    #[test]
    fn a_run_that_shows_nothing_is_found_out() {
        let mut tally = Tally::default();
        for _ in 0..60 {
            tally.killed("at any time");
        }
        let found = tally.missing(60);
        assert!(found.iter().any(|line| line.contains("commit.after")), "{found:?}");
        assert!(found.iter().any(|line| line.contains("acknowledged")), "{found:?}");
        assert!(found.iter().any(|line| line.contains("between a commit")), "{found:?}");
        assert!(!found.iter().any(|line| line.contains("a restart")), "{found:?}");
        tally.started(Duration::from_millis(2_001));
        assert!(tally.missing(60).iter().any(|line| line.contains("a restart took 2001 ms")));
    }
}
