//! `wf-cli aws init`: a table to serve from.

use clap::Args;
use serde_json::json;

use crate::compose::aws::{self, Made};
use crate::config::ConfigArgs;
use crate::config::backend::{AwsTable, BackendConfig};
use crate::exit::Failure;
use crate::output::Output;

/// Make the table, or look whether the one that is there can be used
#[derive(Debug, Args)]
#[command(
    after_help = "Makes the table of backend.aws.table with its two indexes and on-demand capacity, waits until it is
active (three minutes at most) and switches the collection of expired items (TTL) on. What is there
already stays; a table of another shape is refused and stays as it is. Run it as often as you like.

It needs the permissions dynamodb:CreateTable, DescribeTable, DescribeTimeToLive and UpdateTimeToLive.

Examples:
  wf-cli aws init --set backend.kind=aws --set backend.aws.table=checkpoint
  wf-cli aws init --config checkpoint.toml --json"
)]
pub(super) struct InitArgs {}

/// Runs the command.
pub(super) async fn run(config: &ConfigArgs, output: Output) -> Result<(), Failure> {
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
    let made = aws::make_table(table, &mut progress).await;
    bar.finish_and_clear();
    let made = made?;
    if output.is_json() {
        return output.document(&json!({
            "table": table.name,
            "created": made.table,
            "ttl_switched_on": made.ttl,
        }));
    }
    output.line(&told(table, made))
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
        let table = AwsTable { name: "wf".to_owned(), region: None, endpoint_url: None };
        let says = |made, ttl| told(&table, Made { table: made, ttl });
        assert!(says(true, true).contains("was made"));
        assert!(says(false, true).contains("from now on"));
        assert_eq!(
            says(false, false),
            "DynamoDB table wf is there and can be used. Nothing was changed."
        );
    }
}
