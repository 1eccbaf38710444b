//! The command line: one subcommand for each file of `cmd`.

use clap::{Parser, Subcommand};

use crate::cmd::ack::AckArgs;
use crate::cmd::aws::AwsArgs;
use crate::cmd::call::CallArgs;
use crate::cmd::completions::{CompletionsArgs, ManArgs};
use crate::cmd::copy::CopyArgs;
use crate::cmd::doctor::DoctorArgs;
use crate::cmd::locks::LocksArgs;
use crate::cmd::outbox::OutboxArgs;
use crate::cmd::procedure::ProcedureArgs;
use crate::cmd::reconcile::ReconcileArgs;
use crate::cmd::serve::ServeArgs;
use crate::cmd::store::{BackupArgs, MigrateArgs, RestoreArgs, RestoredArgs};
use crate::cmd::token::TokenArgs;
use crate::cmd::top::TopArgs;
use crate::cmd::verify_evidence::VerifyEvidenceArgs;
use crate::cmd::workflow::WorkflowArgs;
use crate::config::ConfigArgs;

/// Durable state for multi-step procedures, served over MCP
#[derive(Debug, Parser)]
#[command(
    name = "wf-cli",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 ok, 1 failed, 2 usage, 3 unavailable (try again), 4 damage found.

Start a server on 127.0.0.1:8080 with the built-in procedures, then ask it for work:
  wf-cli serve
  wf-cli call find_work"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Print JSON for programs
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(ServeArgs),
    Call(CallArgs),
    Procedure(ProcedureArgs),
    Workflow(WorkflowArgs),
    VerifyEvidence(VerifyEvidenceArgs),
    Ack(AckArgs),
    Locks(LocksArgs),
    Outbox(OutboxArgs),
    Token(TokenArgs),
    Copy(CopyArgs),
    Migrate(MigrateArgs),
    Backup(BackupArgs),
    Restore(RestoreArgs),
    Restored(RestoredArgs),
    Reconcile(ReconcileArgs),
    Doctor(DoctorArgs),
    Top(TopArgs),
    Aws(AwsArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}
