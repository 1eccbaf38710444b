//! `wf-cli aws init`: a table to serve from, and a state machine when one is configured.

use clap::Args;
use serde_json::json;

use crate::compose::aws::{self, Machine, Made};
use crate::config::ConfigArgs;
use crate::config::backend::{AwsTable, BackendConfig};
use crate::exit::Failure;
use crate::output::Output;

/// Make the table and the state machine, or look whether those that are there can be used
#[derive(Debug, Args)]
#[command(
    after_help = "Makes the table of backend.aws.table with its two indexes and on-demand capacity, waits until it is
active (three minutes at most) and switches the collection of expired items (TTL) on. What is there
already stays; a table of another shape is refused and stays as it is. Run it as often as you like.

With backend.aws.state_machine_arn it also makes the Step Functions state machine of that name,
whose executions are --execution-role, and gives one that is there the definition of this build.
For development: it makes no role and no log. `wf-cli aws template` makes all for production.

It needs the permissions dynamodb:CreateTable, DescribeTable, DescribeTimeToLive,
UpdateTimeToLive, and for the state machine states:CreateStateMachine, DescribeStateMachine,
UpdateStateMachine and iam:PassRole.

Examples:
  wf-cli aws init --set backend.kind=aws --set backend.aws.table=checkpoint
  wf-cli aws init --config checkpoint.toml --json"
)]
pub(super) struct InitArgs {
    /// What executions of the state machine are: ARN of a role that may dynamodb:UpdateItem on the table
    #[arg(long, value_name = "ARN")]
    execution_role: Option<String>,
}

/// Runs the command.
pub(super) async fn run(
    args: &InitArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let config = config.load()?;
    let table = match &config.backend {
        BackendConfig::Aws(table) => table,
        BackendConfig::Local { .. } => {
            let says = "the configuration names no table: backend.kind is \"local\"";
            return Err(Failure::usage(says).help(
                "set backend.kind = \"aws\" and backend.aws.table: docs/dynamodb.md shows how",
            ));
        }
    };
    let bar = output.waiting("making the table");
    let mut progress = |waits: &str| bar.set_message(waits.to_owned());
    let made = async {
        let made = aws::make_table(table, &mut progress).await?;
        bar.set_message("looking at the state machine");
        let machine = match table.machine {
            Some(_) => aws::make_machine(table, args.execution_role.as_deref()).await?,
            None => None,
        };
        Ok::<_, Failure>(Made { machine, ..made })
    }
    .await;
    bar.finish_and_clear();
    let made = made?;
    if output.is_json() {
        return output.document(&json!({
            "table": table.name,
            "created": made.table,
            "ttl_switched_on": made.ttl,
            "state_machine": made.machine.map(|machine| match machine {
                Machine::Nothing => "unchanged",
                Machine::Created => "created",
                Machine::Updated => "updated",
            }),
        }));
    }
    output.line(&told(table, made))?;
    made.machine.map_or(Ok(()), |machine| output.line(told_of(machine)))
}

const fn told_of(machine: Machine) -> &'static str {
    match machine {
        Machine::Nothing => "The state machine is there, with the definition of this build.",
        Machine::Created => "The state machine was made.",
        Machine::Updated => "The state machine has the definition of this build from now on.",
    }
}

fn told(table: &AwsTable, made: Made) -> String {
    let what = match (made.table, made.ttl) {
        (true, _) => "was made and is active. Start the server.",
        (false, true) => "was there and is active. Expired items are collected from now on.",
        (false, false) => "is there and can be used. Nothing was changed.",
    };
    format!("{table} {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_it_did() {
        let table =
            AwsTable { name: "wf".to_owned(), region: None, endpoint_url: None, machine: None };
        let says = |made, ttl| told(&table, Made { table: made, ttl, machine: None });
        assert!(says(true, true).contains("was made"));
        assert!(says(false, true).contains("from now on"));
        assert_eq!(
            says(false, false),
            "DynamoDB table wf is there and can be used. Nothing was changed."
        );
    }
}
