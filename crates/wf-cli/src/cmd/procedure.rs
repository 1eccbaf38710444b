//! `wf-cli procedure`: checks and shows procedure files; needs no store and no server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use wf_core::models::{Locale, Recipient};
use wf_core::policy::DomainPolicyPort as _;
use wf_procedure::{LoadError, Problem, Procedure, StepSummary};

use crate::config::{ConfigArgs, value};
use crate::exit::{Exit, Failure, one_line};
use crate::output::{Output, Tone};
use crate::procedures;

/// Check, list and show procedures
#[derive(Debug, Args)]
pub(crate) struct ProcedureArgs {
    #[command(subcommand)]
    command: ProcedureCommand,
}

#[derive(Debug, Subcommand)]
enum ProcedureCommand {
    Check(CheckArgs),
    /// List the procedures that a server would serve
    List,
    Show(ShowArgs),
    /// Print the JSON Schema of procedure files, for editors
    #[command(after_help = "Example:
  wf-cli procedure schema > procedure.schema.json")]
    Schema,
}

/// Check procedure files
#[derive(Debug, Args)]
#[command(
    after_help = "Every problem is printed as file:line:column, and the exit code is 1 when there is one.

Example:
  wf-cli procedure check procedures/*.yaml"
)]
struct CheckArgs {
    /// Files, or folders with files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Show one procedure that a server would serve
#[derive(Debug, Args)]
struct ShowArgs {
    /// The procedure, such as pump-inspection
    id: String,
}

/// Runs the command.
pub(crate) fn run(
    args: &ProcedureArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    match &args.command {
        ProcedureCommand::Check(args) => check(args, output),
        ProcedureCommand::List => list(config, output),
        ProcedureCommand::Show(args) => show(args, config, output),
        ProcedureCommand::Schema => output.document(&wf_procedure::json_schema()),
    }
}

fn check(args: &CheckArgs, output: Output) -> Result<(), Failure> {
    let mut good: Vec<(String, Procedure)> = Vec::new();
    let mut bad: Vec<Problem> = Vec::new();
    for path in &args.files {
        match read(path) {
            Ok(found) => good.extend(found),
            Err(problems) => bad.extend(problems),
        }
    }
    if output.is_json() {
        let procedures: Vec<Value> = good
            .iter()
            .map(|(file, procedure)| json!({ "file": file, "procedure": procedure.summary() }))
            .collect();
        output.document(
            &json!({ "ok": bad.is_empty(), "procedures": procedures, "problems": bad }),
        )?;
    } else {
        for (file, procedure) in &good {
            let definition = procedure.definition();
            output.line(&format!(
                "{} {}: {} version {}, digest {}",
                output.paint(Tone::Good, "ok"),
                one_line(file),
                definition.id,
                definition.version,
                definition.digest
            ))?;
        }
        for problem in &bad {
            output.line(&format!(
                "{} {}",
                output.paint(Tone::Bad, "error:"),
                one_line(&problem.to_string())
            ))?;
        }
    }
    if bad.is_empty() { Ok(()) } else { Err(Failure::quiet(Exit::Failed)) }
}

fn read(path: &Path) -> Result<Vec<(String, Procedure)>, Vec<Problem>> {
    let named = |(path, procedure): (PathBuf, Procedure)| (path.display().to_string(), procedure);
    if !path.is_dir() {
        let procedure = wf_procedure::load_file(path)?;
        return Ok(vec![named((path.to_owned(), procedure))]);
    }
    let whole = |message: String, hint: &str| {
        let file = path.display().to_string();
        vec![Problem { file, line: 0, column: 0, message, hint: hint.to_owned() }]
    };
    match wf_procedure::load_dir(path) {
        // Checking nothing would pass for a good result.
        Ok(found) if found.files.is_empty() => Err(whole(
            "no procedure files in this folder".to_owned(),
            "they end in .yaml, .yml or .json",
        )),
        Ok(found) => Ok(found.files.into_iter().map(named).collect()),
        Err(LoadError::Problems(problems)) => Err(problems),
        Err(LoadError::List { source, .. }) => {
            Err(whole(format!("cannot be listed: {source}"), ""))
        }
    }
}

fn list(config: &ConfigArgs, output: Output) -> Result<(), Failure> {
    let config = config.load()?;
    let loaded = procedures::load(config.procedures.as_deref())?;
    if output.is_json() {
        let all: Vec<_> = loaded.procedures.iter().map(|p| p.summary()).collect();
        return output.document(&json!({ "procedures": all, "origin": loaded.origin }));
    }
    let rows: Vec<Vec<String>> = loaded
        .procedures
        .iter()
        .map(|procedure| {
            let definition = procedure.definition();
            vec![
                definition.id.to_string(),
                definition.version.to_string(),
                definition.title.get(&config.server.locale).to_owned(),
                definition.digest.to_string(),
            ]
        })
        .collect();
    output.table(&["ID", "VERSION", "TITLE", "DIGEST"], &rows)
}

fn show(args: &ShowArgs, config: &ConfigArgs, output: Output) -> Result<(), Failure> {
    let config = config.load()?;
    let loaded = procedures::load(config.procedures.as_deref())?;
    let procedure = loaded
        .procedures
        .iter()
        .find(|procedure| procedure.definition().id.as_str() == args.id)
        .ok_or_else(|| {
            Failure::failed(format!("there is no procedure {}", args.id))
                .help(format!("there are: {}", loaded.names()))
        })?;
    let definition = procedure.definition();
    if output.is_json() {
        return output.document(&json!({
            "procedure": procedure.summary(),
            "document": definition.document,
        }));
    }
    let locale = &config.server.locale;
    output.line(&output.paint(Tone::Strong, &one_line(definition.title.get(locale))))?;
    output.line(&format!("  id       {}", definition.id))?;
    output.line(&format!("  version  {}", definition.version))?;
    output.line(&format!("  digest   {}", definition.digest))?;
    let needs = procedure.needs();
    for asset in &needs.assets {
        let example = asset.example.as_deref().unwrap_or("-");
        output.line(&format!(
            "  asset    {}: {} (such as {example})",
            asset.role,
            one_line(asset.say.get(locale))
        ))?;
    }
    for input in &needs.inputs {
        let must = if input.required { "required" } else { "optional" };
        output.line(&format!(
            "  input    {}: {}, {must}, {}",
            input.name,
            input.kind,
            one_line(input.say.get(locale))
        ))?;
    }
    let summary = procedure.summary();
    for deadline in &summary.deadlines {
        let (id, after, notify) = (&deadline.id, written(deadline.after_ms), &deadline.notify);
        output.line(&format!("  deadline {id}: {after} after the start, tells {notify}"))?;
    }
    if !summary.escalation.is_empty() {
        output.line(&format!("  blocks   tell {}", chain(&summary.escalation)))?;
    }
    output.line("")?;
    let rows: Vec<Vec<String>> = summary.steps.iter().map(|step| row(step, locale)).collect();
    output.table(&["STEP", "KIND", "ACCEPTS", "SKIP", "WHO", "PROMPT"], &rows)
}

/// `quality-lead, after 15m laboratory-manager`.
fn chain(escalation: &[Recipient]) -> String {
    let mut told = String::new();
    let mut before: Option<&Recipient> = None;
    for recipient in escalation {
        if let Some(within) = before.and_then(|before| before.respond_within_ms) {
            told.push_str(&format!(", after {} ", written(within)));
        }
        told.push_str(&recipient.to);
        before = Some(recipient);
    }
    told
}

/// A duration as files write it.
fn written(ms: i64) -> String {
    let duration = Duration::from_millis(ms.unsigned_abs());
    value::Value::Duration(duration).to_string().trim_matches('"').to_owned()
}

fn row(step: &StepSummary, locale: &Locale) -> Vec<String> {
    let unit = step.units.first().map_or("", String::as_str);
    let choices: Vec<&str> = step.choices.iter().map(|choice| choice.id.as_str()).collect();
    let accepts = match &step.accept {
        Some([low, high]) => format!("{low} to {high} {unit}").trim_end().to_owned(),
        None => match step.wait_ms {
            Some(ms) => format!("done after {}", written(ms)),
            None => choices.join(", "),
        },
    };
    let who = match (&step.role, step.not_performer) {
        (None, _) => String::new(),
        (Some(role), false) => role.clone(),
        (Some(role), true) => format!("{role}, a second person"),
    };
    vec![
        step.id.clone(),
        step.kind.to_owned(),
        accepts,
        step.skip.as_str().to_owned(),
        who,
        step.prompt.get(locale).to_owned(),
    ]
}
