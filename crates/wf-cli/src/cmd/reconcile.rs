//! `wf-cli reconcile`: what `serve` does all the time about executions of Step Functions, once, and said.

#[cfg(feature = "aws")]
mod told;

use clap::Args;

use crate::compose;
use crate::config::ConfigArgs;
use crate::exit::Failure;
use crate::output::Output;

/// Give each open workflow its execution of Step Functions, once
#[derive(Debug, Args)]
#[command(
    after_help = "It looks at everything that is to be looked at now, then at executions that no row knows, does what
rules R1 to R8 of docs/reconciler.md ask for, and says of each workflow what it did and by which
rule. Servers do the same all the time, so it is for looking (--dry-run), for a server with
backend.aws.reconciler = false, and for what servers never do: finding executions of nobody.
Business state is never changed by what an execution is like. It works beside running servers.

Exit codes: 0 all is done or will be, 1 something cannot be done, 2 there is no state machine,
3 Step Functions or the table did not answer: run it again.

Examples:
  wf-cli reconcile --once --dry-run
  wf-cli reconcile --once --config checkpoint.toml --json"
)]
pub(crate) struct ReconcileArgs {
    /// Look once and end; needed, since `serve` is what goes on
    #[arg(long, required = true)]
    once: bool,
    /// Change nothing: say what would be done first for each workflow
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub(crate) async fn run(
    args: &ReconcileArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let ReconcileArgs { once: _, dry_run } = *args;
    let config = config.load()?;
    if compose::machine(&config).is_none() {
        return Err(Failure::usage(
            "there is no state machine: executions are reconciled on the AWS backend with backend.aws.state_machine_arn",
        )
        .help("without one, servers fire deadlines by their own clocks and need no reconciler: docs/reconciler.md"));
    }
    once(&config, dry_run, output).await
}

#[cfg(feature = "aws")]
async fn once(
    config: &crate::config::Config,
    dry_run: bool,
    output: Output,
) -> Result<(), Failure> {
    use std::sync::Arc;

    let backend = compose::open_existing(config).await?;
    let engine = Arc::new(compose::operator_engine(config, &backend).await?);
    let reconciler = compose::operator_reconciler(&backend, engine).await?;
    let bar = output.waiting("looking at executions");
    let report = reconciler.once(dry_run).await;
    bar.finish_and_clear();
    backend.close().await;
    told::tell(&report?, dry_run, output)
}

/// Without the backend no configuration that names a state machine gets here.
#[cfg(not(feature = "aws"))]
async fn once(_: &crate::config::Config, _: bool, _: Output) -> Result<(), Failure> {
    Err(Failure::usage("this build has no backend for DynamoDB")
        .help(crate::config::backend::HOW_TO_GET_AWS))
}
