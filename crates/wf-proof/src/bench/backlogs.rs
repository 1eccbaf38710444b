//! The commands of `wf-bench` that measure a backlog, with their arguments: [`outbox`] and [`mod@deadlines`].

use std::path::PathBuf;

use clap::Args;

use super::run::{duration, runtime};
use super::{deadlines, outbox};
use crate::fault::Fault;

#[derive(Debug, Args)]
pub(super) struct OutboxArguments {
    /// The built server
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// Messages that wait
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    messages: u64,
    /// Folder for the filled databases, which stay there for the next run
    #[arg(long, value_name = "FOLDER")]
    databases: PathBuf,
    /// How long each load is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    seconds: f64,
    /// How often, without and with messages
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How many times as long half of the steps may take beside them
    #[arg(long, value_name = "TIMES", default_value_t = 1.2)]
    most: f64,
}

#[derive(Debug, Args)]
pub(super) struct DeadlinesArguments {
    /// The built server
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// Deadlines that are due, one of each open workflow
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    deadlines: u64,
    /// Folder for the filled databases, which stay there for the next run
    #[arg(long, value_name = "FOLDER")]
    databases: PathBuf,
    /// How long each load is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    seconds: f64,
    /// How often, without and with deadlines
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How many times as long half of the steps may take beside them
    #[arg(long, value_name = "TIMES", default_value_t = 1.2)]
    most: f64,
}

/// Runs what they ask for.
pub(super) fn one_outbox(asked: &OutboxArguments) -> Result<(), Fault> {
    outbox::prepare(&asked.databases, asked.messages)?;
    let measured = outbox::Asked {
        server: &asked.server,
        messages: asked.messages,
        time: duration(asked.seconds)?,
        rounds: asked.rounds,
        most: asked.most,
    };
    runtime()?.block_on(outbox::measure(&measured, &asked.databases))
}

/// The same.
pub(super) fn one_deadlines(asked: &DeadlinesArguments) -> Result<(), Fault> {
    deadlines::prepare(&asked.databases, asked.deadlines)?;
    let measured = deadlines::Asked {
        server: &asked.server,
        deadlines: asked.deadlines,
        time: duration(asked.seconds)?,
        rounds: asked.rounds,
        most: asked.most,
    };
    runtime()?.block_on(deadlines::measure(&measured, &asked.databases)).map(|_| ())
}
