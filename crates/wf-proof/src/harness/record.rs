//! Collects what the callers of a run saw.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};
use tokio::time::Instant;
use wf_testkit::audit::history::{Attempt, Outcome};

use crate::fault::Fault;

/// A logical call: one key, one payload, however often it is sent.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its number in the run, from [`Recorder::next_call`].
    pub number: u64,
    /// The tool.
    pub tool: &'static str,
    /// The tool's arguments.
    pub arguments: Map<String, Value>,
}

/// The attempts of a run, in the order in which they were over, and the clock that all of them share.
#[derive(Debug)]
pub struct Recorder {
    // Of tokio, so that it stands still where a simulation's time does.
    begun: Instant,
    /// The last time that was told.
    told: AtomicU64,
    calls: AtomicU64,
    attempts: Mutex<Vec<Attempt>>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            told: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            attempts: Mutex::default(),
        }
    }
}

impl Recorder {
    /// Nanoseconds since the run began. Never the same twice, so that the order of what is written down is known.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        let now = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let later = |told: u64| Some(now.max(told.saturating_add(1)));
        match self.told.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later) {
            Ok(told) | Err(told) => now.max(told.saturating_add(1)),
        }
    }

    /// A number for the next logical call.
    #[must_use]
    pub fn next_call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    /// Logical calls so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Keeps an attempt.
    pub fn keep(&self, attempt: Attempt) {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner).push(attempt);
    }

    /// Keeps an attempt at a call that this caller sent then and that is over now, by the one principal of a server
    /// without authentication.
    pub fn attempted(&self, caller: u32, call: &Call, sent_ns: u64, outcome: Outcome) {
        self.attempted_by("user:local", caller, call, sent_ns, outcome);
    }

    /// The same of a caller whom the server knows as `actor`.
    pub fn attempted_by(
        &self,
        actor: &str,
        caller: u32,
        call: &Call,
        sent_ns: u64,
        outcome: Outcome,
    ) {
        self.keep(Attempt {
            call: call.number,
            caller,
            tenant: "default".to_owned(),
            actor: actor.to_owned(),
            tool: call.tool.to_owned(),
            arguments: call.arguments.clone(),
            sent_ns,
            over_ns: self.now_ns(),
            outcome,
        });
    }

    /// Everything so far.
    #[must_use]
    pub fn attempts(&self) -> Vec<Attempt> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Writes attempts, one JSON object a line.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, attempts: &[Attempt]) -> Result<(), Fault> {
    let wrong = |source| Fault::Io { what: format!("writing {}", path.display()), source };
    let mut file = BufWriter::new(File::create(path).map_err(wrong)?);
    for attempt in attempts {
        serde_json::to_writer(&mut file, attempt).map_err(|error| wrong(error.into()))?;
        file.write_all(b"\n").map_err(wrong)?;
    }
    file.flush().map_err(wrong)
}

/// Reads what [`write()`] wrote.
///
/// # Errors
/// When the file cannot be read or a line is no attempt.
pub fn read(path: &Path) -> Result<Vec<Attempt>, Fault> {
    let wrong = |source| Fault::Io { what: format!("reading {}", path.display()), source };
    let file = BufReader::new(File::open(path).map_err(wrong)?);
    file.lines()
        .map(|line| serde_json::from_str(&line.map_err(wrong)?).map_err(|e| wrong(e.into())))
        .collect()
}
