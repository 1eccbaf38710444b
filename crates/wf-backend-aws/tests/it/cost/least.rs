//! How few requests a call takes, counted at the client: one read and one transaction for each that changes something, one
//! read for one that was answered before. Nothing is asked again to make sure, and nothing is written on the side.

use std::collections::BTreeSet;

use super::{Meter, REPLAY, STEPS};
use crate::bench::Bench;
use crate::wire::{Fault, WRITE};

const READ: &str = "TransactGetItems";

/// What is wrong with the requests of a kind of call; nothing, if they are the fewest.
fn too_many(name: &str, requests: &[String]) -> Option<String> {
    let fewest: &[&str] = if name == REPLAY { &[READ] } else { &[READ, WRITE] };
    (requests != fewest).then(|| format!("{name}: {requests:?}, and not {fewest:?}"))
}

impl Meter {
    fn not_the_fewest(&self) -> Vec<String> {
        self.lines.iter().filter_map(|(name, one)| too_many(name, &one.requests)).collect()
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_change_is_one_read_and_one_transaction_and_a_replay_one_read() {
    let mut meter = Meter::new().await;
    let work = meter.start("UNIT-301").await;
    for step in 1..=STEPS {
        meter.submit(&work, step, true).await;
    }
    meter.finish(&work).await;
    let other = meter.start("UNIT-302").await;
    meter.submit(&other, 1, false).await;
    meter.trouble(&other).await;
    assert_eq!(meter.not_the_fewest(), Vec::<String>::new());
    // Every tool that changes something, and each replay.
    let kinds: BTreeSet<&str> = meter.lines.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(kinds.len(), 9, "{kinds:?}");
    assert_eq!(meter.sum(REPLAY).0, STEPS);
}

/// The control: what the client sends again is counted, too.
#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_request_that_is_sent_again_is_one_too_many() {
    let bench = Bench::new().await;
    for (unit, faults, wrong) in [("U-1", vec![], false), ("U-2", vec![Fault::Reset], true)] {
        bench.wire.take_log();
        bench.wire.next(WRITE, faults);
        bench.started(unit, &format!("start-{unit}")).await;
        let sent = bench.wire.take_operations();
        assert_eq!(too_many("a start", &sent).is_some(), wrong, "{sent:?}");
    }
}
