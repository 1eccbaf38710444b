//! Runs a server under the preload library, with callers, through what a server goes through: it starts on nothing, works,
//! carries its log over while callers pause, ends politely or not, starts again on what is there, works on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use rand::rngs::StdRng;
use wf_testkit::audit::history::{Attempt, Outcome};

use super::answers::answers;
use super::disk::Found;
use crate::fault::Fault;
use crate::harness::disk::Tap;
use crate::harness::disk::log::{Class, Record, What};
use crate::harness::gate::Gate;
use crate::harness::record::Recorder;
use crate::harness::server::{Launch, PATIENCE, Server};
use crate::harness::workload::{Plan, Workload, is_recorded};
use crate::torture::Setting;

/// The files of a database that matter after a power cut.
pub(super) const FILES: [(&str, Class); 3] = [
    ("checkpoint.db", Class::Database),
    ("checkpoint.db-wal", Class::Wal),
    ("checkpoint.db-journal", Class::Journal),
];

/// How a server lives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Script {
    /// Acknowledged calls in each of its four stretches of work.
    pub(super) calls: u64,
    /// `synchronous=NORMAL`, for the negative control.
    pub(super) normal: bool,
}

/// Everything that happened in a life.
#[derive(Debug)]
pub(super) struct Recording {
    /// What the files were before.
    pub(super) found: Vec<Found>,
    /// What was done to them, and the answers, in order.
    pub(super) records: Vec<Record>,
    /// What callers saw.
    pub(super) seen: Vec<Seen>,
    /// Every key that a caller sent.
    pub(super) keys: BTreeSet<String>,
    /// A backup that was made on the way.
    pub(super) backup: Option<Backup>,
}

/// A backup, and what was acknowledged when it was made.
#[derive(Debug)]
pub(super) struct Backup {
    file: PathBuf,
    pub(super) acknowledged: BTreeMap<String, String>,
}

impl Recording {
    /// Key and bytes of every acknowledged call.
    pub(super) fn acknowledged(&self) -> BTreeMap<String, String> {
        acknowledged(self.seen.iter().map(|seen| &seen.attempt))
    }
}

fn acknowledged<'a>(attempts: impl Iterator<Item = &'a Attempt>) -> BTreeMap<String, String> {
    let known = attempts.filter_map(known);
    known.map(|(key, text)| (key.to_owned(), text)).collect()
}

/// One attempt, and when its answer left.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) attempt: Attempt,
    /// The record at which the answer was about to leave; `None` without an answer.
    pub(super) answered: Option<usize>,
    /// The first record at which it may have been sent.
    pub(super) sent: usize,
}

impl Seen {
    /// The key and the bytes of the first answer, when this one says that something was recorded under the key.
    pub(super) fn acknowledged(&self) -> Option<(&str, String)> {
        known(&self.attempt)
    }
}

fn known(attempt: &Attempt) -> Option<(&str, String)> {
    let Outcome::Answered { text } = &attempt.outcome else { return None };
    let key = attempt.arguments.get("idempotency_key")?.as_str()?;
    let recorded = serde_json::from_str(text).is_ok_and(|result| is_recorded(&result));
    recorded.then(|| (key, text.replacen("\"duplicate\":true", "\"duplicate\":false", 1)))
}

