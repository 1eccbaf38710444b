//! Tests that need the inside of the crate: plans of statements, faults of the writer, migrations.

mod faults;
mod migrations;
mod plans;

use std::time::{Duration, Instant};

use tempfile::TempDir;
use wf_core::ports::{Commit, LoadQuery, StorageBackendPort as _};
use wf_testkit::build::{self, CommitBuilder, at};

use crate::{LocalConfig, LocalStore};

/// A configuration for tests: a writer that somebody holds up waits for the test to let it go.
fn config(dir: &TempDir) -> LocalConfig {
    let mut config = LocalConfig::new(dir.path().join("store.db"));
    config.busy_timeout_ms = 20_000;
    config.checkpoint_every_ms = 50;
    config
}

async fn open(dir: &TempDir) -> LocalStore {
    LocalStore::open(config(dir)).await.expect("a new store").store
}

/// A workflow starts and acquires an asset of its own.
fn start(n: u32) -> CommitBuilder {
    let id = build::workflow_id(&format!("wf-{n:04}"));
    CommitBuilder::start(&build::tenant("plant"), &id, &build::user("ann"), at(60_000))
        .acquire(&build::asset(&format!("ASSET-{n}")), 1)
}

/// Whether the commit is there.
async fn is_there(store: &LocalStore, commit: &Commit) -> bool {
    let query = LoadQuery {
        tenant: commit.next.tenant.clone(),
        workflow: Some(commit.next.id.clone()),
        ledger: Some(commit.ledger.key.clone()),
        assets: Vec::new(),
        answered_as: None,
        count_open_of: None,
    };
    let seen = store.load(&query).await.expect("a read");
    assert_eq!(seen.workflow.is_some(), seen.ledger.is_some(), "all or nothing");
    assert_eq!(seen.workflow.is_some(), !seen.locks.is_empty(), "all or nothing");
    seen.ledger.is_some()
}

/// Waits until `done`, five seconds at most.
async fn soon(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !done().await {
        assert!(Instant::now() < deadline, "not within five seconds: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
