//! `wf-cli aws template`: the table, who may use it, and what guards it, as CloudFormation.

use clap::Args;

use crate::compose::aws;
use crate::config::backend::is_table_name;
use crate::exit::Failure;
use crate::output::Output;

/// Print a CloudFormation template: the table, and roles for servers and operators
#[derive(Debug, Args)]
#[command(
    after_help = "The table is what `wf-cli aws init` makes, and besides has point-in-time recovery, encryption
and protection against deletion, and stays when the stack is deleted. The roles allow what a
server or an operator sends, and no more. The template is JSON, the same each time.

Examples:
  wf-cli aws template > checkpoint.json
  aws cloudformation deploy --stack-name checkpoint --template-file checkpoint.json \\
      --capabilities CAPABILITY_IAM
  wf-cli aws template --table checkpoint-test"
)]
pub(super) struct TemplateArgs {
    /// Name of the table; a parameter of the stack can still change it
    #[arg(long, value_name = "NAME", default_value = "checkpoint", value_parser = table_name)]
    table: String,
}

fn table_name(text: &str) -> Result<String, String> {
    if is_table_name(text) {
        return Ok(text.to_owned());
    }
    Err("3 to 255 letters, digits, dots, hyphens and underscores".to_owned())
}

/// Runs the command. It reads no configuration: what it prints depends on its arguments alone.
pub(super) fn run(args: &TemplateArgs, output: Output) -> Result<(), Failure> {
    output.document(&aws::template(&args.table)?)
}
