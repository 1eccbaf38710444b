//! Several servers on one database file, each with a gate for its callers, and one clock for all of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::types::Value;
use rusqlite::{ErrorCode, OpenFlags};

use super::Setting;
use super::kill::database::{fresh_folder, tail};
use super::kill::hurry;
use crate::fault::Fault;
use crate::harness::audit::{audit, audit_live};
use crate::harness::gate::Gate;
use crate::harness::port::lasting_address;
use crate::harness::record::{self, Recorder};
use crate::harness::server::{Launch, Server};
use crate::harness::workload::{Someone, Workload, unknown};

/// How long attempts may take to be over once nobody is let in.
const QUIET_WITHIN: Duration = Duration::from_secs(40);
/// How long a look waits for whoever writes.
const BUSY_WITHIN: Duration = Duration::from_secs(10);
/// Longer than a commit holds the write lock.
const LOCKED_FOR: Duration = Duration::from_millis(600);
/// Pause between two looks at something.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// One of the servers.
#[derive(Debug)]
struct Member {
    launch: Launch,
    gate: Gate,
    server: Option<Server>,
}

/// All of them, with what their callers saw.
#[derive(Debug)]
pub(super) struct Crew {
    pub(super) recorder: Arc<Recorder>,
    /// What must not be.
    pub(super) found: Vec<String>,
    folder: PathBuf,
    members: Vec<Member>,
}

impl Crew {
    /// So many servers, none of which runs yet, with the hurried procedure, in a fresh folder below that of the run.
    pub(super) fn new(setting: &Setting, name: &str, count: usize) -> Result<Self, Fault> {
        let folder = fresh_folder(&setting.folder, name)?;
        let mut crew =
            Self { recorder: Arc::default(), found: Vec::new(), folder, members: Vec::new() };
        for number in 0..count {
            let own = fresh_folder(&crew.folder, &format!("server-{number}"))?;
            let database = crew.database().display().to_string();
            let mut launch =
                Launch::new(&setting.server, &own).env("WF_BACKEND_LOCAL_PATH", database);
            launch.listen = lasting_address()?;
            hurry::procedure(&mut launch)?;
            crew.members.push(Member { launch, gate: Gate::default(), server: None });
        }
        Ok(crew)
    }

    /// The same by people with tokens.
    pub(super) fn with_people(&mut self) -> Result<Vec<Someone>, Fault> {
        // The key is beside the database, so all of them take the tokens that one gives out.
        let mut people = Vec::new();
        for member in &mut self.members {
            people = hurry::people(&mut member.launch)?;
        }
        Ok(people)
    }

    /// Changes how a server is started.
    pub(super) fn rig(&mut self, number: usize, change: impl FnOnce(&mut Launch)) {
        if let Some(member) = self.members.get_mut(number) {
            change(&mut member.launch);
        }
    }

    /// The file that all of them use.
    pub(super) fn database(&self) -> PathBuf {
        self.folder.join("checkpoint.db")
    }

    fn clock(&self) -> PathBuf {
        self.folder.join("clock")
    }

    /// By how much the clock of all is ahead from now on, in milliseconds.
    pub(super) fn set_clock(&self, ms: i64) -> Result<(), Fault> {
        let new = self.clock().with_extension("new");
        std::fs::write(&new, ms.to_string())
            .and_then(|()| std::fs::rename(&new, self.clock()))
            .map_err(Fault::io("the clock"))
    }

    /// Starts a server with these failpoints beside its clock. False, and a finding, when it does not serve.
    pub(super) fn start(&mut self, number: usize, failpoints: &str) -> Result<bool, Fault> {
        let clock = self.clock().display().to_string();
        let all = format!("clock=return({clock});{failpoints}");
        let member = self.member(number)?;
        match Server::start(&member.launch.clone().env("FAILPOINTS", all)) {
            Ok(server) => member.server = Some(server),
            Err(Fault::Server { what, log }) => {
                let what = format!("server {number}: {what}: {}", tail(&log));
                self.found.push(what);
                return Ok(false);
            }
            Err(fault) => return Err(fault),
        }
        Ok(true)
    }

    fn member(&mut self, number: usize) -> Result<&mut Member, Fault> {
        let absent = || Fault::Run(format!("there is no server {number}"));
        self.members.get_mut(number).ok_or_else(absent)
    }

    /// A server that runs.
    pub(super) fn server(&self, number: usize) -> Result<&Server, Fault> {
        let running = self.members.get(number).and_then(|member| member.server.as_ref());
        running.ok_or_else(|| Fault::Run(format!("server {number} does not run")))
    }

    /// The gate through which the callers of this number come in.
    pub(super) fn gate(&self, number: usize) -> Gate {
        self.members.get(number).map(|member| member.gate.clone()).unwrap_or_default()
    }

    /// From now on the callers of one server call at another.
    pub(super) fn turn(&self, callers: usize, to: usize) -> Result<(), Fault> {
        self.gate(callers).open(self.server(to)?.address());
        Ok(())
    }

    /// Ends a server without asking. Its callers wait until they are turned to another.
    pub(super) fn kill(&mut self, number: usize) -> Result<(), Fault> {
        let member = self.member(number)?;
        member.gate.close();
        if let Some(server) = member.server.take() {
            let log = server.log();
            if log.contains("panicked") {
                self.found.push(format!("server {number} panicked: {}", tail(&log)));
            }
            server.kill()?;
        }
        Ok(())
    }

