//! A table that went back in time. The rehearsal makes a point-in-time recovery as DynamoDB does it: the items of then in
//! a new table.

use wf_backend_aws::{AwsConfig, AwsStore, FENCES_RAISED_BY, restamp};
use wf_core::models::Workflow;
use wf_core::ports::{
    Commit, CommitError, Conflict, LoadQuery, OpenError, StorageBackendPort as _,
};
use wf_testkit::build::{self, CommitBuilder, at};

use crate::cast::{load, load_query, start, tenant};
use crate::copies::strays;
use crate::fixture::{Attributes, claim, foreign, meddle, rows, store, table};
use crate::wire::{self, Wire};

/// The table of `items`, which nobody has open; nobody has to be waited for.
async fn recovered(items: impl IntoIterator<Item = Attributes>) -> AwsConfig {
    let mut config = table().await;
    config.trust_ms = 0;
    for item in items {
        let put = foreign().put_item().table_name(&config.table).set_item(Some(item));
        put.send().await.expect("a put");
    }
    config
}

/// As servers are configured whose last write is over at once.
fn settled(config: &AwsConfig) -> AwsConfig {
    let mut config = config.clone();
    (config.trust_ms, config.patience_ms, config.attempt_timeout_ms) = (0, 0, 100);
    config
}

fn bare(n: u32) -> CommitBuilder {
    let id = build::workflow_id(&format!("wf-{n:05}"));
    CommitBuilder::start(tenant(), &id, &build::user("ann"), at(60_000))
}

fn finish(before: &Workflow) -> Commit {
    CommitBuilder::next(before, at(90_000)).release_assets().complete().build()
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_recovered_table_is_another_store_whose_fences_are_above_the_lost_time() {
    let (before, _wire, config) = store().await;
    // One asset is held at the time of the recovery, one is free, one was never held.
    let holding = start(1).build();
    before.commit(holding.clone()).await.expect("a commit");
    let done = start(2).build();
    before.commit(done.clone()).await.expect("a commit");
    before.commit(finish(&done.next)).await.expect("a commit");
    assert!(!before.claim_outbox(&claim(at(200_000), "a")).await.expect("a claim").is_empty());
    assert!(!before.claim_deadlines(&claim(at(200_000), "a")).await.expect("a claim").is_empty());
    let then = rows(&config).await;
    before.commit(start(3).build()).await.expect("a commit of the lost time");
    let was = before.identity().await.expect("an identity");

    let config = recovered(then.into_values()).await;
    let mut seen = 0;
    let report = restamp(settled(&config), &mut |items| seen = items).await.expect("a restamp");
    assert!(!report.resumed && seen > 0, "{report:?}");
    assert_eq!(report.locks, 2, "a held one and a free one");
    assert!(report.leases >= 2, "of messages and of deadlines: {report:?}");

    let store = AwsStore::open_existing(config.clone()).await.expect("a store");
    let is = store.identity().await.expect("an identity");
    assert_eq!(is.id, report.store_id);
    assert_ne!(is.id, was.id);
    assert_eq!(is.secrets.get(1), was.secrets.first(), "the old key still verifies");
    assert_ne!(is.secrets.first(), was.secrets.first(), "a new one signs");
    assert_eq!(strays(&store).await, Vec::<String>::new());
    // Nobody who held a lease is there.
    assert!(!store.claim_outbox(&claim(at(200_001), "b")).await.expect("a claim").is_empty());
    assert!(!store.claim_deadlines(&claim(at(200_001), "b")).await.expect("a claim").is_empty());
    // An old call has its answer; a call of the lost time was never heard of.
    assert!(load(&store, &holding).await.ledger.is_some());
    assert!(load(&store, &start(3).build()).await.ledger.is_none());

    // Who holds an asset goes on under the fence that its history names.
    let note = CommitBuilder::next(&holding.next, at(70_000)).assert_assets().note("x").build();
    store.commit(note.clone()).await.expect("a step goes on");
    store.commit(finish(&note.next)).await.expect("an end");
    for (n, name) in ["ASSET-1", "ASSET-2", "ASSET-3"].into_iter().enumerate() {
        let (n, asset) = (10 + u32::try_from(n).expect("few"), build::asset(name));
        let stale = store.commit(bare(n).acquire(&asset, 2).build()).await;
        assert!(
            matches!(stale, Err(CommitError::Conflict(Conflict::Asset { .. }))),
            "a fence of the lost time was taken: {stale:?}"
        );
        let query = LoadQuery { assets: vec![asset.clone()], ..load_query(&holding) };
        let row = store.load(&query).await.expect("a read").locks.pop().expect("a row");
        assert!(row.fence >= FENCES_RAISED_BY && row.holder.is_none(), "{row:?}");
        store.commit(bare(n).acquire(&asset, row.fence + 1).build()).await.expect("the next fence");
    }
    assert_eq!(strays(&store).await, Vec::<String>::new());
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn an_interrupted_restamp_leaves_no_store_until_it_is_run_to_its_end() {
    let (before, _wire, config) = store().await;
    before.commit(start(1).build()).await.expect("a commit");
    // It dies at the first of its changes, the mark made.
    let wire = Wire::new();
    let dying = crate::fixture::config(&config.table, &wire);
    wire.next("TransactWriteItems", [wire::Fault::Error(400, "ValidationException")]);
    restamp(settled(&dying), &mut |_| {}).await.expect_err("it was made to fail");
    for opened in [
        AwsStore::open(config.clone()).await.map(drop),
        AwsStore::open_existing(config.clone()).await.map(drop),
    ] {
        let Err(OpenError::Refused { message }) = opened else {
            unreachable!("half a store was opened: {opened:?}")
        };
        assert!(message.contains("wf-cli restored"), "{message}");
    }
    let report = restamp(settled(&config), &mut |_| {}).await.expect("the second run");
    assert!(report.resumed, "{report:?}");
    let store = AwsStore::open_existing(config.clone()).await.expect("a store");
    assert_eq!(store.identity().await.expect("an identity").id, report.store_id);
    assert_eq!(strays(&store).await, Vec::<String>::new());
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn what_is_no_store_is_not_restamped_and_lost_answers_do_no_harm() {
    let empty = table().await;
    let refused = restamp(settled(&empty), &mut |_| {}).await.expect_err("an empty table");
    assert!(refused.to_string().contains("there is no store"), "{refused}");
    let (before, _wire, config) = store().await;
    before.commit(start(1).build()).await.expect("a commit");
    let wire = Wire::new();
    let mut losing = crate::fixture::config(&config.table, &wire);
    (losing.trust_ms, losing.patience_ms, losing.attempt_timeout_ms) = (0, 0, 100);
    wire.next("UpdateItem", [wire::Fault::Lost]);
    wire.next("TransactWriteItems", [wire::Fault::Lost, wire::Fault::Pass, wire::Fault::Lost]);
    let report = restamp(losing, &mut |_| {}).await.expect("in spite of lost answers");
    let store = AwsStore::open_existing(config.clone()).await.expect("a store");
    assert_eq!(store.identity().await.expect("an identity").id, report.store_id);
    assert_eq!(strays(&store).await, Vec::<String>::new());
    meddle(&config, "STORE", "SECRET", "copy_of", "x").await;
    let refused = restamp(settled(&config), &mut |_| {}).await.expect_err("half a copy");
    assert!(refused.to_string().contains("unfinished copy"), "{refused}");
}
