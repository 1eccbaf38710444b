//! `wf-cli workflow`: workflows straight from the store, with or without a running server.

mod erase;
mod events;
mod evidence;
mod export;
mod purge;
mod readings;
mod select;
mod sink;
mod verify;

pub(super) use verify::looked_at;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use wf_core::models::{Block, Locale, Phase, StepStatus, TenantId, Workflow, WorkflowId};
use wf_core::ports::{ListQuery, StorageBackendPort};

use crate::compose;
use crate::config::ConfigArgs;
use crate::exit::Failure;
use crate::output::Output;

/// List, show, verify, export, erase and purge workflows
#[derive(Debug, Args)]
pub(crate) struct WorkflowArgs {
    #[command(subcommand)]
    command: WorkflowCommand,
}

#[derive(Debug, Subcommand)]
enum WorkflowCommand {
    List(ListArgs),
    /// Show one workflow as it stands
    Show(OneArgs),
    /// Show what happened to one workflow, oldest first
    History(OneArgs),
    /// Print everything about one workflow as one document that can be verified without the store
    #[command(after_help = "Sensitive values are in it, where they were not erased.

Examples:
  wf-cli workflow evidence 01909a7c-5f0e-7d1b-8a51-3b8f6d1c2e4f > evidence.json
  wf-cli verify-evidence evidence.json")]
    Evidence(OneArgs),
    Export(export::ExportArgs),
    Erase(erase::EraseArgs),
    Purge(purge::PurgeArgs),
    Verify(verify::VerifyArgs),
}

/// List workflows, oldest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wf-cli workflow list --state blocked
  wf-cli workflow list --json --limit 1000")]
struct ListArgs {
    /// Only of this tenant
    #[arg(long)]
    tenant: Option<TenantId>,
    /// Only in this state
    #[arg(long)]
    state: Option<State>,
    /// At most this many
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

// No doc comment: it would replace those of the subcommands.
#[derive(Debug, Args)]
struct OneArgs {
    /// The workflow
    id: WorkflowId,
    /// Its tenant
    #[arg(long, default_value_t = TenantId::default_tenant())]
    tenant: TenantId,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum State {
    Created,
    Running,
    Blocked,
    Completed,
}

impl From<State> for Phase {
    fn from(state: State) -> Self {
        match state {
            State::Created => Self::Created,
            State::Running => Self::Running,
            State::Blocked => Self::Blocked,
            State::Completed => Self::Completed,
        }
    }
}

/// Runs the command.
pub(crate) async fn run(
    args: &WorkflowArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let config = config.load()?;
    let backend = compose::open_existing(&config).await?;
    let store = backend.store();
    let done = match &args.command {
        WorkflowCommand::List(args) => list(args, store.as_ref(), output).await,
        WorkflowCommand::Show(args) => show(args, store.as_ref(), output).await,
        WorkflowCommand::History(args) => {
            find(args, store.as_ref()).await?;
            events::print(store.as_ref(), &args.tenant, &args.id, output).await
        }
        WorkflowCommand::Evidence(args) => {
            let workflow = find(args, store.as_ref()).await?;
            evidence::print(store.as_ref(), workflow, output).await
        }
        WorkflowCommand::Export(args) => export::run(args, store.as_ref(), output).await,
        WorkflowCommand::Purge(args) => {
            purge::run(args, config.retention, store.as_ref(), output).await
        }
        WorkflowCommand::Erase(args) => erase::run(args, &backend, output).await,
        WorkflowCommand::Verify(args) => verify::run(args, &backend, output).await,
    };
    backend.close().await;
    done
}

/// Rows asked of the store at once.
const PAGE: u32 = 500;

async fn list(
    args: &ListArgs,
    store: &dyn StorageBackendPort,
    output: Output,
) -> Result<(), Failure> {
    let mut found: Vec<Workflow> = Vec::new();
    let mut query = ListQuery {
        tenant: args.tenant.clone(),
        phase: args.state.map(Phase::from),
        after: None,
        limit: args.limit.min(PAGE),
    };
    let wanted = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let more = loop {
        let page = store.list(&query).await?;
        found.extend(page.items);
        match page.next {
            Some(_) if found.len() >= wanted => break true,
            Some(next) => query.after = Some(next),
            None => break found.len() > wanted,
        }
    };
    found.truncate(wanted);
    if output.is_json() {
        let items: Vec<_> = found.iter().map(|workflow| json!(workflow)).collect();
        return output.document(&json!({ "workflows": items, "more": more }));
    }
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    let headings = ["ID", "STATE", "RESULT", "LABEL", "OWNER", "UPDATED", "TENANT"];
    output.table(&headings, &rows)?;
    if more {
        output.note(&format!("There are more than {}; raise --limit.", args.limit));
    }
    Ok(())
}

fn row(workflow: &Workflow) -> Vec<String> {
    vec![
        workflow.id.to_string(),
        workflow.phase.as_str().to_owned(),
        text_or_dash(workflow.result.as_ref()),
        workflow.label.get(&Locale::default()).to_owned(),
        workflow.owner.spoken().to_owned(),
        workflow.updated_at.to_string(),
        workflow.tenant.to_string(),
    ]
}

fn text_or_dash(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), ToString::to_string)
}

