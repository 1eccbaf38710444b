//! How many calls of an API the account has: a bucket for each, with a burst and a refill for each second (us-east-1).
//! <https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html>

use std::collections::BTreeMap;

use wf_core::models::Timestamp;

/// API, burst, refill for each second. An API that is not here has no bound.
const LIMITS: [(&str, i64, i64); 8] = [
    ("StartExecution", 1_300, 300),
    ("StopExecution", 1_000, 200),
    ("SendTaskSuccess", 3_000, 500),
    ("SendTaskFailure", 3_000, 500),
    ("SendTaskHeartbeat", 3_000, 500),
    ("DescribeExecution", 300, 15),
    ("ListExecutions", 200, 5),
    ("GetExecutionHistory", 400, 20),
];

#[derive(Debug, Clone, Default)]
pub(super) struct Buckets {
    /// What is left, in thousandths of a call, and when that was.
    left: BTreeMap<&'static str, (i64, Timestamp)>,
}

impl Buckets {
    /// Takes a call; false when there is none left.
    pub(super) fn take(&mut self, action: &str, now: Timestamp) -> bool {
        let Some((name, burst, refill)) = LIMITS.iter().find(|(name, ..)| *name == action) else {
            return true;
        };
        let full = burst.saturating_mul(1_000);
        let (left, at) = self.left.get(name).copied().unwrap_or((full, now));
        let came = now.since_ms(at).max(0).saturating_mul(*refill);
        let left = left.saturating_add(came).min(full);
        let enough = left >= 1_000;
        self.left.insert(name, (if enough { left - 1_000 } else { left }, now));
        enough
    }
}
