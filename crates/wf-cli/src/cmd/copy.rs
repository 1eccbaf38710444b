//! `wf-cli copy`: moves a store to another place or another kind of backend, without losing history.

use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};
use wf_core::engine::copy::{CopyReport, Stage};
use wf_core::ports::copy::RecordKind;

use crate::compose::copying;
use crate::config::ConfigArgs;
use crate::exit::{Exit, Failure};
use crate::output::{Output, Tone, counted};

/// Copy a store to another place, such as from a file to a DynamoDB table
#[derive(Debug, Args)]
#[command(
    after_help = "Stop every server of both stores first. The target is a file that does not exist yet, or an empty
table; a server refuses it until the copy is whole. Stopped at any point, the same command goes on.
At the end both stores are read again and compared, record by record and hash by hash; the exit
code is 4, and the target no store, when anything differs.

The copy keeps the store's id, keys and fences: it is the same store in another place. Never let
servers run on both.

Only the two files count: variables WF_... and --database do not.

Example:
  wf-cli aws init --config table.toml
  wf-cli copy --from file.toml --to table.toml
  wf-cli serve --config table.toml"
)]
pub(crate) struct CopyArgs {
    /// Configuration of the store to read
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Configuration of the store to make
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Records that go at once; fewer need less memory and repeat less when the copy is stopped
    #[arg(long, value_name = "RECORDS", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    page: u32,
}

/// Runs the command.
pub(crate) async fn run(
    args: &CopyArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    if config.database.is_some() || !config.set.is_empty() {
        return Err(Failure::usage("copy takes both stores from --from and --to")
            .help("write the database into the files"));
    }
    let (from, to) = (ConfigArgs::load_file(&args.from)?, ConfigArgs::load_file(&args.to)?);
    if from.backend == to.backend {
        return Err(Failure::usage("both files name the same store"));
    }
    let bar = output.progress("records copied");
    let mut progress = |stage, records| show(&bar, stage, records);
    let report = copying::copy(&from.backend, &to.backend, args.page, &mut progress).await;
    bar.finish_and_clear();
    let report = report?;
    tell(&report, output)?;
    if report.differences.is_empty() { Ok(()) } else { Err(Failure::quiet(Exit::Damage)) }
}

fn show(bar: &ProgressBar, stage: Stage, records: u64) {
    bar.set_message(match stage {
        Stage::Copying => "records copied",
        Stage::ReadingSource => "records of the source read again",
        Stage::ReadingTarget => "records of the target read",
    });
    bar.set_position(records);
}

fn tell(report: &CopyReport, output: Output) -> Result<(), Failure> {
    if output.is_json() {
        let named = |(kind, count): (&RecordKind, &u64)| (kind.name().to_owned(), json!(count));
        let records: Map<String, Value> = report.counts.iter().map(named).collect();
        return output.document(&json!({
            "ok": report.differences.is_empty(),
            "store_id": report.store_id,
            "already": report.already,
            "resumed": report.resumed,
            "records": records,
            "evidence": report.evidence,
            "differences": report.differences,
        }));
    }
    if report.already {
        return output
            .line("The target is a finished copy of this store already; nothing was done.");
    }
    for line in &report.differences {
        output.line(&format!(
            "{} {}",
            output.paint(Tone::Bad, "differs"),
            crate::exit::one_line(line)
        ))?;
    }
    let count = |kind| report.counts.get(&kind).copied().unwrap_or_default();
    let all = [
        counted(count(RecordKind::Workflow), "workflow"),
        counted(count(RecordKind::Event), "event"),
        counted(count(RecordKind::Ledger), "ledger row"),
        counted(count(RecordKind::Lock), "lock"),
        counted(count(RecordKind::Message), "message"),
    ]
    .join(", ");
    if report.differences.is_empty() {
        let verdict = output.paint(Tone::Good, "copied and compared");
        output.line(&format!("{verdict}: {all}"))?;
        return output.line(&format!("evidence {}", report.evidence));
    }
    output.line(&format!("in the source: {all}"))?;
    output.note(
        "The target is no store. If the source was in use meanwhile, stop what uses it, empty the target and copy again; \
         else `wf-cli workflow verify` on the source says more.",
    );
    Ok(())
}
