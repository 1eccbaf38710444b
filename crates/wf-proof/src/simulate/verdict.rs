//! How the executions must be when nothing happens any more: one that knows what it must for each open workflow, none for one
//! that has ended; and a pass over all of that changes nothing.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use wf_core::engine::Engine;
use wf_core::models::{Phase, WorkflowId};
use wf_core::ports::{Attention, ClockPort as _, ReadError};

use super::outside::{Execution, Outside, Row, State};
use super::reconciler::{REST, Reconciler};
use super::replica::Clock;

/// How long it may take until all is so: an execution whose token was lost registers again when it wakes up, which is within
/// a day; and one that did not is looked at after another.
const LONGEST: Duration = Duration::from_secs(3 * 24 * 60 * 60);
/// Within this an execution that was just told something, or nothing yet, mostly wakes up.
const STRAGGLERS: Duration = Duration::from_secs(2 * 60);
/// The longest rest between two turns.
const REST_MAX: Duration = Duration::from_secs(60 * 60);

impl State {
    /// What is not as it must be.
    fn wrong(&self) -> Option<String> {
        self.rows.iter().find_map(|(id, row)| self.wrong_of(id, row))
    }

    fn wrong_of(&self, id: &WorkflowId, row: &Row) -> Option<String> {
        let fence = row.binding.fence;
        let of = |one: &&Execution| one.workflow == *id && one.ended.is_none();
        // What somebody starts under a name that we never come to is not ours to stop; nor is what they started so shortly
        // before the end that the last pass could not see it. Ours ends by itself then.
        let unseen = |one: &Execution| one.missed && row.binding.closed;
        let ours = |one: &&Execution| !one.foreign || (one.fence <= fence && !unseen(one));
        let running: Vec<_> = self.executions.iter().filter(of).filter(ours).collect();
        let fences: Vec<u64> = running.iter().map(|one| one.fence).collect();
        if !row.work.phase.is_open() {
            return (!fences.is_empty() || !row.binding.closed).then(|| {
                let closed = row.binding.closed;
                format!("{id} has ended; of it run {fences:?}, closed {closed}")
            });
        }
        let [one] = running.as_slice() else {
            return Some(format!("{id} is open under fence {fence}; of it run {fences:?}"));
        };
        let (told, asked) = (one.told, row.asked);
        if one.fence != fence || one.foreign || told < asked || row.work.phase == Phase::Created {
            let phase = row.work.phase.as_str();
            return Some(format!(
                "{id} is {phase} under fence {fence}; {fences:?} knows {told} of {asked}"
            ));
        }
        None
    }

    /// All there are, whether or not a row asks for a look.
    fn all(&self) -> Vec<Attention> {
        let one = |(id, row): (&WorkflowId, &Row)| Attention {
            tenant: row.work.tenant.clone(),
            workflow_id: id.clone(),
            wanted_revision: row.attention.map(|ask| ask.wanted),
            not_before: row.work.next_due.unwrap_or(row.binding.not_before),
            looks: 0,
        };
        self.rows.iter().map(one).collect()
    }
}

/// Passes, in calm weather, until all is as it must be and a pass over all of it changes nothing; what is not.
pub(super) async fn settles(
    outside: &Outside,
    reconciler: &mut Reconciler,
    engine: &Engine,
    clock: &Clock,
) -> Result<Option<String>, ReadError> {
    let begun = Instant::now();
    let (mut changes, mut late) = (0, false);
    while begun.elapsed() < LONGEST {
        reconciler.turn(engine).await?;
        if outside.lock().wrong().is_none() {
            // Executions come to their next `Await`.
            sleep(REST).await;
            let (all, before) = {
                let state = outside.lock();
                (state.all(), state.changes)
            };
            reconciler.over(engine, all).await?;
            changes = outside.lock().changes - before;
            if changes == 0 && late {
                return Ok(None);
            }
            // Once more, when those have come to write that were replaced.
            if changes == 0 {
                late = true;
                sleep(STRAGGLERS).await;
            }
        }
        sleep(rest(outside, clock)).await;
    }
    let wrong = outside.lock().wrong().map(|wrong| format!("it does not come right: {wrong}"));
    Ok(Some(
        wrong.unwrap_or_else(|| format!("all is right, and passes still change it: {changes}")),
    ))
}

/// How long until a row asks for a look.
fn rest(outside: &Outside, clock: &Clock) -> Duration {
    let state = outside.lock();
    let asked = state.rows.values().flat_map(|row| [row.attention.map(|a| a.not_before), row.look]);
    let next = asked.flatten().map(|at| at.since_ms(clock.now()).max(0).unsigned_abs()).min();
    next.map_or(REST_MAX, Duration::from_millis).clamp(REST, REST_MAX)
}
