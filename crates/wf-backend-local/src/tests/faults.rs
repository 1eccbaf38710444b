//! What the writer does when SQLite fails it, or it fails itself.

use rusqlite::Connection;
use tempfile::TempDir;
use wf_core::ports::{CommitError, Conflict, ReadError, StorageBackendPort as _};

use super::{config, is_there, open, soon, start};
use crate::codec::decode::{self, Read};
use crate::connection;
use crate::writer::sabotage::Fault;

/// What the next test rests on: the fault stays with its connection, so that whoever goes on committing on another one
/// has replaced it.
#[tokio::test]
async fn a_connection_whose_commit_failed_fails_for_ever() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let mut conn = connection::open_writing(store.config()).unwrap();
    store.shared().sabotage.push(Fault::CommitFails);
    store.shared().sabotage.before(&conn, &[]);
    for _ in 0..3 {
        let tx = connection::immediate(&mut conn).expect("SQLite has rolled back");
        tx.execute("UPDATE store SET probe = 1", ()).unwrap();
        tx.commit().unwrap_err();
    }
}

#[tokio::test]
async fn poisoned_connection_after_failed_commit_is_replaced() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.commit(start(1).build()).await.unwrap();

    store.shared().sabotage.push(Fault::CommitFails);
    let lost = start(2).build();
    let error = store.commit(lost.clone()).await.unwrap_err();
    assert!(matches!(error, CommitError::Ambiguous { .. }), "{error:?}");
    assert!(!store.is_healthy());

    // The very next commits work, on a new connection.
    store.commit(start(3).build()).await.unwrap();
    assert!(store.is_healthy());
    store.commit(lost.clone()).await.unwrap();
    assert!(is_there(&store, &lost).await);
}

#[tokio::test]
async fn failed_commit_makes_the_whole_batch_ambiguous() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let foreign = hold_the_lock(&store);
    let plug = plug(&store).await;
    let mut waiting = Vec::new();
    // The third one will be refused, because of the second one.
    for (n, commit) in [start(2), start(3), start(3).key("other")].into_iter().enumerate() {
        waiting.push(send(&store, commit.build()));
        soon("it waits in the queue", async || store.queue_depth() == n + 1).await;
    }
    store.shared().sabotage.push(Fault::CommitFails);
    drop(foreign);
    plug.await.unwrap().unwrap();
    for one in waiting {
        let error = one.await.unwrap().unwrap_err();
        // A refusal that rests on a commit of the same batch is as open as that one.
        assert!(matches!(error, CommitError::Ambiguous { .. }), "{error:?}");
    }
    for n in [2, 3] {
        store.commit(start(n).build()).await.unwrap();
    }
}

/// Nobody waits for a foreign writer longer than the time to wait, however many stand before him.
#[tokio::test]
async fn whoever_queues_behind_a_foreign_writer_is_refused_with_the_first() {
    let dir = TempDir::new().unwrap();
    let mut config = config(&dir);
    config.busy_timeout_ms = 2_000;
    let store = crate::LocalStore::open(config).await.unwrap().store;
    let foreign = hold_the_lock(&store);
    let plug = plug(&store).await;
    let begun = store.shared().sabotage.begun();
    let count = 3 * crate::writer::BATCH_MAX;
    let waiting: Vec<_> =
        (0..count).map(|n| send(&store, start(u32::try_from(n).unwrap() + 10).build())).collect();
    soon("they wait in the queue", async || store.queue_depth() == count).await;
    plug.await.unwrap().unwrap_err();
    for one in waiting {
        let error = one.await.unwrap().unwrap_err();
        assert!(matches!(error, CommitError::Unavailable { after_ms: Some(_), .. }), "{error:?}");
    }
    assert_eq!(store.shared().sabotage.begun(), begun, "no other batch waited");
    drop(foreign);
    soon("commits go on", async || store.commit(start(9).build()).await.is_ok()).await;
}

#[tokio::test]
async fn disk_full_then_freed_recovers() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let first = start(1).build();
    store.commit(first.clone()).await.unwrap();

    store.shared().sabotage.push(Fault::PagesMax(1));
    let big = start(2).note(&"x".repeat(50_000)).build();
    let error = store.commit(big.clone()).await.unwrap_err();
    assert!(
        matches!(error, CommitError::Unavailable { after_ms: Some(_), .. }),
        "a full disk before COMMIT: {error:?}"
    );
    assert!(!store.is_healthy());
    assert!(is_there(&store, &first).await, "reads go on");
    assert!(!is_there(&store, &big).await);

    // Nobody has to commit for the store to find out that it works again.
    soon("the store is healthy again", async || store.is_healthy()).await;
    store.commit(big.clone()).await.unwrap();
    assert!(is_there(&store, &big).await);
    assert_eq!(store.integrity_check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn panic_of_the_writer_leaves_no_zombie() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    for (n, fault, applied) in
        [(1, Fault::PanicBeforeCommit, false), (2, Fault::PanicAfterCommit, true)]
    {
        store.shared().sabotage.push(fault);
        let commit = start(n).build();
        let error = store.commit(commit.clone()).await.unwrap_err();
        assert!(matches!(error, CommitError::Ambiguous { .. }), "{error:?}");
        assert_eq!(is_there(&store, &commit).await, applied, "{fault:?}");
        // The same commit again resolves it.
        match store.commit(commit.clone()).await {
            Ok(()) => assert!(!applied),
            Err(CommitError::Conflict(Conflict::Ledger(row))) => {
                assert!(applied);
                assert_eq!(*row, commit.ledger);
            }
            Err(error) => panic!("{error:?}"),
        }
        assert!(is_there(&store, &commit).await);
        assert!(store.is_healthy());
    }
}

