//! The program `wf-bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use tokio::runtime::Runtime;

use super::auth;
use super::backlogs::{DeadlinesArguments, OutboxArguments, one_deadlines, one_outbox};
use super::beside::{FiguresArguments, FloorsArguments, all_figures, floors};
use super::contenders::{serve, temporary};
use super::echo;
use super::fill;
use super::foreign;
use super::load::{self, Measured};
use super::plan::Plan;
use super::samples::Quantiles;
use super::seeing;
use super::slow;
use crate::fault::Fault;

/// Measures the built server beside its floors.
#[derive(Debug, Parser)]
#[command(name = "wf-bench", version)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Durable steps of so many callers on one server
    Load(LoadArguments),
    /// What the machine can do at most: raw SQLite, bare HTTP; and what a user would write instead, in Python
    Floors(FloorsArguments),
    /// Fills a new database with workflows, most of them finished
    Fill(FillArguments),
    /// All figures with their targets, written as JSON, page and plot
    Figures(FiguresArguments),
    /// What connections that are slow on purpose cost honest callers; an error when that is too much
    Slow(SlowArguments),
    /// Whether time tells ids of another tenant from ids that never were; an error when it does
    Foreign(ForeignArguments),
    /// What it costs a step to know who calls; an error when that is too much
    Auth(AuthArguments),
    /// What traces, metrics and the operator's address cost a step; an error when that is too much
    Seeing(SeeingArguments),
    /// What messages that wait cost a step, and how fast they are delivered; an error when a step costs too much
    Outbox(OutboxArguments),
    /// What deadlines that are due cost a step, and how fast they are fired; an error when a step costs too much
    Deadlines(DeadlinesArguments),
    /// The echo of the floors, as a process of its own
    #[command(hide = true)]
    Echo {
        /// The body of every answer
        answer: PathBuf,
    },
}

#[derive(Debug, Args)]
struct SlowArguments {
    /// The built server
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// Slow connections at once
    #[arg(long, value_name = "NUMBER", default_value_t = 500)]
    slow: usize,
    /// Honest callers
    #[arg(long, default_value_t = 32)]
    callers: usize,
    /// How long each load is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    seconds: f64,
    /// How often, alone and beside the slow ones
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How many times as long the 99th of 100 calls may take beside them
    #[arg(long, value_name = "TIMES", default_value_t = 2.0)]
    most: f64,
}

#[derive(Debug, Args)]
struct ForeignArguments {
    /// The built server
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// Calls of each kind
    #[arg(long, value_name = "NUMBER", default_value_t = 2_000)]
    samples: usize,
    /// How far from 50 of 100 pairs foreign ids may be slower
    #[arg(long, value_name = "PAIRS", default_value_t = 5.0)]
    most: f64,
}

#[derive(Debug, Args)]
struct AuthArguments {
    /// The built server
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// Callers at once
    #[arg(long, default_value_t = 64)]
    callers: usize,
    /// How long each load is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    seconds: f64,
    /// How often each way is measured, in turns
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many of 100 parts of a step's processor time a recognised token may add
    #[arg(long, value_name = "PARTS", default_value_t = 15.0)]
    most: f64,
}

#[derive(Debug, Args)]
struct SeeingArguments {
    /// The built server, with the feature otlp
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// Callers of the wide load
    #[arg(long, default_value_t = 64)]
    callers: usize,
    /// How long each load is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    seconds: f64,
    /// How often each load is measured, in turns
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many times as long the p50 of a step may be, with one caller
    #[arg(long, value_name = "TIMES", default_value_t = 1.1)]
    most: f64,
}

#[derive(Debug, Args)]
struct FillArguments {
    /// The database to make
    #[arg(long, value_name = "FILE")]
    database: PathBuf,
    /// How many workflows
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000_000)]
    workflows: u64,
    /// Events of a finished workflow
    #[arg(long, value_name = "NUMBER", default_value_t = fill::EVENTS,
          value_parser = clap::value_parser!(u64).range(4..=fill::EVENTS_MAX))]
    events: u64,
}

#[derive(Debug, Args)]
struct LoadArguments {
    /// The built server
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// Callers, each with a connection of its own
    #[arg(long, default_value_t = 64)]
    callers: usize,
    /// How long steps are measured; starting and finishing workflows comes on top
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    seconds: f64,
    /// Database [default: a new one in a temporary folder]
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,
    /// Send every step a second time, and measure those apart
    #[arg(long)]
    replays: bool,
    /// Only print the process id of the server and wait for a key before the load, to attach a profiler
    #[arg(long)]
    wait: bool,
}

