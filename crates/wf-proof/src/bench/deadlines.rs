//! What a backlog of deadlines costs: durable steps beside it, the rate at which it is worked off, and memory.
//!
//! Steps are measured in turns on two databases of the same open workflows: in one nothing is due, in the other each
//! workflow has a deadline that is, so that the server fires them all the time. What is left of those is fired afterwards
//! while nobody calls. Each deadline must have passed once in the end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::OpenFlags;
use serde::Serialize;
use tokio::time::sleep;

use super::contenders::{launch, temporary};
use super::load::{self, Measured};
use super::plan::Plan;
use super::process::resident;
use super::run::{megabytes, say};
use super::samples::Spread;
use crate::fault::Fault;
use crate::harness::server::Server;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The built server.
    pub server: &'a Path,
    /// Deadlines that are due.
    pub deadlines: u64,
    /// How long each load is measured.
    pub time: Duration,
    /// How often, without and with deadlines.
    pub rounds: usize,
    /// The most that half of the steps may take beside the deadlines, as a multiple of the same without.
    pub most: f64,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// Deadlines that were due at the beginning.
    pub deadlines: u64,
    /// Time of half of the steps where nothing is due, in microseconds.
    pub without_p50_us: Spread,
    /// The same beside deadlines that are fired.
    pub beside_p50_us: Spread,
    /// One median beside the other.
    pub factor: f64,
    /// Deadlines fired a second while steps were measured.
    pub beside_rate: Spread,
    /// Deadlines fired a second while nobody called.
    pub rate: f64,
    /// The most memory of a server, in bytes.
    pub resident_most: u64,
}

/// What a run fires: a copy, since it is used up.
const USED_UP: &str = "deadlines-used-up.db";
/// How often the store is asked how much is left.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Longest wait for all of them.
const FIRING: Duration = Duration::from_secs(1_800);

/// Fills two databases, unless they are there.
///
/// # Errors
/// When they cannot be written.
pub fn prepare(folder: &Path, deadlines: u64) -> Result<(), Fault> {
    std::fs::create_dir_all(folder).map_err(Fault::io("making the folder of databases"))?;
    for due in [false, true] {
        let database = filled(folder, deadlines, due);
        if !database.exists() {
            super::fill::fill_with_open(&database, deadlines, due)?;
        }
    }
    Ok(())
}

fn filled(folder: &Path, workflows: u64, due: bool) -> PathBuf {
    folder.join(format!("deadlines-{workflows}-{}.db", if due { "due" } else { "none" }))
}

