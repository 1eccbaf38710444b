//! Work under lease when answers are lost or leases are taken meanwhile: whoever did it is told so, whoever came too late
//! is refused, and nothing is forgotten.

use std::collections::BTreeSet;

use wf_backend_aws::AwsStore;
use wf_backend_aws::execution::ShardLease;
use wf_core::ports::{
    ClaimedStream, LeaseToken, OutboxQuery, OutboxState, SettleError, Settled, Settlement,
    StorageBackendPort as _,
};
use wf_testkit::build::{CommitBuilder, at};

use crate::cast::start;
use crate::fixture::{claim, delivered, store};
use crate::wire::{Fault, WRITE};

/// How rows come out of a claim.
fn become_of(stream: &ClaimedStream, what: &Settled) -> Settlement {
    let mut settlement = delivered(stream, at(600_100));
    for (_, settled) in &mut settlement.results {
        *settled = what.clone();
    }
    settlement
}

async fn rows_in(store: &AwsStore, state: OutboxState) -> BTreeSet<String> {
    let query = OutboxQuery { state: Some(state), after: None, limit: 100 };
    let page = store.list_outbox(&query).await.expect("a list");
    page.items.into_iter().map(|row| row.message.id).collect()
}

/// The first transaction is applied and its answer lost. It is asked again by the same token, or, where the table has
/// forgotten the token, meets its own work.
const LOST: [[Fault; 2]; 2] = [[Fault::Lost, Fault::Pass], [Fault::Lost, Fault::Forgotten]];

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_settlement_whose_answer_was_lost_is_done() {
    let wait = Settled::Retry { at: at(900_000), error: "busy".to_owned() };
    let dead = Settled::Dead { error: "gone".to_owned() };
    for what in [Settled::Delivered, wait, dead] {
        for lost in LOST {
            let (store, wire, _) = store().await;
            store.commit(start(1).build()).await.expect("a commit");
            let stream = store.claim_outbox(&claim(at(600_000), "a")).await.expect("a claim");
            let settlement = become_of(&stream[0], &what);
            wire.next(WRITE, lost.clone());
            let answer = store.settle_outbox(&settlement).await;
            assert!(answer.is_ok(), "{what:?} {lost:?}: {answer:?}");
            // Asked for again by somebody who heard the answer, it is too late.
            let late = store.settle_outbox(&settlement).await;
            assert!(matches!(late, Err(SettleError::LeaseLost)), "{late:?}");
        }
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_settlement_that_came_too_late_is_not_done_because_an_answer_was_lost() {
    let (store, wire, _) = store().await;
    store.commit(start(1).build()).await.expect("a commit");
    let mine = store.claim_outbox(&claim(at(600_000), "mine")).await.expect("a claim");
    // It never arrives, and before it is sent again somebody else has the lease.
    wire.next(WRITE, [Fault::Reset]);
    let gate = wire.hold(WRITE);
    let settling = tokio::spawn({
        let (store, settlement) = (store.clone(), delivered(&mine[0], at(600_100)));
        async move { store.settle_outbox(&settlement).await }
    });
    gate.reached().await;
    let theirs = store.claim_outbox(&claim(at(700_000), "theirs")).await.expect("a claim");
    assert_eq!(theirs.len(), 1);
    gate.open();
    let answer = settling.await.expect("a task");
    assert!(matches!(answer, Err(SettleError::LeaseLost)), "{answer:?}");
    assert_eq!(rows_in(&store, OutboxState::Delivered).await, BTreeSet::new());
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_settlement_whose_lease_is_taken_on_its_way_is_refused() {
    let (store, wire, _) = store().await;
    store.commit(start(1).build()).await.expect("a commit");
    let mine = store.claim_outbox(&claim(at(600_000), "mine")).await.expect("a claim");
    // It has read that the lease is its own, and is held up until that is no longer true.
    let gate = wire.hold(WRITE);
    let settling = tokio::spawn({
        let (store, settlement) = (store.clone(), delivered(&mine[0], at(600_100)));
        async move { store.settle_outbox(&settlement).await }
    });
    gate.reached().await;
    let theirs = store.claim_outbox(&claim(at(700_000), "theirs")).await.expect("a claim");
    assert_eq!(theirs.len(), 1);
    gate.open();
    let answer = settling.await.expect("a task");
    assert!(matches!(answer, Err(SettleError::LeaseLost)), "{answer:?}");
    let ids: BTreeSet<_> = theirs[0].rows.iter().map(|row| row.message.id.clone()).collect();
    assert_eq!(rows_in(&store, OutboxState::Pending).await, ids, "nothing is written");
    let settled = store.settle_outbox(&delivered(&theirs[0], at(700_100))).await;
    assert!(settled.is_ok(), "the holder's own: {settled:?}");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_message_that_a_settlement_does_not_see_yet_is_not_forgotten() {
    let (store, wire, _) = store().await;
    let first = start(1).build();
    store.commit(first.clone()).await.expect("a commit");
    let stream = store.claim_outbox(&claim(at(600_000), "mine")).await.expect("a claim");
    let second = CommitBuilder::next(&first.next, at(600_050)).note("more").message("lead").build();
    store.commit(second).await.expect("a commit");
    // The stream is seen as the second commit left it, and the message of that commit is not, twice.
    let unseen = Fault::Without("MSG#00000000000000000002");
    wire.next("Query", [unseen.clone(), unseen]);
    store.settle_outbox(&delivered(&stream[0], at(600_100))).await.expect("a settlement");
    let again = store.claim_outbox(&claim(at(700_000), "again")).await.expect("a claim");
    let seqs: Vec<_> = again.iter().flat_map(|s| &s.rows).map(|row| row.message.seq).collect();
    assert_eq!(seqs, [2]);
    // What the sweep took is not waited for.
    store.settle_outbox(&delivered(&again[0], at(700_100))).await.expect("a settlement");
    let swept = store.sweep(at(9_000_000), 1_000, 100).await.expect("a sweep");
    assert_eq!(swept.outbox_deleted, 2);
    let state = store.list(&wf_core::ports::ListQuery { limit: 1, ..Default::default() }).await;
    let state = state.expect("a list").items.remove(0);
    let third = CommitBuilder::next(&state, at(9_000_001)).note("z").message("lead").build();
    store.commit(third).await.expect("a commit");
    let last = store.claim_outbox(&claim(at(9_100_000), "last")).await.expect("a claim");
    store.settle_outbox(&delivered(&last[0], at(9_100_001))).await.expect("a settlement");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_stream_that_an_index_shows_twice_is_claimed_once() {
    let (store, wire, _) = store().await;
    for n in 1..=2 {
        store.commit(start(n).build()).await.expect("a commit");
    }
    wire.next("Query", [Fault::Twice]);
    let streams = store.claim_outbox(&claim(at(600_000), "a")).await.expect("a claim");
    let ids: Vec<_> = streams.iter().map(|s| s.workflow_id.as_str()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    assert_eq!(ids.len(), 2);
    wire.next("Query", [Fault::Twice]);
    assert_eq!(rows_in(&store, OutboxState::Pending).await.len(), 2);
    wire.next("Query", [Fault::Twice]);
    let query = OutboxQuery { state: None, after: None, limit: 100 };
    assert_eq!(store.list_outbox(&query).await.expect("a list").items.len(), 2);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_message_is_revived_although_the_answer_was_lost() {
    for lost in LOST {
        let (store, wire, _) = store().await;
        store.commit(start(1).build()).await.expect("a commit");
        let stream = store.claim_outbox(&claim(at(600_000), "a")).await.expect("a claim");
        let dead = become_of(&stream[0], &Settled::Dead { error: "gone".to_owned() });
        store.settle_outbox(&dead).await.expect("a settlement");
        let id = stream[0].rows[0].message.id.clone();
        wire.next(WRITE, lost.clone());
        let revived = store.revive_outbox(&id, at(700_000)).await.expect("an answer");
        assert!(revived, "{lost:?}");
        assert!(!store.revive_outbox(&id, at(700_000)).await.expect("an answer"), "only once");
        let again = store.claim_outbox(&claim(at(800_000), "b")).await.expect("a claim");
        assert_eq!(again[0].rows[0].message.id, id);
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_message_that_is_revived_beside_a_settlement_is_not_forgotten() {
    let (store, wire, _) = store().await;
    let first = start(1).build();
    store.commit(first.clone()).await.expect("a commit");
    let second = CommitBuilder::next(&first.next, at(70_000)).note("n").message("lead").build();
    store.commit(second).await.expect("a commit");
    let stream = store.claim_outbox(&claim(at(600_000), "a")).await.expect("a claim").remove(0);
    let (one, other) = (stream.rows[0].message.id.clone(), stream.rows[1].message.id.clone());
    let dead = (one.clone(), Settled::Dead { error: "gone".to_owned() });
    let settlement = Settlement { results: vec![dead], ..delivered(&stream, at(600_100)) };
    store.settle_outbox(&settlement).await.expect("a settlement");
    let stream = store.claim_outbox(&claim(at(600_200), "b")).await.expect("a claim").remove(0);
    assert_eq!(stream.rows[0].message.id, other);
    // The settlement has read a stream in which nothing else waits, and meanwhile an operator revives what was dead.
    let gate = wire.hold(WRITE);
    let settling = tokio::spawn({
        let (store, settlement) = (store.clone(), delivered(&stream, at(600_400)));
        async move { store.settle_outbox(&settlement).await }
    });
    gate.reached().await;
    assert!(store.revive_outbox(&one, at(600_300)).await.expect("an answer"));
    gate.open();
    settling.await.expect("a task").expect("a settlement");
    assert_eq!(rows_in(&store, OutboxState::Delivered).await, BTreeSet::from([other]));
    let again = store.claim_outbox(&claim(at(700_000), "c")).await.expect("a claim");
    assert_eq!(again[0].rows[0].message.id, one);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_deadline_is_settled_although_the_answer_was_lost() {
    let (store, wire, _) = store().await;
    store.commit(start(1).build()).await.expect("a commit");
    let due = store.claim_deadlines(&claim(at(600_000), "a")).await.expect("a claim");
    wire.next("DeleteItem", [Fault::Lost, Fault::Error(400, "TransactionConflictException")]);
    store.settle_deadline(&due[0]).await.expect("a settlement");
    let late = store.settle_deadline(&due[0]).await;
    assert!(matches!(late, Err(SettleError::LeaseLost)), "{late:?}");
    let next = store.next_deadline(at(600_000), 60_000).await.expect("an answer");
    assert_eq!(next.at, None);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_deadline_whose_lease_was_taken_is_not_settled_because_an_answer_was_lost() {
    let (store, wire, _) = store().await;
    store.commit(start(1).build()).await.expect("a commit");
    let mine = store.claim_deadlines(&claim(at(600_000), "mine")).await.expect("a claim");
    let theirs = store.claim_deadlines(&claim(at(700_000), "theirs")).await.expect("a claim");
    wire.next("DeleteItem", [Fault::Lost, Fault::Lost]);
    let answer = store.settle_deadline(&mine[0]).await;
    assert!(matches!(answer, Err(SettleError::LeaseLost)), "{answer:?}");
    store.settle_deadline(&theirs[0]).await.expect("the holder's own");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_shard_is_given_back_although_the_answer_was_lost() {
    let (store, wire, _) = store().await;
    let (a, b) = (LeaseToken("a".to_owned()), LeaseToken("b".to_owned()));
    wire.next("UpdateItem", [Fault::Lost]);
    let rows = store.bindings();
    let lease = ShardLease::new(1, a.clone(), at(0), 30_000);
    assert!(rows.hold(&lease).await.expect("a lease").is_some());
    wire.next("UpdateItem", [Fault::Lost]);
    assert!(!rows.release(1, &b).await.expect("an answer"), "not theirs to give");
    wire.next("UpdateItem", [Fault::Lost]);
    assert!(rows.release(1, &a).await.expect("an answer"));
    let next = ShardLease::new(1, b, at(1), 30_000);
    assert!(rows.hold(&next).await.expect("a lease").is_some());
    assert!(!rows.release(1, &a).await.expect("an answer"), "it has a new holder");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_claim_under_contention_is_no_lease() {
    let (store, wire, _) = store().await;
    store.commit(start(1).build()).await.expect("a commit");
    // Refused at first, and meanwhile somebody else has it: our token is not in it.
    let contended = Fault::Error(400, "TransactionConflictException");
    wire.next("UpdateItem", [contended]);
    let gate = wire.hold("UpdateItem");
    let claiming = tokio::spawn({
        let store = store.clone();
        async move { store.claim_deadlines(&claim(at(600_000), "mine")).await }
    });
    gate.reached().await;
    let theirs = store.claim_deadlines(&claim(at(600_001), "theirs")).await.expect("a claim");
    assert_eq!(theirs.len(), 1);
    gate.open();
    let mine = claiming.await.expect("a task").expect("a claim");
    assert_eq!(mine, [], "{theirs:?}");
}
