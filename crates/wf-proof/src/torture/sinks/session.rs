//! A server that tells receivers what its callers do.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wf_testkit::audit::history::{Attempt, Outcome};

use super::hook::{Hook, OTHER_SECRET, SECRET};
use super::judge::judge;
use super::lies::Manner;
use super::outbox::{Row, State, deadlines, rows};
use crate::bench::process::resident;
use crate::fault::Fault;
use crate::harness::audit::examine;
use crate::harness::gate::Gate;
use crate::harness::record::{self, Recorder};
use crate::harness::server::{Launch, Server};
use crate::harness::workload::{Plan, Workload, talkative};
use crate::torture::kill::database::fresh_folder;
use crate::torture::{Report, Setting};

/// Callers at once.
const CALLERS: u32 = 8;
/// How often a caller leaves an order in the middle, so that people are told that it is late.
const WALKS_AWAY: f64 = 0.4;
/// How long the honest receiver's messages may take, whatever the others do.
const SOON: Duration = Duration::from_secs(10);
/// How long everything may take once all are well: a delivery that hangs ends after ten seconds, and what failed five times
/// waits for half a minute.
const HEALED: Duration = Duration::from_secs(75);
/// Pause between two looks at the outbox.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Connections that one receiver may have at once: eight deliveries, and some that are being opened or closed.
const OPEN_MAX: usize = 24;
/// Memory of the server at most, however much a receiver answers; it is a build for tests.
const MEMORY_MAX: u64 = 400 * 1024 * 1024;
/// Longest that a caller may wait beside receivers that hang.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// What the server trusts.
const TRUSTED: &str = "trusted.pem";

/// Somebody who is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    pub(super) recipient: &'static str,
    pub(super) manner: Manner,
}

/// The server with everybody around it.
pub(super) struct Session {
    launch: Launch,
    server: Server,
    hooks: Vec<(Told, Hook)>,
    gate: Gate,
    recorder: Arc<Recorder>,
    workload: Option<Workload>,
    pub(super) found: Vec<String>,
    took: String,
}

impl Session {
    /// A server with a route to each of them. The procedure tells subscribers, and one lead of each kind of block.
    pub(super) fn open(
        setting: &Setting,
        name: &str,
        seed: u64,
        told: &[Told],
    ) -> Result<Self, Fault> {
        Self::routed(setting, name, seed, told, str::to_owned)
    }

    /// The same, with routes that are changed before they are written.
    pub(super) fn routed(
        setting: &Setting,
        name: &str,
        seed: u64,
        told: &[Told],
        change: impl Fn(&str) -> String,
    ) -> Result<Self, Fault> {
        let folder = fresh_folder(&setting.folder, name)?;
        let mut launch = Launch::new(&setting.server, &folder)
            .env("WF_TELEMETRY_LOG", "error")
            .env("SSL_CERT_FILE", folder.join(TRUSTED).display().to_string());
        let (database, mut hooks, mut config) = (launch.database(), Vec::new(), String::new());
        for (number, one) in told.iter().enumerate() {
            let trusted = (one.manner == Manner::Impostor).then(|| folder.join(TRUSTED));
            let seed = seed ^ u64::try_from(number).unwrap_or_default() << 48;
            let hook = Hook::start(one.manner, &database, seed, trusted.as_deref())?;
            config.push_str(&change(&format!(
                "[[notifications.route]]\nto = \"{}\"\nsink = \"webhook\"\nurl = \"{}\"\nsecret_file = \"hook.secret\"\n\
                 allow_private = true\n",
                one.recipient,
                hook.url()
            )));
            hooks.push((*one, hook));
        }
        let procedures = folder.join("procedures");
        let text = talkative(["lead-a", "lead-b", "lead-c", "lead-d"]);
        std::fs::create_dir_all(&procedures)
            .and_then(|()| std::fs::write(procedures.join("pump-inspection.yaml"), text))
            .and_then(|()| std::fs::write(folder.join("routes.toml"), config))
            .and_then(|()| std::fs::write(folder.join("hook.secret"), SECRET))
            .and_then(|()| std::fs::write(folder.join("other.secret"), OTHER_SECRET))
            .map_err(Fault::io("the files of a server"))?;
        let arguments = ["--procedures", "procedures", "--config", "routes.toml"];
        launch.arguments.extend(arguments.map(str::to_owned));
        let server = Server::start(&launch)?;
        let (gate, recorder) = (Gate::default(), Arc::<Recorder>::default());
        gate.open(server.address());
        let plan = Plan { walks_away: WALKS_AWAY, ..Plan::new(CALLERS, seed) };
        let workload = Some(Workload::start(&plan, &gate, &recorder)?);
        let (found, took) = (Vec::new(), String::new());
        Ok(Self { launch, server, hooks, gate, recorder, workload, found, took })
    }

    /// Callers work while receivers are as they are.
    pub(super) fn lie_for(&mut self, long: Duration) -> Result<(), Fault> {
        // The experiment itself.
        std::thread::sleep(long);
        if let Some(workload) = self.workload.take() {
            workload.finish()?;
        }
        self.gate.close();
        Ok(())
    }

