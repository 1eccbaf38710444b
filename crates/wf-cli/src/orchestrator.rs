//! The orchestrator's side in this process: acknowledges a start inside its own commit unless executions outside the process
//! do, wakes the dispatcher and the reconciler after each commit, and knows when whoever fires deadlines must wake.
//!
//! It remembers nothing that must not be forgotten: that is in the store. `cmd::serve::deadlines` fires.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use wf_core::models::Workflow;
use wf_core::ports::{ClockPort as _, OrchestratorPort};

use crate::ambient::SystemClock;

/// How long after a commit callers count as committing.
const COMMITTING: Duration = Duration::from_secs(1);

/// An orchestrator that lives in this process. Clones are handles on the same one.
#[derive(Debug, Clone)]
pub(crate) struct LocalOrchestrator {
    /// An execution outside the process acknowledges each start.
    executions: bool,
    committed: Arc<Notify>,
    asked: Arc<Notify>,
    earlier: Arc<Notify>,
    /// Until when it sleeps, in milliseconds since 1970.
    until: Arc<AtomicI64>,
    /// When somebody's call was committed last.
    called: Arc<Mutex<Option<Instant>>>,
}

impl Default for LocalOrchestrator {
    fn default() -> Self {
        let until = Arc::new(AtomicI64::new(i64::MAX));
        Self {
            executions: false,
            committed: Arc::default(),
            asked: Arc::default(),
            earlier: Arc::default(),
            until,
            called: Arc::default(),
        }
    }
}

#[async_trait]
impl OrchestratorPort for LocalOrchestrator {
    fn acknowledges_at_start(&self) -> bool {
        !self.executions
    }

    async fn committed(&self, workflow: &Workflow) {
        // What the clock or a link does is nobody's activity.
        if workflow.last_activity == workflow.updated_at {
            *self.called.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        self.committed.notify_one();
        self.asked.notify_one();
        let next = workflow.deadlines.values().map(|deadline| deadline.fire_at.as_ms()).min();
        if next.is_some_and(|at| at < self.until.load(Ordering::Acquire)) {
            self.earlier.notify_one();
        }
    }
}

impl LocalOrchestrator {
    /// With executions outside the process, or without.
    pub(crate) fn new(executions: bool) -> Self {
        Self { executions, ..Self::default() }
    }

    /// Woken after each commit of this process, for the reconciler.
    pub(crate) fn asks(&self) -> Arc<Notify> {
        Arc::clone(&self.asked)
    }

    /// Woken after each commit of this process. A hint: what it misses, a poll finds.
    pub(crate) fn commits(&self) -> Arc<Notify> {
        Arc::clone(&self.committed)
    }

    /// Whether a call was committed a moment ago.
    pub(crate) fn is_beside_commits(&self) -> bool {
        let called = *self.called.lock().unwrap_or_else(PoisonError::into_inner);
        called.is_some_and(|at| at.elapsed() < COMMITTING)
    }

    /// From now on every deadline that is set wakes the next [`sleep`](Self::sleep).
    pub(crate) fn awake(&self) {
        self.until.store(i64::MAX, Ordering::Release);
    }

    /// Sleeps so long, or until a deadline is set that is due before that.
    pub(crate) async fn sleep(&self, wait: Duration) {
        let ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        self.until.store(SystemClock.now().plus_ms(ms).as_ms(), Ordering::Release);
        let _ = timeout(wait, self.earlier.notified()).await;
    }
}
