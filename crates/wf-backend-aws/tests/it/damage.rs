//! Items that cannot be read back: told as damage, and no reason to keep others waiting.

use wf_core::ports::{CommitError, ReadError, StorageBackendPort as _};
use wf_testkit::build::{CommitBuilder, at};

use crate::cast::{load_query, start, tenant};
use crate::fixture::{claim, delivered, meddle, store};

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_damaged_message_is_put_aside_and_keeps_no_other_waiting() {
    let (store, _, config) = store().await;
    let first = start(1).build();
    let more = CommitBuilder::next(&first.next, at(70_000)).note("more").message("lead").build();
    for commit in [first, more, start(2).build()] {
        store.commit(commit).await.expect("a commit");
    }
    let stream = "T#plant#OUT#wf-00001#lead";
    let message = "MSG#00000000000000000001#wf-00001/1/lead";
    meddle(&config, stream, message, "body", "{").await;
    for (n, now) in [(0, at(600_000)), (1, at(700_000))] {
        let mut streams = store.claim_outbox(&claim(now, "mine")).await.expect("a claim");
        streams.sort_by(|a, b| a.workflow_id.cmp(&b.workflow_id));
        let seqs: Vec<Vec<u64>> =
            streams.iter().map(|s| s.rows.iter().map(|r| r.message.seq).collect()).collect();
        assert_eq!(seqs, [[2], [1]], "claim {n}");
    }
    for stream in store.claim_outbox(&claim(at(800_000), "last")).await.expect("a claim") {
        store.settle_outbox(&delivered(&stream, at(800_001))).await.expect("a settlement");
    }
    assert_eq!(store.claim_outbox(&claim(at(900_000), "none")).await.expect("a claim"), []);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_damaged_stream_or_deadline_is_left_alone() {
    let (store, _, config) = store().await;
    for n in [1, 2] {
        store.commit(start(n).build()).await.expect("a commit");
    }
    meddle(&config, "T#plant#OUT#wf-00001#lead", "STREAM", "workflow", "").await;
    for now in [600_000, 700_000] {
        let streams = store.claim_outbox(&claim(at(now), "mine")).await.expect("a claim");
        assert_eq!(streams.len(), 1, "{streams:?}");
    }
    let due = store.claim_deadlines(&claim(at(600_000), "a")).await.expect("a claim");
    let [one, other] = due.as_slice() else { panic!("{due:?}") };
    let shard = (0..4).map(|shard| format!("DUE#{shard}"));
    let sk = format!(
        "{:015}#plant#{}#{}",
        one.deadline.fire_at.as_ms(),
        one.workflow_id,
        one.deadline.id
    );
    // In the other partitions this makes an item that is damaged from the beginning.
    for pk in shard {
        meddle(&config, &pk, &sk, "workflow", "").await;
    }
    let due = store.claim_deadlines(&claim(at(800_000), "b")).await.expect("a claim");
    let ids: Vec<_> = due.iter().map(|due| &due.workflow_id).collect();
    assert_eq!(ids, [&other.workflow_id]);
    let next = store.next_deadline(at(900_000), 60_000).await.expect("an answer");
    assert_eq!(next.at, Some(other.deadline.fire_at));
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_damaged_head_or_row_is_told_as_damage() {
    let (store, _, config) = store().await;
    let commit = start(1).build();
    store.commit(commit.clone()).await.expect("a commit");
    meddle(&config, "T#plant#WF#wf-00001", "HEAD", "held", "[").await;
    let read = store.load(&load_query(&commit)).await;
    assert!(matches!(read, Err(ReadError::Corrupt { .. })), "{read:?}");

    let other = start(2).build();
    store.commit(other.clone()).await.expect("a commit");
    let row = format!(
        "T#plant#IDEM#user:ann#{}",
        wf_core::idempotency::sha256_hex(other.ledger.key.key.as_str().as_bytes())
    );
    meddle(&config, &row, "IDEM", "fingerprint", "none").await;
    let again = store.commit(other).await;
    assert!(matches!(again, Err(CommitError::Corrupt { .. })), "{again:?}");
    let events = store.events(tenant(), &commit.next.id, 0, 10).await.expect("a read");
    assert_eq!(events, commit.events, "the history is whole");
}
