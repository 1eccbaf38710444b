//! Backups of a store in use.

use tempfile::TempDir;
use wf_backend_local::{BackupError, LocalStore};
use wf_core::ports::{OutboxQuery, StorageBackendPort as _};

use crate::cast::{is_there, open, soon, start};
use crate::fixture::config;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_under_load_has_everything_acknowledged_before() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            let mut n = 0;
            loop {
                store.commit(start(n).build()).await.unwrap();
                n += 1;
            }
        })
    };
    soon("some are there", async || is_there(&store, &start(30).build()).await).await;
    let copy = dir.path().join("copy.db");
    let report = store.backup(&copy).await.unwrap();
    soon("commits go on", async || is_there(&store, &start(60).build()).await).await;
    writer.abort();
    assert_eq!(report.path, copy);
    assert_eq!(report.bytes, std::fs::metadata(&copy).unwrap().len());

    let restored = LocalStore::open_existing(config(&copy)).await.unwrap();
    assert_eq!(restored.integrity_check().await.unwrap(), Vec::<String>::new());
    for n in 0..=30 {
        assert!(is_there(&restored, &start(n).build()).await, "{n}");
    }
    // One instant: as many messages as workflows, and the same of both.
    let messages = restored
        .list_outbox(&OutboxQuery { limit: 100_000, ..OutboxQuery::default() })
        .await
        .unwrap();
    let mut n = 0;
    while is_there(&restored, &start(n).build()).await {
        n += 1;
    }
    assert_eq!(messages.items.len(), usize::try_from(n).unwrap());
    assert_eq!(restored.identity().await.unwrap(), store.identity().await.unwrap());
}

#[tokio::test]
async fn backup_never_overwrites() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let there = dir.path().join("letter.txt");
    std::fs::write(&there, "dear").unwrap();
    let error = store.backup(&there).await.unwrap_err();
    assert!(matches!(error, BackupError::Exists { .. }), "{error:?}");
    assert!(error.to_string().contains("another name"), "{error}");
    assert_eq!(std::fs::read(&there).unwrap(), b"dear");
    store.backup(&store.config().path).await.unwrap_err();
    store.commit(start(1).build()).await.unwrap();
}

#[tokio::test]
async fn failed_backup_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let error = store.backup(&dir.path().join("nowhere/copy.db")).await.unwrap_err();
    assert!(matches!(error, BackupError::Target { .. }), "{error:?}");
    let names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| name.to_str().unwrap().starts_with("store.db")), "{names:?}");
}
