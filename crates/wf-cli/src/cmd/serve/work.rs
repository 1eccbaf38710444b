//! What a server does besides answering: deliver messages, fire deadlines, reconcile executions, sweep old rows, keep the metrics small.

use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use wf_core::engine::Engine;
use wf_core::ports::ClockPort as _;

use super::signals::stopped;
use super::{backlog, deadlines, dispatch, standing};
use crate::ambient::SystemClock;
use crate::compose::aws::TableReconciler;
use crate::orchestrator::LocalOrchestrator;

/// How long work that a bug ended rests.
const AFTER_PANIC: Duration = Duration::from_secs(1);
/// How long background work may go on once the server ends. What it leases is free again when the lease is over.
const LAST_WORK: Duration = Duration::from_secs(5);
/// The pause between two sweeps when there is more to sweep.
const SWEEP_PAUSE: Duration = Duration::from_millis(50);
/// How often old rows are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Rows of each kind that one sweep touches, so that commits get their turn in between.
const SWEEP_ROWS: u32 = 500;
/// How often the registry drops what it no longer needs.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// What the background work needs.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) engine: Arc<Engine>,
    pub(super) orchestrator: LocalOrchestrator,
    pub(super) reconciler: Option<TableReconciler>,
    pub(super) retention: Duration,
    pub(super) registry: PrometheusHandle,
    pub(super) standing: standing::Parts,
    pub(super) stop: watch::Receiver<bool>,
}

/// The background work while it runs.
#[derive(Debug)]
pub(super) struct Work(JoinSet<()>);

/// Starts it.
pub(super) fn start(parts: Parts) -> Work {
    let mut tasks = JoinSet::new();
    let commits = parts.orchestrator.commits();
    let (engine, stop) = (Arc::clone(&parts.engine), parts.stop.clone());
    let deliver =
        move || dispatch::deliver(Arc::clone(&engine), Arc::clone(&commits), stop.clone());
    tasks.spawn(kept_up("dispatcher", deliver));
    let (engine, stop) = (Arc::clone(&parts.engine), parts.stop.clone());
    let clock =
        move || deadlines::fire(Arc::clone(&engine), parts.orchestrator.clone(), stop.clone());
    tasks.spawn(kept_up("clock", clock));
    if let Some(reconciler) = parts.reconciler {
        let (reconciler, stop) = (Arc::new(reconciler), parts.stop.clone());
        let reconcile = move || {
            let (reconciler, stop) = (Arc::clone(&reconciler), stop.clone());
            async move { reconciler.run(stop).await }
        };
        tasks.spawn(kept_up("reconciler", reconcile));
    }
    let (engine, stop) = (Arc::clone(&parts.engine), parts.stop.clone());
    let backlog = move || backlog::watch(Arc::clone(&engine), stop.clone());
    tasks.spawn(kept_up("backlog", backlog));
    let (standing, stop) = (parts.standing, parts.stop.clone());
    let standing = move || standing::watch(standing.clone(), stop.clone());
    tasks.spawn(kept_up("standing", standing));
    let (engine, stop) = (parts.engine, parts.stop.clone());
    let sweep = move || sweep(Arc::clone(&engine), parts.retention, stop.clone());
    tasks.spawn(kept_up("sweep", sweep));
    tasks.spawn(upkeep(parts.registry, parts.stop));
    Work(tasks)
}

impl Work {
    /// Waits until every part saw that the server ends, but not for a store that does not answer.
    pub(super) async fn finish(mut self) {
        let all = async {
            while let Some(ended) = self.0.join_next().await {
                if let Err(error) = ended {
                    tracing::error!(%error, "background work ended by itself");
                }
            }
        };
        if timeout(LAST_WORK, all).await.is_err() {
            tracing::warn!("background work is left to the next start: no time left");
        }
    }
}

/// Runs background work, and begins it again when a bug ends it: what it does is in the store, so nothing is lost.
async fn kept_up<W>(what: &'static str, mut begin: impl FnMut() -> W)
where
    W: Future<Output = ()> + Send + 'static,
{
    while let Err(error) = tokio::spawn(begin()).await {
        if !error.is_panic() {
            return;
        }
        metrics::counter!("checkpoint_background_panics_total", "work" => what).increment(1);
        tracing::error!(%error, what, "background work ended by a bug, and begins again");
        sleep(AFTER_PANIC).await;
    }
}

async fn sweep(engine: Arc<Engine>, retention: Duration, stop: watch::Receiver<bool>) {
    let retention_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
    let end = stopped(stop);
    tokio::pin!(end);
    loop {
        // Over a slow wire it takes long, and loses nothing by being dropped: the next server goes on.
        let swept = tokio::select! {
            () = &mut end => break,
            swept = engine.store().sweep(SystemClock.now(), retention_ms, SWEEP_ROWS) => swept,
        };
        let wait = match swept {
            Ok(swept) => {
                let most = swept.expiries_set.max(swept.ledger_deleted).max(swept.outbox_deleted);
                if most > 0 {
                    tracing::debug!(?swept, "old rows swept");
                }
                if most >= u64::from(SWEEP_ROWS) { SWEEP_PAUSE } else { SWEEP_EVERY }
            }
            Err(error) => {
                tracing::warn!(%error, "old rows cannot be swept now");
                SWEEP_EVERY
            }
        };
        tokio::select! {
            () = &mut end => break,
            () = sleep(wait) => {}
        }
    }
}

async fn upkeep(registry: PrometheusHandle, stop: watch::Receiver<bool>) {
    let end = stopped(stop);
    tokio::pin!(end);
    loop {
        registry.run_upkeep();
        tokio::select! {
            () = &mut end => break,
            () = sleep(UPKEEP_EVERY) => {}
        }
    }
}
