//! What sinks received beside the outbox: clean when it is right, red on each thing that must not be.

use wf_core::models::{Digest, Workflow};
use wf_core::ports::{
    Claim, LeaseToken, OutboxQuery, Settled, Settlement, StorageBackendPort as _,
};
use wf_testkit::audit::deliveries::{Received, deliveries};
use wf_testkit::build::{CommitBuilder, at, tenant, user, workflow_id};
use wf_testkit::model::ModelStore;

/// Three events with a message each, to one recipient.
async fn told() -> (ModelStore, Vec<Received>) {
    let store = ModelStore::new();
    let mut last: Option<Workflow> = None;
    for n in 0..3 {
        let commit = match &last {
            None => {
                CommitBuilder::start(&tenant("plant"), &workflow_id("w-1"), &user("ann"), at(0))
            }
            Some(before) => CommitBuilder::next(before, at(n)).note("it hums"),
        };
        let commit = commit.key(&format!("k-{n}")).message("duty").build();
        last = Some(commit.next.clone());
        store.commit(commit).await.unwrap();
    }
    let page =
        store.list_outbox(&OutboxQuery { limit: 10, ..OutboxQuery::default() }).await.unwrap();
    let mut messages: Vec<_> = page.items.into_iter().map(|row| row.message).collect();
    messages.sort_by_key(|message| message.seq);
    let received = messages.iter().map(|message| Received {
        id: message.id.clone(),
        body: Digest::of(format!("{message:?}").as_bytes()),
    });
    let received = received.collect();
    (store, received)
}

async fn found(store: &ModelStore, received: &[Received]) -> String {
    let found = deliveries(store, received).await.unwrap();
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn in_order_once_or_again_and_not_all_yet_is_clean() {
    let (store, received) = told().await;
    assert_eq!(received.len(), 3);
    assert_eq!(found(&store, &received).await, "");
    assert_eq!(found(&store, &received[..1]).await, "", "the others are pending");
    let again = [&received[..2], &received[..]].concat();
    assert_eq!(found(&store, &again).await, "", "the answer to two of them was lost");
}

#[tokio::test]
async fn what_must_not_be_is_red() {
    let (store, received) = told().await;
    let mut other = received.clone();
    other.push(Received { body: Digest::of(b"other"), ..received[0].clone() });
    assert!(found(&store, &other).await.contains("delivered again with another body"));
    let mut more = received.clone();
    more.push(Received { id: "w-1/99/duty".to_owned(), body: Digest::of(b"") });
    assert!(found(&store, &more).await.contains("w-1/99/duty: it was delivered, and no commit"));
    let turned: Vec<_> = received.iter().rev().cloned().collect();
    assert!(found(&store, &turned).await.contains("it overtook one before it"));
}

/// All of it is marked as delivered.
async fn mark(store: &ModelStore) {
    let token = LeaseToken("mine".to_owned());
    let claim = Claim { now: at(10), lease_ms: 1_000, token: token.clone(), limit: 10 };
    for stream in store.claim_outbox(&claim).await.unwrap() {
        let ids = stream.rows.iter().map(|row| row.message.id.clone());
        let settlement = Settlement {
            tenant: stream.tenant.clone(),
            workflow_id: stream.workflow_id.clone(),
            recipient: stream.recipient.clone(),
            token: token.clone(),
            now: at(10),
            results: ids.map(|id| (id, Settled::Delivered)).collect(),
        };
        store.settle_outbox(&settlement).await.unwrap();
    }
}

#[tokio::test]
async fn what_counts_as_delivered_reached_somebody() {
    let (store, received) = told().await;
    mark(&store).await;
    assert_eq!(found(&store, &received).await, "");
    let lost = found(&store, &received[..2]).await;
    assert!(lost.contains("it counts as delivered, and nobody got it"), "{lost}");
}
