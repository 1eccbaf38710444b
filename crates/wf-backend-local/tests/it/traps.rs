//! Traps that are known, each with its name.

use std::process::{Command, Stdio};

use tempfile::TempDir;
use tokio::task::JoinSet;
use wf_backend_local::LocalStore;
use wf_core::ports::{CommitError, ListQuery, ReadError, StorageBackendPort as _};
use wf_testkit::build::{self, CommitBuilder, at};

use crate::cast::{is_there, load, open, soon, start};
use crate::fixture::{config, foreign, meddle};

#[tokio::test]
async fn busy_foreign_writer_is_waited_for_then_unavailable() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let foreign = foreign(&store.config().path);
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();

    let commit = start(1).build();
    let error = store.commit(commit.clone()).await.unwrap_err();
    assert!(
        matches!(error, CommitError::Unavailable { after_ms: Some(1..), .. }),
        "surely not applied: {error:?}"
    );
    assert!(!is_there(&store, &commit).await);

    // A writer that is done within the time to wait is not noticed.
    let waiting = {
        let (store, commit) = (store.clone(), commit.clone());
        tokio::spawn(async move { store.commit(commit).await })
    };
    soon("the commit is under way", async || store.queue_depth() == 0).await;
    foreign.execute_batch("ROLLBACK").unwrap();
    waiting.await.unwrap().unwrap();
    assert!(is_there(&store, &commit).await);
    assert!(store.is_healthy());
}

#[tokio::test]
async fn replaced_or_deleted_file_is_noticed() {
    for replace in [true, false] {
        let dir = TempDir::new().unwrap();
        let store = open(&dir).await;
        let first = start(1).build();
        store.commit(first.clone()).await.unwrap();
        let path = store.config().path.clone();
        let aside = dir.path().join("aside");
        std::fs::rename(&path, &aside).unwrap();
        if replace {
            std::fs::copy(&aside, &path).unwrap();
        }
        let error = store.commit(start(2).build()).await.unwrap_err();
        assert!(matches!(error, CommitError::Unavailable { .. }), "{error:?}");
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("replaced or deleted"), "{source}");
        assert!(!store.is_healthy());
        let read = store.list(&ListQuery { limit: 1, ..ListQuery::default() }).await;
        assert!(matches!(read, Err(ReadError::Unavailable { .. })), "{read:?}");

        // Put back, it goes on by itself.
        std::fs::rename(&aside, &path).unwrap();
        soon("healthy again", async || store.is_healthy()).await;
        store.commit(start(2).build()).await.unwrap();
        assert!(is_there(&store, &first).await);
    }
}

/// A connection that is opened after that would write into another log than the one that holds the newest commits.
#[tokio::test]
async fn replaced_or_deleted_log_and_index_are_noticed() {
    for (suffix, replace) in [("-wal", true), ("-wal", false), ("-shm", true), ("-shm", false)] {
        let dir = TempDir::new().unwrap();
        let store = open(&dir).await;
        let first = start(1).build();
        store.commit(first.clone()).await.unwrap();
        let part = dir.path().join(format!("store.db{suffix}"));
        let aside = dir.path().join("aside");
        std::fs::rename(&part, &aside).unwrap();
        let copy = replace.then(|| std::fs::read(&aside).unwrap());
        if let Some(copy) = &copy {
            std::fs::write(&part, copy).unwrap();
        }
        // Not only the first: each failure costs the writer its connection.
        for n in 2..6 {
            let error = store.commit(start(n).build()).await.unwrap_err();
            assert!(matches!(error, CommitError::Unavailable { .. }), "{suffix}: {error:?}");
        }
        assert!(!store.is_healthy());
        let read = store.list(&ListQuery { limit: 1, ..ListQuery::default() }).await;
        assert!(matches!(read, Err(ReadError::Unavailable { .. })), "{suffix}: {read:?}");
        assert_eq!(std::fs::read(&part).ok(), copy, "{suffix}: left as it is");

        // Put back, it goes on by itself.
        std::fs::rename(&aside, &part).unwrap();
        soon("healthy again", async || store.is_healthy()).await;
        store.commit(start(2).build()).await.unwrap();
        assert!(is_there(&store, &first).await);
        assert_eq!(store.integrity_check().await.unwrap(), Vec::<String>::new());
    }
}

