//! Requests that fail: each fault of the table in `fault`, once and for ever, and what is told of it.

use wf_backend_aws::{AwsConfig, AwsStore};
use wf_core::ports::{Commit, CommitError, Conflict, StorageBackendPort as _};
use wf_testkit::build::{CommitBuilder, at};

use crate::cast::{load, start, tenant};
use crate::fixture::{self, store};
use crate::wire::{self, CONFLICT, Fault, Sent, WRITE, Wire};

/// A store that gives up after `attempts`, in the same table.
async fn impatient(config: &AwsConfig, attempts: u32) -> AwsStore {
    let mut config = config.clone();
    config.attempts_max = attempts;
    config.attempt_timeout_ms = 400;
    AwsStore::open_existing(config).await.expect("a store")
}

/// The commit is there once and whole.
async fn is_there_once(store: &AwsStore, commit: &Commit) {
    let seen = load(store, commit).await;
    assert_eq!(seen.workflow.as_ref(), Some(&commit.next));
    assert_eq!(seen.ledger.as_ref(), Some(&commit.ledger));
    let events = store.events(tenant(), &commit.next.id, 0, 100).await.expect("a read");
    assert_eq!(events, commit.events);
}

async fn is_absent(store: &AwsStore, commit: &Commit) {
    let seen = load(store, commit).await;
    assert_eq!((seen.workflow, seen.ledger), (None, None));
}

