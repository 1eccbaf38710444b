//! `wf-cli outbox`: messages that wait, were delivered, or were given up.

mod purge;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use wf_core::ports::{
    ClockPort as _, DamagedMessage, OutboxQuery, OutboxRow, OutboxState, StorageBackendPort,
};

use crate::ambient::SystemClock;
use crate::compose;
use crate::config::ConfigArgs;
use crate::exit::Failure;
use crate::output::Output;

/// List messages, send a dead one again, delete old ones
#[derive(Debug, Args)]
pub(crate) struct OutboxArgs {
    #[command(subcommand)]
    command: OutboxCommand,
}

#[derive(Debug, Subcommand)]
enum OutboxCommand {
    List(ListArgs),
    Retry(RetryArgs),
    Purge(purge::PurgeArgs),
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
    let config = config.load()?;
    let backend = compose::open_existing(&config).await?;
    let store = backend.store();
    let done = match &args.command {
        OutboxCommand::List(args) => list(args, store.as_ref(), output).await,
        OutboxCommand::Retry(args) => retry(args, store.as_ref(), output).await,
        OutboxCommand::Purge(args) => {
            purge::purge(args, config.retention, store.as_ref(), output).await
        }
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
    let mut rows: Vec<Result<OutboxRow, DamagedMessage>> = Vec::new();
    let more = loop {
        let page = store.list_outbox(&query).await?;
        rows.extend(page.items.into_iter().map(Ok));
        rows.extend(page.damaged.into_iter().map(Err));
        match page.next {
            Some(_) if rows.len() >= wanted => break true,
            Some(next) => query.after = Some(next),
            None => break rows.len() > wanted,
        }
    };
    rows.truncate(wanted);
    if output.is_json() {
        let messages: Vec<Value> =
            rows.iter().filter_map(|row| row.as_ref().ok()).map(shown).collect();
        let damaged: Vec<Value> = rows
            .iter()
            .filter_map(|row| row.as_ref().err())
            .map(|row| json!({ "id": row.id, "state": row.state, "damage": row.error }))
            .collect();
        let document = json!({ "messages": messages, "damaged": damaged, "more": more });
        return output.document(&document);
    }
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let headings = ["ID", "STATE", "TYPE", "TO", "AT", "ATTEMPTS", "LAST ERROR"];
    output.table(&headings, &cells)?;
    if more {
        output.note(&format!("There are more than {}; raise --limit.", args.limit));
    }
    Ok(())
}

fn shown(row: &OutboxRow) -> Value {
    json!({
        "message": row.message,
        "state": row.status.state,
        "attempts": row.status.attempts,
        "next_attempt_at": row.status.next_attempt_at,
        "last_error": row.status.last_error,
    })
}

const fn name(state: OutboxState) -> &'static str {
    match state {
        OutboxState::Pending => "pending",
        OutboxState::Delivered => "delivered",
        OutboxState::Dead => "dead",
    }
}

fn cells(row: &Result<OutboxRow, DamagedMessage>) -> Vec<String> {
    let row = match row {
        Ok(row) => row,
        Err(DamagedMessage { id, state, error }) => {
            let unknown = || "?".to_owned();
            let state = state.map_or_else(unknown, |state| name(state).to_owned());
            let damage = format!("damaged: {error}");
            return vec![id.clone(), state, unknown(), unknown(), unknown(), unknown(), damage];
        }
    };
    vec![
        row.message.id.clone(),
        name(row.status.state).to_owned(),
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
