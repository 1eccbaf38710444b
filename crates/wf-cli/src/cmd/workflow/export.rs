//! `wf-cli workflow export`: whole workflows as JSON Lines, or their readings as CSV, for other programs.
//!
//! One page of workflows and one page of events are in memory, however many there are. Sensitive values stay masked unless
//! they are asked for.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use wf_core::models::Workflow;
use wf_core::ports::StorageBackendPort;
use wf_core::state_machine::{Event, SensitiveValue};

use crate::exit::Failure;
use crate::output::{Output, counted};

use super::State;
use super::readings::{COLUMNS, Corrections, Sight, cells, tamed};
use super::select::{Narrowed, Selection, When};
use super::sink::Sink;

/// Write workflows as JSON Lines, or their readings as CSV
#[derive(Debug, Args)]
#[command(
    after_help = "JSON Lines: for each workflow a line {\"record\": \"workflow\"} with its state, then a line {\"record\":
\"event\"} for each event, oldest first. CSV: a line for each value that was recorded, corrected or
skipped. In CSV, text that a spreadsheet would take for a formula gets an apostrophe in front.
Sensitive values are masked, and with them the notes on them, unless --include-sensitive is given.
It works beside a running server: each workflow is written as it was when it was listed.

Examples:
  wf-cli workflow export > all.jsonl
  wf-cli workflow export --format csv --completed-after 30d --out readings.csv
  wf-cli workflow export --id 01909a7c-5f0e-7d1b-8a51-3b8f6d1c2e4f --include-sensitive"
)]
pub(super) struct ExportArgs {
    /// What to write
    #[arg(long, default_value = "jsonl")]
    format: Format,
    #[command(flatten)]
    selection: Selection,
    /// Only in this state
    #[arg(long)]
    state: Option<State>,
    /// Only those completed before: a day, a time, or an age such as 90d
    #[arg(long, value_name = "WHEN", value_parser = When::parse)]
    completed_before: Option<When>,
    /// Only those completed then or later: a day, a time, or an age such as 90d
    #[arg(long, value_name = "WHEN", value_parser = When::parse)]
    completed_after: Option<When>,
    /// Where to write it, all or nothing; must not exist yet [default: the standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Sensitive values, too, where they were not erased
    #[arg(long)]
    include_sensitive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Jsonl,
    Csv,
}

/// What was written.
#[derive(Debug, Default)]
struct Written {
    workflows: u64,
    events: u64,
    rows: u64,
}

/// Runs the command.
pub(super) async fn run(
    args: &ExportArgs,
    store: &dyn StorageBackendPort,
    output: Output,
) -> Result<(), Failure> {
    if output.is_json() && args.out.is_none() && args.format == Format::Csv {
        return Err(Failure::usage("CSV on the standard output is not JSON")
            .help("leave --json out, or write to a file with --out FILE"));
    }
    if args.include_sensitive {
        output.note("The export holds sensitive values: keep it like the store itself.");
    }
    let mut sink = Sink::open(args.out.as_deref(), output)?;
    let bar = output.progress("exporting");
    let done = all(args, store, &mut sink, &bar).await;
    bar.finish_and_clear();
    let written = done?;
    let Some(path) = sink.finish()? else { return Ok(()) };
    if output.is_json() {
        return output.document(&json!({
            "file": path.to_string_lossy(),
            "workflows": written.workflows,
            "events": written.events,
            "rows": written.rows,
        }));
    }
    let what = match args.format {
        Format::Jsonl => counted(written.events, "event"),
        Format::Csv => counted(written.rows, "reading"),
    };
    let workflows = counted(written.workflows, "workflow");
    output.line(&format!("{} holds {workflows} with {what}", path.display()))
}

async fn all(
    args: &ExportArgs,
    store: &dyn StorageBackendPort,
    sink: &mut Sink,
    bar: &indicatif::ProgressBar,
) -> Result<Written, Failure> {
    let mut written = Written::default();
    if args.format == Format::Csv {
        sink.write(&record(&COLUMNS)?)?;
    }
    let mut selected = args.selection.begin(Narrowed {
        state: args.state,
        completed_before: args.completed_before,
        completed_after: args.completed_after,
    });
    while let Some(workflows) = selected.more(store).await? {
        for workflow in &workflows {
            match args.format {
                Format::Jsonl => lines(args, workflow, store, sink, &mut written).await?,
                Format::Csv => readings(args, workflow, store, sink, &mut written).await?,
            }
            written.workflows += 1;
            bar.set_position(written.workflows);
        }
    }
    Ok(written)
}

