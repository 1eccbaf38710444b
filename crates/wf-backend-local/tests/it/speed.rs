//! Measures, prints, and fails only on what no machine excuses. Run alone, best in release:
//! `cargo test --release -p wf-backend-local --test it speed -- --ignored --nocapture`.
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::task::JoinSet;
use wf_backend_local::LocalStore;
use wf_core::ports::{Commit, StorageBackendPort as _};
use wf_testkit::build::{CommitBuilder, at};

use crate::cast::{load, start};
use crate::fixture::config;

/// One caller: a load and a commit per step, as a call of a tool does. Answers the time of each.
async fn steps(store: &LocalStore, first: Commit, count: u32) -> Vec<Duration> {
    let mut times = Vec::new();
    for n in 0..count {
        let begun = Instant::now();
        let current = load(store, &first).await.workflow.unwrap();
        let next = CommitBuilder::next(&current, at(70_000))
            .assert_assets()
            .record(&format!("step-{}", n % 40), "4.20");
        store.commit(next.build()).await.unwrap();
        times.push(begun.elapsed());
    }
    times
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times[(times.len() - 1) * percent / 100]
}

async fn one_caller(store: &LocalStore, n: u32) -> Duration {
    let first = start(n).build();
    store.commit(first.clone()).await.unwrap();
    percentile(&mut steps(store, first, 300).await, 50)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn callers_and_growth() {
    let dir = TempDir::new_in(".").unwrap();
    let mut config = config(dir.path().join("store.db"));
    config.checkpoint_every_ms = 1_000;
    config.busy_timeout_ms = 5_000;
    let store = LocalStore::open(config).await.unwrap().store;
    let small = one_caller(&store, 0).await;
    println!("one caller, empty store: p50 {small:?}");

    let begun = Instant::now();
    let mut callers = JoinSet::new();
    for n in 1..=64 {
        let store = store.clone();
        callers.spawn(async move {
            let first = start(n).build();
            store.commit(first.clone()).await.unwrap();
            steps(&store, first, 60).await
        });
    }
    let mut times: Vec<Duration> = callers.join_all().await.into_iter().flatten().collect();
    let rate = f64::from(u32::try_from(times.len()).unwrap()) / begun.elapsed().as_secs_f64();
    let (half, most) = (percentile(&mut times, 50), percentile(&mut times, 99));
    println!("64 callers: {rate:.0} steps/s, p50 {half:?}, p99 {most:?}");

    let begun = Instant::now();
    let total: u32 = std::env::var("WF_LOCAL_WORKFLOWS").map_or(20_000, |n| n.parse().unwrap());
    let mut callers = JoinSet::new();
    for part in 0..64 {
        let store = store.clone();
        callers.spawn(async move {
            for n in (1_000..1_000 + total).filter(|n| n % 64 == part) {
                let first = start(n).build();
                store.commit(first.clone()).await.unwrap();
                let last = CommitBuilder::next(&first.next, at(90_000)).release_assets().complete();
                store.commit(last.build()).await.unwrap();
            }
        });
    }
    callers.join_all().await;
    println!("{total} workflows in {:?}", begun.elapsed());
    let large = one_caller(&store, 999_999).await;
    println!("one caller, {total} finished workflows: p50 {large:?}");
    assert!(large < small * 3, "{small:?} became {large:?}");
    println!("log: {} bytes", store.wal_bytes());
}
