//! The outbox: order, retries with back-off, giving up, leases. At least once, never before its commit.

use std::sync::Arc;

use serde_json::json;
use wf_core::limits::{
    DELIVERY_ATTEMPTS_MAX, DELIVERY_BACKOFF_MAX_MS, DELIVERY_CLAIM_MS, DELIVERY_MS, LEASE_MS,
    RETRY_AFTER_MAX_MS,
};
use wf_core::policy::DomainPolicyPort;
use wf_core::ports::{OutboxQuery, OutboxRow, OutboxState, StorageBackendPort as _};
use wf_testkit::fault::{Call as Method, Fault, Gate};
use wf_testkit::notification::Delivery;

use crate::engine_bench::{Bench, ann, bob, finish, start, submit, with};
use crate::plain_policy::PlainPolicy;

/// Longer than any back-off.
const LONG_MS: u64 = 2 * DELIVERY_BACKOFF_MAX_MS.unsigned_abs();
const LEASE: u64 = LEASE_MS.unsigned_abs();

async fn rows(bench: &Bench, state: OutboxState) -> Vec<OutboxRow> {
    let query = OutboxQuery { state: Some(state), after: None, limit: 100 };
    bench.model.list_outbox(&query).await.unwrap().items
}

async fn dispatched(bench: &Bench) -> usize {
    bench.engine.dispatch_once().await.unwrap()
}

/// (recipient, kind) of what was taken.
fn taken(bench: &Bench) -> Vec<(String, String)> {
    bench.sink.taken().into_iter().map(|m| (m.recipient, m.kind)).collect()
}

#[tokio::test]
async fn messages_follow_their_commit_in_the_order_of_the_events() {
    let bench = Bench::new().await;
    bench.store.fail_next(Method::Commit, Fault::Before);
    bench.call(&ann(), "start_workflow", start("U-7")).await;
    assert_eq!(dispatched(&bench).await, 0, "nothing of what was not committed");
    let (work, _) = bench.blocked("U-7").await;
    assert!(bench.sink.attempts().is_empty(), "nothing before somebody dispatches");
    assert_eq!(dispatched(&bench).await, 3);
    let mut told = taken(&bench);
    let to = |recipient: &str, kind: &str| (recipient.to_owned(), kind.to_owned());
    let subscribers: Vec<_> = told.iter().filter(|(r, _)| r == "subscribers").cloned().collect();
    assert_eq!(
        subscribers,
        [to("subscribers", "workflow_started"), to("subscribers", "workflow_blocked")]
    );
    told.retain(|(recipient, _)| recipient != "subscribers");
    assert_eq!(told, [to("duty", "workflow_blocked")]);
    let message = bench.sink.taken().into_iter().find(|m| m.recipient == "duty").unwrap();
    let digits = message.id.strip_prefix(&format!("{work}/5/duty/")).expect("its place");
    assert!(digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit()), "{digits}");
    assert_eq!(message.data["event"]["code"], "AMOUNT_OUTSIDE");
    assert_eq!(message.data["state"], "BLOCKED");
    assert_eq!(dispatched(&bench).await, 0, "once");
    assert_eq!(rows(&bench, OutboxState::Delivered).await.len(), 3);
}

