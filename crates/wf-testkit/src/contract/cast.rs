//! Who and what appears in the clauses, so that a clause reads as a story.

use wf_core::models::{Actor, TenantId, WorkflowId};
use wf_core::ports::Commit;

use crate::build::{self, CommitBuilder, at};

/// The tenant of most clauses.
pub(super) fn plant() -> TenantId {
    build::tenant("plant-a")
}

/// Another tenant. Its name starts with the first one's, so that a prefix match does not go unnoticed.
pub(super) fn other_plant() -> TenantId {
    build::tenant("plant-a.2")
}

pub(super) fn ann() -> Actor {
    build::user("ann")
}

pub(super) fn bob() -> Actor {
    build::user("bob")
}

/// The workflow number `n`; ids sort by number.
pub(super) fn wf(n: u32) -> WorkflowId {
    build::workflow_id(&format!("wf-{n:04}"))
}

/// Ann starts workflow `n` in the first tenant, `n` minutes after the epoch.
pub(super) fn start(n: u32) -> CommitBuilder {
    start_by(n, &ann())
}

/// Somebody starts workflow `n` in the first tenant, `n` minutes after the epoch.
pub(super) fn start_by(n: u32, owner: &Actor) -> CommitBuilder {
    CommitBuilder::start(&plant(), &wf(n), owner, at(i64::from(n) * 60_000))
}

/// Ann starts workflow `n` with every part that a commit can have: two assets, a step, two messages, two deadlines.
pub(super) fn start_with_everything(n: u32, fence: u64) -> CommitBuilder {
    start(n)
        .acquire(&build::asset("PUMP-7"), fence)
        .acquire(&build::asset("GAUGE:3"), fence)
        .record("pressure", "4.20")
        .seen(&ann(), Some("Ann"))
        .message("maintenance-lead")
        .message("log")
        .deadline(at(3_600_000))
        .deadline(at(7_200_000))
}

/// The next commit after `before`, `seconds` later: a value for a step, with a message and a deadline.
pub(super) fn step_after(before: &Commit, seconds: i64) -> CommitBuilder {
    let when = before.next.updated_at.plus_ms(seconds * 1_000);
    CommitBuilder::next(&before.next, when)
        .record("temperature", "21.5")
        .message("maintenance-lead")
        .deadline(when.plus_ms(3_600_000))
}