async fn find(args: &OneArgs, store: &dyn StorageBackendPort) -> Result<Workflow, Failure> {
    select::named(&args.id, args.tenant.clone(), store).await
}

async fn show(
    args: &OneArgs,
    store: &dyn StorageBackendPort,
    output: Output,
) -> Result<(), Failure> {
    let workflow = find(args, store).await?;
    if output.is_json() {
        return output.document(&json!(workflow));
    }
    let english = Locale::default();
    let assets: Vec<String> = workflow
        .assets
        .iter()
        .map(|asset| format!("{} {} (fence {})", asset.role, asset.id, asset.fence))
        .collect();
    let facts = [
        ("workflow", workflow.id.to_string()),
        ("label", workflow.label.get(&english).to_owned()),
        ("state", workflow.phase.as_str().to_owned()),
        ("result", text_or_dash(workflow.result.as_ref())),
        (
            "procedure",
            format!(
                "{} version {}, digest {}",
                workflow.procedure.id, workflow.procedure.version, workflow.procedure.digest
            ),
        ),
        ("owner", workflow.owner.id.to_string()),
        ("assets", assets.join(", ")),
        ("revision", workflow.revision.to_string()),
        ("started", workflow.started_at.to_string()),
        ("updated", workflow.updated_at.to_string()),
    ];
    for (name, value) in facts {
        output.line(&format!("{name:<10} {}", crate::exit::one_line(&value)))?;
    }
    for (name, value) in workflow.blocks.iter().flat_map(blocked) {
        output.line(&format!("{name:<10} {}", crate::exit::one_line(&value)))?;
    }
    output.line("")?;
    output.table(&["STEP", "STATUS", "ATTEMPT", "VALUE", "AT", "BY"], &steps(&workflow))
}

/// What a block is, what was said, who was told and who knows.
fn blocked(block: &Block) -> Vec<(&'static str, String)> {
    let step = block.step_id.as_ref().map_or_else(String::new, |step| format!(" at {step}"));
    let mut lines =
        vec![("blocked", format!("{} {}{step} since {}", block.id, block.code, block.at))];
    lines.extend(block.summary.clone().map(|summary| ("  because", summary)));
    if let Some(to) = &block.escalated_to {
        let at = block.escalated_at.map_or_else(String::new, |at| format!(" at {at}"));
        let silent = block.unanswered_since.map_or_else(String::new, |at| {
            format!(", no answer until {at} and nobody else is told")
        });
        lines.push(("  told", format!("{to}{at}{silent}")));
    }
    if let Some(by) = &block.acknowledged_by {
        let at = block.acknowledged_at.map_or_else(String::new, |at| format!(" at {at}"));
        lines.push(("  known to", format!("{}{at}", by.id)));
    }
    lines
}

fn steps(workflow: &Workflow) -> Vec<Vec<String>> {
    let mut steps: Vec<_> = workflow.steps.iter().collect();
    steps.sort_by_key(|(_, record)| record.touch.seq);
    steps
        .into_iter()
        .map(|(id, record)| {
            let status = match record.status {
                StepStatus::Reopened => "to do again",
                StepStatus::Recheck => "to confirm again",
                StepStatus::Recorded if record.out_of_range => "out of range",
                StepStatus::Recorded => "recorded",
                StepStatus::Skipped => "skipped",
            };
            vec![
                id.to_string(),
                status.to_owned(),
                record.attempt.to_string(),
                record.reading.as_ref().map_or_else(|| "-".to_owned(), events::shown),
                record.at.to_string(),
                record.by.id.to_string(),
            ]
        })
        .collect()
}