/// Lives in `folder`, which is empty; the log of the disk is in `own`.
///
/// # Errors
/// When the server does not do what it should, or something was not logged.
pub(super) fn live(
    setting: &Setting,
    folder: &Path,
    own: &Path,
    script: Script,
    random: &mut StdRng,
) -> Result<Recording, Fault> {
    let (tap, launch) = tapped(setting, folder, own, script.normal)?;
    let recorder = Arc::<Recorder>::default();
    let gate = Gate::default();
    let plan = Plan::new(4, random.random());
    let workload = Workload::start(&plan, &gate, &recorder)?;
    let mut server = Server::start(&launch)?;
    gate.open(server.address());
    until(&workload, script.calls)?;
    begin_again(&gate, &launch, &tap, server.address())?;
    until(&workload, script.calls * 2)?;
    // Nobody calls for longer: the checkpointer cuts the log back to nothing.
    pause(&gate)?;
    wait("the log to be cut back", || Ok(length(&launch, "-wal") == 0))?;
    let file = own.join("backup.db");
    command(&Launch::new(&setting.server, folder), &["backup", &file.to_string_lossy()])?;
    let backup = Backup { file, acknowledged: acknowledged(recorder.attempts().iter()) };
    gate.open(server.address());
    until(&workload, script.calls * 3)?;
    match random.random_range(0..3) {
        0 => {
            gate.close();
            server.kill()?;
        }
        1 => {
            // In the middle of calls.
            server.stop()?;
            gate.close();
        }
        _ => {
            pause(&gate)?;
            server.stop()?;
        }
    }
    server = Server::start(&launch)?;
    gate.open(server.address());
    until(&workload, script.calls * 4)?;
    workload.finish()?;
    if random.random_bool(0.5) {
        server.stop()?;
    } else {
        server.kill()?;
    }
    let mut recording = recording(&tap, Vec::new(), recorder.attempts())?;
    recording.backup = Some(backup);
    Ok(recording)
}

/// Starts a server on what a power cut left in `folder`, lets it recover, and ends it without asking.
///
/// # Errors
/// As [`live`]: a server that does not start on what a power cut left is a finding of the caller's.
pub(super) fn recover(setting: &Setting, folder: &Path, own: &Path) -> Result<Recording, Fault> {
    let found = found_in(folder)?;
    let (tap, launch) = tapped(setting, folder, own, false)?;
    Server::start(&launch)?.kill()?;
    recording(&tap, found, Vec::new())
}

/// Puts the backup in the place of the database that a life left in `folder`.
///
/// # Errors
/// When that does not succeed.
pub(super) fn restore(
    setting: &Setting,
    folder: &Path,
    own: &Path,
    backup: &Backup,
) -> Result<Recording, Fault> {
    let found = found_in(folder)?;
    let (tap, launch) = tapped(setting, folder, own, false)?;
    command(&launch, &["restore", &backup.file.to_string_lossy()])?;
    recording(&tap, found, Vec::new())
}

fn command(launch: &Launch, arguments: &[&str]) -> Result<(), Fault> {
    let done = launch.command(arguments)?;
    if done.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&done.stderr).into_owned();
    Err(Fault::Server { what: format!("{arguments:?} did not succeed"), log })
}

fn found_in(folder: &Path) -> Result<Vec<Found>, Fault> {
    let wrong = || Fault::io("the files of a database");
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(wrong())? {
        let entry = entry.map_err(wrong())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let of_database = FILES.iter().find(|(file, _)| *file == name).map(|(_, class)| *class);
        let class = of_database.unwrap_or(Class::Other);
        if name.starts_with(FILES[0].0) && !name.ends_with("-shm") {
            let bytes = fs::read(entry.path()).map_err(wrong())?;
            let inode = entry.metadata().map_err(wrong())?.ino();
            all.push(Found { name, class, inode, bytes });
        }
    }
    Ok(all)
}

fn tapped(
    setting: &Setting,
    folder: &Path,
    own: &Path,
    normal: bool,
) -> Result<(Tap, Launch), Fault> {
    for path in [folder, own] {
        fs::create_dir_all(path).map_err(Fault::io("a folder"))?;
    }
    let mut launch = Launch::new(&setting.server, folder);
    if normal {
        launch = launch.env("FAILPOINTS", "open.synchronous=return");
    }
    Tap::new(&setting.preload, launch, own)
}