#[tokio::test]
async fn one_bad_record_fails_alone() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let foreign = hold_the_lock(&store);
    let mut bad = start(3).message("lead").build();
    let twice = bad.outbox.clone();
    bad.outbox.extend(twice);
    let first = plug(&store).await;
    let others = [start(2).build(), bad, start(4).build()].map(|commit| send(&store, commit));
    soon("the others wait in the queue", async || store.queue_depth() == 3).await;
    drop(foreign);

    first.await.unwrap().unwrap();
    let [before, bad, after] = others;
    before.await.unwrap().unwrap();
    let error = bad.await.unwrap().unwrap_err();
    assert!(matches!(error, CommitError::Unavailable { .. }), "{error:?}");
    after.await.unwrap().unwrap();
    assert!(is_there(&store, &start(4).build()).await);
    assert!(!is_there(&store, &start(3).build()).await);
    assert!(store.is_healthy(), "a bad record is not the store's illness");
}

#[tokio::test]
async fn conditions_of_one_batch_are_judged_in_order() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let foreign = hold_the_lock(&store);
    let plug = plug(&store).await;

    let winner = start(2).build();
    let mut same_key = start(3).build();
    same_key.ledger.key = winner.ledger.key.clone();
    let same_asset = start(4).acquire(&wf_testkit::build::asset("ASSET-2"), 1).build();
    let mut twin = start(2).key("twin").build();
    twin.locks.clear();
    let last = start(5).build();
    let sent = [winner.clone(), same_key, same_asset, twin, last];
    let mut waiting = Vec::new();
    for (n, commit) in sent.into_iter().enumerate() {
        waiting.push(send(&store, commit));
        soon("it waits in the queue", async || store.queue_depth() == n + 1).await;
    }
    drop(foreign);

    plug.await.unwrap().unwrap();
    let mut answers = Vec::new();
    for one in waiting {
        answers.push(one.await.unwrap());
    }
    let [first, key, asset, revision, last] = answers.try_into().expect("five answers");
    first.unwrap();
    assert!(
        matches!(&key, Err(CommitError::Conflict(Conflict::Ledger(row))) if **row == winner.ledger),
        "{key:?}"
    );
    match asset {
        Err(CommitError::Conflict(Conflict::Asset { row: Some(row), .. })) => {
            assert_eq!(row.fence, 1);
            assert_eq!(row.holder.expect("held").workflow_id, winner.next.id);
        }
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(revision, Err(CommitError::Conflict(Conflict::Revision { current: 1 }))),
        "{revision:?}"
    );
    last.unwrap();
}

#[tokio::test]
async fn full_queue_is_refused_at_once() {
    let dir = TempDir::new().unwrap();
    let mut config = config(&dir);
    config.queue_max = 2;
    let store = crate::LocalStore::open(config).await.unwrap().store;
    let foreign = hold_the_lock(&store);
    let first = plug(&store).await;
    let waiting = [start(2), start(3)].map(|c| send(&store, c.build()));
    soon("the queue is full", async || store.queue_depth() == 2).await;
    let error = store.commit(start(4).build()).await.unwrap_err();
    assert!(matches!(error, CommitError::Unavailable { after_ms: Some(1..), .. }), "{error:?}");
    drop(foreign);
    first.await.unwrap().unwrap();
    for one in waiting {
        one.await.unwrap().unwrap();
    }
}

/// A read that never ends by itself.
const ENDLESS: &str =
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c";

#[tokio::test]
async fn read_that_takes_too_long_is_stopped() {
    let dir = TempDir::new().unwrap();
    let mut config = config(&dir);
    config.readers = 1;
    config.read_timeout_ms = 200;
    let store = crate::LocalStore::open(config).await.unwrap().store;
    let read = store.readers().rows(ENDLESS, (), decode::one::<i64>).await;
    assert!(matches!(read, Err(ReadError::Unavailable { .. })), "{read:?}");
    // The only reader is free again.
    soon("reads go on", async || store.identity().await.is_ok()).await;
}

#[tokio::test]
async fn panic_of_a_reader_leaves_no_zombie() {
    let dir = TempDir::new().unwrap();
    let mut config = config(&dir);
    config.readers = 1;
    let store = crate::LocalStore::open(config).await.unwrap().store;
    let read = store.readers().rows("SELECT 1", (), |_| -> Read<()> { panic!("asked for") }).await;
    assert!(matches!(read, Err(ReadError::Unavailable { .. })), "{read:?}");
    store.identity().await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn closed_store_refuses_reads_and_commits_of_other_handles() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let other = store.clone();
    store.close().await;
    let read = other.identity().await;
    assert!(matches!(read, Err(ReadError::Unavailable { .. })), "{read:?}");
    let error = other.commit(start(1).build()).await.unwrap_err();
    assert!(matches!(error, CommitError::Unavailable { .. }), "{error:?}");
}

type Sent = tokio::task::JoinHandle<Result<(), CommitError>>;

fn send(store: &crate::LocalStore, commit: wf_core::ports::Commit) -> Sent {
    let store = store.clone();
    tokio::spawn(async move { store.commit(commit).await })
}

/// Sends workflow 1 to a store whose lock is held. When this returns, the writer waits for the lock with only that one
/// in hand, so all that is sent from then on goes into the next batch.
async fn plug(store: &crate::LocalStore) -> Sent {
    let begun = store.shared().sabotage.begun();
    let sent = send(store, start(1).build());
    soon("the first one waits for the lock", async || store.shared().sabotage.begun() > begun)
        .await;
    sent
}

/// Somebody else's write transaction, until it is dropped.
fn hold_the_lock(store: &crate::LocalStore) -> Connection {
    let foreign = connection::open_writing(store.config()).unwrap();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    foreign
}
