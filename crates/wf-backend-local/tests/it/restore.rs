//! Going back in time, and what must not come back with it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use wf_backend_local::{FENCES_RAISED_BY, LocalStore, RestoreError, restamp, restore};
use wf_core::ports::{Claim, Commit, CommitError, Conflict, LeaseToken, StorageBackendPort as _};
use wf_testkit::build::{self, CommitBuilder, at};

use crate::cast::{is_there, load, open, start};
use crate::fixture::config;

/// A workflow that acquires nothing.
fn bare(n: u32) -> CommitBuilder {
    let id = build::workflow_id(&format!("wf-{n:05}"));
    CommitBuilder::start(&build::tenant("plant"), &id, &build::user("ann"), at(60_000))
}

fn finish(before: &Commit) -> Commit {
    CommitBuilder::next(&before.next, at(90_000)).release_assets().complete().build()
}

async fn restored(from: &Path, path: &Path) -> LocalStore {
    let config = config(path);
    restore(from, &config).await.unwrap();
    LocalStore::open_existing(config).await.unwrap()
}

#[tokio::test]
async fn restore_goes_back_under_a_new_identity() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.commit(start(1).build()).await.unwrap();
    let before = store.identity().await.unwrap();
    let copy = dir.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    store.commit(start(2).build()).await.unwrap();
    let config = store.config().clone();

    let error = restore(&copy, &config).await.unwrap_err();
    assert!(matches!(error, RestoreError::Place(_)), "{error:?}");
    let said = std::error::Error::source(&error).unwrap().to_string();
    assert!(said.contains("in use") && said.contains("stop it first"), "{said}");
    store.close().await;

    let report = restore(&copy, &config).await.unwrap();
    let store = LocalStore::open_existing(config).await.unwrap();
    let after = store.identity().await.unwrap();
    assert_eq!(after.id, report.store_id);
    assert_ne!(after.id, before.id);
    assert_eq!(after.secrets.len(), 2);
    assert_eq!(after.secrets.get(1), before.secrets.first(), "the old key still verifies");
    assert_ne!(after.secrets.first(), before.secrets.first(), "a new one signs");
    assert!(is_there(&store, &start(1).build()).await);
    assert!(!is_there(&store, &start(2).build()).await);
    assert_eq!(store.integrity_check().await.unwrap(), Vec::<String>::new());

    // What was there before is whole, under another name.
    let kept = LocalStore::open_existing(crate::fixture::config(report.kept.unwrap())).await;
    assert!(is_there(&kept.unwrap(), &start(2).build()).await);
}

#[tokio::test]
async fn fences_after_a_restore_are_above_those_of_the_lost_time() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    // One asset is held at the time of the backup, one is free, one was never held.
    let holding = start(1).build();
    store.commit(holding.clone()).await.unwrap();
    let done = start(2).build();
    store.commit(done.clone()).await.unwrap();
    store.commit(finish(&done)).await.unwrap();
    let copy = dir.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    store.close().await;
    let store = restored(&copy, &dir.path().join("store.db")).await;

    // Who holds an asset goes on under the fence that its history names.
    let note = CommitBuilder::next(&holding.next, at(70_000)).assert_assets().note("x").build();
    store.commit(note.clone()).await.unwrap();
    let released = finish(&note);
    store.commit(released.clone()).await.unwrap();

    for (n, asset) in ["ASSET-1", "ASSET-2", "ASSET-3"].into_iter().enumerate() {
        let asset = build::asset(asset);
        let n = 10 + u32::try_from(n).unwrap();
        // The fences of the lost time are refused, and the answer says how the row is.
        let stale = bare(n).acquire(&asset, 2).build();
        let row = match store.commit(stale).await {
            Err(CommitError::Conflict(Conflict::Asset { row, .. })) => row.unwrap(),
            other => panic!("{asset}: {other:?}"),
        };
        assert!(row.fence >= FENCES_RAISED_BY, "{row:?}");
        assert_eq!(row.holder, None);
        let taken = bare(n).acquire(&asset, row.fence + 1).build();
        // A decision that reads first sees the same row.
        assert_eq!(load(&store, &taken).await.locks, [row]);
        store.commit(taken).await.unwrap();
    }

    // Once more: every fence is above all before.
    store.backup(&dir.path().join("second.db")).await.unwrap();
    store.close().await;
    let store = restored(&dir.path().join("second.db"), &dir.path().join("store.db")).await;
    let fresh = bare(20).acquire(&build::asset("ASSET-4"), 1).build();
    let row = load(&store, &fresh).await.locks.pop().unwrap();
    assert_eq!(row.fence, 2 * FENCES_RAISED_BY);
}

