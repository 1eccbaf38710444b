//! A disk that is really full: a file system of a few megabytes.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wf_backend_local::LocalStore;
use wf_core::ports::{CommitError, StorageBackendPort as _};

use crate::cast::{is_there, soon, start};
use crate::fixture::config;

/// A small file system in memory, gone with the value.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(at: &'a Path, size: &str) -> Self {
        let options = format!("size={size}");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(at)
            .status()
            .unwrap();
        assert!(done.success(), "a tmpfs cannot be mounted");
        Self(at)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the right to mount a tmpfs"]
async fn full_disk_loses_nothing_and_recovers_within_five_seconds() {
    let dir = TempDir::new().unwrap();
    let _disk = SmallDisk::mount(dir.path(), "12m");
    let ballast = dir.path().join("ballast");
    std::fs::write(&ballast, vec![0_u8; 7 << 20]).unwrap();
    let store = LocalStore::open(config(dir.path().join("store.db"))).await.unwrap().store;
    let big = |n| start(n).note(&"x".repeat(50_000)).build();
    let mut acknowledged = Vec::new();
    let mut failures = 0;
    for n in 0..1_000 {
        match store.commit(big(n)).await {
            Ok(()) => acknowledged.push(n),
            Err(CommitError::Unavailable { .. } | CommitError::Ambiguous { .. }) => failures += 1,
            Err(error) => panic!("{error:?}"),
        }
        if failures == 5 {
            break;
        }
    }
    assert_eq!(failures, 5, "the disk never got full");
    assert!(!store.is_healthy());
    for n in &acknowledged {
        assert!(is_there(&store, &big(*n)).await, "{n}: reads go on");
    }

    std::fs::remove_file(&ballast).unwrap();
    let freed = Instant::now();
    soon("commits go on", async || store.commit(big(5_000)).await.is_ok()).await;
    assert!(freed.elapsed() < Duration::from_secs(5));
    for n in &acknowledged {
        assert!(is_there(&store, &big(*n)).await, "{n}");
    }
    assert_eq!(store.integrity_check().await.unwrap(), Vec::<String>::new());
}
