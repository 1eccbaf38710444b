//! `wf-cli outbox`: messages that wait, were delivered, or were given up.

use clap::{Args, Subcommand};
use serde_json::json;
use wf_core::ports::{ClockPort as _, OutboxQuery, OutboxRow, OutboxState, StorageBackendPort};

use crate::ambient::SystemClock;
use crate::compose;
use crate::config::ConfigArgs;
use crate::exit::Failure;
use crate::output::Output;

/// List messages, and send a dead one again
#[derive(Debug, Args)]
pub(crate) struct OutboxArgs {
    #[command(subcommand)]
    command: OutboxCommand,
}

#[derive(Debug, Subcommand)]
enum OutboxCommand {
    List(ListArgs),
    Retry(RetryArgs),
}

/// List messages
#[derive(Debug, Args)]
struct ListArgs {
    /// Only those given up
    #[arg(long, conflicts_with_all = ["pending", "delivered"])]
    dead: bool,
    /// Only those to be delivered
    #[arg(long, conflicts_with = "delivered")]
    pending: bool,
    /// Only those delivered
    #[arg(long)]
    delivered: bool,
    /// At most this many
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Send a dead message again, under its old id
#[derive(Debug, Args)]
struct RetryArgs {
    /// The message, as `outbox list --dead` shows it
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    id: Option<String>,
    /// Every dead message
    #[arg(long)]
    all: bool,
}

/// Runs the command.
pub(crate) async fn run(
    args: &OutboxArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let backend = compose::open_existing(&config.load()?).await?;
    let store = backend.store();
    let done = match &args.command {
        OutboxCommand::List(args) => list(args, store.as_ref(), output).await,
        OutboxCommand::Retry(args) => retry(args, store.as_ref(), output).await,
    };
    backend.close().await;
    done
}

async fn list(
    args: &ListArgs,
    store: &dyn StorageBackendPort,
    output: Output,
) -> Result<(), Failure> {
    let state = if args.dead {
        Some(OutboxState::Dead)
    } else if args.pending {
        Some(OutboxState::Pending)
    } else if args.delivered {
        Some(OutboxState::Delivered)
    } else {
        None
    };
    let wanted = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut query = OutboxQuery { state, after: None, limit: args.limit.min(500) };
    let mut rows: Vec<OutboxRow> = Vec::new();
    let more = loop {
        let page = store.list_outbox(&query).await?;
        rows.extend(page.items);
        match page.next {
            Some(_) if rows.len() >= wanted => break true,
            Some(next) => query.after = Some(next),
            None => break rows.len() > wanted,
        }
    };
    rows.truncate(wanted);
    if output.is_json() {
        let messages: Vec<_> = rows
            .iter()
            .map(|row| {
                json!({
                    "message": row.message,
                    "state": row.status.state,
                    "attempts": row.status.attempts,
                    "next_attempt_at": row.status.next_attempt_at,
                    "last_error": row.status.last_error,
                })
            })
            .collect();
        return output.document(&json!({ "messages": messages, "more": more }));
    }
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let headings = ["ID", "STATE", "TYPE", "TO", "AT", "ATTEMPTS", "LAST ERROR"];
    output.table(&headings, &cells)?;
    if more {
        output.note(&format!("There are more than {}; raise --limit.", args.limit));
    }
    Ok(())
}

fn cells(row: &OutboxRow) -> Vec<String> {
    let state = match row.status.state {
        OutboxState::Pending => "pending",
        OutboxState::Delivered => "delivered",
        OutboxState::Dead => "dead",
    };
    vec![
        row.message.id.clone(),
        state.to_owned(),
        row.message.kind.clone(),
        row.message.recipient.clone(),
        row.message.time.to_string(),
        row.status.attempts.to_string(),
        row.status.last_error.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}

async fn retry(
    args: &RetryArgs,
    store: &dyn StorageBackendPort,
    output: Output,
) -> Result<(), Failure> {
    let Some(id) = &args.id else {
        return retry_all(store, output).await;
    };
    if !store.revive_outbox(id, SystemClock.now()).await? {
        return Err(Failure::failed(format!("there is no dead message {id}"))
            .help("`wf-cli outbox list --dead` shows them"));
    }
    if output.is_json() {
        return output.document(&json!({ "id": id, "state": "pending" }));
    }
    output.line(&format!("{id} is pending again; a running server sends it."))
}

/// Those that are dead now: one that dies again meanwhile, behind the page that is read, is left for the next time.
async fn retry_all(store: &dyn StorageBackendPort, output: Output) -> Result<(), Failure> {
    let mut query = OutboxQuery { state: Some(OutboxState::Dead), after: None, limit: 500 };
    let mut revived = 0_u64;
    loop {
        let page = store.list_outbox(&query).await?;
        for row in &page.items {
            revived += u64::from(store.revive_outbox(&row.message.id, SystemClock.now()).await?);
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    if output.is_json() {
        return output.document(&json!({ "retried": revived }));
    }
    output.line(&format!("{revived} messages are pending again; a running server sends them."))
}
