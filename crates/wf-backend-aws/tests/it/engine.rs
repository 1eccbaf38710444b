//! The engine over this backend: how many requests a call takes, and what faults make of it.

use wf_core::engine::Reply;
use wf_core::ports::{LedgerKey, LoadQuery, Snapshot, StorageBackendPort as _};
use wf_core::state_machine::Event;
use wf_testkit::build::key;

use crate::bench::{Bench, ann};
use crate::cast::tenant;
use crate::plain_policy::id;
use crate::wire::{self, Fault, WRITE};

const READ: &str = "TransactGetItems";

fn is_done(reply: &Reply, duplicate: bool) {
    assert_eq!(reply.error, None, "{}", reply.body);
    assert_eq!(reply.duplicate, duplicate, "{}", reply.body);
}

/// Values recorded for the first step.
async fn recorded(bench: &Bench, work: &str) -> usize {
    let events = bench.store.events(tenant(), &id(work), 0, 100).await.expect("a read");
    events.iter().filter(|event| event.body.kind() == "step_recorded").count()
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_mutation_takes_one_read_and_one_write_a_replay_one_read() {
    let bench = Bench::new().await;
    is_done(&bench.start("U-1", "first").await, false);
    bench.wire.take_log();

    is_done(&bench.start("U-2", "s-1").await, false);
    assert_eq!(bench.wire.take_operations(), [READ, WRITE], "a start");
    is_done(&bench.start("U-2", "s-1").await, true);
    assert_eq!(bench.wire.take_operations(), [READ], "its replay");

    let work = bench.started("U-3", "s-2").await;
    bench.wire.take_log();
    is_done(&bench.submit(&work, "yes", "k-1").await, false);
    assert_eq!(bench.wire.take_operations(), [READ, WRITE], "a step");
    is_done(&bench.submit(&work, "yes", "k-1").await, true);
    assert_eq!(bench.wire.take_operations(), [READ], "its replay");

    is_done(&bench.abandon(&work, "k-2").await, false);
    assert_eq!(bench.wire.take_operations(), [READ, READ, WRITE], "a question, and the end");
    is_done(&bench.abandon(&work, "k-2").await, true);
    assert_eq!(bench.wire.take_operations(), [READ], "its replay");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_process_that_has_seen_nothing_needs_no_more_reads() {
    let bench = Bench::new().await;
    let work = bench.started("U-1", "s-1").await;
    let other = bench.replica().await;
    is_done(&other.submit(&work, "yes", "k-1").await, false);
    assert_eq!(other.wire.take_operations(), [READ, WRITE], "a step");
    let third = bench.replica().await;
    is_done(&third.submit(&work, "yes", "k-1").await, true);
    assert_eq!(third.wire.take_operations(), [READ], "its replay");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn answers_lost_three_times_then_the_caller_retries() {
    for minutes in [0, 11] {
        let bench = Bench::with(|config| config.attempts_max = 1).await;
        let work = bench.started("U-1", "s-1").await;
        // Each commit reaches the table, no answer comes back, and the row cannot be looked up either.
        bench.wire.next(WRITE, [Fault::Lost, Fault::Lost, Fault::Lost]);
        bench.wire.next(READ, [Fault::Pass]);
        bench.wire.next("GetItem", [wire::INTERNAL, wire::INTERNAL, wire::INTERNAL]);
        let reply = bench.submit(&work, "yes", "k-1").await;
        let code = reply.error.map(wf_core::errors::ErrorCode::as_str);
        assert_eq!(code, Some("BACKEND_UNAVAILABLE"), "{}", reply.body);
        assert_eq!(reply.body["error"]["retry"], "same_call");

        // Ten minutes later the table has forgotten every token. No token is asked for: the ledger answers.
        bench.clock.advance(minutes * 60_000);
        bench.wire.take_log();
        let again = bench.submit(&work, "yes", "k-1").await;
        assert_eq!(bench.wire.take_operations(), [READ], "after {minutes} minutes");
        is_done(&again, true);
        assert_eq!(again.outcome.as_str(), "recorded");
        assert_eq!(recorded(&bench, &work).await, 1, "after {minutes} minutes");
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn an_answer_that_is_lost_again_and_again_is_found_in_the_ledger() {
    let bench = Bench::with(|config| config.attempts_max = 1).await;
    let work = bench.started("U-1", "s-1").await;
    bench.wire.take_log();
    bench.wire.next(WRITE, [Fault::Lost, Fault::Lost, Fault::Lost]);
    is_done(&bench.submit(&work, "yes", "k-1").await, false);
    assert_eq!(bench.wire.take_operations(), [READ, WRITE, "GetItem"], "looked up, not sent again");
    assert_eq!(recorded(&bench, &work).await, 1);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_request_that_comes_again_when_its_token_is_forgotten_changes_nothing() {
    let bench = Bench::new().await;
    let work = bench.started("U-1", "s-1").await;
    let echo = bench.wire.echo(WRITE);
    is_done(&bench.submit(&work, "yes", "k-1").await, false);
    bench.clock.advance(11 * 60_000);
    is_done(&bench.abandon(&work, "k-2").await, false);
    let before = everything(&bench, &work).await;
    echo.open();
    echo.reached().await;
    assert_eq!(everything(&bench, &work).await, before);
    is_done(&bench.submit(&work, "yes", "k-1").await, true);
}

/// The state of a workflow, its history and its ledger row under `k-1`.
async fn everything(bench: &Bench, work: &str) -> (Snapshot, Vec<Event>) {
    let key = LedgerKey { tenant: tenant().clone(), actor: ann().actor, key: key("k-1") };
    let query = LoadQuery {
        tenant: tenant().clone(),
        workflow: Some(id(work)),
        ledger: Some(key),
        assets: Vec::new(),
        answered_as: None,
        count_open_of: Some(ann().actor),
    };
    let seen = bench.store.load(&query).await.expect("a read");
    (seen, bench.store.events(tenant(), &id(work), 0, 100).await.expect("a read"))
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_request_that_comes_late_is_applied_once_or_not_at_all() {
    for before_the_retry in [true, false] {
        let bench = Bench::with(|config| config.attempts_max = 1).await;
        let work = bench.started("U-1", "s-1").await;
        // The network keeps the first request; those that are sent for it are lost on their way.
        let late = bench.wire.echo(WRITE);
        bench.wire.next(WRITE, [Fault::Reset, Fault::Reset, Fault::Reset]);
        let reply = bench.submit(&work, "yes", "k-1").await;
        let code = reply.error.map(wf_core::errors::ErrorCode::as_str);
        assert_eq!(code, Some("BACKEND_UNAVAILABLE"), "{}", reply.body);
        assert_eq!(recorded(&bench, &work).await, 0);
        if before_the_retry {
            late.open();
            late.reached().await;
        }
        bench.clock.advance(1_000);
        let again = bench.submit(&work, "yes", "k-1").await;
        is_done(&again, before_the_retry);
        let before = everything(&bench, &work).await;
        if !before_the_retry {
            late.open();
            late.reached().await;
        }
        assert_eq!(everything(&bench, &work).await, before);
        assert_eq!(recorded(&bench, &work).await, 1, "{before_the_retry}");
        let last = bench.submit(&work, "yes", "k-1").await;
        is_done(&last, true);
        assert_eq!(last.body["workflow"]["revision"], again.body["workflow"]["revision"]);
    }
}

/// Named after a fault of a well-known idempotency library: where the old item came back with the failed condition, it was
/// answered without a look at what it had been recorded for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn powertools_fault_the_fingerprint_is_compared_when_the_old_item_comes_back() {
    let bench = Bench::new().await;
    // The late call has read that the key is free when the other one commits under it.
    let (late, first) = race(&bench, "U-1", "U-2").await;
    is_done(&first, false);
    let code = late.error.map(wf_core::errors::ErrorCode::as_str);
    assert_eq!(code, Some("IDEMPOTENCY_CONFLICT"), "{}", late.body);
    assert!(!late.duplicate);
    let open = bench.store.open_of(tenant(), &ann().actor, 10).await.expect("a list");
    let assets: Vec<_> = open.iter().flat_map(|w| &w.assets).map(|a| a.id.as_str()).collect();
    assert_eq!(assets, ["U-2"]);

    // Two copies of one call: the late one gets the answer of the first.
    let bench = Bench::new().await;
    let (late, first) = race(&bench, "U-1", "U-1").await;
    is_done(&first, false);
    is_done(&late, true);
    assert_eq!(late.body["workflow"]["id"], first.body["workflow"]["id"]);
}

/// Two starts under one key. The first answer is of the one whose commit arrives last, although it was sent first.
async fn race(bench: &Bench, late: &str, first: &str) -> (Reply, Reply) {
    let gate = bench.wire.hold(WRITE);
    let late = tokio::spawn({
        let (bench, asset) = (bench.clone(), late.to_owned());
        async move { bench.start(&asset, "k-1").await }
    });
    gate.reached().await;
    let first = bench.start(first, "k-1").await;
    gate.open();
    (late.await.expect("a call"), first)
}