/// Does what the arguments ask for.
///
/// # Errors
/// When something could not be measured.
pub fn run(arguments: &Arguments) -> Result<(), Fault> {
    if let What::Echo { answer } = &arguments.what {
        let answer = std::fs::read(answer).map_err(Fault::io("reading the answer"))?;
        return echo::serve(answer.into());
    }
    if let What::Fill(asked) = &arguments.what {
        let filled = fill::fill(&asked.database, asked.workflows, asked.events)?;
        say(&format!(
            "{} workflows in {:.0} s: {:.1} MB, {} bytes a workflow",
            asked.workflows,
            filled.time.as_secs_f64(),
            megabytes(filled.bytes),
            filled.bytes / asked.workflows.max(1)
        ));
        return Ok(());
    }
    if let What::Outbox(asked) = &arguments.what {
        return one_outbox(asked);
    }
    if let What::Deadlines(asked) = &arguments.what {
        return one_deadlines(asked);
    }
    let runtime = runtime()?;
    match &arguments.what {
        What::Load(asked) => runtime.block_on(one_load(asked)),
        What::Floors(asked) => runtime.block_on(floors(asked)),
        What::Figures(asked) => runtime.block_on(all_figures(asked)),
        What::Slow(asked) => runtime.block_on(slow::measure(&slow::Asked {
            server: &asked.server,
            slow: asked.slow,
            callers: asked.callers,
            time: duration(asked.seconds)?,
            rounds: asked.rounds,
            most: asked.most,
        })),
        What::Auth(asked) => runtime.block_on(auth::measure(&auth::Asked {
            server: &asked.server,
            callers: asked.callers,
            time: duration(asked.seconds)?,
            rounds: asked.rounds,
            most: asked.most,
        })),
        What::Seeing(asked) => runtime.block_on(seeing::measure(&seeing::Asked {
            server: &asked.server,
            callers: asked.callers,
            time: duration(asked.seconds)?,
            rounds: asked.rounds,
            most: asked.most,
        })),
        What::Foreign(asked) => runtime.block_on(foreign::measure(&foreign::Asked {
            server: &asked.server,
            samples: asked.samples,
            most: asked.most,
        })),
        What::Echo { .. } | What::Fill(_) | What::Outbox(_) | What::Deadlines(_) => Ok(()),
    }
}

/// One thread for all callers: two would take more of the machine from the server, not load it more.
pub(super) fn runtime() -> Result<Runtime, Fault> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Fault::io("starting the runtime"))
}

async fn one_load(asked: &LoadArguments) -> Result<(), Fault> {
    let folder = temporary(None)?;
    let server = serve(&asked.server, folder.path(), asked.database.as_deref())?;
    say(&format!("server {} (process {})", server.address(), server.id()));
    if asked.wait {
        say("press Enter to begin");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(Fault::io("waiting for Enter"))?;
    }
    let plan = Plan {
        replays: asked.replays,
        ..Plan::of(&server, asked.callers, duration(asked.seconds)?)
    };
    let measured = load::steps(&plan).await?;
    print(&measured);
    server.stop().map(|_| ())
}

pub(super) fn duration(seconds: f64) -> Result<Duration, Fault> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| Fault::Run(format!("{seconds} seconds: {error}")))
}

pub(super) fn print(measured: &Measured) {
    let times = |name: &str, q: &Quantiles| {
        say(&format!(
            "{name:<9} p50 {:.0} µs, p90 {:.0}, p99 {:.0}, p999 {:.0} ({} calls)",
            q.p50_us, q.p90_us, q.p99_us, q.p999_us, q.count
        ));
    };
    say(&format!("{} callers: {:.0} steps/s", measured.callers, measured.rate));
    times("times", &measured.times);
    if let Some(replays) = &measured.replays {
        times("replays", replays);
    }
    say(&format!(
        "processor server {:.1} µs a call, callers {:.1} µs a call",
        measured.server_cpu_us, measured.client_cpu_us
    ));
    say(&format!(
        "memory    server {:.1} MB, at most {:.1} MB",
        megabytes(measured.resident),
        megabytes(measured.resident_most)
    ));
}

/// Of bytes; 1 MB is 1,000,000 bytes.
#[expect(clippy::cast_precision_loss, reason = "memory of a process is far below 2^52 bytes")]
#[must_use]
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[expect(clippy::print_stdout, reason = "a command line tool reports on its standard output")]
pub(super) fn say(line: &str) {
    println!("{line}");
}