#[tokio::test]
async fn a_message_that_fails_waits_longer_and_longer_and_holds_its_stream_only() {
    let bench = Bench::new().await;
    let (work, _) = bench.blocked("U-7").await;
    let refused = Delivery::Refused { permanent: false, retry_after_ms: None };
    let is_failing = |row: &OutboxRow| row.status.attempts > 0;
    bench.sink.script([refused.clone()]);
    dispatched(&bench).await;
    let failing = rows(&bench, OutboxState::Pending).await;
    assert!(failing.iter().any(is_failing), "{failing:?}");
    let stream = failing[0].message.recipient.clone();
    assert!(failing.iter().all(|row| row.message.recipient == stream), "{failing:?}");
    assert!(taken(&bench).iter().any(|(recipient, _)| recipient != &stream), "the other went on");
    let mut waits = Vec::new();
    for _ in 0..4 {
        let row = rows(&bench, OutboxState::Pending).await.into_iter().find(is_failing).unwrap();
        let wait = row.status.next_attempt_at.since_ms(now(&bench));
        waits.push(wait);
        bench.clock.advance(wait.unsigned_abs() - 1);
        assert_eq!(dispatched(&bench).await, 0, "not before its time");
        bench.clock.advance(1);
        bench.sink.script([refused.clone()]);
        assert_eq!(dispatched(&bench).await, 1);
    }
    assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "longer each time: {waits:?}");
    assert!(waits[0] >= 500 && waits[0] <= 1_000, "{waits:?}");
    bench.clock.advance(LONG_MS);
    assert!(dispatched(&bench).await >= 1);
    assert!(rows(&bench, OutboxState::Pending).await.is_empty());
    let seqs: Vec<u64> = bench
        .sink
        .taken()
        .into_iter()
        .filter(|m| m.recipient == stream && m.workflow_id.as_str() == work)
        .map(|m| m.seq)
        .collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "still in order: {seqs:?}");
}

fn now(bench: &Bench) -> wf_core::models::Timestamp {
    use wf_core::ports::ClockPort as _;
    bench.clock.now()
}

#[tokio::test]
async fn a_sink_that_asks_to_wait_is_obeyed() {
    let bench = Bench::new().await;
    bench.started(&ann(), "U-7").await;
    bench.sink.script([Delivery::Refused { permanent: false, retry_after_ms: Some(90_000) }]);
    dispatched(&bench).await;
    let row = rows(&bench, OutboxState::Pending).await.remove(0);
    assert_eq!(row.status.next_attempt_at.since_ms(now(&bench)), 90_000);
    assert_eq!(row.status.last_error.as_deref(), Some("the test's script says so"));
}

#[tokio::test]
async fn after_its_attempts_a_message_is_given_up_visible_and_can_be_sent_late() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    bench.confirmed(&ann(), "finish_workflow", finish(&work, "abandoned")).await;
    bench.sink.refuse(usize::try_from(DELIVERY_ATTEMPTS_MAX).unwrap(), false);
    for attempt in 1..=DELIVERY_ATTEMPTS_MAX {
        assert!(rows(&bench, OutboxState::Dead).await.is_empty(), "alive before attempt {attempt}");
        dispatched(&bench).await;
        bench.clock.advance(LONG_MS);
    }
    let dead = rows(&bench, OutboxState::Dead).await;
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].message.kind, "workflow_started");
    // It is passed over: the next message of the stream was not kept waiting by it.
    dispatched(&bench).await;
    assert_eq!(taken(&bench), [("subscribers".to_owned(), "workflow_completed".to_owned())]);
    let id = dead[0].message.id.clone();
    assert!(bench.model.revive_outbox(&id, now(&bench)).await.unwrap());
    dispatched(&bench).await;
    assert_eq!(bench.sink.taken().last().map(|m| m.id.clone()), Some(id), "late, with its old id");
}

#[tokio::test]
async fn a_refusal_for_ever_gives_up_at_once() {
    let bench = Bench::new().await;
    bench.started(&ann(), "U-7").await;
    bench.sink.refuse(1, true);
    dispatched(&bench).await;
    assert_eq!(rows(&bench, OutboxState::Dead).await.len(), 1);
    assert!(rows(&bench, OutboxState::Pending).await.is_empty());
}