/// Requests to write since the last time, and their tokens.
fn writes(wire: &Wire) -> (Vec<serde_json::Value>, Vec<String>) {
    let sent = wire.take_log().into_iter().filter(|sent: &Sent| sent.operation == WRITE);
    let part = |sent: Sent| {
        let mut body = sent.body;
        let token = body["ClientRequestToken"].as_str().expect("a token").to_owned();
        body["ClientRequestToken"] = serde_json::Value::Null;
        (body, token)
    };
    sent.map(part).unzip()
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn every_fault_is_got_over_once_with_the_very_same_request() {
    let (store, wire, _) = store().await;
    let faults = [
        wire::THROTTLED,
        wire::OVER_CAPACITY,
        wire::INTERNAL,
        wire::UNAVAILABLE,
        wire::IN_PROGRESS,
        CONFLICT,
        Fault::Cancelled(&["None", "ThrottlingError"]),
        Fault::Reset,
        Fault::Lost,
    ];
    for (n, fault) in (1..).zip(faults) {
        let commit = start(n).build();
        wire.take_log();
        wire.next(WRITE, [fault.clone()]);
        store.commit(commit.clone()).await.unwrap_or_else(|error| panic!("{fault:?}: {error:?}"));
        let log = wire.take_log();
        let sent: Vec<_> = log.iter().filter(|sent| sent.operation == WRITE).collect();
        let [one, other] = sent.as_slice() else { panic!("{fault:?}: {sent:?}") };
        // Token, order of attributes, everything: a request that differs is refused as another under its token.
        assert_eq!(one.bytes, other.bytes, "{fault:?}");
        assert_eq!(one.body["ClientRequestToken"].as_str().map(str::len), Some(36));
        is_there_once(&store, &commit).await;
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_request_that_hangs_is_given_up_and_sent_again() {
    let (_, wire, config) = store().await;
    let store = impatient(&config, 4).await;
    for (n, fault) in [(1, Fault::Hang), (2, Fault::LostAndSilent)] {
        let commit = start(n).build();
        wire.take_log();
        wire.next(WRITE, [fault]);
        store.commit(commit.clone()).await.expect("a commit");
        let (_, tokens) = writes(&wire);
        assert_eq!(tokens.len(), 2);
        assert_eq!(tokens[0], tokens[1]);
        is_there_once(&store, &commit).await;
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_token_that_is_taken_is_changed() {
    let (store, wire, _) = store().await;
    let commit = start(1).build();
    wire.next(WRITE, [Fault::Lost, wire::MISMATCH]);
    store.commit(commit.clone()).await.expect("a commit");
    let (bodies, tokens) = writes(&wire);
    assert_eq!(bodies.len(), 3);
    assert_eq!(tokens[0], tokens[1]);
    assert_ne!(tokens[1], tokens[2]);
    is_there_once(&store, &commit).await;
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_token_that_the_table_has_forgotten_lets_nothing_happen_twice() {
    let (store, wire, _) = store().await;
    let commit = start(1).build();
    wire.next(WRITE, [Fault::Lost, Fault::Lost, Fault::Lost, Fault::Forgotten]);
    store.commit(commit.clone()).await.expect("a commit whose own row was met");
    assert_eq!(writes(&wire).0.len(), 4);
    is_there_once(&store, &commit).await;
    // With nothing unknown before it, an equal row is somebody else's.
    match store.commit(commit.clone()).await {
        Err(CommitError::Conflict(Conflict::Ledger(row))) => assert_eq!(*row, commit.ledger),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn what_never_ends_is_told_as_what_it_is() {
    let (_, wire, config) = store().await;
    let store = impatient(&config, 3).await;
    let cases: [(Fault, bool, usize); 9] = [
        (wire::THROTTLED, false, 3),
        (wire::OVER_CAPACITY, false, 3),
        (CONFLICT, false, 3),
        (Fault::Error(400, "AccessDeniedException"), false, 1),
        (Fault::Error(400, "ValidationException"), false, 1),
        (wire::INTERNAL, true, 3),
        (wire::IN_PROGRESS, true, 3),
        (Fault::Reset, true, 3),
        (wire::MISMATCH, true, 3),
    ];
    for (n, (fault, ambiguous, requests)) in (1..).zip(cases) {
        let commit = start(n).build();
        wire.take_log();
        wire.always(WRITE, [fault.clone()]);
        let answer = store.commit(commit.clone()).await;
        wire.always(WRITE, []);
        match answer {
            Err(CommitError::Ambiguous { .. }) => assert!(ambiguous, "{fault:?}"),
            Err(CommitError::Unavailable { after_ms, .. }) => {
                assert!(!ambiguous, "{fault:?}");
                let waits = matches!(fault, Fault::Error(400, code) if code.starts_with("Thr") || code.starts_with("Prov"));
                assert_eq!(after_ms.is_some(), waits, "{fault:?}");
            }
            other => panic!("{fault:?}: {other:?}"),
        }
        assert_eq!(writes(&wire).0.len(), requests, "{fault:?}");
        is_absent(&store, &commit).await;
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn unknown_stays_unknown_whatever_comes_after_it() {
    let (_, wire, config) = store().await;
    let store = impatient(&config, 3).await;
    // Applied, and then only throttled: whoever hears "not taken" would do it again.
    let commit = start(1).build();
    wire.next(WRITE, [Fault::Lost, wire::THROTTLED, wire::THROTTLED]);
    let answer = store.commit(commit.clone()).await;
    assert!(matches!(answer, Err(CommitError::Ambiguous { .. })), "{answer:?}");
    is_there_once(&store, &commit).await;
    // Not applied yet, and the asset is held: it may be free when the first attempt arrives.
    let rival = start(2).asset_of(1).build();
    wire.next(WRITE, [Fault::Reset]);
    let answer = store.commit(rival.clone()).await;
    assert!(matches!(answer, Err(CommitError::Ambiguous { .. })), "{answer:?}");
    is_absent(&store, &rival).await;
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_conflict_of_transactions_is_never_told_as_a_lost_fence() {
    let (store, wire, _) = store().await;
    let commit = start(1).build();
    // The ledger is fine, the lock is contended, the head is said to have moved: nothing is certain yet.
    let torn = Fault::Cancelled(&["None", "TransactionConflict", "ConditionalCheckFailed"]);
    wire.next(WRITE, [torn.clone(), torn]);
    store.commit(commit.clone()).await.expect("a commit");
    assert_eq!(writes(&wire).0.len(), 3);
    is_there_once(&store, &commit).await;
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn reads_get_over_faults_and_over_answers_that_are_not_whole() {
    let (store, wire, _) = store().await;
    let commit = start(1).build();
    store.commit(commit.clone()).await.expect("a commit");
    let busy = [wire::THROTTLED, wire::INTERNAL, Fault::Reset, Fault::Lost];
    wire.next("TransactGetItems", busy.clone().into_iter().chain([CONFLICT]));
    wire.next("Query", busy.clone());
    wire.next("BatchGetItem", busy.into_iter().chain([Fault::Unprocessed]));
    is_there_once(&store, &commit).await;
    let owner = &commit.next.owner.id;
    let open = store.open_of(tenant(), owner, 10).await.expect("a list");
    assert_eq!(open, [commit.next]);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_lease_whose_answer_was_lost_is_held() {
    let (store, wire, _) = store().await;
    store.commit(start(1).build()).await.expect("a commit");
    let claim = fixture::claim(at(600_000), "mine");
    wire.next("UpdateItem", [Fault::Lost]);
    let due = store.claim_deadlines(&claim).await.expect("a claim");
    assert_eq!(due.len(), 1);
    wire.next("UpdateItem", [Fault::Lost]);
    let streams = store.claim_outbox(&claim).await.expect("a claim");
    assert_eq!(streams.len(), 1);
    let theirs = fixture::claim(at(600_001), "theirs");
    assert_eq!(store.claim_deadlines(&theirs).await.expect("a claim"), []);
    assert_eq!(store.claim_outbox(&theirs).await.expect("a claim"), []);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_settlement_beside_a_commit_forgets_no_message() {
    let (store, wire, _) = store().await;
    let first = start(1).build();
    store.commit(first.clone()).await.expect("a commit");
    let claim = fixture::claim(at(600_000), "mine");
    let stream = store.claim_outbox(&claim).await.expect("a claim").remove(0);
    let second = CommitBuilder::next(&first.next, at(600_050)).note("more").message("lead").build();
    // Held up on its way while a further message joins the stream that it has read.
    let gate = wire.hold(WRITE);
    let settling = tokio::spawn({
        let (store, settlement) = (store.clone(), fixture::delivered(&stream, at(600_100)));
        async move { store.settle_outbox(&settlement).await }
    });
    gate.reached().await;
    store.commit(second).await.expect("a commit");
    gate.open();
    settling.await.expect("a task").expect("a settlement");
    let again = store.claim_outbox(&fixture::claim(at(700_000), "again")).await.expect("a claim");
    let rows: Vec<_> = again.iter().flat_map(|stream| &stream.rows).collect();
    assert_eq!(rows.len(), 1, "{again:?}");
    assert_eq!(rows[0].message.seq, 2);
}
