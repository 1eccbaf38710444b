//! `wf-cli workflow verify`: recomputes what must hold over the whole store, beside a running server or without one.

use clap::Args;
use serde_json::json;
use wf_core::engine::verify::{self, Finding, VerifyReport};
use wf_core::models::WorkflowId;

use crate::compose::Backend;
use crate::exit::{Exit, Failure, one_line};
use crate::output::{Output, Tone, counted};

/// Verify hash chains, states and locks
#[derive(Debug, Args)]
#[command(
    after_help = "Checks that every history is gapless and its hash chain unbroken, that replaying it gives the
stored state, that nothing follows a completed workflow, that locks agree with states, and, over
the whole store, that no row belongs to nothing and that columns for lists agree with states.
The exit code is 4 when something does not hold.

Examples:
  wf-cli workflow verify
  wf-cli workflow verify 01909a7c-5f0e-7d1b-8a51-3b8f6d1c2e4f --json"
)]
pub(super) struct VerifyArgs {
    /// Only this workflow
    id: Option<WorkflowId>,
}

/// Runs the command.
pub(super) async fn run(
    args: &VerifyArgs,
    backend: &Backend,
    output: Output,
) -> Result<(), Failure> {
    let bar = output.progress("workflows verified");
    let mut progress = |workflows| bar.set_position(workflows);
    let store = backend.store();
    let report = verify::verify(store.as_ref(), args.id.as_ref(), &mut progress).await;
    bar.finish_and_clear();
    let mut report = report?;
    if args.id.is_none() {
        report.findings.extend(backend.strays().await?.into_iter().map(stray));
    }
    if let (Some(id), 0) = (&args.id, report.workflows) {
        return Err(Failure::failed(format!("there is no workflow {id}"))
            .help("`wf-cli workflow list` shows them"));
    }
    if output.is_json() {
        let findings: Vec<_> = report
            .findings
            .iter()
            .map(|finding| {
                json!({
                    "workflow_id": finding.workflow_id,
                    "invariant": finding.invariant,
                    "message": finding.message,
                })
            })
            .collect();
        output.document(&json!({
            "ok": report.findings.is_empty(),
            "workflows": report.workflows,
            "events": report.events,
            "locks": report.locks,
            "findings": findings,
        }))?;
    } else {
        for finding in &report.findings {
            output.line(&line(finding, output))?;
        }
        let verdict = match report.findings.len() {
            0 => output.paint(Tone::Good, "ok"),
            found => output.paint(Tone::Bad, &counted(found, "finding")),
        };
        output.line(&format!("{verdict}: {}", looked_at(&report)))?;
    }
    if report.findings.is_empty() { Ok(()) } else { Err(Failure::quiet(Exit::Damage)) }
}

/// How much was looked at.
pub(in crate::cmd) fn looked_at(report: &VerifyReport) -> String {
    let all = [(report.workflows, "workflow"), (report.events, "event"), (report.locks, "lock")];
    all.map(|(count, one)| counted(count, one)).join(", ")
}

/// A row without its counterpart: a commit of which a part is there.
fn stray(message: String) -> Finding {
    Finding { workflow_id: "store".to_owned(), invariant: "I5", message }
}

fn line(finding: &Finding, output: Output) -> String {
    format!(
        "{} {} {}",
        output.paint(Tone::Bad, finding.invariant),
        finding.workflow_id,
        one_line(&finding.message)
    )
}