    /// Whether a server ends by itself within this time.
    pub(super) fn ends(&mut self, number: usize, within: Duration) -> Result<bool, Fault> {
        let end = Instant::now() + within;
        loop {
            let Some(server) = self.member(number)?.server.as_mut() else { return Ok(true) };
            if !server.is_running()? {
                return Ok(true);
            }
            if Instant::now() > end {
                return Ok(false);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Ends all that run, politely: each must say that all is well.
    pub(super) fn stop(&mut self) -> Result<(), Fault> {
        self.quiet()?;
        for number in 0..self.members.len() {
            let Some(server) = self.member(number)?.server.take() else { continue };
            let log = server.log();
            let ended = server.stop()?;
            if !ended.success() || log.contains("panicked") {
                self.found.push(format!("server {number} ended with {ended}: {}", tail(&log)));
            }
        }
        Ok(())
    }

    /// Lets nobody in, and waits until every attempt is over and written down.
    pub(super) fn quiet(&self) -> Result<(), Fault> {
        self.members.iter().for_each(|member| member.gate.close());
        if self.members.iter().any(|member| !member.gate.is_quiet_within(QUIET_WITHIN)) {
            return Err(Fault::Run("a call goes on although nobody is let in".to_owned()));
        }
        Ok(())
    }

    /// Lets the callers finish; each call must become known.
    pub(super) fn finish(&mut self, workload: Workload) -> Result<(), Fault> {
        workload.finish()?;
        let open = unknown(&self.recorder.attempts());
        self.found.extend(
            open.iter().map(|call| format!("call {} of {} stayed unknown", call.call, call.tool)),
        );
        Ok(())
    }

    /// Holds the database against what the callers saw, while servers have it. Nobody may be calling.
    pub(super) fn audit_live(&mut self) -> Result<(), Fault> {
        let found = audit_live(&self.database(), &self.recorder.attempts())?;
        self.found.extend(found);
        Ok(())
    }

    /// The same when none has.
    pub(super) fn audit(&mut self) -> Result<(), Fault> {
        let found = audit(&self.database(), &self.recorder.attempts())?;
        self.found.extend(found);
        Ok(())
    }

    /// The one number that a statement answers.
    pub(super) fn count(&self, sql: &str, values: &[Value]) -> Result<i64, Fault> {
        self.look(|db| db.query_row(sql, rusqlite::params_from_iter(values), |row| row.get(0)))
    }

    /// The one text that a statement answers.
    pub(super) fn text(&self, sql: &str) -> Result<String, Fault> {
        self.look(|db| db.query_row(sql, [], |row| row.get(0)))
    }

    fn look<T>(
        &self,
        read: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Fault> {
        let opened = || {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
            let db = rusqlite::Connection::open_with_flags(self.database(), flags)?;
            db.busy_timeout(BUSY_WITHIN)?;
            read(&db)
        };
        opened().map_err(|error| Fault::Run(format!("looking at the database: {error}")))
    }

    /// Whether somebody holds the write lock, for longer than a commit takes.
    pub(super) fn is_locked(&self) -> Result<bool, Fault> {
        let took = || -> rusqlite::Result<()> {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
            let db = rusqlite::Connection::open_with_flags(self.database(), flags)?;
            db.busy_timeout(LOCKED_FOR)?;
            db.execute_batch("BEGIN IMMEDIATE; ROLLBACK")
        };
        match took() {
            Ok(()) => Ok(false),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(true),
            Err(error) => Err(Fault::Run(format!("looking for the write lock: {error}"))),
        }
    }

    /// Puts a file into the folder of a server.
    pub(super) fn write(&self, number: usize, name: &str, text: &str) -> Result<(), Fault> {
        let Some(member) = self.members.get(number) else { return Ok(()) };
        std::fs::write(member.launch.folder.join(name), text)
            .map_err(Fault::io(format!("writing {name}")))
    }

    /// Waits until the statement answers 0. A finding when it does not within this time.
    pub(super) fn becomes_zero(
        &mut self,
        what: &str,
        sql: &str,
        values: &[Value],
        within: Duration,
    ) -> Result<(), Fault> {
        let end = Instant::now() + within;
        loop {
            let left = self.count(sql, values)?;
            if left == 0 {
                return Ok(());
            }
            if Instant::now() > end {
                self.found.push(format!("{left} {what} after {within:?}"));
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until everything that is due by this clock has happened, when nobody calls.
    pub(super) fn all_is_done(&mut self, ahead_ms: i64, within: Duration) -> Result<(), Fault> {
        let now = [Value::from(now_ms() + ahead_ms)];
        let due = "SELECT count(*) FROM deadlines WHERE fire_at <= ?1";
        self.becomes_zero("deadlines are due and do not pass", due, &now, within)?;
        let pending = "SELECT count(*) FROM outbox WHERE state = 'pending'";
        self.becomes_zero("messages are not delivered", pending, &[], within)?;
        let dead = self.count("SELECT count(*) FROM outbox WHERE state = 'dead'", &[])?;
        if dead > 0 {
            self.found.push(format!("{dead} messages are given up, and nobody refused them"));
        }
        Ok(())
    }

    /// What a server wrote since it was started last.
    pub(super) fn log(&self, number: usize) -> String {
        let folder = self.members.get(number).map(|member| member.launch.folder.join("serve.log"));
        folder.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default()
    }

    /// Removes the folder, or leaves it with the history when something was found.
    pub(super) fn close(mut self) -> Result<Vec<String>, Fault> {
        self.members.clear();
        if self.found.is_empty() {
            std::fs::remove_dir_all(&self.folder).map_err(Fault::io("removing the database"))?;
        } else {
            record::write(&self.folder.join("attempts.jsonl"), &self.recorder.attempts())?;
        }
        Ok(self.found)
    }
}

/// Milliseconds since the epoch, by the true clock.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Whether a process stands still (state `T` of proc(5)).
pub(super) fn is_stopped(id: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(id.to_string()).join("stat"));
    // The name in field 2 may hold anything, so fields are counted from its closing bracket.
    stat.is_ok_and(|stat| {
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    })
}