/// The newest commits are in a file without a name; an orderly end carries them over.
#[tokio::test]
async fn deleted_log_loses_nothing_when_the_store_is_closed() {
    for suffix in ["-wal", "-shm"] {
        let dir = TempDir::new().unwrap();
        let store = open(&dir).await;
        store.commit(start(1).build()).await.unwrap();
        std::fs::remove_file(dir.path().join(format!("store.db{suffix}"))).unwrap();
        store.commit(start(2).build()).await.unwrap_err();
        store.close().await;
        let store = open(&dir).await;
        assert!(is_there(&store, &start(1).build()).await, "{suffix}");
        assert!(!is_there(&store, &start(2).build()).await, "{suffix}");
        assert_eq!(store.integrity_check().await.unwrap(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn newer_schema_under_an_open_store_is_noticed() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let version = foreign(&store.config().path);
    let known: i64 = version.query_row("PRAGMA user_version", (), |row| row.get(0)).unwrap();
    drop(version);
    meddle(&store.config().path, "PRAGMA user_version = 1000").unwrap();
    let error = store.commit(start(1).build()).await.unwrap_err();
    assert!(matches!(error, CommitError::Unavailable { .. }), "{error:?}");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("version 1000 now") && source.contains("writes version"), "{source}");
    let CommitError::Unavailable { after_ms, .. } = error else { unreachable!("{error:?}") };
    assert_eq!(after_ms, Some(2_000), "another server may answer by then");
    let refusal = store.refusal().expect("why it takes no commits");
    assert!(refusal.contains("schema version 1000"), "{refusal}");
    assert!(!is_there(&store, &start(1).build()).await);
    // Put back, it goes on.
    meddle(&store.config().path, &format!("PRAGMA user_version = {known}")).unwrap();
    store.commit(start(1).build()).await.unwrap();
    assert_eq!(store.refusal(), None);
}

#[tokio::test]
async fn events_cannot_be_changed_or_deleted() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.commit(start(1).build()).await.unwrap();
    for sql in [
        "UPDATE events SET body = '{}'",
        "UPDATE events SET seq = seq + 1",
        "DELETE FROM events",
        "INSERT INTO events (wid, seq, body) SELECT wid, seq, '{}' FROM events",
        "INSERT INTO events (wid, seq, body) VALUES (4711, 1, '{}')",
    ] {
        // Whether or not the meddler looks after foreign keys, the trigger does.
        let outcome = meddle(&store.config().path, sql);
        assert!(outcome.is_err(), "{sql}");
    }
    assert!(is_there(&store, &start(1).build()).await);
}

#[tokio::test]
async fn sensitive_values_can_be_erased_beside_their_events() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let value = serde_json::json!("4711");
    let secret = wf_core::state_machine::SensitiveValue::new("value", "0".repeat(32), value);
    let note =
        wf_core::state_machine::EventBody::ProblemNoted { step_id: None, summary: "x".to_owned() };
    let commit = start(1).event_with(note, vec![secret]).build();
    store.commit(commit.clone()).await.unwrap();
    assert!(is_there(&store, &commit).await);
    meddle(&store.config().path, "DELETE FROM sensitive_values").unwrap();
    let events = store.events(&commit.next.tenant, &commit.next.id, 0, 10).await.unwrap();
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event.sensitive.is_empty()));
}

/// Neither the file nor its log keeps what was erased, although nothing was written anew.
#[tokio::test]
async fn an_erased_value_is_overwritten_in_the_files() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let secret = |value: &str| {
        let value = serde_json::json!(value);
        vec![wf_core::state_machine::SensitiveValue::new("value", "5a17".repeat(8), value)]
    };
    let note =
        || wf_core::state_machine::EventBody::ProblemNoted { step_id: None, summary: "x".into() };
    let commit = start(1).event_with(note(), secret("CANARY")).event_with(note(), secret("KEPT"));
    let commit = commit.build();
    store.commit(commit.clone()).await.unwrap();
    let holding = |marker: &str| {
        let files = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let bytes = files.filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap());
        bytes.filter(|b| b.windows(marker.len()).any(|part| part == marker.as_bytes())).count()
    };
    assert!(holding("CANARY") > 0, "it can be found");
    let was = secret("CANARY");
    let erased = wf_core::state_machine::Erased {
        at: commit.next.updated_at,
        by: commit.next.owner.id.clone(),
        reason: "asked for".to_owned(),
    };
    let becomes = was.iter().map(|value| value.erase(erased.clone())).collect();
    let (tenant, workflow_id) = (commit.next.tenant.clone(), commit.next.id.clone());
    let erasure = wf_core::ports::Erasure { tenant, workflow_id, seq: 2, was, becomes };
    assert!(store.erase(&erasure).await.unwrap());
    assert!(store.forget(false).await.unwrap(), "nobody reads");
    assert_eq!(holding("CANARY"), 0);
    assert!(holding("KEPT") > 0, "what was not erased stays");
    assert!(store.forget(true).await.unwrap(), "written anew");
    assert!(holding("KEPT") > 0);
    assert_eq!(store.integrity_check().await.unwrap(), Vec::<String>::new());
}