fn recording(tap: &Tap, found: Vec<Found>, attempts: Vec<Attempt>) -> Result<Recording, Fault> {
    let records = tap.log()?;
    if !records.iter().any(|record| record.class == Some(Class::Wal)) {
        return Err(Fault::Run(
            "the server was not preloaded: its log of the disk is empty".into(),
        ));
    }
    let keys = attempts
        .iter()
        .filter_map(|attempt| Some(attempt.arguments.get("idempotency_key")?.as_str()?.to_owned()));
    let keys = keys.collect();
    Ok(Recording { found, seen: seen(&records, attempts)?, records, keys, backup: None })
}

/// Pairs attempts with the answers in the log, and brings both clocks together.
fn seen(records: &[Record], attempts: Vec<Attempt>) -> Result<Vec<Seen>, Fault> {
    let mut given = answers(records);
    let mut seen = Vec::with_capacity(attempts.len());
    // Attempts come in the order in which they were over, and so do answers with the same text.
    for attempt in attempts {
        let answered = match &attempt.outcome {
            Outcome::Answered { text } => {
                let place = given.iter().position(|answer| answer.text == *text);
                let place = place.ok_or_else(|| {
                    Fault::Run(format!("the answer to call {} is not in the log", attempt.call))
                })?;
                Some(given.remove(place).at)
            }
            Outcome::NotSent | Outcome::Unknown { .. } | Outcome::Shed { .. } => None,
        };
        seen.push(Seen { attempt, answered, sent: 0 });
    }
    // An answer was read after it left: so much at least is between the clocks of the callers and of the log.
    let at = |record: usize| records.get(record).map_or(0, |record| record.at_ns);
    let between =
        |seen: &Seen| Some(i128::from(at(seen.answered?)) - i128::from(seen.attempt.over_ns));
    let offset = seen.iter().filter_map(between).max().unwrap_or(0);
    for one in &mut seen {
        let sent = i128::from(one.attempt.sent_ns) + offset;
        one.sent = records.partition_point(|record| i128::from(record.at_ns) < sent);
    }
    Ok(seen)
}

/// Pauses until the checkpointer carried the log over and did not cut it back: whoever writes next begins it again from
/// its start, over what was there.
fn begin_again(gate: &Gate, launch: &Launch, tap: &Tap, address: SocketAddr) -> Result<(), Fault> {
    for _ in 0..4 {
        pause(gate)?;
        let before = carried_over(tap)?;
        wait("a checkpoint", || Ok(carried_over(tap)? > before || length(launch, "-wal") == 0))?;
        let cut_back = length(launch, "-wal") == 0;
        gate.open(address);
        if !cut_back {
            break;
        }
        wait("somebody to write", || Ok(length(launch, "-wal") > 0))?;
    }
    Ok(())
}

fn until(workload: &Workload, calls: u64) -> Result<(), Fault> {
    wait("callers to be answered", || Ok(workload.acknowledged() >= calls))
}

fn pause(gate: &Gate) -> Result<(), Fault> {
    gate.close();
    if gate.is_quiet_within(PATIENCE) {
        Ok(())
    } else {
        Err(Fault::Run("callers did not get their answers".to_owned()))
    }
}

fn wait(what: &str, mut is_so: impl FnMut() -> Result<bool, Fault>) -> Result<(), Fault> {
    let end = Instant::now() + PATIENCE;
    while !is_so()? {
        if Instant::now() > end {
            return Err(Fault::Run(format!("waited in vain for {what}")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// How often the log was carried over: each time ends with a sync of the database.
fn carried_over(tap: &Tap) -> Result<usize, Fault> {
    let is_sync = |record: &Record| {
        record.class == Some(Class::Database) && matches!(record.what, What::SyncEnd { .. })
    };
    Ok(tap.log()?.iter().filter(|record| is_sync(record)).count())
}

fn length(launch: &Launch, suffix: &str) -> u64 {
    let mut path = launch.database().into_os_string();
    path.push(suffix);
    fs::metadata(path).map_or(0, |found| found.len())
}
