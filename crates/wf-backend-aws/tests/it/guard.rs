//! Two builds on one table: the older one writes nothing any more once a newer one has raised the schema.

use wf_backend_aws::{AwsConfig, AwsStore};
use wf_core::ports::{CommitError, OpenError, SettleError, StorageBackendPort as _};
use wf_testkit::build::at;

use crate::cast::{load, start};
use crate::fixture::{claim, meddle, meddle_number, rows, store};
use crate::wire::Wire;

/// A server that looks at the identity before each of its writes.
async fn wary(config: &AwsConfig) -> AwsStore {
    let mut config = config.clone();
    config.trust_ms = 0;
    AwsStore::open_existing(config).await.expect("a store")
}

/// What the commit says that is refused, and when to come back.
async fn refused(store: &AwsStore, n: u32) -> (String, Option<i64>) {
    let refused = store.commit(start(n).build()).await;
    let Err(CommitError::Unavailable { after_ms, source }) = refused else {
        unreachable!("{refused:?}")
    };
    (source.to_string(), after_ms)
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_newer_schema_under_a_running_server_ends_its_writes_and_nothing_else() {
    let (trusting, _wire, config) = store().await;
    let old = wary(&config).await;
    old.commit(start(1).build()).await.expect("a commit");
    old.may_write().await.expect("it may write");
    meddle_number(&config, "STORE", "SECRET", "schema", "2").await;
    let before = rows(&config).await;

    let (said, after_ms) = refused(&old, 2).await;
    assert!(said.contains("schema version 2") && said.contains("newer build"), "{said}");
    assert_eq!(after_ms, Some(2_000), "another server may answer by then");
    assert!(old.may_write().await.is_err());
    assert!(old.claim_outbox(&claim(at(200_000), "a")).await.is_err());
    assert!(old.claim_deadlines(&claim(at(200_000), "a")).await.is_err());
    let swept = old.sweep(at(900_000_000), 1, 10).await;
    assert!(matches!(swept, Ok(_) | Err(SettleError::Unavailable { .. })), "{swept:?}");
    assert_eq!(rows(&config).await, before, "not a byte was written");
    // What was recorded is still answered: a repeat gets its answer.
    assert!(load(&old, &start(1).build()).await.ledger.is_some());
    let opened = AwsStore::open(config.clone()).await;
    assert!(matches!(opened, Err(OpenError::NewerSchema { found: 2, known: 1 })), "{opened:?}");
    assert_eq!(rows(&config).await, before);

    // It is the look that refuses: who has looked an hour ago, and trusts that, still writes.
    trusting.commit(start(3).build()).await.expect("a commit");

    // The newer build is taken back: the older one goes on without a restart.
    meddle_number(&config, "STORE", "SECRET", "schema", "1").await;
    old.commit(start(2).build()).await.expect("a commit");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_table_that_became_another_store_is_not_written_to() {
    let (_store, _wire, config) = store().await;
    let old = wary(&config).await;
    meddle(&config, "STORE", "SECRET", "store_id", "0123456789abcdef0123456789abcdef").await;
    let (said, _) = refused(&old, 1).await;
    assert!(said.contains("start the server again"), "{said}");
    wary(&config).await.commit(start(1).build()).await.expect("a server that was started again");
}

/// One look holds good for a while, and many writers share it.
#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_look_is_shared_and_counts_for_a_while() {
    let (_store, _wire, config) = store().await;
    let wire = Wire::new();
    let mut config = crate::fixture::config(&config.table, &wire);
    config.trust_ms = 60_000;
    let store = AwsStore::open_existing(config.clone()).await.expect("a store");
    wire.take_log();
    for n in 0..3 {
        store.commit(start(n).build()).await.expect("a commit");
    }
    assert_eq!(wire.take_operations(), ["TransactWriteItems"; 3], "opening was a look");
    config.trust_ms = 0;
    let store = AwsStore::open_existing(config).await.expect("a store");
    wire.take_log();
    store.commit(start(3).build()).await.expect("a commit");
    assert_eq!(wire.take_operations(), ["GetItem", "TransactWriteItems"]);
}
