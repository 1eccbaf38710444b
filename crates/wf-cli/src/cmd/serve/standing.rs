//! Tells the metrics how the server stands: whether its store can be used, how much room and memory there is, and how
//! long workflows have been blocked. Neighbours: `probes`, which answers `/readyz` by the same look, and `backlog`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use wf_core::engine::Engine;
use wf_core::models::{Phase, Timestamp, Workflow};
use wf_core::ports::{ClockPort as _, ListQuery};
use wf_mcp_http::{Probes as _, Tls};

use super::probes::Process;
use super::signals::stopped;
use crate::ambient::SystemClock;
use crate::config::Config;
use crate::config::backend::BackendConfig;

/// How often it is looked at. A scrape reads what was seen last, so it costs nothing.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// Blocked workflows are counted every so many looks: in a table each that is found is paid for.
const LOOKS_PER_COUNT: u32 = 4;
/// Up to where they are counted: beyond this, it is enough to know that.
const COUNT_MAX: u32 = 100;

/// What is looked at.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    engine: Arc<Engine>,
    process: Arc<Process>,
    /// The database, where it is a file.
    database: Option<PathBuf>,
    /// The certificate, where there is one.
    tls: Option<Tls>,
}

/// Looks until the server ends.
pub(super) async fn watch(parts: Parts, stop: watch::Receiver<bool>) {
    let end = stopped(stop);
    tokio::pin!(end);
    for look in 0_u32.. {
        let looking = async {
            parts.look().await;
            if look.is_multiple_of(LOOKS_PER_COUNT) {
                parts.count_blocked().await;
            }
            sleep(LOOK_EVERY).await;
        };
        tokio::select! {
            () = &mut end => break,
            () = looking => {}
        }
    }
}

impl Parts {
    /// Of a server with this configuration.
    pub(super) fn new(
        engine: Arc<Engine>,
        process: Arc<Process>,
        tls: Option<Tls>,
        config: &Config,
    ) -> Self {
        let database = match &config.backend {
            BackendConfig::Local { path } => Some(path.clone()),
            BackendConfig::Aws(_) => None,
        };
        Self { engine, process, database, tls }
    }

    async fn look(&self) {
        let ready = self.process.ready().await.is_ok();
        metrics::gauge!("checkpoint_store_ready").set(if ready { 1.0 } else { 0.0 });
        if let Some(at) = self.tls.as_ref().and_then(Tls::ends_at) {
            metrics::gauge!("checkpoint_certificate_expiry_timestamp_seconds")
                .set(number(at.max(0).unsigned_abs()));
        }
        let database = self.database.clone();
        // Off the executor: a file system may take its time.
        let looked = spawn_blocking(move || {
            if let Some(database) = &database {
                tell_room(database);
            }
            if let Some(bytes) = resident_bytes() {
                metrics::gauge!("checkpoint_memory_bytes").set(number(bytes));
            }
        });
        if let Err(error) = looked.await {
            tracing::debug!(%error, "the room on the disk could not be looked at");
        }
    }

    async fn count_blocked(&self) {
        let query =
            ListQuery { phase: Some(Phase::Blocked), limit: COUNT_MAX, ..ListQuery::default() };
        match self.engine.store().list(&query).await {
            Ok(page) => {
                let oldest = longest_blocked(&page.items, SystemClock.now());
                let count = u32::try_from(page.items.len()).unwrap_or(u32::MAX);
                metrics::gauge!("checkpoint_workflows_blocked").set(f64::from(count));
                metrics::gauge!("checkpoint_workflows_oldest_blocked_seconds")
                    .set(oldest.as_secs_f64());
            }
            // What was counted last stays; that the store does not answer is a metric of its own.
            Err(error) => tracing::debug!(%error, "blocked workflows cannot be counted now"),
        }
    }
}

/// How long the longest blocked of them has been so; zero of none.
fn longest_blocked(workflows: &[Workflow], now: Timestamp) -> Duration {
    let since = workflows.iter().filter_map(|workflow| workflow.blocks.iter().map(|b| b.at).min());
    let ms = since.min().map_or(0, |at| now.since_ms(at)).max(0);
    Duration::from_millis(ms.unsigned_abs())
}

fn tell_room(database: &Path) {
    let here = Path::new(".");
    let folder = database.parent().filter(|folder| *folder != Path::new("")).unwrap_or(here);
    if let Ok(stat) = rustix::fs::statvfs(folder) {
        let of = |blocks: u64| number(blocks.saturating_mul(stat.f_frsize));
        metrics::gauge!("checkpoint_disk_free_bytes").set(of(stat.f_bavail));
        metrics::gauge!("checkpoint_disk_bytes").set(of(stat.f_blocks));
    }
    if let Ok(found) = std::fs::metadata(database) {
        metrics::gauge!("checkpoint_database_bytes").set(number(found.len()));
    }
}

/// Resident memory: the second number of `/proc/self/statm`, in pages (proc(5)). Nothing where there is no such file.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(u64::try_from(rustix::param::page_size()).ok()?)
}

/// Exact up to 8 PiB; nobody compares single bytes beyond.
const fn number(of: u64) -> f64 {
    of as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_and_no_workflow_is_not_blocked() {
        assert!(resident_bytes().is_none_or(|bytes| bytes > 100_000));
        assert_eq!(longest_blocked(&[], SystemClock.now()), Duration::ZERO);
    }
}
