//! Fills a new database with workflows of the procedure `bench-round`, through the storage port.
//!
//! Nine of ten are finished; the others are open, and a few of those blocked; or all of them are open. They ended within
//! the last 25 days, so that a server that opens the database has nothing to sweep. Each workflow takes two commits (and so two ledger rows, where
//! a conversation would leave one for each event); everything else is as a server would have written it.
//!
//! It is filled beside its final name and renamed when it is whole: a database that is there is complete.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;
use wf_backend_local::{LocalConfig, LocalStore};
use wf_core::models::{Actor, ProcedureRef, StartDeadline, TenantId, Timestamp, Workflow};
use wf_core::policy::DomainPolicyPort as _;
use wf_core::ports::{CommitError, StorageBackendPort as _};
use wf_core::state_machine::{EventBody, deadlines, evolve};
use wf_testkit::build::{CommitBuilder, asset, tenant, user, workflow_id};

use super::work::{PROCEDURE, STEPS};
use crate::fault::Fault;

/// Events of a finished workflow unless said: two of its start, three steps, its end. A million of them take about 10 GB.
pub const EVENTS: u64 = 6;
/// The most that the procedure has: two of its start, all its steps, its end.
pub const EVENTS_MAX: u64 = 3 + STEPS as u64;

/// Workflows that are worked on at once; enough for whole batches of the writer.
const AT_ONCE: u64 = 512;
/// One of so many is open.
const OPEN_EVERY: u64 = 10;
/// Blocked ones, however many workflows there are: what waits for a decision does not pile up.
const BLOCKED: u64 = 20;
/// Open workflows of one person.
const OPEN_EACH: u64 = 50;
/// Machines that the finished workflows were about, in turns. More than are worked on at once.
const MACHINES: u64 = 50_000;
/// Whom messages are for.
const RECIPIENT: &str = "subscribers";
/// How far back the oldest lies, in milliseconds.
const DAYS_25: u64 = 25 * 24 * 3_600 * 1_000;

/// What the workflows of a database are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Most of them finished.
    Mixed,
    /// The same, with a message each that is not delivered yet.
    WithMessages,
    /// All of them open; with a deadline each that is due, or with none.
    Open { due: bool },
}

/// A database that was filled.
#[derive(Debug, Clone, Copy)]
pub struct Filled {
    /// How long it took.
    pub time: Duration,
    /// Its size.
    pub bytes: u64,
}

/// What all workflows share.
#[derive(Debug)]
struct Common {
    store: LocalStore,
    procedure: ProcedureRef,
    tenant: TenantId,
    workflows: u64,
    events: u64,
    kind: Kind,
    begin_ms: u64,
    next: AtomicU64,
    bar: ProgressBar,
}

/// Fills a new database.
///
/// # Errors
/// When the file is there already, or cannot be written.
pub fn fill(database: &Path, workflows: u64, events: u64) -> Result<Filled, Fault> {
    made(database, workflows, events, Kind::Mixed)
}

/// The same, with one message for each workflow that is due and not delivered yet.
///
/// # Errors
/// As [`fill`].
pub fn fill_with_messages(database: &Path, workflows: u64) -> Result<Filled, Fault> {
    made(database, workflows, EVENTS, Kind::WithMessages)
}

/// Fills a new database with open workflows that have recorded one step; with one deadline each that is due, or with none.
///
/// # Errors
/// As [`fill`].
pub fn fill_with_open(database: &Path, workflows: u64, due: bool) -> Result<Filled, Fault> {
    made(database, workflows, EVENTS, Kind::Open { due })
}

fn made(database: &Path, workflows: u64, events: u64, kind: Kind) -> Result<Filled, Fault> {
    if database.exists() {
        return Err(Fault::Run(format!(
            "{} is there already, and whole; remove it or name another",
            database.display()
        )));
    }
    let begun = Instant::now();
    let growing = beside(database, ".part");
    for left in [growing.clone(), beside(&growing, "-wal"), beside(&growing, "-shm")] {
        // Of a run that was ended; it may not be there.
        let _ = std::fs::remove_file(left);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Fault::io("starting the runtime"))?;
    runtime.block_on(write(&growing, workflows, events, kind))?;
    std::fs::rename(&growing, database).map_err(Fault::io("renaming the database"))?;
    // The file that says who uses a database; nobody does.
    let _ = std::fs::remove_file(beside(&growing, ".lock"));
    let bytes = std::fs::metadata(database).map_err(Fault::io("measuring the database"))?.len();
    Ok(Filled { time: begun.elapsed(), bytes })
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

async fn write(path: &Path, workflows: u64, events: u64, kind: Kind) -> Result<(), Fault> {
    let wrong = |error: &dyn std::fmt::Display| Fault::Run(format!("filling: {error}"));
    let opened = LocalStore::open(LocalConfig::new(path)).await.map_err(|e| wrong(&e))?;
    let procedure = wf_procedure::parse(PROCEDURE, "bench-round.yaml")
        .map_err(|problems| Fault::Run(format!("the procedure of the bench: {problems:?}")))?;
    let definition = procedure.definition();
    opened.store.put_definition(definition).await.map_err(|e| wrong(&e))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|e| wrong(&e))?;
    let now = u64::try_from(now.as_millis()).map_err(|e| wrong(&e))?;
    let common = Arc::new(Common {
        store: opened.store,
        procedure: ProcedureRef {
            id: definition.id.clone(),
            version: definition.version,
            digest: definition.digest.clone(),
        },
        tenant: tenant("default"),
        workflows,
        events,
        kind,
        begin_ms: now.saturating_sub(DAYS_25),
        next: AtomicU64::new(0),
        bar: bar(workflows),
    });
    let mut tasks = JoinSet::new();
    for _ in 0..AT_ONCE.min(workflows) {
        tasks.spawn(work(Arc::clone(&common)));
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(|e| wrong(&e))??;
    }
    common.bar.finish();
    if let Some(common) = Arc::into_inner(common) {
        common.store.close().await;
    }
    Ok(())
}

