//! What everything in a simulation shares: its one source of randomness, its weather, and the trace of what happened.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;

/// How bad things are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    /// Nothing fails.
    Calm,
    /// Some calls of the store and the sinks fail, some answers are lost, some are late.
    Rough,
    /// The store does not answer at all.
    Down,
}

/// What happens to a call of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Fine,
    /// It is not done, and that is known.
    Before,
    /// It is done, and the answer is lost.
    After,
    /// Nobody gets an answer; a commit is done later, or never, and everything else not.
    Later,
}

/// Shared by everything in one simulation.
#[derive(Debug, Clone)]
pub(super) struct Sea(Arc<Mutex<State>>);

struct State {
    random: StdRng,
    weather: Weather,
    begun: Instant,
    trace: Vec<String>,
    faults: u64,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("weather", &self.weather).finish_non_exhaustive()
    }
}

impl Sea {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            random: StdRng::seed_from_u64(seed),
            weather: Weather::Calm,
            begun: Instant::now(),
            trace: Vec::new(),
            faults: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what happens, with the time.
    pub(super) fn note(&self, what: impl fmt::Display) {
        let mut state = self.lock();
        let at = state.begun.elapsed().as_micros();
        state.trace.push(format!("{at} {what}"));
    }

    pub(super) fn set(&self, weather: Weather) {
        self.note(format_args!("weather {weather:?}"));
        self.lock().weather = weather;
    }

    pub(super) fn below(&self, end: u64) -> u64 {
        self.lock().random.random_range(0..end.max(1))
    }

    /// How long something takes: mostly a few milliseconds, in rough weather sometimes seconds.
    pub(super) fn delay(&self) -> Duration {
        let mut state = self.lock();
        let rough = state.weather != Weather::Calm;
        let slow = rough && state.random.random_bool(0.03);
        let us = if slow { 1_000_000..8_000_000 } else { 50..20_000 };
        Duration::from_micros(state.random.random_range(us))
    }

    /// What happens to a call of the store that begins now.
    pub(super) fn fate(&self) -> Fate {
        let mut state = self.lock();
        let fate = match state.weather {
            Weather::Calm => Fate::Fine,
            Weather::Down => Fate::Before,
            Weather::Rough => match state.random.random_range(0..100_u8) {
                0..5 => Fate::Before,
                5..12 => Fate::After,
                12..17 => Fate::Later,
                _ => Fate::Fine,
            },
        };
        state.faults += u64::from(fate != Fate::Fine);
        fate
    }

    /// True where a message between two parts is lost.
    pub(super) fn loses(&self) -> bool {
        let mut state = self.lock();
        let lost = state.weather != Weather::Calm && state.random.random_bool(0.05);
        state.faults += u64::from(lost);
        lost
    }

    /// Everything that happened, and how much of it was a fault.
    pub(super) fn told(&self) -> (Vec<String>, u64) {
        let mut state = self.lock();
        (std::mem::take(&mut state.trace), state.faults)
    }
}
