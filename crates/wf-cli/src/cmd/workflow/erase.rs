//! `wf-cli workflow erase`: takes the values of sensitive steps and inputs away, beside the chain, which stays whole.

use clap::Args;
use serde_json::{Value, json};
use wf_core::engine::erase::{EraseError, EraseReport, Place, Wanted, erase};
use wf_core::models::{Principal, StepId, TenantId, WorkflowId};
use wf_core::ports::ClockPort as _;
use wf_core::state_machine::Erased;

use crate::ambient::{self, SystemClock};
use crate::compose::Backend;
use crate::exit::Failure;
use crate::output::Output;

use super::select::named;

/// Erase the sensitive values of a workflow, with the chain of its events intact
#[derive(Debug, Args)]
#[command(
    after_help = "The value and its salt go. The salted digest stays in the chain and tells nothing without them, so that
`workflow verify` finds the history whole. Who erased what, when and why stays beside each event.
It cannot be undone, works on a completed workflow and beside a running server, and may be run again.
Not erased: free texts (notes, summaries, reasons), which are in the chain; copies of the store
made before (backups, point-in-time recovery, exports, evidence): docs/data-life.md says what to do.
A database file keeps overwritten pages in unused places: --compact rewrites the whole file.

Examples:
  wf-cli workflow erase --workflow 01909a7c-5f0e-7d1b-8a51-3b8f6d1c2e4f --reason \"request 2026-17\"
  wf-cli workflow erase --workflow 01909a7c-5f0e-7d1b-8a51-3b8f6d1c2e4f --step badge --reason \"typed by mistake\""
)]
pub(super) struct EraseArgs {
    /// The workflow
    #[arg(long, value_name = "ID")]
    workflow: WorkflowId,
    /// Its tenant
    #[arg(long, default_value_t = TenantId::default_tenant())]
    tenant: TenantId,
    /// Only the values of this step [default: all sensitive values and inputs]
    #[arg(long, value_name = "ID")]
    step: Option<StepId>,
    /// Why; kept for ever, and so must name nobody who is to be forgotten
    #[arg(long)]
    reason: String,
    /// Only say what would be erased
    #[arg(long)]
    dry_run: bool,
    /// Rewrite the database file afterwards, so that nothing is left in unused places of it; a server waits meanwhile
    #[arg(long)]
    compact: bool,
}

/// Runs the command.
pub(super) async fn run(
    args: &EraseArgs,
    backend: &Backend,
    output: Output,
) -> Result<(), Failure> {
    let store = backend.store();
    let workflow = named(&args.workflow, args.tenant.clone(), store.as_ref()).await?;
    let by = Principal::operator(args.tenant.clone(), &ambient::os_user()).actor;
    let erased = Erased { at: SystemClock.now(), by, reason: args.reason.clone() };
    let wanted =
        Wanted { workflow: &workflow, step: args.step.as_ref(), erased, check_only: args.dry_run };
    let report = erase(store.as_ref(), &wanted).await.map_err(failed)?;
    if let Some(step) = wanted.step
        && report.erased.is_empty()
        && report.already.is_empty()
    {
        return Err(Failure::failed(format!("no sensitive value of a step {step} was recorded"))
            .help("see which steps there are with `wf-cli workflow history`"));
    }
    let forgotten = if args.dry_run { None } else { backend.forget(args.compact).await? };
    if output.is_json() {
        return output.document(&json!({
            "workflow_id": args.workflow,
            "tenant": args.tenant,
            "dry_run": args.dry_run,
            "revision": report.revision,
            "erased": places(&report.erased),
            "already": places(&report.already),
            "by": wanted.erased.by,
            "at": wanted.erased.at,
            "reason": wanted.erased.reason,
            "log_cut_back": forgotten,
        }));
    }
    tell(&report, &wanted, forgotten, output)
}

fn tell(
    report: &EraseReport,
    wanted: &Wanted<'_>,
    forgotten: Option<bool>,
    output: Output,
) -> Result<(), Failure> {
    for place in &report.erased {
        let what = place.step.as_ref().map_or_else(|| place.names.join(", "), ToString::to_string);
        let verb = if wanted.check_only { "would be erased" } else { "erased" };
        output.line(&format!("event {}: {what} {verb}", place.seq))?;
    }
    let (erased, already) = (report.erased.len(), report.already.len());
    let verb = if wanted.check_only { "would be erased" } else { "erased" };
    let by = &wanted.erased.by;
    output.line(&format!(
        "{erased} {verb} by {by}, {already} were before, up to event {}.",
        report.revision
    ))?;
    let notes = report.erased.iter().chain(&report.already).filter(|place| place.note);
    let notes: Vec<String> = notes.map(|place| place.seq.to_string()).collect();
    if !notes.is_empty() {
        output.note(&format!(
            "Events {} have a note, which is in the chain and stays: read it with `wf-cli workflow history`.",
            notes.join(", ")
        ));
    }
    if forgotten == Some(false) {
        output.note(
            "The log of the database is being read and still holds what was there: a running server cuts it back when \
             commits pause.",
        );
    }
    Ok(())
}

fn places(places: &[Place]) -> Vec<Value> {
    let one = |place: &Place| json!({ "seq": place.seq, "step_id": place.step, "names": place.names, "note": place.note });
    places.iter().map(one).collect()
}

fn failed(error: EraseError) -> Failure {
    match error {
        EraseError::Read(error) => error.into(),
        EraseError::Write { seq, source } => Failure::unavailable(format!(
            "the store did not take the erasure of event {seq}; those before are erased"
        ))
        .because(source)
        .help("run the same command again"),
        EraseError::Changed { .. } => {
            Failure::unavailable(error.to_string()).help("run the same command again")
        }
        EraseError::Reason => Failure::usage(error.to_string()),
    }
}