fn bar(workflows: u64) -> ProgressBar {
    let bar = ProgressBar::new(workflows);
    // A template that does not parse is a slip in the line below; the default style serves as well.
    if let Ok(style) = ProgressStyle::with_template(
        "{wide_bar} {human_pos} of {human_len} workflows, {per_sec}, {eta} left",
    ) {
        bar.set_style(style);
    }
    bar
}

async fn work(common: Arc<Common>) -> Result<(), Fault> {
    loop {
        let number = common.next.fetch_add(1, Ordering::Relaxed);
        if number >= common.workflows {
            return Ok(());
        }
        one(&common, number)
            .await
            .map_err(|error| Fault::Run(format!("filling, workflow {number}: {error}")))?;
        common.bar.inc(1);
    }
}

/// One workflow, from its start to where it is.
async fn one(common: &Common, number: u64) -> Result<(), CommitError> {
    let mixed = !matches!(common.kind, Kind::Open { .. });
    let open = !mixed || number % OPEN_EVERY == OPEN_EVERY - 1;
    let ago = DAYS_25.saturating_mul(number) / common.workflows.max(1);
    let at = Timestamp::from_ms(i64::try_from(common.begin_ms + ago).unwrap_or(i64::MAX));
    let id = workflow_id(&format!(
        "{:08x}-{:04x}-7000-8000-{number:012x}",
        number >> 16,
        number & 0xffff
    ));
    // An open workflow has its machine for itself; the others take turns, so its fence is the number of the turn.
    let (machine, fence) = if open {
        (1_000_000 + number, 1)
    } else {
        (100_000 + number % MACHINES, 1 + turn(number))
    };
    let opened = if mixed { number / OPEN_EVERY } else { number };
    let owner: Actor = user(&format!("technician-{}", opened / OPEN_EACH));
    let mut first = CommitBuilder::start(&common.tenant, &id, &owner, at);
    if common.kind == (Kind::Open { due: true }) {
        first = first.start_deadline(&StartDeadline {
            id: "overdue".to_owned(),
            after_ms: 1,
            notify: RECIPIENT.to_owned(),
        });
    }
    let first = first
        .runs(&common.procedure)
        .acquire(&asset(&format!("UNIT-{machine}")), fence)
        .event(EventBody::OrchestrationAcknowledged { fence: 1 })
        .record("reading_01", "4.20");
    let first = if common.kind == Kind::WithMessages { first.message(RECIPIENT) } else { first };
    let current = commit(common, None, first).await?;
    let next = CommitBuilder::next(&current, at).assert_assets();
    if !mixed {
        return Ok(());
    }
    if !open {
        // The first commit has three events, and the end is one.
        let records = 2..=common.events - 3;
        let end = records
            .fold(next, |commit, n| commit.record(&format!("reading_{n:02}"), "4.20"))
            .complete()
            .release_assets();
        commit(common, Some(current), end).await?;
    } else if number / OPEN_EVERY < BLOCKED {
        commit(common, Some(current), next.block()).await?;
    }
    Ok(())
}

/// Commits, with the state that follows from the events; it is returned.
async fn commit(
    common: &Common,
    before: Option<Workflow>,
    built: CommitBuilder,
) -> Result<Workflow, CommitError> {
    let mut commit = built.build();
    if let Some(after) = commit.events.iter().fold(before.clone(), evolve) {
        commit.deadlines = deadlines::changes(before.as_ref(), &after);
        commit.next = after;
    }
    let next = commit.next.clone();
    common.store.commit(commit).await?;
    Ok(next)
}

/// How often its machine was used before by finished workflows.
fn turn(number: u64) -> u64 {
    // Numbers that share a machine are MACHINES apart, which OPEN_EVERY divides: either all of them are open or none.
    const { assert!(MACHINES.is_multiple_of(OPEN_EVERY) && MACHINES > AT_ONCE) };
    number / MACHINES
}
