//! What an outbox full of messages costs: durable steps beside it, the rate at which it empties, and memory.
//!
//! Steps are measured on two databases of the same size in turns, one with an empty outbox and one whose messages are all
//! due and go to a receiver that refuses every connection, so that the dispatcher is at work all the time.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::OpenFlags;
use tokio::time::sleep;

use super::contenders::{absolute, launch, temporary};
use super::load::{self, Measured};
use super::plan::Plan;
use super::process::resident;
use super::run::{megabytes, say};
use super::samples::Spread;
use crate::fault::Fault;
use crate::harness::server::{Launch, Server};

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The built server.
    pub server: &'a Path,
    /// Messages that wait.
    pub messages: u64,
    /// How long each load is measured.
    pub time: Duration,
    /// How often, without and with messages.
    pub rounds: usize,
    /// The most that half of the steps may take beside the messages, as a multiple of the same without.
    pub most: f64,
}

const EMPTY: &str = "outbox-empty.db";
const FULL: &str = "outbox-full.db";
/// Nobody listens there: port 9 of this machine.
const ROUTE: &str = "[[notifications.route]]
sink = \"webhook\"
url = \"http://127.0.0.1:9/\"
secret_file = \"hook.secret\"
allow_private = true
";
/// 24 bytes, of no secrecy.
const SECRET: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
/// How often the store is asked how much is left.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Longest wait for the outbox to empty.
const EMPTYING: Duration = Duration::from_secs(1_800);

/// Fills two databases, unless they are there.
///
/// # Errors
/// When they cannot be written.
pub fn prepare(folder: &Path, messages: u64) -> Result<(), Fault> {
    std::fs::create_dir_all(folder).map_err(Fault::io("making the folder of databases"))?;
    let (empty, full) = (folder.join(EMPTY), folder.join(FULL));
    if !empty.exists() {
        super::fill::fill(&empty, messages, super::fill::EVENTS)?;
    }
    if !full.exists() {
        super::fill::fill_with_messages(&full, messages)?;
    }
    std::fs::write(folder.join("route.toml"), ROUTE).map_err(Fault::io("writing the route"))?;
    std::fs::write(folder.join("hook.secret"), SECRET).map_err(Fault::io("writing the secret"))
}

/// Measures, and says what it measured.
///
/// # Errors
/// When something could not be measured, or the messages cost more than they may.
pub async fn measure(asked: &Asked<'_>, folder: &Path) -> Result<(), Fault> {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 1..=asked.rounds.max(1) {
        due_again(&folder.join(FULL))?;
        let empty = steps(asked, &folder.join(EMPTY), folder).await?;
        let full = steps(asked, &folder.join(FULL), folder).await?;
        say(&format!(
            "round {round}: empty outbox p50 {:.0} µs, p99 {:.0} µs; {} messages wait: p50 {:.0} µs, p99 {:.0} µs, \
             memory at most {:.1} MB",
            empty.times.p50_us,
            empty.times.p99_us,
            asked.messages,
            full.times.p50_us,
            full.times.p99_us,
            megabytes(full.resident_most),
        ));
        without.push(empty.times.p50_us);
        with.push(full.times.p50_us);
    }
    emptied(asked, folder).await?;
    let factor = Spread::of(&with).median / Spread::of(&without).median.max(1.0);
    let said = format!(
        "p50 of a step beside the messages: {factor:.2} times, at most {:.2} allowed",
        asked.most
    );
    say(&said);
    if factor > asked.most { Err(Fault::Run(said)) } else { Ok(()) }
}

async fn steps(asked: &Asked<'_>, database: &Path, folder: &Path) -> Result<Measured, Fault> {
    let place = temporary(None)?;
    let mut started = launch(asked.server, place.path(), Some(database))?;
    // The server runs in a folder of its own.
    let route = absolute(&folder.join("route.toml"))?;
    started.arguments.extend(["--config".to_owned(), route.display().to_string()]);
    let server = Server::start(&started)?;
    let plan = Plan::of(&server, 1, asked.time);
    let measured = load::steps(&plan).await?;
    server.stop()?;
    Ok(measured)
}

/// Lets a server deliver everything into its log, and says how fast it did.
async fn emptied(asked: &Asked<'_>, folder: &Path) -> Result<(), Fault> {
    let place = temporary(None)?;
    let database = folder.join(FULL);
    due_again(&database)?;
    let started: Launch = launch(asked.server, place.path(), Some(&database))?;
    let begun = Instant::now();
    let server = Server::start(&started)?;
    let mut left = pending(&database)?;
    let (all, first) = (left, begun.elapsed());
    while left > 0 {
        if begun.elapsed() > EMPTYING {
            return Err(Fault::Run(format!("{left} of {all} messages are not delivered")));
        }
        sleep(LOOK_EVERY).await;
        left = pending(&database)?;
    }
    let took = begun.elapsed().saturating_sub(first);
    let (_, most) = resident(server.id())?;
    say(&format!(
        "{all} messages into the log in {:.1} s: {:.0} a second, memory at most {:.1} MB",
        took.as_secs_f64(),
        f64::from(u32::try_from(all).unwrap_or(u32::MAX)) / took.as_secs_f64().max(0.001),
        megabytes(most)
    ));
    server.stop().map(|_| ())
}

/// Whatever a run before made of the messages: all of them are to be delivered now.
fn due_again(database: &Path) -> Result<(), Fault> {
    let sql = "UPDATE outbox SET state = 'pending', attempts = 0, next_attempt_at = 0, delivered_at = NULL;
               UPDATE streams SET due_at = 0, lease_token = NULL, lease_until = NULL;";
    rusqlite::Connection::open(database)
        .and_then(|db| db.execute_batch(sql))
        .map_err(|error| Fault::Run(format!("making messages due: {error}")))
}

fn pending(database: &Path) -> Result<u64, Fault> {
    let read = || -> rusqlite::Result<i64> {
        let db = rusqlite::Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        db.query_row("SELECT count(*) FROM outbox WHERE state = 'pending'", [], |row| row.get(0))
    };
    let counted = read().map_err(|error| Fault::Run(format!("counting messages: {error}")))?;
    Ok(u64::try_from(counted).unwrap_or_default())
}
