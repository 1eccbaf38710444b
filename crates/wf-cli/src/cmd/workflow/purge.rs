//! `wf-cli workflow purge`: old workflows are deleted with all that belongs to them, one after the other.

use std::io::{BufRead as _, IsTerminal as _};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use wf_core::engine::purge::{Manner, purge};
use wf_core::limits::FREE_TEXT_CHARS_MAX;
use wf_core::models::{Principal, TenantId, Workflow};
use wf_core::ports::{ClockPort as _, Purged, StorageBackendPort};

use crate::ambient::{self, SystemClock};
use crate::exit::{Exit, Failure};
use crate::output::Output;

use super::select::{Narrowed, Selection, When};

/// Delete workflows that were completed long ago, with all that belongs to them
#[derive(Debug, Args)]
#[command(
    after_help = "Events, values, ledger rows, messages and places in lists go. Assets keep their fences. What stays of each
workflow is a tombstone: its id, when it ran, the hash of its last event, who purged it, when and why.
Evidence that was taken before is verified as ever, and compared with that hash.
Spared, and told with the exit code 1: workflows whose idempotency keys still count (for
idempotency.retention after their end), and, unless --undelivered-too is given, those with messages
that are pending or were given up. Open ones are never meant.
It works while a server runs, may be interrupted and run again, and cannot be undone.

Examples:
  wf-cli workflow purge --completed-before 365d --dry-run
  wf-cli workflow purge --completed-before 2025-01-01 --procedure pump-inspection --yes"
)]
pub(super) struct PurgeArgs {
    /// Only those completed before: a day, a time, or an age such as 90d
    #[arg(long, value_name = "WHEN", value_parser = When::parse)]
    completed_before: When,
    #[command(flatten)]
    selection: Selection,
    /// Why; kept for ever
    #[arg(long)]
    reason: Option<String>,
    /// Those with messages that were not delivered, too
    #[arg(long)]
    undelivered_too: bool,
    /// Only say which would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// What became of the workflows that were meant.
#[derive(Debug, Default)]
struct Done {
    purged: Vec<Value>,
    spared: Vec<Value>,
}

/// Workflows that a document tells of; more are only counted.
const TOLD_MAX: usize = 1_000;

/// Runs the command.
pub(super) async fn run(
    args: &PurgeArgs,
    retention: Duration,
    store: &dyn StorageBackendPort,
    output: Output,
) -> Result<(), Failure> {
    let reason = args.reason.as_deref().unwrap_or_default();
    if args.reason.is_some()
        && (reason.trim().is_empty() || reason.chars().count() > FREE_TEXT_CHARS_MAX)
    {
        return Err(Failure::usage(format!("a reason has 1 to {FREE_TEXT_CHARS_MAX} characters")));
    }
    let mut manner = Manner {
        at: SystemClock.now(),
        by: Principal::operator(TenantId::default_tenant(), &ambient::os_user()).actor,
        reason: args.reason.clone(),
        retention_ms: i64::try_from(retention.as_millis()).unwrap_or(i64::MAX),
        undelivered_too: args.undelivered_too,
        check_only: true,
    };
    if !args.dry_run && !args.yes {
        let (mut would, mut counted) = (0, 0);
        each(args, store, &manner, |_, purged| {
            counted += 1;
            would += u64::from(purged == Purged::Done);
            Ok(())
        })
        .await?;
        ask(would, counted)?;
    }
    manner.check_only = args.dry_run;
    let mut done = Done::default();
    let (mut purged_count, mut spared_count) = (0_u64, 0_u64);
    let verb = if args.dry_run { "would be deleted" } else { "deleted" };
    each(args, store, &manner, |workflow, purged| {
        let (list, count, said) = match why(purged) {
            None => (&mut done.purged, &mut purged_count, verb.to_owned()),
            Some(why) => (&mut done.spared, &mut spared_count, format!("spared: {why}")),
        };
        *count += 1;
        if output.is_json() {
            if list.len() < TOLD_MAX {
                list.push(told(workflow, purged));
            }
            return Ok(());
        }
        output.line(&format!("{} of {}: {said}", workflow.id, workflow.tenant))
    })
    .await?;
    if output.is_json() {
        output.document(&json!({
            "dry_run": args.dry_run,
            "before": args.completed_before.instant(manner.at),
            "by": manner.by,
            "at": manner.at,
            "purged": done.purged,
            "purged_count": purged_count,
            "spared": done.spared,
            "spared_count": spared_count,
        }))?;
    } else {
        let by = &manner.by;
        output.line(&format!("{purged_count} {verb} by {by}, {spared_count} spared."))?;
    }
    if spared_count > 0 { Err(Failure::quiet(Exit::Failed)) } else { Ok(()) }
}

/// Purges each workflow that is meant, or only looks, and tells what became of it.
async fn each(
    args: &PurgeArgs,
    store: &dyn StorageBackendPort,
    manner: &Manner,
    mut tell: impl FnMut(&Workflow, Purged) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let narrowed =
        Narrowed { completed_before: Some(args.completed_before), ..Narrowed::default() };
    let mut selected = args.selection.begin(narrowed);
    while let Some(workflows) = selected.more(store).await? {
        for workflow in &workflows {
            let purged = purge(store, workflow, manner).await.map_err(|error| {
                Failure::from(error).help("those before are deleted; run the same command again")
            })?;
            tell(workflow, purged)?;
        }
    }
    Ok(())
}

/// Asks the person at the terminal; nobody else is asked.
fn ask(would: u64, counted: u64) -> Result<(), Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::usage("nobody can be asked whether that is meant")
            .help("look with --dry-run, then give --yes"));
    }
    if would == 0 {
        return Ok(());
    }
    let question = format!("Delete {would} of {counted} workflows for ever? Type yes: ");
    let unasked = |error: std::io::Error| Failure::failed("cannot ask").because(error);
    let mut err = std::io::stderr();
    std::io::Write::write_all(&mut err, question.as_bytes()).map_err(unasked)?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).map_err(unasked)?;
    if answer.trim() == "yes" {
        return Ok(());
    }
    Err(Failure::failed("nothing was deleted"))
}

/// Why it was spared.
fn why(purged: Purged) -> Option<String> {
    match purged {
        Purged::Done => None,
        Purged::More | Purged::Changed => Some("it was changed meanwhile".to_owned()),
        Purged::KeysCount => Some("its idempotency keys still count".to_owned()),
        Purged::Undelivered(count) => Some(format!("{count} messages were not delivered")),
    }
}

fn told(workflow: &Workflow, purged: Purged) -> Value {
    let mut told = json!({
        "workflow_id": workflow.id,
        "tenant": workflow.tenant,
        "completed_at": workflow.completed_at,
        "last_hash": workflow.last_hash,
    });
    if let (Some(why), Some(members)) = (why(purged), told.as_object_mut()) {
        members.insert("why".to_owned(), Value::from(why));
    }
    told
}
