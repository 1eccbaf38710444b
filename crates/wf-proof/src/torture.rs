//! The benches that try to break the product. Each has a [`Bench`] here; [`run`] is the program around them.
//!
//! A bench breaks one kind of thing, under callers, and ends with the audit. Each has a negative control: the same bench
//! over something that is broken on purpose, which must find it, or the bench has shown nothing.

mod auth;
mod clock;
mod crew;
mod disk;
mod fence;
mod kill;
mod leftovers;
mod model;
mod peer;
mod powercut;
mod processes;
pub mod run;
mod sinks;

use std::path::PathBuf;

use crate::fault::Fault;

/// How long and how wide a bench goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// For every change: all benches within eight minutes on two cores.
    Short,
    /// For hours.
    Soak,
}

/// What a bench is run with.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The built server, with the feature `failpoints`.
    pub server: PathBuf,
    /// The built library that logs and disturbs what a server does to its files (`LD_PRELOAD`).
    pub preload: PathBuf,
    /// Where folders of servers are made; kept when something was found.
    pub folder: PathBuf,
    /// Everything random follows from it.
    pub seed: u64,
    /// How long and how wide.
    pub size: Size,
    /// In a soak: how often the bench repeats its innermost thing (kills, images); its own default when absent.
    pub count: Option<u64>,
    /// Only this case of a bench that has cases.
    pub case: Option<String>,
}

/// What a bench did and found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What was done, for the summary: "2,014 kills", "31,220 calls".
    pub done: Vec<String>,
    /// What must not be, one line each.
    pub found: Vec<String>,
    /// What was left out here, and why.
    pub skipped: Vec<String>,
}

/// One bench.
#[derive(Debug, Clone, Copy)]
pub struct Bench {
    /// Short name for `--only`.
    pub name: &'static str,
    /// What it breaks and what must hold.
    pub what: &'static str,
    /// Runs it.
    pub run: fn(&Setting) -> Result<Report, Fault>,
    /// Runs it over something broken on purpose; the report must not be empty of findings.
    pub control: fn(&Setting) -> Result<Report, Fault>,
}

/// All benches, in the order in which they run.
pub const BENCHES: &[Bench] = &[
    kill::KILL,
    powercut::POWERCUT,
    disk::DISK,
    model::MODEL,
    clock::CLOCK,
    processes::PROCESSES,
    auth::AUTH,
    sinks::SINKS,
    fence::FENCE,
];
