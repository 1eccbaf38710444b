//! How often a run reached each class of answer: what was never reached was not tested.

use std::collections::BTreeMap;

/// Every class that this server can answer with. Left out: `BACKEND_UNAVAILABLE` and `INTERNAL`, which need a fault;
/// `TOO_EARLY` and `transferred`, which need what is not built yet.
const REACHABLE: &[&str] = &[
    "ok started",
    "ok joined",
    "ok needs_input",
    "ok needs_confirmation",
    "ok not_recorded",
    "ok recorded",
    "ok out_of_range",
    "ok corrected",
    "ok skipped",
    "ok noted",
    "ok blocked",
    "ok resolved",
    "ok finished",
    "ok transferred offer",
    "ok transferred withdraw",
    "ok transferred take_over",
    "ok view",
    "ok list",
    "ok none",
    "ok disambiguation",
    "ok verdict",
    "duplicate start_workflow",
    "duplicate submit_step",
    "duplicate correct_step",
    "duplicate skip_step",
    "duplicate report_problem",
    "duplicate resolve_block",
    "duplicate finish_workflow",
    "duplicate transfer_workflow",
    "error VALIDATION_ERROR",
    "error IDEMPOTENCY_CONFLICT",
    "error VERSION_CONFLICT",
    "error WORKFLOW_NOT_FOUND",
    "error PROCEDURE_NOT_FOUND",
    "error ASSET_LOCKED",
    "error LOCK_LOST",
    "error INVALID_TRANSITION",
    "error STEP_NOT_OPEN",
    "error STEP_ALREADY_RECORDED",
    "error IMPLAUSIBLE_VALUE",
    "error UNIT_MISMATCH",
    "error REASON_REQUIRED",
    "error NOT_ALLOWED",
    "error DECISION_NOT_ALLOWED",
    "error LIMIT_EXCEEDED",
    "killed",
    "stopped in order",
    "second server",
    "clock back",
    "clock forward",
    "asset freed by hand",
    "nothing to free by hand",
];

/// Counts by class.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    counts: BTreeMap<String, u64>,
}

impl Tally {
    pub(super) fn count(&mut self, class: &str) {
        *self.counts.entry(class.to_owned()).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (class, count) in &other.counts {
            *self.counts.entry(class.clone()).or_default() += count;
        }
    }

    /// `ok started 40, ok recorded 12, …`
    pub(super) fn told(&self) -> String {
        let each = self.counts.iter().map(|(class, count)| format!("{class} {count}"));
        each.collect::<Vec<_>>().join(", ")
    }

    /// What can be reached and never was.
    pub(super) fn missed(&self) -> Vec<&'static str> {
        REACHABLE.iter().copied().filter(|class| !self.counts.contains_key(*class)).collect()
    }
}
