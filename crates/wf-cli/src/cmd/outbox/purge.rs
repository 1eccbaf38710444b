//! `wf-cli outbox purge`: messages that nobody delivers any more go before their retention is over.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use wf_core::models::{Principal, TenantId, Timestamp};
use wf_core::ports::{ClockPort as _, Finished, OutboxPurge, StorageBackendPort};

use crate::ambient::{self, SystemClock};
use crate::config::value::duration;
use crate::exit::Failure;
use crate::output::Output;

/// Messages deleted at once, so that the commits of a running server get their turn in between.
const AT_ONCE: u32 = 500;

/// Delete messages that were delivered, and with --dead those that were given up
#[derive(Debug, Args)]
#[command(
    after_help = "A message that is still to be delivered is never deleted, so what receivers get, and in which order, stays as it is.
A dead message that is deleted can never be sent again; its event stays in the history of its workflow.
It works while a server runs. By itself a server deletes what was delivered, after idempotency.retention.

Examples:
  wf-cli outbox purge --older-than 7d
  wf-cli outbox purge --dead --older-than 90d --dry-run"
)]
pub(super) struct PurgeArgs {
    /// Only what was delivered (or given up) longer ago than this, such as 12h or 30d [default: idempotency.retention]
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
    /// Those that were given up, too
    #[arg(long)]
    dead: bool,
    /// Only count them
    #[arg(long)]
    dry_run: bool,
}

fn age(text: &str) -> Result<Duration, String> {
    duration(text).ok_or_else(|| "a whole number and ms, s, m, h or d, such as 30d".to_owned())
}

/// Deletes, or counts.
pub(super) async fn purge(
    args: &PurgeArgs,
    retention: Duration,
    store: &dyn StorageBackendPort,
    output: Output,
) -> Result<(), Failure> {
    let age = args.older_than.unwrap_or(retention);
    let age_ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    let until = Timestamp::from_ms(SystemClock.now().as_ms().saturating_sub(age_ms));
    let purge = |which| OutboxPurge { which, until, limit: AT_ONCE, count_only: args.dry_run };
    let delivered = all(store, purge(Finished::Delivered)).await?;
    let dead = if args.dead { all(store, purge(Finished::Dead)).await? } else { 0 };
    let by = Principal::operator(TenantId::default_tenant(), &ambient::os_user()).actor.to_string();
    if output.is_json() {
        return output.document(&json!({
            "delivered": delivered,
            "dead": if args.dead { Some(dead) } else { None },
            "until": until,
            "dry_run": args.dry_run,
            "by": by,
        }));
    }
    let verb = if args.dry_run { "would be deleted" } else { "deleted" };
    let mut said = format!("{delivered} delivered");
    if args.dead {
        said.push_str(&format!(" and {dead} dead"));
    }
    output.line(&format!("{said} messages until {until} {verb} by {by}."))
}

/// Goes on until nothing is left, or counts all at once.
async fn all(store: &dyn StorageBackendPort, mut purge: OutboxPurge) -> Result<u64, Failure> {
    if purge.count_only {
        purge.limit = u32::MAX;
        return Ok(store.purge_outbox(&purge).await?);
    }
    let mut deleted = 0;
    loop {
        let some = store.purge_outbox(&purge).await?;
        deleted += some;
        if some == 0 {
            return Ok(deleted);
        }
    }
}