    /// The same; afterwards what is for honest receivers must be through soon.
    pub(super) fn lie(&mut self, long: Duration) -> Result<(), Fault> {
        self.lie_for(long)?;
        let honest: Vec<&str> = self
            .hooks
            .iter()
            .filter(|(told, _)| told.manner == Manner::Honest)
            .map(|(told, _)| told.recipient)
            .collect();
        let for_honest = |row: &Row| honest.contains(&row.recipient.as_str());
        let begun = Instant::now();
        if let Some(left) = self.waits_for(SOON, for_honest)? {
            self.found.push(format!("{left} messages wait for an honest receiver after {SOON:?}"));
        }
        self.took =
            format!("those of the honest receiver {:.1} s later", begun.elapsed().as_secs_f64());
        Ok(())
    }

    /// All receivers are well: nothing may be left.
    pub(super) fn heal(&mut self) -> Result<(), Fault> {
        for (told, hook) in &self.hooks {
            if told.manner == Manner::Impostor && !hook.arrivals().is_empty() {
                self.found.push("something was told to an impostor".to_owned());
            }
            hook.is_well();
        }
        let begun = Instant::now();
        if let Some(left) = self.waits_for(HEALED, |_| true)? {
            self.found
                .push(format!("{left} messages wait {HEALED:?} after all receivers are well"));
        }
        self.took.push_str(&format!(", all {:.1} s after", begun.elapsed().as_secs_f64()));
        Ok(())
    }

    /// How many of these messages are left when the time is over, if any.
    fn waits_for(
        &self,
        patience: Duration,
        which: impl Fn(&Row) -> bool,
    ) -> Result<Option<usize>, Fault> {
        let end = Instant::now() + patience;
        loop {
            let rows = self.rows()?;
            let waiting = |row: &&Row| row.state == State::Pending && which(row);
            let left = rows.iter().filter(waiting).count();
            // What is late in a moment is told of, too.
            if left == 0 && deadlines(&self.launch.database())? == 0 {
                return Ok(None);
            }
            if Instant::now() > end {
                return Ok(Some(left));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    pub(super) fn rows(&self) -> Result<Vec<Row>, Fault> {
        rows(&self.launch.database())
    }

    /// What is wrong between the outbox and the receivers' own books.
    pub(super) fn judge(&self, report: &mut Report) -> Result<Vec<String>, Fault> {
        let all = self.rows()?;
        let mut found = Vec::new();
        for (told, hook) in &self.hooks {
            let (name, arrivals) = (told.recipient, hook.arrivals());
            let theirs: Vec<&Row> = all.iter().filter(|row| row.recipient == name).collect();
            let (wrong, again) = judge(&theirs, &arrivals);
            found.extend(
                wrong.into_iter().chain(hook.wrong()).map(|what| format!("{name}: {what}")),
            );
            let (connections, open) = hook.connections();
            if open > OPEN_MAX {
                found.push(format!("{name}: {open} connections were open at once"));
            }
            let dead = theirs.iter().filter(|row| row.state == State::Dead).count();
            report.done.push(format!(
                "{name} ({:?}): {} messages, {dead} dead, {} deliveries of which {again} were not needed, {connections} \
                 connections, at most {open} at once; {:?}",
                told.manner,
                theirs.len(),
                arrivals.len(),
                hook.did()
            ));
        }
        Ok(found)
    }

    /// Ends everything, and holds all books against each other.
    pub(super) fn close(mut self, report: &mut Report) -> Result<(), Fault> {
        let (_, memory) = resident(self.server.id())?;
        if memory > MEMORY_MAX {
            self.found.push(format!("the server had {memory} bytes in memory"));
        }
        let judged = self.judge(report)?;
        self.found.extend(judged);
        let Self { launch, server, recorder, mut found, took, .. } = self;
        let ended = server.stop()?;
        if !ended.success() {
            found.push(format!("the server ends with {ended}"));
        }
        let attempts = recorder.attempts();
        found.extend(waits(&attempts));
        let audit = examine(&launch.database(), &attempts)?;
        found.extend(audit.violations.iter().map(ToString::to_string));
        report
            .done
            .push(format!("{audit}; messages were through: {took}; memory {} MB", memory >> 20));
        let folder: PathBuf = launch.folder;
        if found.is_empty() {
            std::fs::remove_dir_all(&folder).map_err(Fault::io("removing a folder"))?;
        } else {
            record::write(&folder.join("attempts.jsonl"), &attempts)?;
        }
        report.found.extend(found);
        Ok(())
    }
}

/// No caller may feel what receivers do.
fn waits(attempts: &[Attempt]) -> Vec<String> {
    let mut found = Vec::new();
    let mut took: Vec<u64> = attempts.iter().map(|a| a.over_ns.saturating_sub(a.sent_ns)).collect();
    took.sort_unstable();
    let at = took.len().saturating_sub(1) * 99 / 100;
    let most = Duration::from_nanos(took.get(at).copied().unwrap_or_default());
    if most > WAIT_MAX {
        found.push(format!("1 of 100 callers waited for {most:?} and more"));
    }
    let lost = attempts.iter().filter(|a| matches!(a.outcome, Outcome::Unknown { .. }));
    let lost: Vec<_> = lost.map(|attempt| &attempt.outcome).collect();
    if let Some(one) = lost.first() {
        found.push(format!("{} calls got no answer, one of them {one:?}", lost.len()));
    }
    found
}