/// Measures, and says what it measured, at last as one line of JSON.
///
/// # Errors
/// When something could not be measured, a deadline did not pass once, or the steps cost more than they may.
pub async fn measure(asked: &Asked<'_>, folder: &Path) -> Result<Figures, Fault> {
    let due = UsedUp::copy(&filled(folder, asked.deadlines, true), folder.join(USED_UP))?;
    let none_due = filled(folder, asked.deadlines, false);
    let deadlines = due.left()?;
    let (mut without, mut beside, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    let mut resident_most = 0;
    for round in 1..=asked.rounds.max(1) {
        let (quiet, _) = steps(asked, &none_due).await?;
        let before = due.left()?;
        let (busy, served) = steps(asked, &due.0).await?;
        let left = due.left()?;
        if left == 0 {
            return Err(Fault::Run(format!("{before} deadlines were not enough for the load")));
        }
        let rate = per_second(before.saturating_sub(left), served);
        say(&format!(
            "round {round}: nothing due p50 {:.0} µs, p99 {:.0} µs; {before} due, {left} left: p50 {:.0} µs, p99 {:.0} µs, \
             {rate:.0} fired a second, memory at most {:.1} MB",
            quiet.times.p50_us,
            quiet.times.p99_us,
            busy.times.p50_us,
            busy.times.p99_us,
            megabytes(busy.resident_most),
        ));
        without.push(quiet.times.p50_us);
        beside.push(busy.times.p50_us);
        rates.push(rate);
        resident_most = resident_most.max(busy.resident_most);
    }
    let (rate, most) = fired(asked, &due).await?;
    due.each_passed_once(deadlines)?;
    let (without_p50_us, beside_p50_us) = (Spread::of(&without), Spread::of(&beside));
    let figures = Figures {
        deadlines,
        without_p50_us,
        beside_p50_us,
        factor: beside_p50_us.median / without_p50_us.median.max(1.0),
        beside_rate: Spread::of(&rates),
        rate,
        resident_most: resident_most.max(most),
    };
    told(asked, &figures)?;
    Ok(figures)
}

fn told(asked: &Asked<'_>, figures: &Figures) -> Result<(), Fault> {
    let json = serde_json::to_string(figures)
        .map_err(|error| Fault::Run(format!("writing the figures: {error}")))?;
    let said = format!(
        "p50 of a step beside the deadlines: {:.2} times, at most {:.2} allowed",
        figures.factor, asked.most
    );
    say(&said);
    say(&json);
    if figures.factor > asked.most { Err(Fault::Run(said)) } else { Ok(()) }
}

/// Durable steps of one caller; and how long the server was there.
async fn steps(asked: &Asked<'_>, database: &Path) -> Result<(Measured, Duration), Fault> {
    let place = temporary(None)?;
    let server = Server::start(&launch(asked.server, place.path(), Some(database))?)?;
    let begun = Instant::now();
    let plan = Plan::of(&server, 1, asked.time);
    let measured = load::steps(&plan).await?;
    server.stop()?;
    Ok((measured, begun.elapsed()))
}

/// Lets a server fire everything that is left; the rate, and the most memory.
async fn fired(asked: &Asked<'_>, due: &UsedUp) -> Result<(f64, u64), Fault> {
    let place = temporary(None)?;
    let server = Server::start(&launch(asked.server, place.path(), Some(&due.0))?)?;
    let (begun, all) = (Instant::now(), due.left()?);
    let mut left = all;
    while left > 0 {
        if begun.elapsed() > FIRING {
            return Err(Fault::Run(format!("{left} of {all} deadlines are not fired")));
        }
        sleep(LOOK_EVERY).await;
        left = due.left()?;
    }
    let took = begun.elapsed();
    let (_, most) = resident(server.id())?;
    let rate = per_second(all, took);
    say(&format!(
        "{all} deadlines in {:.1} s: {rate:.0} a second, memory at most {:.1} MB",
        took.as_secs_f64(),
        megabytes(most)
    ));
    server.stop()?;
    Ok((rate, most))
}

fn per_second(count: u64, time: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / time.as_secs_f64().max(0.001)
}

/// A database whose deadlines are fired. Removed when dropped.
#[derive(Debug)]
struct UsedUp(PathBuf);

impl UsedUp {
    fn copy(filled: &Path, copy: PathBuf) -> Result<Self, Fault> {
        let copy = Self(copy);
        copy.remove();
        std::fs::copy(filled, &copy.0)
            .and_then(|_| std::fs::File::open(&copy.0)?.sync_all())
            .map_err(Fault::io("copying the database"))?;
        Ok(copy)
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm", ".lock"] {
            let mut name = self.0.as_os_str().to_owned();
            name.push(suffix);
            // Most of them are not there.
            let _ = std::fs::remove_file(name);
        }
    }

    /// Deadlines that did not pass yet.
    fn left(&self) -> Result<u64, Fault> {
        self.count("SELECT count(*) FROM deadlines")
    }

    fn each_passed_once(&self, deadlines: u64) -> Result<(), Fault> {
        let passed =
            self.count("SELECT count(*) FROM events WHERE body ->> '$.kind' = 'deadline_passed'")?;
        if passed == deadlines {
            return Ok(());
        }
        Err(Fault::Run(format!("{passed} events tell that {deadlines} deadlines passed")))
    }

    fn count(&self, sql: &str) -> Result<u64, Fault> {
        let read = || -> rusqlite::Result<i64> {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
            let db = rusqlite::Connection::open_with_flags(&self.0, flags)?;
            db.query_row(sql, [], |row| row.get(0))
        };
        let counted = read().map_err(|error| Fault::Run(format!("counting: {error}")))?;
        Ok(u64::try_from(counted).unwrap_or_default())
    }
}

impl Drop for UsedUp {
    fn drop(&mut self) {
        self.remove();
    }
}
