//! A file with damaged pages: noticed when it is read, never repaired, never made anew.

use tempfile::TempDir;
use wf_backend_local::LocalStore;
use wf_core::ports::{CommitError, ListQuery, OpenError, ReadError, StorageBackendPort as _};

use crate::cast::{open, start};
use crate::fixture::{config, meddle};

const PAGE: usize = 4096;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_pages_are_noticed_and_left_alone() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    for n in 0..20 {
        store.commit(start(n).note(&"x".repeat(3_000)).build()).await.unwrap();
    }
    store.close().await;
    let whole = std::fs::read(dir.path().join("store.db")).unwrap();
    let (mut refused, mut noticed, mut corrupt) = (0, 0, 0);
    for page in 0..whole.len() / PAGE {
        let path = dir.path().join(format!("damaged-{page}.db"));
        let mut bytes = whole.clone();
        // The head of the page: its kind and its cells.
        bytes.get_mut(page * PAGE..page * PAGE + 12).unwrap().fill(0xa5);
        std::fs::write(&path, &bytes).unwrap();
        match LocalStore::open_existing(config(&path)).await {
            Err(OpenError::Corrupt { .. } | OpenError::Refused { .. }) => refused += 1,
            Err(error) => panic!("page {page}: {error:?}"),
            Ok(store) => {
                let all = ListQuery { limit: 1_000, ..ListQuery::default() };
                let read = store.list(&all).await;
                let commit = store.commit(start(1_000).build()).await;
                corrupt += u32::from(matches!(read, Err(ReadError::Corrupt { .. })));
                corrupt += u32::from(matches!(commit, Err(CommitError::Corrupt { .. })));
                if let Err(error @ CommitError::Unavailable { .. }) = commit {
                    panic!("page {page} is damaged, not unavailable: {error:?}");
                }
                let found = store.integrity_check().await.unwrap_or_else(|e| vec![e.to_string()]);
                noticed += u32::from(!found.is_empty());
                store.close().await;
            }
        }
        assert!(path.exists());
    }
    let pages = u32::try_from(whole.len() / PAGE).unwrap();
    assert_eq!(refused + noticed, pages, "every damaged page is found by one or the other");
    assert!(refused > 0 && corrupt > 0, "{refused} {corrupt}");
}

#[tokio::test]
async fn row_that_cannot_be_read_is_corrupt_for_its_own_call_only() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let [one, two] = [start(1).build(), start(2).build()];
    store.commit(one.clone()).await.unwrap();
    meddle(&store.config().path, "UPDATE ledger SET fingerprint = 'v1:zz'").await.unwrap();
    let (again, other) = tokio::join!(store.commit(one), store.commit(two));
    assert!(matches!(again, Err(CommitError::Corrupt { .. })), "{again:?}");
    other.unwrap();
    assert!(store.is_healthy());
}
