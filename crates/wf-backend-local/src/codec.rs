//! Rows ↔ domain values. The only place that knows how a value is written in a column.
//!
//! A workflow is stored whole as JSON; the columns beside it are copies for indexes, made here and read by nobody as
//! state. `encode` makes what a commit writes, `decode` reads rows back.

pub(crate) mod decode;
pub(crate) mod encode;

use wf_core::models::{Actor, Timestamp, Workflow};
use wf_core::ports::OutboxState;

/// `offered_to` of a workflow that is offered to anybody. No actor is written like this.
pub(crate) const ANYBODY: &str = "*";

/// The name of an outbox state in its column.
pub(crate) const fn outbox_state(state: OutboxState) -> &'static str {
    match state {
        OutboxState::Pending => "pending",
        OutboxState::Delivered => "delivered",
        OutboxState::Dead => "dead",
    }
}

/// The columns that place a workflow in the indexes for lists. They seldom change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The phase.
    pub(crate) phase: String,
    /// Who drives it.
    pub(crate) owner: String,
    /// To whom an open workflow is offered.
    pub(crate) offered_to: Option<String>,
    /// Since when.
    pub(crate) offered_at: Option<i64>,
    /// The time of the oldest open block, while blocked.
    pub(crate) blocked_since: Option<i64>,
    /// When it ended.
    pub(crate) completed_at: Option<i64>,
}

impl Placement {
    /// Of a state.
    pub(crate) fn of(workflow: &Workflow) -> Self {
        use wf_core::models::Phase;
        let updated = workflow.updated_at.as_ms();
        let offer = workflow.offer.as_ref().filter(|_| workflow.phase.is_open());
        let to = |person: Option<&wf_core::models::Person>| {
            person.map_or_else(|| ANYBODY.to_owned(), |p| p.id.to_string())
        };
        let (blocked, completed) = match workflow.phase {
            Phase::Created | Phase::Running => (false, false),
            Phase::Blocked => (true, false),
            Phase::Completed => (false, true),
        };
        let oldest_block = workflow.blocks.iter().map(|b| b.at.as_ms()).min();
        Self {
            phase: workflow.phase.as_str().to_owned(),
            owner: workflow.owner.id.to_string(),
            offered_to: offer.map(|o| to(o.to.as_ref())),
            offered_at: offer.map(|o| o.at.as_ms()),
            blocked_since: blocked.then(|| oldest_block.unwrap_or(updated)),
            completed_at: completed
                .then(|| workflow.completed_at.map_or(updated, Timestamp::as_ms)),
        }
    }
}

/// The ids of the assets of a workflow: sorted, once each, separated by a space (no id holds one).
pub(crate) fn asset_list(workflow: &Workflow) -> String {
    let mut ids: Vec<&str> = workflow.assets.iter().map(|a| a.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.join(" ")
}

/// An actor that cannot be read back would be a damaged row.
pub(crate) fn actor(text: &str) -> decode::Read<Actor> {
    Actor::parse(text).map_err(|e| crate::fault::unreadable("an actor", e))
}
