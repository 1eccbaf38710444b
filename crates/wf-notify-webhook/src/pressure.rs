//! A receiver that hangs must not hold everybody: how many deliveries it has at once, and when it gets none for a while.
//!
//! A delivery that finds no place waits a moment. When in that moment and before it nothing was answered at all, the
//! receiver hangs, and further deliveries fail at once until a pause is over; then some try again. Failing at once keeps
//! the dispatcher free for other receivers.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

/// Deliveries to one receiver at once.
pub(crate) const AT_ONCE: usize = 8;
/// How long one waits for a place.
pub(crate) const WAIT: Duration = Duration::from_secs(1);
/// A receiver that answered nothing for so long, although all places are taken, hangs.
const SILENCE: Duration = Duration::from_secs(2);
/// How long a receiver that hangs is left alone.
pub(crate) const PAUSE: Duration = Duration::from_secs(10);

/// No delivery now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pressed {
    /// All places are taken by deliveries that are slow.
    Busy,
    /// The receiver hangs and is left alone for so long.
    Hangs(Duration),
}

#[derive(Debug)]
pub(crate) struct Pressure {
    places: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    answered: Instant,
    paused_until: Option<Instant>,
}

impl Default for Pressure {
    fn default() -> Self {
        let state = State { answered: Instant::now(), paused_until: None };
        Self { places: Semaphore::new(AT_ONCE), state: Mutex::new(state) }
    }
}

impl Pressure {
    /// A place for one delivery, until it is dropped.
    pub(crate) async fn place(&self) -> Result<SemaphorePermit<'_>, Pressed> {
        self.check()?;
        let taken = match self.places.try_acquire() {
            Ok(place) => return Ok(place),
            Err(_) => timeout(WAIT, self.places.acquire()).await,
        };
        match taken {
            Ok(Ok(place)) => self.check().map(|()| place),
            // The places are never closed.
            Ok(Err(_)) => Err(Pressed::Busy),
            Err(_) => Err(self.no_place()),
        }
    }

    /// The receiver said something, whatever it was.
    pub(crate) fn answered(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.answered = Instant::now();
        state.paused_until = None;
    }

    fn check(&self) -> Result<(), Pressed> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let left = state.paused_until.map(|until| until.saturating_duration_since(Instant::now()));
        match left.filter(|left| !left.is_zero()) {
            Some(left) => Err(Pressed::Hangs(left)),
            None => Ok(()),
        }
    }

    fn no_place(&self) -> Pressed {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.answered.elapsed() < SILENCE {
            return Pressed::Busy;
        }
        state.paused_until = Some(Instant::now() + PAUSE);
        Pressed::Hangs(PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all_places(pressure: &Pressure) -> Vec<SemaphorePermit<'_>> {
        let mut places = Vec::new();
        for _ in 0..AT_ONCE {
            places.push(pressure.place().await.expect("a place"));
        }
        places
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_hangs_is_left_alone_and_then_tried_again() {
        let pressure = Pressure::default();
        let places = all_places(&pressure).await;
        tokio::time::advance(SILENCE).await;
        assert_eq!(pressure.place().await.err(), Some(Pressed::Hangs(PAUSE)));
        let before = Instant::now();
        assert!(matches!(pressure.place().await, Err(Pressed::Hangs(_))));
        assert_eq!(before.elapsed(), Duration::ZERO, "refused at once");
        drop(places);
        tokio::time::advance(PAUSE).await;
        assert!(pressure.place().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_is_slow_is_not_left_alone() {
        let pressure = Pressure::default();
        let places = all_places(&pressure).await;
        tokio::time::advance(SILENCE).await;
        pressure.answered();
        assert_eq!(pressure.place().await.err(), Some(Pressed::Busy));
        drop(places);
        assert!(pressure.place().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_gets_the_place_that_becomes_free() {
        let pressure = Pressure::default();
        let mut places = all_places(&pressure).await;
        let (waited, ()) = tokio::join!(pressure.place(), async {
            tokio::time::sleep(WAIT / 2).await;
            places.pop();
        });
        assert!(waited.is_ok());
    }
}
