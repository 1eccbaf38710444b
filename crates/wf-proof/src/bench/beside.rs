//! The commands that measure the product beside others: the floors and the peers alone, and all figures with their targets.

use std::path::PathBuf;

use clap::Args;

use super::contenders::{Contenders, absolute};
use super::figures::{self, Asked};
use super::peers::Installed;
use super::report;
use super::run::{duration, print, say};
use crate::fault::Fault;

#[derive(Debug, Args)]
pub(super) struct FloorsArguments {
    /// The built server; its rows and answers are the measure
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// The Python of the peer's environment, which `cargo xtask bench` makes
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    #[command(flatten)]
    engines: EnginesArguments,
    /// How long each is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    seconds: f64,
}

/// Engines of durable work; what is not given is left out.
#[derive(Debug, Args)]
struct EnginesArguments {
    /// The Python of an environment with DBOS, which `cargo xtask bench` makes
    #[arg(long, value_name = "FILE")]
    dbos: Option<PathBuf>,
    /// The folder with the packages of Restate, which `cargo xtask bench` makes
    #[arg(long, value_name = "FOLDER")]
    restate: Option<PathBuf>,
}

impl EnginesArguments {
    fn installed(&self) -> Result<Installed, Fault> {
        let absolute = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
        Ok(Installed { dbos: absolute(&self.dbos)?, restate: absolute(&self.restate)? })
    }
}

#[derive(Debug, Args)]
pub(super) struct FiguresArguments {
    /// The built server
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// The Python of the peer's environment, which `cargo xtask bench` makes; without it the peer is left out
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    #[command(flatten)]
    engines: EnginesArguments,
    /// Folder for databases; the filled ones stay there for the next run
    #[arg(long, value_name = "FOLDER")]
    databases: PathBuf,
    /// Folder for benchmarks.json, benchmarks.svg and the figures of benchmarks.md
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// How often everything is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long each thing is measured in a round
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    seconds: f64,
    /// Workflows of the large database
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000_000)]
    workflows: u64,
    /// Workflows of the small database
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000)]
    few: u64,
    /// Events of the long history
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    events: u64,
    /// Callers of the wide load
    #[arg(long, default_value_t = 64)]
    callers: usize,
}

/// Measures each once and says it.
///
/// # Errors
/// When one could not be measured.
pub(super) async fn floors(asked: &FloorsArguments) -> Result<(), Fault> {
    let contenders = Contenders::new(
        &asked.server,
        asked.python.as_deref(),
        asked.engines.installed()?,
        None,
        duration(asked.seconds)?,
    )
    .await?;
    for peer in contenders.settings().await? {
        say(&format!("{}: {}", peer.name, peer.settings));
    }
    for batch in ["one by one", "64 together"] {
        let raw = contenders.raw(batch != "one by one").await?;
        say(&format!(
            "raw SQLite, {batch}: {:.0} steps/s; a transaction p50 {:.0} µs, p99 {:.0} µs",
            raw.rate, raw.times.p50_us, raw.times.p99_us
        ));
    }
    for callers in [1, 64] {
        say("bare echo");
        print(&contenders.echo(callers).await?);
        if let Some(peer) = contenders.peer(callers).await? {
            say("Python peer");
            print(&peer);
        }
        if let Some(peer) = contenders.restate(callers).await? {
            say("Restate");
            print(&peer);
        }
        if let Some(peer) = contenders.dbos(callers).await? {
            say("DBOS");
            print(&peer);
        }
    }
    Ok(())
}

/// Measures everything, says and writes it.
///
/// # Errors
/// When something could not be measured or written.
pub(super) async fn all_figures(asked: &FiguresArguments) -> Result<(), Fault> {
    let figures = figures::measure(&Asked {
        server: asked.server.clone(),
        python: asked.python.clone(),
        engines: asked.engines.installed()?,
        folder: asked.databases.clone(),
        rounds: asked.rounds.max(1),
        time: duration(asked.seconds)?,
        callers: asked.callers,
        workflows: (asked.few, asked.workflows),
        history: asked.events,
    })
    .await?;
    for said in &figures.verdicts {
        say(&format!(
            "{} {:<11} {} {}: {:.2} ({:.2} to {:.2}) {}",
            said.name,
            if said.reached { "reached" } else { "NOT REACHED" },
            said.what,
            said.target,
            said.value.median,
            said.value.min,
            said.value.max,
            said.unit
        ));
    }
    report::write(&figures, &asked.out)?;
    say(&format!("written to {}", asked.out.display()));
    Ok(())
}
