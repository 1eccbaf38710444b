//! What the bench must find: a server that acknowledges what it does not commit, and a database that lost commits.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::fault::Fault;
use crate::harness::server::Server;
use crate::harness::workload::{Plan, Workload};
use crate::torture::{Report, Setting};

use super::database::{CALLERS, Database};
use super::tally::Tally;

/// Calls before, and after, what is broken; and how long they may take.
const CALLS: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(60);

/// Leaves behind what an audit must find.
type Broken = fn(&mut Database, u64) -> Result<(), Fault>;

/// Empty of findings unless every one of them was found.
pub(super) fn run(setting: &Setting) -> Result<Report, Fault> {
    let mut report = Report::default();
    let controls = [
        ("a commit that never was", liar as Broken),
        ("an older copy of the database", older_copy),
    ];
    let mut all = true;
    for (what, broken) in controls {
        let mut database = Database::new(setting, "control")?;
        broken(&mut database, setting.seed)?;
        database.audit(&mut Tally::default())?;
        let found = std::mem::take(&mut database.found);
        database.close()?;
        all &= !found.is_empty();
        let first = found.first().map_or("NOTHING", String::as_str);
        report.done.push(format!("{what}: {} found, first: {first}", found.len()));
        report.found.extend(found);
    }
    if !all {
        report.found.clear();
    }
    Ok(report)
}

/// After what a start needs, every third batch is acknowledged and rolled back.
fn liar(database: &mut Database, seed: u64) -> Result<(), Fault> {
    database.launch = database.launch.clone().env("FAILPOINTS", "commit.never=12*off->33%return");
    work(database, seed)
}

/// What was there in the middle is put in the place of what was there at the end, as a restore by hand would.
fn older_copy(database: &mut Database, seed: u64) -> Result<(), Fault> {
    work(database, seed)?;
    let copy = |from: &str, to: &str| -> Result<(), Fault> {
        for suffix in ["", "-wal"] {
            let (from, to) = (beside(database, from, suffix), beside(database, to, suffix));
            // No log is as good as an empty one.
            let bytes = std::fs::read(&from).unwrap_or_default();
            std::fs::write(&to, bytes).map_err(Fault::io("copying the database"))?;
        }
        Ok(())
    };
    copy("", ".older")?;
    work(database, seed.wrapping_add(1))?;
    copy(".older", "")
}

/// A server under callers, then a kill.
fn work(database: &Database, seed: u64) -> Result<(), Fault> {
    let server = Server::start(&database.launch)?;
    database.gate.open(server.address());
    let workload = Workload::start(&Plan::new(CALLERS, seed), &database.gate, &database.recorder)?;
    let end = Instant::now() + PATIENCE;
    while workload.acknowledged() < CALLS && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    workload.leave()?;
    database.kill(server)
}

fn beside(database: &Database, middle: &str, end: &str) -> PathBuf {
    let mut name = database.launch.database().into_os_string();
    name.push(middle);
    name.push(end);
    name.into()
}
