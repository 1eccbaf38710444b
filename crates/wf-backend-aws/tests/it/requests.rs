//! What is sent, reviewed: no attribute may change between two sendings of one commit but the token of another call.

use serde_json::Value;
use wf_core::locks::LockChange;
use wf_core::ports::{Commit, LoadQuery, StorageBackendPort as _};
use wf_testkit::build::{CommitBuilder, asset, at, user};

use crate::cast::{start, tenant};
use crate::fixture::store;
use crate::wire::{Sent, WRITE, Wire};

/// The requests since the last time, without what differs from run to run.
fn requests(wire: &Wire, table: &str) -> Vec<(String, Value)> {
    let plain = |sent: Sent| {
        let text = sent.body.to_string().replace(table, "TABLE");
        let mut body: Value = serde_json::from_str(&text).expect("JSON");
        if let Some(token) = body.get_mut("ClientRequestToken") {
            assert_eq!(token.as_str().map(str::len), Some(36));
            *token = Value::from("(36 characters)");
        }
        (sent.operation, body)
    };
    wire.take_log().into_iter().map(plain).collect()
}

fn story() -> [Commit; 3] {
    let first = start(1).build();
    let offered = CommitBuilder::next(&first.next, at(70_000)).offer(None).block().message("lead");
    let offered = offered.assert_assets().seen(&user("ann"), Some("Ann")).build();
    let mut end = CommitBuilder::next(&offered.next, at(80_000)).complete().release_assets();
    for deadline in offered.next.deadlines.keys() {
        end = end.clear_deadline(deadline);
    }
    [first, offered, end.build()]
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn requests_are_as_reviewed() {
    let (store, wire, config) = store().await;
    for (name, commit) in ["start", "offer_and_block", "end"].into_iter().zip(story()) {
        let query = LoadQuery {
            tenant: tenant().clone(),
            workflow: Some(commit.next.id.clone()),
            ledger: Some(commit.ledger.key.clone()),
            assets: vec![asset("ASSET-1")],
            answered_as: None,
            count_open_of: Some(user("ann")),
        };
        store.load(&query).await.expect("a read");
        store.commit(commit).await.expect("a commit");
        insta::assert_json_snapshot!(name, requests(&wire, &config.table));
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn the_same_commit_is_the_same_request_from_every_process() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let (store, wire, config) = store().await;
        for commit in story() {
            store.commit(commit).await.expect("a commit");
        }
        seen.push(requests(&wire, &config.table));
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0].iter().filter(|(operation, _)| operation == WRITE).count(), 3);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn what_the_head_says_it_holds_needs_no_condition_of_its_own() {
    let (store, wire, config) = store().await;
    let first = start(1).build();
    store.commit(first.clone()).await.expect("a commit");
    requests(&wire, &config.table);
    let next = CommitBuilder::next(&first.next, at(70_000)).note("on").assert_assets().build();
    assert!(matches!(next.locks.as_slice(), [LockChange::Assert { .. }]));
    store.commit(next).await.expect("a commit");
    let sent = requests(&wire, &config.table);
    assert!(!sent[0].1.to_string().contains("\"ConditionCheck\":"), "{}", sent[0].1);
    // Not held: asked of the table.
    let other = CommitBuilder::next(&first.next, at(80_000)).note("x");
    let strange = LockChange::Assert { asset_id: asset("STRANGE"), fence: 1 };
    assert!(store.commit(other.lock(strange).build()).await.is_err());
}