#[tokio::test]
async fn leases_do_not_survive_a_restore() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.commit(start(1).build()).await.unwrap();
    let claim = |token: &str| Claim {
        now: at(200_000),
        lease_ms: 60_000,
        token: LeaseToken(token.to_owned()),
        limit: 10,
    };
    assert_eq!(store.claim_outbox(&claim("a")).await.unwrap().len(), 1);
    assert_eq!(store.claim_deadlines(&claim("a")).await.unwrap().len(), 1);
    let copy = dir.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    let store = restored(&copy, &dir.path().join("elsewhere.db")).await;
    assert_eq!(store.claim_outbox(&claim("b")).await.unwrap().len(), 1);
    assert_eq!(store.claim_deadlines(&claim("b")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn damaged_store_is_replaced_and_kept() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.commit(start(1).build()).await.unwrap();
    let copy = dir.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    store.close().await;
    let path = dir.path().join("store.db");
    let garbage = b"overwritten ".repeat(1_000);
    std::fs::write(&path, &garbage).unwrap();
    let beside = |path: &Path, suffix| PathBuf::from(format!("{}{suffix}", path.display()));
    std::fs::write(beside(&path, "-wal"), b"a log of something else").unwrap();
    // One that can be neither played back nor opened, so that it is still there when the old file is set aside.
    std::fs::create_dir(beside(&path, "-journal")).unwrap();
    let kept = restore(&copy, &config(&path)).await.unwrap().kept.unwrap();
    assert_eq!(std::fs::read(&kept).unwrap(), garbage);
    for suffix in ["-wal", "-journal"] {
        assert!(!beside(&path, suffix).exists(), "{suffix} would be played back");
        assert!(beside(&kept, suffix).exists(), "{suffix} is kept");
    }
    let store = LocalStore::open_existing(config(&path)).await.unwrap();
    assert!(is_there(&store, &start(1).build()).await);
}

#[tokio::test]
async fn what_is_no_backup_is_refused_and_the_store_stays() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.commit(start(1).build()).await.unwrap();
    let copy = dir.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    store.close().await;
    let path = dir.path().join("store.db");

    let letter = dir.path().join("letter");
    std::fs::write(&letter, b"dear ".repeat(500)).unwrap();
    let newer = dir.path().join("newer.db");
    std::fs::copy(&copy, &newer).unwrap();
    crate::fixture::meddle(&newer, "PRAGMA user_version = 9").unwrap();
    let foreign = dir.path().join("foreign.db");
    std::fs::write(&foreign, b"").unwrap();
    crate::fixture::meddle(&foreign, "CREATE TABLE notes (text)").unwrap();
    let broken = dir.path().join("broken.db");
    let mut bytes = std::fs::read(&copy).unwrap();
    for page in bytes.chunks_mut(4096).skip(2) {
        page.get_mut(..64).unwrap().fill(0xff);
    }
    std::fs::write(&broken, bytes).unwrap();

    for (from, word) in [
        (dir.path().join("nowhere.db"), "No such file"),
        (dir.path().to_owned(), "not a regular file"),
        (letter, "no SQLite database"),
        (newer, "newer build"),
        (foreign, "another program"),
        (broken, "damaged"),
        (path.clone(), "the store itself"),
    ] {
        let error = restore(&from, &config(&path)).await.unwrap_err();
        assert!(error.to_string().contains(word), "{from:?}: {error}");
    }
    let store = LocalStore::open_existing(config(&path)).await.unwrap();
    assert!(is_there(&store, &start(1).build()).await);
    let stray = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .find(|name| name.contains("partial") || name.contains("before"));
    assert_eq!(stray, None);
}

#[tokio::test]
async fn restamp_marks_a_store_that_was_put_back_by_other_means() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.commit(start(1).build()).await.unwrap();
    let config = store.config().clone();
    let before = store.identity().await.unwrap();
    let error = restamp(config.clone()).await.unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
    store.close().await;
    let id = restamp(config.clone()).await.unwrap();
    let store = LocalStore::open_existing(config).await.unwrap();
    assert_eq!(store.identity().await.unwrap().id, id);
    assert_ne!(id, before.id);
    assert!(is_there(&store, &start(1).build()).await);
    let fresh = bare(9).acquire(&build::asset("ASSET-9"), FENCES_RAISED_BY + 1).build();
    store.commit(fresh).await.unwrap();
}
