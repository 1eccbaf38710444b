//! The commands, one file each. Each has its arguments and a `run`; nothing else knows how it works.

pub(crate) mod ack;
pub(crate) mod aws;
pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod copy;
pub(crate) mod doctor;
pub(crate) mod locks;
pub(crate) mod outbox;
pub(crate) mod procedure;
pub(crate) mod reconcile;
pub(crate) mod serve;
pub(crate) mod store;
pub(crate) mod token;
pub(crate) mod top;
pub(crate) mod verify_evidence;
pub(crate) mod workflow;

use clap::CommandFactory as _;

use crate::args::{Cli, Command};
use crate::exit::Failure;
use crate::output::Output;
use store::{MigrateArgs, RestoredArgs};

/// Runs the command that was asked for.
///
/// # Errors
/// What the command says.
pub(crate) async fn run(cli: &Cli) -> Result<(), Failure> {
    let output = Output::new(cli.json);
    let config = &cli.config;
    match &cli.command {
        Command::Serve(args) => serve::run(args, config, output).await,
        Command::Call(args) => call::run(args, config, output).await,
        Command::Procedure(args) => procedure::run(args, config, output),
        Command::Workflow(args) => workflow::run(args, config, output).await,
        Command::VerifyEvidence(args) => verify_evidence::run(args, output),
        Command::Locks(args) => locks::run(args, config, output).await,
        Command::Ack(args) => ack::run(args, config, output).await,
        Command::Outbox(args) => outbox::run(args, config, output).await,
        Command::Token(args) => token::run(args, config, output),
        Command::Copy(args) => copy::run(args, config, output).await,
        Command::Migrate(MigrateArgs {}) => store::migrate(config, output).await,
        Command::Backup(args) => store::backup(args, config, output).await,
        Command::Restore(args) => store::restore(args, config, output).await,
        Command::Restored(RestoredArgs {}) => store::restored(config, output).await,
        Command::Reconcile(args) => reconcile::run(args, config, output).await,
        Command::Doctor(args) => doctor::run(args, config, output).await,
        Command::Aws(args) => aws::run(args, config, output).await,
        Command::Top(args) => top::run(args, config, output).await,
        Command::Completions(args) => completions::completions(args, Cli::command(), output),
        Command::Man(args) => completions::man(args, Cli::command(), output),
    }
}