/// Whatever happens to the futures of their callers, commits are there whole or not at all, and the store goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_futures_are_all_or_none() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let mut acknowledged = Vec::new();
    let mut calls = JoinSet::new();
    for n in 0..400_u32 {
        let store = store.clone();
        calls.spawn(async move {
            let commit = store.commit(start(n).build());
            // From "before anything happened" to "long done".
            let patience = std::time::Duration::from_micros(u64::from(n % 40) * 100);
            match tokio::time::timeout(patience, commit).await {
                Ok(done) => done.map(|()| Some(n)),
                Err(_) => Ok(None),
            }
        });
    }
    while let Some(done) = calls.join_next().await {
        acknowledged.extend(done.unwrap().unwrap());
    }
    store.commit(start(10_000).build()).await.unwrap();
    let mut there = 0;
    for n in 0..400 {
        let is_there = is_there(&store, &start(n).build()).await;
        there += u32::from(is_there);
        assert!(is_there || !acknowledged.contains(&n), "{n} was acknowledged");
    }
    assert!(there > 0);
    assert!(store.is_healthy());
    assert_eq!(store.integrity_check().await.unwrap(), Vec::<String>::new());
}

const PATH: &str = "WF_LOCAL_TEST_PATH";
const EACH: u32 = 60;

/// Two processes write one file, and contend for one workflow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_one_file() {
    let dir = TempDir::new().unwrap();
    let mut config = config(dir.path().join("store.db"));
    config.busy_timeout_ms = 10_000;
    let store = LocalStore::open(config).await.unwrap().store;
    let shared = shared_start();
    store.commit(shared.clone()).await.unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "traps::the_other_process", "--ignored", "--nocapture"])
        .env(PATH, &store.config().path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let won = write_both(&store, 0).await;
    let other_done =
        tokio::task::spawn_blocking(move || other.wait().unwrap().success()).await.unwrap();
    assert!(other_done);
    for n in 0..2 * EACH {
        assert!(is_there(&store, &start(n).build()).await, "{n}");
    }
    // Each revision of the contended workflow was taken by one of the two.
    let seen = load(&store, &shared).await.workflow.unwrap();
    assert_eq!(seen.revision, u64::from(2 * EACH) + 1);
    assert!(won <= EACH);
    let events = store.events(&seen.tenant, &seen.id, 0, 1_000).await.unwrap();
    assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq));
    assert_eq!(events.len(), usize::try_from(2 * EACH + 1).unwrap());
    assert_eq!(store.integrity_check().await.unwrap(), Vec::<String>::new());
}

fn shared_start() -> wf_core::ports::Commit {
    CommitBuilder::start(
        &build::tenant("plant"),
        &build::workflow_id("contended"),
        &build::user("ann"),
        at(1),
    )
    .build()
}

/// Starts workflows of its own and adds as many notes to the contended one. Answers how many notes went in at once.
async fn write_both(store: &LocalStore, from: u32) -> u32 {
    let mut won = 0;
    for n in from..from + EACH {
        store.commit(start(n).build()).await.unwrap();
        for attempt in 0.. {
            let current = load(store, &shared_start()).await.workflow.unwrap();
            let key = format!("{n}");
            let next = CommitBuilder::next(&current, at(2)).key(&key).note(&key).build();
            match store.commit(next).await {
                Ok(()) => {
                    won += u32::from(attempt == 0);
                    break;
                }
                Err(CommitError::Conflict(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }
    won
}

#[test]
#[ignore = "the other process of two_processes_on_one_file"]
fn the_other_process() {
    let path = std::env::var(PATH).expect("only as a part of another test");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut config = config(path);
        config.busy_timeout_ms = 10_000;
        let store = LocalStore::open_existing(config).await.unwrap();
        write_both(&store, EACH).await;
        store.close().await;
    });
}

/// A reader that never ends its transaction holds the log back; when it is gone the log is cut.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_is_cut_when_a_long_reader_is_gone() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.commit(start(0).build()).await.unwrap();
    let reader = foreign(&store.config().path);
    reader.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
    for n in 1..50 {
        store.commit(start(n).note(&"x".repeat(20_000)).build()).await.unwrap();
    }
    let wal = store.config().wal_path();
    let pinned = std::fs::metadata(&wal).unwrap().len();
    assert!(pinned > 1_000_000, "{pinned}");
    soon("the size is known", async || store.wal_bytes() > 0).await;
    reader.close().unwrap();
    soon("the log is cut", async || std::fs::metadata(&wal).unwrap().len() == 0).await;
    soon("the size is known", async || store.wal_bytes() == 0).await;
}
