//! `wf-cli aws`: the DynamoDB table that the state can be in.

mod init;

use clap::{Args, Subcommand};

use crate::config::ConfigArgs;
use crate::exit::Failure;
use crate::output::Output;

/// Make the DynamoDB table
#[derive(Debug, Args)]
pub(crate) struct AwsArgs {
    #[command(subcommand)]
    command: AwsCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum AwsCommand {
    Init(init::InitArgs),
}

/// Runs the command.
pub(crate) async fn run(
    args: &AwsArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    match &args.command {
        AwsCommand::Init(init::InitArgs {}) => init::run(config, output).await,
    }
}
