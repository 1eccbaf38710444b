//! Kills the server: at random times, at named failpoints, while it starts and while it ends; then the same with panics
//! and errors instead of kills.
//!
//! Callers work all the while, and send every call whose answer was lost again until they know. Whatever was acknowledged
//! must be in the database after every kill, nothing twice and nothing by half, and every restart must serve within two
//! seconds. The procedure has deadlines of seconds, and the callers are several people who hand work over: whatever was due
//! must have passed once in the end. A database lives through many kills; in a soak a new one is taken every [`PER_DATABASE`] kills, so that the
//! history of its callers fits into memory.
//!
//! Files: `how` (how a server is killed next), `hurry` (the procedure and the people), `database` (one database, its callers
//! and its kills), `faults` (panics and errors), `creation` (kills while a schema is made), `control` (what must be found), `tally` (what was done).

mod control;
mod creation;
pub(super) mod database;
mod faults;
mod how;
pub(super) mod hurry;
mod tally;

use indicatif::ProgressBar;

use super::run::say;
use super::{Bench, Report, Setting, Size};
use crate::fault::Fault;

use tally::Tally;

/// The bench.
pub(super) const KILL: Bench = Bench {
    name: "kill",
    what: "kill -9, panics and errors, at random times and at failpoints: nothing acknowledged is lost",
    run,
    control: control::run,
};

/// Kills of a short run: each failpoint twice.
const SHORT: u64 = 68;
/// Kills of a soak without `--count`.
const SOAK: u64 = 2_000;
/// Kills on one database.
const PER_DATABASE: u64 = 100;

fn run(setting: &Setting) -> Result<Report, Fault> {
    let all = match setting.size {
        Size::Short => SHORT,
        Size::Soak => setting.count.unwrap_or(SOAK),
    };
    let mut report = Report::default();
    let mut tally = Tally::default();
    let progress = ProgressBar::new(all);
    let mut number = 0;
    while tally.kills() < all && report.found.is_empty() {
        let kills = PER_DATABASE.min(all - tally.kills());
        report.found.extend(database::run(setting, number, kills, &mut tally, &progress)?);
        number += 1;
        if setting.size == Size::Soak {
            say(&format!("kill: {} of {all} kills", tally.kills()));
        }
    }
    progress.finish_and_clear();
    report.found.extend(tally.missing(all));
    report.done = tally.lines();
    faults::run(setting, &mut report)?;
    creation::run(setting, &mut report)?;
    Ok(report)
}
