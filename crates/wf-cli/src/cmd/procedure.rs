//! `wf-cli procedure`: checks and shows procedure files; needs no store and no server.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use wf_core::models::Locale;
use wf_core::policy::DomainPolicyPort as _;
use wf_procedure::{Problem, Procedure};

use crate::config::ConfigArgs;
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
#[command(after_help = "Every problem is printed as file:line:column, and the exit code is 1 when there is one.

Example:
  wf-cli procedure check procedures/*.yaml")]
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
pub(crate) fn run(args: &ProcedureArgs, config: &ConfigArgs, output: Output) -> Result<(), Failure> {
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
        let name = path.display().to_string();
        match read(path) {
            Ok(found) => good.extend(found.into_iter().map(|procedure| (name.clone(), procedure))),
            Err(problems) => bad.extend(problems),
        }
    }
    if output.is_json() {
        let procedures: Vec<Value> = good
            .iter()
            .map(|(file, procedure)| {
                let mut entry = summary(procedure);
                entry["file"] = json!(file);
                entry
            })
            .collect();
        output.document(&json!({ "ok": bad.is_empty(), "procedures": procedures, "problems": bad }))?;
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
    if bad.is_empty() {
        Ok(())
    } else {
        Err(Failure::quiet(Exit::Failed))
    }
}

fn read(path: &Path) -> Result<Vec<Procedure>, Vec<Problem>> {
    if path.is_dir() {
        return wf_procedure::load_dir(path);
    }
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        vec![Problem {
            file: name.clone(),
            line: 0,
            column: 0,
            message: format!("cannot be read: {error}"),
            hint: String::new(),
        }]
    })?;
    wf_procedure::parse(&text, &name).map(|procedure| vec![procedure])
}

fn summary(procedure: &Procedure) -> Value {
    let definition = procedure.definition();
    json!({
        "id": definition.id,
        "version": definition.version,
        "title": definition.title,
        "digest": definition.digest,
    })
}

fn list(config: &ConfigArgs, output: Output) -> Result<(), Failure> {
    let config = config.load()?;
    let loaded = procedures::load(config.procedures.as_deref())?;
    if output.is_json() {
        let all: Vec<Value> = loaded.procedures.iter().map(|p| summary(p)).collect();
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
        let mut all = summary(procedure);
        all["document"] = definition.document.clone();
        return output.document(&all);
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
    output.line("")?;
    output.table(&["STEP", "KIND", "PROMPT"], &steps(&definition.document, locale))
}

/// The steps as the document writes them; prompts may be one text or one for each language.
fn steps(document: &Value, locale: &Locale) -> Vec<Vec<String>> {
    let text = |step: &Value, name: &str| -> String {
        match step.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Object(by_language)) => by_language
                .get(locale.as_str())
                .or_else(|| by_language.get(locale.language()))
                .or_else(|| by_language.get("en"))
                .or_else(|| by_language.values().next())
                .and_then(Value::as_str)
                .unwrap_or("-")
                .to_owned(),
            _ => "-".to_owned(),
        }
    };
    document
        .get("steps")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|step| vec![text(step, "id"), text(step, "kind"), text(step, "prompt")])
        .collect()
}
