//! The commands, one file each. Each has its arguments and a `run`; nothing else knows how it works.

pub(crate) mod call;
pub(crate) mod completions;

use clap::CommandFactory as _;

use crate::args::{Cli, Command};
use crate::exit::Failure;
use crate::output::Output;

/// Runs the command that was asked for.
///
/// # Errors
/// What the command says.
pub(crate) async fn run(cli: &Cli) -> Result<(), Failure> {
    let output = Output::new(cli.json);
    match &cli.command {
        Command::Call(args) => call::run(args, &cli.config, output).await,
        Command::Completions(args) => completions::completions(args, Cli::command(), output),
        Command::Man(args) => completions::man(args, Cli::command(), output),
    }
}
