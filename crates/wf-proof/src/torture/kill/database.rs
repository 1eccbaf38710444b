//! One database, the callers that use it, and the kills that its servers get.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rusqlite::OpenFlags;
use rustix::process::Signal;

use crate::fault::Fault;
use crate::harness::audit::examine;
use crate::harness::gate::Gate;
use crate::harness::port::lasting_address;
use crate::harness::record::{self, Recorder};
use crate::harness::server::{Launch, Server};
use crate::harness::workload::{Plan, Someone, Workload, unknown};
use crate::torture::Setting;

use super::how::How;
use super::hurry;
use super::tally::Tally;

/// Callers at once.
pub(super) const CALLERS: u32 = 8;
/// Kills between two audits.
const AUDIT_EVERY: u64 = 15;
/// How long a failpoint may take to be hit before the server is killed from outside.
const HIT_WITHIN: Duration = Duration::from_secs(10);
/// How long attempts may take to be over once their server is dead.
const QUIET_WITHIN: Duration = Duration::from_secs(40);

/// By how much the clock of the last server is ahead: leases of the killed ones are over then (30 s).
const AHEAD: Duration = Duration::from_secs(40);
/// How long everything that is due may take to be fired when nobody calls.
const FIRED_WITHIN: Duration = Duration::from_secs(20);
/// How often a caller leaves an order in the middle, so that its deadlines pass.
const WALKS_AWAY: f64 = 0.25;

/// A database with its history.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) launch: Launch,
    pub(super) gate: Gate,
    pub(super) recorder: Arc<Recorder>,
    pub(super) people: Vec<Someone>,
    pub(super) found: Vec<String>,
}

impl Database {
    /// In a fresh folder below that of the run.
    pub(super) fn new(setting: &Setting, name: &str) -> Result<Self, Fault> {
        let folder = fresh_folder(&setting.folder, name)?;
        let mut launch = Launch::new(&setting.server, &folder);
        launch.listen = lasting_address()?;
        Ok(Self {
            launch,
            gate: Gate::default(),
            recorder: Arc::default(),
            people: Vec::new(),
            found: Vec::new(),
        })
    }

    /// The same, in a hurry and with people.
    pub(super) fn in_a_hurry(setting: &Setting, name: &str) -> Result<Self, Fault> {
        let mut database = Self::new(setting, name)?;
        database.people = hurry::prepare(&mut database.launch)?;
        Ok(database)
    }

    /// What its callers do.
    pub(super) fn plan(&self, seed: u64) -> Plan {
        let walks_away = if self.people.is_empty() { 0.0 } else { WALKS_AWAY };
        Plan { people: self.people.clone(), walks_away, ..Plan::new(CALLERS, seed) }
    }

    /// From the next start on the clock is ahead.
    fn put_clock_ahead(&mut self) -> Result<(), Fault> {
        let clock = self.launch.folder.join("clock");
        std::fs::write(&clock, AHEAD.as_millis().to_string()).map_err(Fault::io("the clock"))?;
        let moved = format!("clock=return({})", clock.display());
        self.launch = self.launch.clone().env("FAILPOINTS", moved);
        Ok(())
    }

