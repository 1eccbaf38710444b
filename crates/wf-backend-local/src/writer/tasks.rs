//! Writes that are not commits: claims, settlements, the sweep, definitions. Each runs inside the batch's transaction.

pub(crate) mod deadlines;
pub(crate) mod definitions;
pub(crate) mod erase;
pub(crate) mod outbox;
pub(crate) mod purge;
pub(crate) mod sweep;

use rusqlite::Connection;

use super::job::{Done, Task};
use crate::codec::decode::Read;

/// Statements of tasks whose cost must not grow with the store: name and SQL.
#[cfg(test)]
pub(crate) const HOT: &[(&str, &str)] = &[
    ("streams to claim", outbox::CLAIMABLE),
    ("lease streams", outbox::LEASE),
    ("rows of streams", outbox::ROWS),
    ("put a message aside", outbox::PUT_ASIDE),
    ("stream never due", outbox::NEVER_DUE),
    ("stream under lease", outbox::STREAM),
    ("settle a message", outbox::SETTLE),
    ("release a stream", outbox::RELEASE),
    ("dead messages", outbox::DELETE_DEAD),
    ("revive", outbox::REVIVE),
    ("stream due again", outbox::DUE_AGAIN),
    ("deadlines to claim", deadlines::CLAIMABLE),
    ("lease deadlines", deadlines::LEASE),
    ("settle a deadline", deadlines::SETTLE),
    ("version", definitions::VERSION),
    ("put definition", definitions::PUT),
    ("put version", definitions::PUT_VERSION),
    ("what stands beside", erase::BESIDE),
    ("erase", erase::REPLACE),
    ("head to purge", purge::HEAD),
    ("keys that count", purge::COUNTS),
    ("undelivered of a workflow", purge::UNDELIVERED),
    ("tombstone", purge::TOMBSTONE),
    ("bury", purge::BURY),
    ("ledger rows of a workflow", purge::LEDGER),
    ("messages of a workflow", purge::MESSAGES),
    ("streams of a workflow", purge::STREAMS),
    ("sensitive values of a workflow", purge::BESIDE),
    ("events of a workflow", purge::EVENTS),
    ("deadlines of a workflow", purge::DEADLINES),
    ("assets of a workflow", purge::ASSETS),
    ("workflow gone", purge::GONE),
    ("set expiry", sweep::SET_EXPIRY),
    ("swept workflows", sweep::SWEPT),
    ("expired", sweep::DELETE_EXPIRED),
    ("delivered", sweep::DELETE_DELIVERED),
    ("empty streams", sweep::DELETE_EMPTY_STREAMS),
];

const PROBE: &str = "UPDATE store SET probe = (probe + 1) % 1000000 WHERE one = 1";

/// Does it.
pub(crate) fn run(conn: &Connection, task: &Task) -> Read<Done> {
    Ok(match task {
        Task::ClaimOutbox(claim) => Done::Streams(outbox::claim(conn, claim)?),
        Task::SettleOutbox(settlement) => Done::Settled(outbox::settle(conn, settlement)?),
        Task::ReviveOutbox { id, now } => Done::Revived(outbox::revive(conn, id, *now)?),
        Task::PurgeOutbox(purge) => Done::Purged(outbox::purge(conn, purge)?),
        Task::ClaimDeadlines(claim) => Done::Deadlines(deadlines::claim(conn, claim)?),
        Task::SettleDeadline(claimed) => Done::Settled(deadlines::settle(conn, claimed)?),
        Task::PutDefinition(definition) => Done::Definition(definitions::put(conn, definition)?),
        Task::Purge(wanted) => Done::PurgedWorkflow(purge::purge(conn, wanted)?),
        Task::Erase(erasure) => Done::Erased(erase::erase(conn, erasure)?),
        Task::Sweep { now, retention_ms, limit } => {
            Done::Swept(sweep::sweep(conn, *now, *retention_ms, *limit)?)
        }
        Task::Probe => {
            crate::connection::run(conn, PROBE, ())?;
            Done::Probed
        }
    })
}
