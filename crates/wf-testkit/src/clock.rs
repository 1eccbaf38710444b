//! A clock that stands still until a test moves it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use wf_core::models::Timestamp;
use wf_core::ports::ClockPort;

use crate::build::at;

/// Wall-clock time that is set, and monotonic time that is advanced. Clones are the same clock.
#[derive(Clone)]
pub struct ManualClock {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    now: Timestamp,
    monotonic_ms: u64,
    sleepers: Vec<Sleeper>,
    next_sleeper: u64,
    watchers: Vec<Waker>,
}

struct Sleeper {
    number: u64,
    wakes_at_ms: u64,
    waker: Option<Waker>,
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("ManualClock")
            .field("now", &inner.now)
            .field("monotonic_ms", &inner.monotonic_ms)
            .field("sleepers", &inner.sleepers.len())
            .finish()
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new(at(0))
    }
}

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        let inner = Inner {
            now,
            monotonic_ms: 0,
            sleepers: Vec::new(),
            next_sleeper: 0,
            watchers: Vec::new(),
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `ms` milliseconds pass: wall clock and monotonic time. Sleeps that are over by then become ready.
    pub fn advance(&self, ms: u64) {
        let wakers: Vec<Waker> = {
            let mut inner = self.lock();
            let wall = i64::try_from(ms).unwrap_or(i64::MAX);
            inner.now = inner.now.plus_ms(wall);
            inner.monotonic_ms = inner.monotonic_ms.saturating_add(ms);
            let reached = inner.monotonic_ms;
            let over = inner.sleepers.iter_mut().filter(|s| s.wakes_at_ms <= reached);
            over.filter_map(|sleeper| sleeper.waker.take()).collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Sets the wall clock, forward or back, as an administrator does. No time passes: nobody wakes.
    pub fn set(&self, now: Timestamp) {
        self.lock().now = now;
    }

    /// How many sleeps are not over yet.
    #[must_use]
    pub fn sleeping(&self) -> usize {
        let inner = self.lock();
        inner.sleepers.iter().filter(|s| s.wakes_at_ms > inner.monotonic_ms).count()
    }

    /// Milliseconds until the first sleep is over; `None` when nobody sleeps.
    #[must_use]
    pub fn until_next_wake_ms(&self) -> Option<u64> {
        let inner = self.lock();
        let ahead = inner.sleepers.iter().map(|s| s.wakes_at_ms.saturating_sub(inner.monotonic_ms));
        ahead.filter(|ms| *ms > 0).min()
    }

    /// Ready when at least `count` tasks sleep at once: a test waits for that before it advances the clock.
    pub async fn until_sleeping(&self, count: usize) {
        std::future::poll_fn(|context| {
            let mut inner = self.lock();
            let reached = inner.monotonic_ms;
            let polled = |s: &&Sleeper| s.waker.is_some() && s.wakes_at_ms > reached;
            if inner.sleepers.iter().filter(polled).count() >= count {
                return Poll::Ready(());
            }
            inner.watchers.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl ClockPort for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().now
    }

    fn sleep(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut inner = self.lock();
        let number = inner.next_sleeper;
        inner.next_sleeper += 1;
        let wakes_at_ms = inner.monotonic_ms.saturating_add(ms);
        inner.sleepers.push(Sleeper { number, wakes_at_ms, waker: None });
        Box::pin(Sleep { clock: self.clone(), number })
    }
}

/// One sleep. Dropping it takes the sleeper off the clock.
struct Sleep {
    clock: ManualClock,
    number: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let watchers = {
            let mut inner = self.clock.lock();
            let reached = inner.monotonic_ms;
            let sleeper = inner.sleepers.iter_mut().find(|s| s.number == self.number);
            match sleeper.filter(|s| s.wakes_at_ms > reached) {
                None => return Poll::Ready(()),
                Some(sleeper) => sleeper.waker = Some(context.waker().clone()),
            }
            std::mem::take(&mut inner.watchers)
        };
        watchers.into_iter().for_each(Waker::wake);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.lock().sleepers.retain(|s| s.number != self.number);
    }
}
