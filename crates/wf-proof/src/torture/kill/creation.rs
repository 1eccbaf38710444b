//! Kills, a panic and an error while the schema of a new database is made: the next start completes it.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::fault::Fault;
use crate::harness::server::{PATIENCE, Server};
use crate::torture::{Report, Setting, Size};

use super::database::{Database, tail};
use super::tally::Tally;

/// Appends what was done and found to the report.
pub(super) fn run(setting: &Setting, report: &mut Report) -> Result<(), Fault> {
    let kills = match setting.size {
        Size::Short => 8,
        Size::Soak => 200,
    };
    for action in ["return(abort)", "panic", "return"] {
        rigged(setting, action, report)?;
    }
    let mut random = StdRng::seed_from_u64(setting.seed);
    for _ in 0..kills {
        let database = Database::new(setting, "creation")?;
        let (mut child, _) = Server::spawn(&database.launch)?;
        std::thread::sleep(Duration::from_micros(random.random_range(0..80_000)));
        child.kill().map_err(Fault::io("killing the server"))?;
        child.wait().map_err(Fault::io("waiting for the server"))?;
        completes(database, report)?;
    }
    report.done.push(format!(
        "{kills} kills, an abort, a panic and an error while a database was created; all were completed"
    ));
    report.skipped.push(
        "a migration from an older schema under kills: there is only the first schema yet"
            .to_owned(),
    );
    Ok(())
}

/// The migration is made to fail once; the server must end by itself, and say so.
fn rigged(setting: &Setting, action: &str, report: &mut Report) -> Result<(), Fault> {
    let database = Database::new(setting, "creation")?;
    let launch = database.launch.clone().env("FAILPOINTS", format!("migration={action}"));
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
        report
            .found
            .push(format!("a migration that failed ({action}) ended with {status:?}: {said}"));
    }
    if action == "return" && !said.contains("error: the store cannot be opened") {
        report.found.push(format!("a migration that failed says: {}", tail(&said)));
    }
    completes(database, report)
}

/// A plain server completes what was begun, and leaves a database in order.
fn completes(mut database: Database, report: &mut Report) -> Result<(), Fault> {
    let mut tally = Tally::default();
    if let Some(server) = database.serve(&mut tally)? {
        database.kill(server)?;
        database.audit(&mut tally)?;
    }
    report.found.extend(database.close()?);
    Ok(())
}