#[tokio::test]
async fn an_answer_that_is_lost_brings_the_message_again_under_its_id() {
    let bench = Bench::new().await;
    bench.started(&ann(), "U-7").await;
    bench.sink.script([Delivery::AnswerLost]);
    dispatched(&bench).await;
    bench.clock.advance(LONG_MS);
    dispatched(&bench).await;
    let ids: Vec<String> = bench.sink.taken().into_iter().map(|m| m.id).collect();
    assert_eq!(ids.len(), 2, "at least once");
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_dispatcher_that_lost_its_lease_does_no_harm() {
    let bench = Bench::new().await;
    bench.started(&ann(), "U-7").await;
    let replica = bench.replica().await;
    let gate = Gate::new();
    bench.sink.script([Delivery::Held(gate.clone())]);
    let slow = bench.engine.dispatch_once();
    let other = async {
        gate.arrived(1).await;
        assert_eq!(dispatched(&replica).await, 0, "the lease is somebody's");
        // The slow process stands still, so that not even its own limit ends the delivery.
        bench.clock.set(now(&bench).plus_ms(LEASE_MS));
        assert_eq!(dispatched(&replica).await, 1, "the lease is over");
        gate.open();
    };
    let (slow, ()) = futures_util::future::join(slow, other).await;
    slow.unwrap();
    assert_eq!((bench.sink.taken().len(), replica.sink.taken().len()), (1, 1));
    assert_eq!(rows(&bench, OutboxState::Delivered).await.len(), 1);
    bench.clock.advance(LONG_MS);
    assert_eq!(dispatched(&bench).await, 0, "and never again");
}

#[tokio::test]
async fn a_stream_whose_sink_hangs_keeps_no_other_waiting() {
    let bench = Bench::new().await;
    bench.started(&ann(), "U-1").await;
    bench.started(&bob(), "U-2").await;
    let gate = Gate::new();
    bench.sink.script([Delivery::Held(gate.clone())]);
    let round = bench.engine.dispatch_once();
    let meanwhile = async {
        gate.arrived(1).await;
        bench.clock.until_sleeping(1).await;
        assert_eq!(taken(&bench).len(), 1, "the other was delivered while the first hangs");
        bench.clock.advance(DELIVERY_MS.unsigned_abs());
    };
    let (settled, ()) = futures_util::future::join(round, meanwhile).await;
    assert_eq!(settled.unwrap(), 2);
    let hung = rows(&bench, OutboxState::Pending).await;
    assert_eq!(hung.len(), 1);
    let error = hung[0].status.last_error.as_deref();
    assert_eq!((hung[0].status.attempts, error), (1, Some("the sink did not answer in time")));
}

#[tokio::test]
async fn a_sink_that_panics_has_failed() {
    let bench = Bench::new().await;
    bench.started(&ann(), "U-1").await;
    bench.started(&bob(), "U-2").await;
    bench.sink.script([Delivery::Panics]);
    assert_eq!(dispatched(&bench).await, 2);
    assert_eq!(taken(&bench).len(), 1, "the other went on");
    let failed = rows(&bench, OutboxState::Pending).await;
    assert_eq!(failed[0].status.last_error.as_deref(), Some("the sink panicked"));
    bench.clock.advance(LONG_MS);
    assert_eq!(dispatched(&bench).await, 1);
}

#[tokio::test]
async fn no_delivery_begins_that_could_outlive_its_lease() {
    let bench = Bench::new().await;
    bench.blocked("U-7").await;
    let replica = bench.replica().await;
    let gate = Gate::new();
    // The first message of each stream takes long, though not too long; the second must then wait for the next lease.
    bench.sink.script([Delivery::Held(gate.clone()), Delivery::Held(gate.clone())]);
    let round = bench.engine.dispatch_once();
    let meanwhile = async {
        gate.arrived(2).await;
        bench.clock.advance(DELIVERY_MS.unsigned_abs() - 1);
        assert_eq!(dispatched(&replica).await, 0, "the leases are live");
        gate.open();
    };
    let (settled, ()) = futures_util::future::join(round, meanwhile).await;
    assert_eq!(settled.unwrap(), 2, "the third was not begun");
    assert_eq!(rows(&bench, OutboxState::Pending).await.len(), 1);
    assert_eq!(dispatched(&replica).await, 1, "its lease was given back");
}

#[tokio::test]
async fn a_claim_that_took_too_long_gives_its_leases_back() {
    let bench = Bench::new().await;
    bench.started(&ann(), "U-7").await;
    let gate = Gate::new();
    bench.store.fail_next(Method::ClaimOutbox, Fault::Hold(gate.clone()));
    let round = bench.engine.dispatch_once();
    let meanwhile = async {
        gate.arrived(1).await;
        bench.clock.advance(DELIVERY_CLAIM_MS.unsigned_abs());
        gate.open();
    };
    let (settled, ()) = futures_util::future::join(round, meanwhile).await;
    assert_eq!(settled.unwrap(), 0);
    assert!(bench.sink.attempts().is_empty());
    assert_eq!(dispatched(&bench).await, 1, "free at once");
}

#[tokio::test]
async fn a_sink_cannot_ask_to_wait_for_ever() {
    let bench = Bench::new().await;
    bench.started(&ann(), "U-7").await;
    bench.sink.script([Delivery::Refused { permanent: false, retry_after_ms: Some(i64::MAX) }]);
    dispatched(&bench).await;
    let row = rows(&bench, OutboxState::Pending).await.remove(0);
    assert_eq!(row.status.next_attempt_at.since_ms(now(&bench)), RETRY_AFTER_MAX_MS);
}

#[tokio::test]
async fn a_settlement_that_is_lost_brings_the_message_again() {
    let bench = Bench::new().await;
    bench.started(&ann(), "U-7").await;
    bench.store.fail_next(Method::SettleOutbox, Fault::Before);
    assert!(bench.engine.dispatch_once().await.is_err());
    assert_eq!(dispatched(&bench).await, 0, "under its lease");
    bench.clock.advance(LEASE);
    assert_eq!(dispatched(&bench).await, 1);
    assert_eq!(bench.sink.taken().len(), 2);
    bench.store.fail_next(Method::ClaimOutbox, Fault::Before);
    assert!(bench.engine.dispatch_once().await.is_err());
}

#[tokio::test]
async fn streams_of_several_workflows_go_side_by_side() {
    let bench = Bench::new().await;
    let first = bench.started(&ann(), "U-1").await;
    bench.started(&bob(), "U-2").await;
    bench.sink.refuse(1, false);
    assert_eq!(dispatched(&bench).await, 2);
    assert_eq!(taken(&bench).len(), 1, "the one did not wait for the other");
    bench.confirmed(&ann(), "finish_workflow", finish(&first, "abandoned")).await;
    bench.clock.advance(LONG_MS);
    dispatched(&bench).await;
    assert!(rows(&bench, OutboxState::Pending).await.is_empty());
}

/// A commit with more events to tell than it may send rows still reaches who must act.
#[tokio::test]
async fn an_escalation_is_never_left_out() {
    let policies: Vec<Arc<dyn DomainPolicyPort>> = vec![Arc::new(PlainPolicy::wide(20))];
    let bench = Bench::with(policies, None, true).await;
    let args = with(start("U-7"), "procedure_id", &json!("wide"));
    let begun = bench.call(&ann(), "start_workflow", args).await;
    let work = begun.body["workflow"]["id"].as_str().unwrap().to_owned();
    for (step, value) in
        [("ready", "yes"), ("amount", "25"), ("shape", "flat"), ("whisper", "CANARY")]
    {
        bench.submit(&ann(), &work, step, value).await;
    }
    for n in 0..20 {
        bench.submit(&ann(), &work, &format!("more-{n}"), "fine").await;
    }
    let args = with(submit(&work, "amount", "70"), "reason_code", &json!("HEARD_WRONG"));
    bench.confirmed(&ann(), "correct_step", args).await;
    for _ in 0..10 {
        dispatched(&bench).await;
    }
    assert!(taken(&bench).iter().any(|(recipient, _)| recipient == "duty"), "{:?}", taken(&bench));
}
