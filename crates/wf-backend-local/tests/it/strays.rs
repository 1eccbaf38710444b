//! Rows that belong to nothing, and columns that differ from the state: none in what commits wrote, each kind found
//! after somebody meddled with the file.

use tempfile::TempDir;
use wf_backend_local::LocalStore;
use wf_core::ports::{Claim, LeaseToken, StorageBackendPort as _};
use wf_testkit::build::{self, CommitBuilder, at, user};

use crate::cast::{open, start};
use crate::fixture::{config, meddle};

/// Workflows in every state, with messages, deadlines, offers and a lease.
async fn lively(dir: &TempDir) -> LocalStore {
    let store = open(dir).await;
    store.put_definition(&build::definition("test.procedure", 1, "nothing")).await.unwrap();
    for n in 1..=4 {
        store.commit(start(n).build()).await.unwrap();
    }
    let first = start(1).build().next;
    let done = CommitBuilder::next(&first, at(61_000)).complete().release_assets().build();
    store.commit(done).await.unwrap();
    let second = start(2).build().next;
    let blocked = CommitBuilder::next(&second, at(62_000)).block().message("lead").build();
    store.commit(blocked).await.unwrap();
    let third = start(3).build().next;
    let offered = CommitBuilder::next(&third, at(63_000)).offer(Some(&user("bob"))).build();
    store.commit(offered).await.unwrap();
    let token = LeaseToken("lease".to_owned());
    let claim = Claim { now: at(70_000), lease_ms: 60_000, token, limit: 1 };
    assert_eq!(store.claim_outbox(&claim).await.unwrap().len(), 1);
    store
}

#[tokio::test]
async fn what_commits_wrote_has_no_strays() {
    let dir = TempDir::new().unwrap();
    let store = lively(&dir).await;
    assert_eq!(store.strays().await.unwrap(), Vec::<String>::new());
    store.close().await;
}

/// What somebody did to the file, and what must be said of it.
const MEDDLED: &[(&str, &str)] = &[
    ("UPDATE workflow_assets SET tenant = 'other' WHERE wid = 2", "asset rows"),
    ("UPDATE workflow_assets SET completed_at = 1 WHERE wid = 2", "asset rows"),
    ("UPDATE events SET seq = 7 WHERE wid = 4 AND seq = 1", "in another place"),
    (
        "UPDATE events SET body = json_set(body, '$.workflow_id', 'wf-00009') WHERE wid = 4",
        "in another place",
    ),
    ("UPDATE workflows SET revision = 1 WHERE wid = 2", "after the revision"),
    ("UPDATE ledger SET seq = 9 WHERE wid = 4", "a ledger row is of no event"),
    ("UPDATE ledger SET key = 'another' WHERE wid = 4", "a ledger row is of no event"),
    ("DELETE FROM ledger WHERE wid = 2 AND seq = 2", "an event is of no ledger row"),
    ("UPDATE locks SET holder = 'wf-00009' WHERE asset_id = 'ASSET-4'", "held by no workflow"),
    ("UPDATE streams SET workflow_id = 'wf-00009' WHERE sid = 4", "is of no workflow"),
    ("UPDATE streams SET due_at = NULL WHERE sid = 4", "is not due when"),
    ("UPDATE outbox SET seq = 9 WHERE sid = 4", "not what its stream says"),
    ("UPDATE outbox SET seq = 9 WHERE sid = 4", "a message is of no event"),
    ("UPDATE definitions SET version = 7", "a version is of no definition of its procedure"),
    ("DELETE FROM definitions", "runs by is not stored"),
    ("UPDATE workflows SET id = 'wf-00009' WHERE wid = 4", "the name is not what"),
    ("UPDATE workflows SET revision = 2 WHERE wid = 4", "the revision is not what"),
    ("UPDATE workflows SET owner = 'user:eve' WHERE wid = 4", "a column for lists is not what"),
    ("UPDATE workflows SET offered_to = '*' WHERE wid = 3", "a column for lists is not what"),
    ("UPDATE workflows SET last_activity = 1 WHERE wid = 4", "a time is not what"),
    ("UPDATE workflows SET assets = 'ASSET-9' WHERE wid = 4", "the list of assets is not what"),
    ("DELETE FROM workflow_assets WHERE wid = 4", "the list of assets is not what"),
    ("DELETE FROM deadlines WHERE wid = 4", "a deadline is not what"),
    ("UPDATE deadlines SET fire_at = 1 WHERE wid = 4", "a deadline is not what"),
];

#[tokio::test]
async fn every_stray_is_found() {
    let dir = TempDir::new().unwrap();
    lively(&dir).await.close().await;
    let whole = std::fs::read(dir.path().join("store.db")).unwrap();
    for (number, (statement, says)) in MEDDLED.iter().enumerate() {
        let path = dir.path().join(format!("meddled-{number}.db"));
        std::fs::write(&path, &whole).unwrap();
        let freely = "PRAGMA foreign_keys = OFF; DROP TRIGGER events_are_never_changed;";
        meddle(&path, &format!("{freely} {statement}")).unwrap();
        let store = LocalStore::open_existing(config(&path)).await.unwrap();
        let found = store.strays().await.unwrap();
        store.close().await;
        assert!(found.iter().any(|line| line.contains(says)), "{statement}: {found:#?}");
    }
}

#[tokio::test]
async fn what_is_said_is_bounded() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    for n in 1..=60 {
        store.commit(start(n).build()).await.unwrap();
    }
    meddle(&store.config().path, "UPDATE workflows SET owner = 'user:eve'").unwrap();
    let found = store.strays().await.unwrap();
    let columns = found.iter().filter(|line| line.contains("a column for lists")).count();
    assert_eq!(columns, 20);
    let undefined = found.iter().filter(|line| line.contains("runs by is not stored")).count();
    assert_eq!(undefined, 20);
    store.close().await;
}