impl ExportArgs {
    fn sight(&self) -> Sight {
        if self.include_sensitive { Sight::Whole } else { Sight::Masked }
    }
}

/// Events of a workflow up to the revision that was listed, page by page.
struct History<'a> {
    store: &'a dyn StorageBackendPort,
    workflow: &'a Workflow,
    after: u64,
}

impl<'a> History<'a> {
    fn of(workflow: &'a Workflow, store: &'a dyn StorageBackendPort) -> Self {
        Self { store, workflow, after: 0 }
    }

    async fn more(&mut self) -> Result<Vec<Event>, Failure> {
        let Workflow { tenant, id, revision, .. } = self.workflow;
        if self.after >= *revision {
            return Ok(Vec::new());
        }
        let mut events = self.store.events(tenant, id, self.after, super::PAGE).await?;
        events.retain(|event| event.seq <= *revision);
        self.after = events.last().map_or(*revision, |event| event.seq);
        Ok(events)
    }
}

async fn lines(
    args: &ExportArgs,
    workflow: &Workflow,
    store: &dyn StorageBackendPort,
    sink: &mut Sink,
    written: &mut Written,
) -> Result<(), Failure> {
    sink.write(&line(&json!({ "record": "workflow", "workflow": workflow })))?;
    let mut history = History::of(workflow, store);
    loop {
        let events = history.more().await?;
        if events.is_empty() {
            return Ok(());
        }
        for event in &events {
            let event_json = shown(event, args.sight());
            let (tenant, id) = (&workflow.tenant, &workflow.id);
            sink.write(&line(&json!({
                "record": "event", "tenant": tenant, "workflow_id": id, "event": event_json,
            })))?;
            written.events += 1;
        }
    }
}

fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

/// An event as a reader with this sight sees it. Masked, it is not what its hash is of where a note was left out.
fn shown(event: &Event, sight: Sight) -> Value {
    let mut shown = json!(event);
    let Some(members) = shown.as_object_mut() else { return shown };
    match sight {
        Sight::Whole => return shown,
        Sight::Masked => {}
    }
    if !event.sensitive.is_empty() {
        let masked: Vec<Value> = event.sensitive.iter().map(masked).collect();
        members.insert("sensitive".to_owned(), Value::from(masked));
    }
    let withheld = event.body.recording().is_some_and(|recording| recording.reading.withheld);
    let data = members.get_mut("data").and_then(Value::as_object_mut);
    if let (true, Some(data)) = (withheld, data)
        && data.remove("note").is_some()
    {
        data.insert("note_withheld".to_owned(), Value::Bool(true));
    }
    shown
}

fn masked(value: &SensitiveValue) -> Value {
    match &value.erased {
        Some(erased) => json!({ "name": value.name, "erased": erased }),
        None => json!({ "name": value.name, "withheld": true }),
    }
}

async fn readings(
    args: &ExportArgs,
    workflow: &Workflow,
    store: &dyn StorageBackendPort,
    sink: &mut Sink,
    written: &mut Written,
) -> Result<(), Failure> {
    // Twice through the history: what corrected a value comes after it.
    let mut corrections = Corrections::default();
    let mut history = History::of(workflow, store);
    loop {
        let events = history.more().await?;
        if events.is_empty() {
            break;
        }
        events.iter().for_each(|event| corrections.see(event));
    }
    let mut history = History::of(workflow, store);
    loop {
        let events = history.more().await?;
        if events.is_empty() {
            return Ok(());
        }
        written.events += u64::try_from(events.len()).unwrap_or(u64::MAX);
        for event in &events {
            let Some(cells) = cells(workflow, event, &corrections, args.sight()) else { continue };
            let cells: Vec<String> = cells.into_iter().map(tamed).collect();
            sink.write(&record(&cells)?)?;
            written.rows += 1;
        }
    }
}

/// One record of CSV (RFC 4180), with its line end.
fn record<C: AsRef<str>>(cells: &[C]) -> Result<Vec<u8>, Failure> {
    let unwritten = |error: csv::Error| Failure::failed("a record was not written").because(error);
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::with_capacity(256));
    writer.write_record(cells.iter().map(|cell| cell.as_ref().as_bytes())).map_err(unwritten)?;
    writer
        .into_inner()
        .map_err(|error| Failure::failed("a record was not written").because(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_separators_are_quoted() {
        let text = |cells: &[&str]| String::from_utf8(record(cells).unwrap()).unwrap();
        assert_eq!(text(&["a", "b c", ""]), "a,b c,\r\n");
        assert_eq!(
            text(&["a,b", "say \"x\"", "two\nlines"]),
            "\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"\r\n"
        );
    }
}
