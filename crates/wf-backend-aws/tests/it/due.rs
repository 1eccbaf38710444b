//! Deadlines where there is a state machine: an execution says that its time is over, and servers look for what is due. Both
//! lead to the same command under the same id, so that one of them is enough and both are no more.

use std::sync::Arc;

use wf_core::engine::Fired;
use wf_core::ports::{BindingPort as _, ClockPort as _, StorageBackendPort as _};
use wf_testkit::clock::ManualClock;

use crate::bench::Bench;
use crate::bound::{ARN, due, signals};
use crate::cast::tenant;
use crate::fixture::rows;
use crate::plain_policy::{MINUTE_MS, PlainPolicy, id};
use crate::wire::{Fault, WRITE};

const HOUR_MS: u64 = 60 * 60 * 1_000;

/// A workflow whose first deadline is over, in four hours, and whose second is not, in six.
async fn overdue() -> (Bench, String) {
    let policy = Arc::new(PlainPolicy::timed());
    let bench = Bench::orchestrated(policy, ManualClock::default(), ARN).await;
    let reply = bench.start_of("timed", "U-1", "s-1").await;
    let work = reply.body["workflow"]["id"].as_str().expect("an id").to_owned();
    bench.clock.advance(5 * HOUR_MS);
    (bench, work)
}

/// How many deadlines passed, and how many are left in the table.
async fn deadlines(bench: &Bench, work: &str) -> (usize, usize) {
    let events = bench.store.events(tenant(), &id(work), 0, 100).await.expect("a read");
    let passed = events.iter().filter(|event| event.body.kind() == "deadline_passed").count();
    let left = rows(&bench.config).await.into_keys().filter(|(pk, _)| pk.starts_with("DUE#"));
    (passed, left.count())
}

/// How the two meet.
#[derive(Debug, Clone, Copy)]
enum Meeting {
    SweepFirst,
    ExecutionFirst,
    AtOnce,
    /// The sweep has the lease already, and goes on afterwards.
    UnderLease,
    /// The process with the lease is gone.
    LeaseOfNobody,
}

async fn fire(bench: &Bench, work: &str, meeting: Meeting) {
    let engine = bench.engine();
    let sweep = async || engine.fire_due(100).await.expect("a sweep");
    let execution = async || engine.fire_due_of(tenant(), &id(work)).await.expect("an answer");
    match meeting {
        Meeting::SweepFirst => {
            assert_eq!(sweep().await.settled, 1);
            assert_eq!(execution().await, 0);
        }
        Meeting::ExecutionFirst => {
            assert_eq!(execution().await, 1);
            assert_eq!(sweep().await, Fired::default());
        }
        Meeting::AtOnce => {
            tokio::join!(sweep(), execution());
        }
        Meeting::UnderLease => {
            let claimed = engine.claim_due(100).await.expect("a claim");
            assert_eq!(claimed.len(), 1);
            assert_eq!(execution().await, 1);
            for one in claimed {
                assert_eq!(engine.fire_in_order(one).await.kept, 0);
            }
        }
        Meeting::LeaseOfNobody => {
            drop(engine.claim_due(100).await.expect("a claim"));
            assert_eq!(sweep().await, Fired::default(), "under lease");
            assert_eq!(execution().await, 1);
        }
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_deadline_that_is_noticed_twice_fires_once() {
    use Meeting::{AtOnce, ExecutionFirst, LeaseOfNobody, SweepFirst, UnderLease};
    for meeting in [SweepFirst, ExecutionFirst, AtOnce, UnderLease, LeaseOfNobody] {
        for lost in [false, true] {
            let (bench, work) = overdue().await;
            assert_eq!(deadlines(&bench, &work).await, (0, 2));
            if lost {
                bench.wire.next(WRITE, [Fault::Lost, Fault::Forgotten]);
            }
            fire(&bench, &work, meeting).await;
            assert_eq!(deadlines(&bench, &work).await, (1, 1), "{meeting:?}, lost: {lost}");
            bench.clock.advance(2 * HOUR_MS);
            fire(&bench, &work, meeting).await;
            assert_eq!(deadlines(&bench, &work).await, (2, 0), "{meeting:?}, lost: {lost}");
        }
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_deadline_that_one_of_them_misses_fires_all_the_same() {
    // No execution ever runs: the sweep finds it.
    let (bench, work) = overdue().await;
    assert_eq!(bench.engine().fire_due(100).await.expect("a sweep").settled, 1);
    assert_eq!(deadlines(&bench, &work).await, (1, 1));
    // No sweep runs: the execution makes the reconciler look, under no other row.
    let (bench, work) = overdue().await;
    let bindings = bench.store.bindings();
    let now = bench.clock.now();
    let asked = due(&bindings, now).await;
    let bound = bindings.bound(&asked[0], now).await.expect("a read");
    let held = crate::bound::epoch(&bindings, "one", now).await;
    bindings.postpone(&bound, held, now.plus_ms(60 * MINUTE_MS)).await.expect("an answer");
    assert_eq!(due(&bindings, now).await, []);
    assert!(signals(&bench.config, &id(&work), 1, 0).await);
    let marked = due(&bindings, now).await;
    assert_eq!(marked.len(), 1);
    let bound = bindings.bound(&marked[0], now).await.expect("a read");
    let next = bound.head.and_then(|head| head.next_deadline).expect("a deadline");
    assert!(next <= now);
    // A process that cannot write keeps it due, however often it tries.
    bench.wire.next(WRITE, std::iter::repeat_n(Fault::Cancelled(&["TransactionConflict"]), 400));
    let refused = bench.engine().fire_due_of(tenant(), &id(&work)).await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(deadlines(&bench, &work).await, (0, 2));
    let other = bench.beside(crate::wire::Wire::new()).await;
    assert_eq!(other.engine().fire_due_of(tenant(), &id(&work)).await, Ok(1));
    assert_eq!(deadlines(&bench, &work).await, (1, 1));
}
