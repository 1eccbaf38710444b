//! `wf-cli aws`: the DynamoDB table that the state can be in, and the state machine beside it.

mod init;
mod template;

use clap::{Args, Subcommand};

use crate::config::ConfigArgs;
use crate::exit::Failure;
use crate::output::Output;

/// Make the DynamoDB table and the state machine, or print how CloudFormation does
#[derive(Debug, Args)]
pub(crate) struct AwsArgs {
    #[command(subcommand)]
    command: AwsCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum AwsCommand {
    Init(init::InitArgs),
    Template(template::TemplateArgs),
}

/// Runs the command.
pub(crate) async fn run(
    args: &AwsArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    match &args.command {
        AwsCommand::Init(args) => init::run(args, config, output).await,
        AwsCommand::Template(args) => template::run(args, output),
    }
}
