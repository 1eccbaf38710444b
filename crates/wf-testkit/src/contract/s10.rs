//! S10: a claimed outbox stream or deadline reappears after its lease, and a late holder's settle is refused.
//!
//! One file for each subject: `streams` (what a claim brings), `settling`, `leases`, `deadlines`.

mod deadlines;
mod leases;
mod settling;
mod streams;

pub use deadlines::*;
pub use leases::*;
pub use settling::*;
pub use streams::*;

use wf_core::ports::{ClaimedStream, Commit, OutboxRow, SettleError, Settled, Settlement};

use super::cast::start;
use super::look::{self, Store};
use super::{Verdict, Violation, check_eq};
use crate::build::{CommitBuilder, at};

/// The only stream that a claim brings.
async fn one_stream(store: &Store, ms: i64, token: &str) -> Result<ClaimedStream, Violation> {
    let mut streams = store.claim_outbox(&look::claim(ms, token)).await?;
    match (streams.pop(), streams.len()) {
        (Some(stream), 0) => Ok(stream),
        (stream, more) => Err(Violation::new(format!(
            "a claim brought {stream:?} and {more} more, not one stream"
        ))),
    }
}

/// A claim brings nothing.
async fn no_stream(store: &Store, ms: i64, why: &str) -> Verdict {
    let streams = store.claim_outbox(&look::claim(ms, "too early")).await?;
    check_eq!(streams, [], "claimed although {why}");
    Ok(())
}

/// A settlement of a claimed stream.
fn settlement(stream: &ClaimedStream, ms: i64, results: &[(&str, Settled)]) -> Settlement {
    let result = |(id, settled): &(&str, Settled)| ((*id).to_owned(), settled.clone());
    Settlement {
        tenant: stream.tenant.clone(),
        workflow_id: stream.workflow_id.clone(),
        recipient: stream.recipient.clone(),
        token: stream.token.clone(),
        now: at(ms),
        results: results.iter().map(result).collect(),
    }
}

/// The lease is somebody else's: the settlement is refused so.
async fn lease_lost(store: &Store, settlement: &Settlement) -> Verdict {
    match store.settle_outbox(settlement).await {
        Err(SettleError::LeaseLost) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => Err(Violation::new(format!("a late settlement was taken: {settlement:?}"))),
    }
}

fn ids(rows: &[OutboxRow]) -> Vec<&str> {
    rows.iter().map(|row| row.message.id.as_str()).collect()
}

/// Workflow 1, started a minute after the epoch, with messages to `log` in `count` commits, a second apart.
async fn messages(store: &Store, count: u32) -> Result<Vec<Commit>, Violation> {
    let mut commits = vec![start(1).message("log").build()];
    for n in 1..count {
        if let Some(last) = commits.last() {
            let when = last.next.updated_at.plus_ms(1_000);
            let next = CommitBuilder::next(&last.next, when).note(&format!("note {n}"));
            commits.push(next.message("log").build());
        }
    }
    for commit in &commits {
        store.commit(commit.clone()).await?;
    }
    Ok(commits)
}

/// The ids of the messages, in the order of their events.
fn message_ids(commits: &[Commit]) -> Vec<&str> {
    commits.iter().flat_map(|c| &c.outbox).map(|m| m.id.as_str()).collect()
}
