//! Commits and looks that the tests share.

use std::time::{Duration, Instant};

use tempfile::TempDir;
use wf_backend_local::LocalStore;
use wf_core::ports::{Commit, LoadQuery, Snapshot, StorageBackendPort as _};
use wf_testkit::build::{self, CommitBuilder, at};

use crate::fixture::config;

/// A new store in a directory.
pub(crate) async fn open(dir: &TempDir) -> LocalStore {
    LocalStore::open(config(dir.path().join("store.db"))).await.expect("a store").store
}

/// Workflow `n` starts and acquires an asset of its own.
pub(crate) fn start(n: u32) -> CommitBuilder {
    let id = build::workflow_id(&format!("wf-{n:05}"));
    CommitBuilder::start(&build::tenant("plant"), &id, &build::user("ann"), at(60_000))
        .acquire(&build::asset(&format!("ASSET-{n}")), 1)
        .message("lead")
        .deadline(at(120_000))
}

/// Everything that a commit could have written where it could be read.
pub(crate) async fn load(store: &LocalStore, commit: &Commit) -> Snapshot {
    let query = LoadQuery {
        tenant: commit.next.tenant.clone(),
        workflow: Some(commit.next.id.clone()),
        ledger: Some(commit.ledger.key.clone()),
        assets: commit.locks.iter().map(|l| l.asset_id().clone()).collect(),
        answered_as: None,
        count_open_of: None,
    };
    store.load(&query).await.expect("a read")
}

/// Whether a starting commit is there; it must be whole or not at all.
pub(crate) async fn is_there(store: &LocalStore, commit: &Commit) -> bool {
    let seen = load(store, commit).await;
    let there = seen.ledger.is_some();
    assert_eq!(seen.workflow.is_some(), there, "{seen:?}");
    assert_eq!(seen.locks.iter().any(|l| l.holder.is_some()), there, "{seen:?}");
    if there {
        let id = &commit.next.id;
        let events = store.events(&commit.next.tenant, id, 0, 10).await.expect("a read");
        assert_eq!(events, commit.events);
    }
    there
}

/// Waits until `done`, ten seconds at most.
pub(crate) async fn soon(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !done().await {
        assert!(Instant::now() < deadline, "not within ten seconds: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
