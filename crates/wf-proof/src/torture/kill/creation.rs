//! Kills, a panic and an error while a schema is made, in a new database and in one of the schema before with a history:
//! the next start completes it, and nothing is lost.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::fault::Fault;
use crate::harness::server::{PATIENCE, Server};
use crate::harness::workload::Workload;
use crate::torture::{Report, Setting, Size};

use super::database::{Database, tail};
use super::tally::Tally;

/// Ways in which the migration is made to fail.
const ACTIONS: [&str; 3] = ["return(abort)", "panic", "return"];

/// A place that is made to fail, and what the server says where it only reports an error.
struct Place {
    name: &'static str,
    says: &'static str,
}
/// In the migration, between its statements and its version.
const MIGRATION: Place = Place { name: "migration", says: "error: the store cannot be opened" };
/// Before the copy that is made of an older database.
const COPY: Place = Place { name: "migration.copy", says: "was not migrated and is as it was" };

/// When servers that are killed from outside die: most start within this.
const START: Duration = Duration::from_millis(80);
/// Calls that the older database has behind it.
const CALLS: u64 = 100;
/// How long they may take.
const CALLS_WITHIN: Duration = Duration::from_secs(20);

/// Makes a database of the newest schema one of the schema before.
const BACK: &str = "DROP TABLE purged; DROP TRIGGER events_are_never_deleted; CREATE TRIGGER events_are_never_deleted \
     BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'an event is never deleted'); END; PRAGMA user_version = 2;";
/// Whether a database is of the newest schema.
const NEWEST: &str = "PRAGMA user_version";
/// The newest schema.
const VERSION: i64 = 3;

/// Appends what was done and found to the report.
pub(super) fn run(setting: &Setting, report: &mut Report) -> Result<(), Fault> {
    let kills = match setting.size {
        Size::Short => 8,
        Size::Soak => 200,
    };
    let mut random = StdRng::seed_from_u64(setting.seed);
    let mut older = with_history(setting)?;
    for action in ACTIONS {
        let mut fresh = Database::new(setting, "creation")?;
        fails(&mut fresh, &MIGRATION, action)?;
        report.found.extend(fresh.close()?);
        for place in [&MIGRATION, &COPY] {
            go_back(&older)?;
            fails(&mut older, place, action)?;
        }
    }
    for _ in 0..kills {
        let mut fresh = Database::new(setting, "creation")?;
        dies(&mut fresh, &mut random)?;
        report.found.extend(fresh.close()?);
        go_back(&older)?;
        dies(&mut older, &mut random)?;
    }
    report.found.extend(older.close()?);
    report.done.push(format!(
        "{kills} kills, an abort, a panic and an error while a database was created, and as many while one with a history was migrated, and before it was copied; all were completed"
    ));
    Ok(())
}

/// A database with a history, which no server has open.
fn with_history(setting: &Setting) -> Result<Database, Fault> {
    let mut database = Database::new(setting, "migration")?;
    let mut tally = Tally::default();
    let Some(server) = database.serve(&mut tally)? else { return Ok(database) };
    let workload =
        Workload::start(&database.plan(setting.seed), &database.gate, &database.recorder)?;
    let end = Instant::now() + CALLS_WITHIN;
    while workload.acknowledged() < CALLS && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    let acknowledged = workload.acknowledged();
    workload.finish()?;
    database.kill(server)?;
    if acknowledged < CALLS {
        database.found.push(format!("only {acknowledged} calls before a migration: too few"));
    }
    Ok(database)
}

fn sqlite(database: &Database) -> Result<rusqlite::Connection, Fault> {
    rusqlite::Connection::open(database.launch.database())
        .map_err(|error| Fault::Run(format!("opening a database: {error}")))
}

fn go_back(database: &Database) -> Result<(), Fault> {
    sqlite(database)?
        .execute_batch(BACK)
        .map_err(|error| Fault::Run(format!("making an older database: {error}")))
}

/// The migration is made to fail once; the server must end by itself, and say so.
fn fails(database: &mut Database, place: &Place, action: &str) -> Result<(), Fault> {
    let launch = database.launch.clone().env("FAILPOINTS", format!("{}={action}", place.name));
    let (mut child, output) = Server::spawn(&launch)?;
    let end = Instant::now() + PATIENCE;
    let status: Option<ExitStatus> = loop {
        let ended = child.try_wait().map_err(Fault::io("waiting for the server"))?;
        if ended.is_some() || Instant::now() > end {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    if status.is_none() {
        child.kill().map_err(Fault::io("killing the server"))?;
        child.wait().map_err(Fault::io("waiting for the server"))?;
    }
    let said = std::fs::read_to_string(&output).unwrap_or_default();
    if status.is_none_or(|status| status.success()) {
        database
            .found
            .push(format!("a migration that failed ({action}) ended with {status:?}: {said}"));
    }
    if action == "return" && !said.contains(place.says) {
        database.found.push(format!("a migration that failed says: {}", tail(&said)));
    }
    completes(database)
}

/// A server is killed while it makes the schema, a little before or after.
fn dies(database: &mut Database, random: &mut StdRng) -> Result<(), Fault> {
    let (mut child, _) = Server::spawn(&database.launch)?;
    std::thread::sleep(START.mul_f64(random.random_range(0.0..1.0)));
    child.kill().map_err(Fault::io("killing the server"))?;
    child.wait().map_err(Fault::io("waiting for the server"))?;
    completes(database)
}

/// A plain server completes what was begun, and leaves a database in order.
fn completes(database: &mut Database) -> Result<(), Fault> {
    let mut tally = Tally::default();
    let Some(server) = database.serve(&mut tally)? else { return Ok(()) };
    database.kill(server)?;
    let version = sqlite(database)?.query_row(NEWEST, [], |row| row.get::<_, i64>(0));
    if !matches!(version, Ok(VERSION)) {
        database.found.push(format!("after a start the schema is {version:?}, not {VERSION}"));
    }
    database.audit(&mut tally)
}
