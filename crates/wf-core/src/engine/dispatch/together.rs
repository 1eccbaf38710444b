//! What the dispatcher needs of futures: several at once, one within a time, one that may panic. No runtime is named.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;

/// A wait of the clock port.
pub(in crate::engine) type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Whether a wait is over. It is never asked again after it said yes.
pub(in crate::engine) async fn is_over(timer: &mut Timer) -> bool {
    poll_fn(|context| Poll::Ready(timer.as_mut().poll(context).is_ready())).await
}

/// The output of `work`, or `None` when `limit` is over first; `work` is dropped then.
pub(in crate::engine) async fn within<F: Future>(work: F, mut limit: Timer) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => limit.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// The output of `work`, or `None` when it panics.
pub(in crate::engine) async fn unless_panics<F: Future>(work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(|context| {
        // After a panic the future is dropped and never polled again, so nothing half-done in it is seen.
        catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)))
            .map_or(Poll::Ready(None), |polled| polled.map(Some))
    })
    .await
}

/// The outputs of all, which run side by side, in the order in which they end.
pub(in crate::engine) async fn all<F: Future>(
    futures: impl IntoIterator<Item = F>,
) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut outputs = Vec::with_capacity(running.len());
    poll_fn(|context| {
        running.retain_mut(|future| match future.as_mut().poll(context) {
            Poll::Ready(output) => {
                outputs.push(output);
                false
            }
            Poll::Pending => true,
        });
        if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs
}
