//! Tells the metrics what the outbox has not delivered. Neighbour: `dispatch`, which delivers it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use wf_core::engine::Engine;
use wf_core::ports::{Backlog, ClockPort as _};

use super::signals::stopped;
use crate::ambient::SystemClock;

/// How often it is counted. A scrape reads what was counted last, so it costs nothing.
const COUNT_EVERY: Duration = Duration::from_secs(15);
/// Up to where it is counted, so that an outbox of millions costs no more: beyond this, it is enough to know that.
const COUNT_MAX: u32 = 10_000;

/// Counts until the server ends.
pub(super) async fn watch(engine: Arc<Engine>, stop: watch::Receiver<bool>) {
    let end = stopped(stop);
    tokio::pin!(end);
    loop {
        let counted = tokio::select! {
            () = &mut end => break,
            counted = engine.store().outbox_backlog(COUNT_MAX) => counted,
        };
        match counted {
            Ok(backlog) => tell(&backlog),
            // What was counted last stays; the dispatcher says loudly enough that the store does not answer.
            Err(error) => tracing::debug!(%error, "the outbox cannot be counted now"),
        }
        tokio::select! {
            () = &mut end => break,
            () = sleep(COUNT_EVERY) => {}
        }
    }
}

fn tell(backlog: &Backlog) {
    let count = |of: u64| f64::from(u32::try_from(of).unwrap_or(u32::MAX));
    let now = SystemClock.now();
    let age_ms = backlog.oldest_pending.map_or(0, |at| now.since_ms(at)).max(0);
    let age = Duration::from_millis(age_ms.unsigned_abs());
    metrics::gauge!("checkpoint_notifications_pending").set(count(backlog.pending));
    metrics::gauge!("checkpoint_notifications_dead").set(count(backlog.dead));
    metrics::gauge!("checkpoint_notifications_oldest_pending_seconds").set(age.as_secs_f64());
}