    /// Waits until nothing is due any more. Answers how many deadlines passed.
    fn everything_fires(&mut self) -> Result<u64, Fault> {
        let end = Instant::now() + FIRED_WITHIN;
        loop {
            let ahead = i64::try_from(AHEAD.as_millis()).unwrap_or(i64::MAX);
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let now = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
            let due =
                self.count("SELECT count(*) FROM deadlines WHERE fire_at <= ?1", now + ahead)?;
            if due == 0 {
                break;
            }
            if Instant::now() > end {
                self.found.push(format!("{due} deadlines are due and do not pass"));
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.count("SELECT count(*) FROM ledger WHERE actor = 'system:clock' AND seq > ?1", 0)
    }

    fn count(&self, sql: &str, argument: i64) -> Result<u64, Fault> {
        let read = || -> rusqlite::Result<i64> {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
            let db = rusqlite::Connection::open_with_flags(self.launch.database(), flags)?;
            db.busy_timeout(HIT_WITHIN)?;
            db.query_row(sql, [argument], |row| row.get(0))
        };
        let counted = read().map_err(|error| Fault::Run(format!("counting: {error}")))?;
        Ok(u64::try_from(counted).unwrap_or_default())
    }

    /// Starts a server and lets the callers in. None, and a finding, when it does not serve.
    pub(super) fn serve(&mut self, tally: &mut Tally) -> Result<Option<Server>, Fault> {
        let begun = Instant::now();
        match Server::start(&self.launch) {
            Ok(server) => {
                tally.started(begun.elapsed());
                self.gate.open(server.address());
                Ok(Some(server))
            }
            Err(Fault::Server { what, log }) => {
                self.found.push(format!("after a kill {what}: {}", tail(&log)));
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Starts one that is to fail at a failpoint. None when it failed before it served, which it may: it writes by then.
    fn serve_rigged(&mut self, failpoints: &str) -> Result<Option<Server>, Fault> {
        match Server::start(&self.launch.clone().env("FAILPOINTS", failpoints)) {
            Ok(server) => {
                self.gate.open(server.address());
                Ok(Some(server))
            }
            // That the database is all right is for the next start to show, which is not rigged.
            Err(Fault::Server { .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Ends a server without asking, and waits until every caller knows what it can know.
    pub(super) fn kill(&self, server: Server) -> Result<(), Fault> {
        server.kill()?;
        self.gate.close();
        if !self.gate.is_quiet_within(QUIET_WITHIN) {
            return Err(Fault::Run("a call goes on after its server is dead".to_owned()));
        }
        Ok(())
    }

    /// Holds the database against the history. Nobody may have it open.
    pub(super) fn audit(&mut self, tally: &mut Tally) -> Result<(), Fault> {
        let audit = examine(&self.launch.database(), &self.recorder.attempts())?;
        self.found.extend(audit.violations.iter().map(ToString::to_string));
        tally.audited(audit.left_out.len());
        Ok(())
    }

    /// Removes the folder, or leaves it with the history when something was found.
    pub(super) fn close(self) -> Result<Vec<String>, Fault> {
        let folder = &self.launch.folder;
        if self.found.is_empty() {
            std::fs::remove_dir_all(folder).map_err(Fault::io("removing the database"))?;
        } else {
            record::write(&folder.join("attempts.jsonl"), &self.recorder.attempts())?;
        }
        Ok(self.found)
    }

    /// One server, from its start to its violent end.
    fn one(&mut self, how: How, tally: &mut Tally) -> Result<(), Fault> {
        if let How::Starting(after) = how {
            let (mut child, _) = Server::spawn(&self.launch)?;
            std::thread::sleep(after);
            child.kill().map_err(Fault::io("killing the server"))?;
            child.wait().map_err(Fault::io("waiting for the server"))?;
            tally.killed(how.name());
            return Ok(());
        }
        let server = match how.failpoints() {
            Some(failpoints) => self.serve_rigged(&failpoints)?,
            None => self.serve(tally)?,
        };
        match server {
            Some(server) => self.end(server, how, tally),
            None => {
                tally.killed(how.name());
                Ok(())
            }
        }
    }

    fn end(&mut self, mut server: Server, how: How, tally: &mut Tally) -> Result<(), Fault> {
        let as_planned = match how {
            How::AnyTime(after) | How::Starting(after) => {
                std::thread::sleep(after);
                if !server.is_running()? {
                    self.found.push(format!("a server ended by itself: {}", tail(&server.log())));
                }
                true
            }
            How::At { .. } => ends_within(&mut server, HIT_WITHIN)?,
            How::Ending { work, after } => {
                std::thread::sleep(work);
                server.signal(Signal::TERM)?;
                std::thread::sleep(after);
                true
            }
            How::Draining { work } => {
                std::thread::sleep(work);
                server.signal(Signal::TERM)?;
                ends_within(&mut server, HIT_WITHIN)?
            }
        };
        let log = server.log();
        if log.contains("panicked") {
            self.found.push(format!("a server panicked: {}", tail(&log)));
        }
        self.kill(server)?;
        tally.killed(if as_planned { how.name() } else { "without a hit" });
        Ok(())
    }
}

/// Takes a fresh database through so many kills. What was found.
pub(super) fn run(
    setting: &Setting,
    number: u64,
    kills: u64,
    tally: &mut Tally,
    progress: &ProgressBar,
) -> Result<Vec<String>, Fault> {
    let mut database = Database::in_a_hurry(setting, &format!("kill-{number}"))?;
    let seed = setting.seed.wrapping_add(number);
    let mut random = StdRng::seed_from_u64(seed);
    let workload = Workload::start(&database.plan(seed), &database.gate, &database.recorder)?;
    for kill in 0..kills {
        database.one(How::draw(kill, &mut random), tally)?;
        progress.inc(1);
        if kill % AUDIT_EVERY == AUDIT_EVERY - 1 {
            database.audit(tally)?;
        }
        if !database.found.is_empty() {
            return database.close();
        }
    }
    // The callers learn what became of their last calls, what the killed ones had claimed is fired, then the whole history
    // is judged once more.
    database.put_clock_ahead()?;
    if let Some(server) = database.serve(tally)? {
        workload.finish()?;
        let fired = database.everything_fires()?;
        tally.fired(fired);
        database.kill(server)?;
        let open = unknown(&database.recorder.attempts());
        database.found.extend(
            open.iter().map(|call| format!("call {} of {} stayed unknown", call.call, call.tool)),
        );
        database.audit(tally)?;
    }
    tally.add(&database.recorder.attempts());
    database.close()
}

/// True if the server ends by itself in time.
fn ends_within(server: &mut Server, patience: Duration) -> Result<bool, Fault> {
    let end = Instant::now() + patience;
    while server.is_running()? {
        if Instant::now() > end {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}

/// An empty folder of this name, in place of one that an earlier run left.
pub(in crate::torture) fn fresh_folder(parent: &Path, name: &str) -> Result<PathBuf, Fault> {
    let folder = parent.join(name);
    match std::fs::remove_dir_all(&folder) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(Fault::io("removing an old folder")(error)),
    }
    std::fs::create_dir_all(&folder).map_err(Fault::io("a folder for the server"))?;
    Ok(folder)
}

/// The last lines of a log.
pub(in crate::torture) fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines.iter().skip(lines.len().saturating_sub(12)).copied().collect::<Vec<_>>().join(" | ")
}
