//! What a server does besides answering: deliver messages, sweep old rows, keep the metrics small, reload procedures.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use wf_core::engine::Engine;
use wf_core::ports::ClockPort as _;

use super::signals::stopped;
use crate::ambient::SystemClock;
use crate::compose;
use crate::procedures;

/// How long messages that nobody announced may wait: those of other processes, and retries that fell due.
const POLL: Duration = Duration::from_secs(1);
/// How long commits are collected before one delivery round serves them.
const GATHER: Duration = Duration::from_millis(50);
/// First and longest pause after a round that failed.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// How long the last delivery round may take.
const LAST_ROUND: Duration = Duration::from_secs(2);
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
    pub(super) commits: Arc<Notify>,
    pub(super) retention: Duration,
    pub(super) registry: PrometheusHandle,
    pub(super) stop: watch::Receiver<bool>,
}

/// The background work while it runs.
#[derive(Debug)]
pub(super) struct Work(JoinSet<()>);

/// Starts it.
pub(super) fn start(parts: Parts) -> Work {
    let mut tasks = JoinSet::new();
    tasks.spawn(deliver(Arc::clone(&parts.engine), parts.commits, parts.stop.clone()));
    tasks.spawn(sweep(parts.engine, parts.retention, parts.stop.clone()));
    tasks.spawn(upkeep(parts.registry, parts.stop));
    Work(tasks)
}

impl Work {
    /// Waits until every part saw that the server ends.
    pub(super) async fn finish(mut self) {
        while let Some(ended) = self.0.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "background work ended by itself");
            }
        }
    }
}

async fn deliver(engine: Arc<Engine>, commits: Arc<Notify>, stop: watch::Receiver<bool>) {
    let mut backoff = BACKOFF.0;
    let end = stopped(stop);
    tokio::pin!(end);
    loop {
        let failed = match engine.dispatch_once().await {
            Ok(0) => None,
            Ok(settled) => {
                tracing::debug!(settled, "messages settled");
                Some(Duration::ZERO)
            }
            Err(error) => {
                let wait = backoff;
                backoff = (backoff * 2).min(BACKOFF.1);
                tracing::warn!(%error, ?wait, "messages cannot be delivered now");
                metrics::counter!("checkpoint_dispatch_failures_total").increment(1);
                Some(wait)
            }
        };
        let pause = async {
            match failed {
                Some(wait) => sleep(wait).await,
                None => {
                    backoff = BACKOFF.0;
                    let _ = timeout(POLL, commits.notified()).await;
                    sleep(GATHER).await;
                }
            }
        };
        tokio::select! {
            () = &mut end => break,
            () = pause => {}
        }
    }
    // What stays pending is in the outbox and is delivered by the next start.
    match timeout(LAST_ROUND, engine.dispatch_once()).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the last messages stay in the outbox"),
        Err(_) => tracing::warn!("the last messages stay in the outbox: no time left"),
    }
}

async fn sweep(engine: Arc<Engine>, retention: Duration, stop: watch::Receiver<bool>) {
    let retention_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
    let end = stopped(stop);
    tokio::pin!(end);
    loop {
        let swept = engine.store().sweep(SystemClock.now(), retention_ms, SWEEP_ROWS).await;
        let wait = match swept {
            Ok(swept) => {
                let most = swept.expiries_set.max(swept.ledger_deleted).max(swept.outbox_deleted);
                if most > 0 {
                    tracing::debug!(?swept, "old rows swept");
                }
                if most >= u64::from(SWEEP_ROWS) { GATHER } else { SWEEP_EVERY }
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

/// Reads the procedures and the certificate again.
#[derive(Debug)]
pub(super) struct Reload {
    pub(super) engine: Arc<Engine>,
    pub(super) dir: Option<PathBuf>,
    /// Told to read the certificate again.
    pub(super) certificate: Arc<Notify>,
}

impl Reload {
    /// Reloads; on any problem the old set stays, and the log says why.
    pub(super) async fn now(&self) {
        self.certificate.notify_one();
        let dir = self.dir.clone();
        let read = tokio::task::spawn_blocking(move || procedures::load(dir.as_deref())).await;
        let loaded = match read {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(failure)) => return kept(&failure.text()),
            Err(error) => return kept(&error.to_string()),
        };
        loaded.warn();
        match self.engine.reload(loaded.policies()).await {
            Ok(()) => tracing::info!(procedures = loaded.names(), "procedures reloaded"),
            Err(error) => kept(&compose::cannot_serve(error, &loaded).text()),
        }
    }
}

fn kept(problem: &str) {
    for line in problem.lines() {
        tracing::error!(problem = line.trim_start(), "procedures not reloaded, the old ones stay");
    }
}
