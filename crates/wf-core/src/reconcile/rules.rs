//! The rules themselves, one function for each situation; the table is in [`super`].

use crate::limits::{
    EXECUTION_AGE_MAX_MS, REGISTRATION_MS, REGISTRATIONS_MAX, RETIREMENT_MS, START_VISIBLE_MS,
    SUCCESSOR_BACKOFF_MAX_MS, SUCCESSOR_BACKOFF_MS, SUCCESSOR_WINDOW_MS, SUCCESSORS_ALERT,
    WAKE_MAX_S,
};
use crate::models::Timestamp;

use super::{Action, Binding, Head, Observation, Replacement, Rule, Run, Step};

/// The longest that an execution sleeps, in milliseconds.
const WAKE_MS: i64 = WAKE_MAX_S as i64 * 1_000;

/// What to do next. `head` is `None` for a workflow that there is not; `seen` is what the last call answered.
///
/// Pure: the same arguments give the same step. See the table of [the module](crate::reconcile).
#[must_use]
pub fn reconcile(
    head: Option<&Head>,
    binding: &Binding,
    seen: Observation,
    now: Timestamp,
) -> Step {
    let Some(head) = head else { return unknown(seen) };
    match seen {
        Observation::Unclear => step(Rule::R8, Action::Later),
        Observation::TokenDead => step(Rule::R4, Action::ForgetToken),
        Observation::Seen { fence, run } if fence != binding.fence => {
            foreign(head, binding, fence, run, now)
        }
        Observation::Nothing => settle(head, binding, None, now),
        Observation::Seen { run, .. } => settle(head, binding, Some(run), now),
    }
}

fn step(rule: Rule, action: Action) -> Step {
    Step { rule, action }
}

/// No such workflow: whatever runs in its name is stopped.
fn unknown(seen: Observation) -> Step {
    match seen {
        Observation::Seen { fence, run: Run::Running | Run::Foreign } => {
            step(Rule::R7, Action::Stop { fence })
        }
        Observation::Unclear => step(Rule::R8, Action::Later),
        Observation::Seen { run: Run::Closed | Run::Absent, .. }
        | Observation::TokenDead
        | Observation::Nothing => step(Rule::R7, Action::Settled),
    }
}

/// An execution of another fence than the binding's.
fn foreign(head: &Head, binding: &Binding, fence: u64, run: Run, now: Timestamp) -> Step {
    match run {
        Run::Closed | Run::Absent => settle(head, binding, None, now),
        // A store that was restored to an earlier time has handed this fence out before: it must not be used again.
        Run::Running | Run::Foreign if fence > binding.fence => step(
            Rule::R7,
            Action::Replace(Replacement {
                fence: fence.saturating_add(1),
                evicts: Some(fence),
                successors: binding.successors,
                window_at: binding.window_at,
                not_before: binding.not_before,
                alert: false,
            }),
        ),
        Run::Running | Run::Foreign => step(Rule::R7, Action::Stop { fence }),
    }
}

fn settle(head: &Head, binding: &Binding, run: Option<Run>, now: Timestamp) -> Step {
    if let Some(fence) = binding.evicts {
        return step(Rule::R7, Action::Stop { fence });
    }
    match head.completed_at {
        Some(completed_at) => retire(head, binding, completed_at, run, now),
        None => keep(head, binding, run, now),
    }
}

/// R6: the workflow has ended.
fn retire(
    head: &Head,
    binding: &Binding,
    completed_at: Timestamp,
    run: Option<Run>,
    now: Timestamp,
) -> Step {
    if binding.closed {
        return step(Rule::R6, Action::Settled);
    }
    match run {
        Some(Run::Closed | Run::Absent) => return step(Rule::R6, Action::Close),
        Some(Run::Running | Run::Foreign) | None => {}
    }
    if binding.waits {
        let tell =
            Action::Tell { revision: head.wanted_revision, ends: true, timeout_s: WAKE_MAX_S };
        return step(Rule::R6, tell);
    }
    match run {
        None => step(Rule::R6, Action::Describe { fence: binding.fence }),
        Some(_) if is_past(completed_at, RETIREMENT_MS, now) => {
            step(Rule::R6, Action::Stop { fence: binding.fence })
        }
        Some(_) => step(Rule::R8, Action::Later),
    }
}

/// The workflow is open: it has one execution, which runs, and knows what it must.
fn keep(head: &Head, binding: &Binding, run: Option<Run>, now: Timestamp) -> Step {
    match (binding.started_at, run) {
        // A workflow that is open again was restored; its execution has been forgotten.
        _ if binding.closed => replace(binding, None, now),
        (_, Some(Run::Foreign)) => replace(binding, Some(binding.fence), now),
        (_, Some(Run::Closed)) => replace(binding, None, now),
        // What was started a moment ago may not be visible yet.
        (Some(started_at), Some(Run::Absent)) if is_past(started_at, START_VISIBLE_MS, now) => {
            replace(binding, None, now)
        }
        (Some(_), Some(Run::Absent)) => step(Rule::R8, Action::Later),
        (None, Some(Run::Running)) => step(Rule::R3, Action::Record),
        (None, Some(Run::Absent) | None) if now < binding.not_before => {
            step(Rule::R8, Action::Later)
        }
        (None, Some(Run::Absent) | None) => step(Rule::R2, Action::Start { fence: binding.fence }),
        (Some(started_at), Some(Run::Running) | None) => {
            advance(head, binding, started_at, run.is_some(), now)
        }
    }
}

/// The execution was seen to run, now (`looked`) or earlier.
fn advance(
    head: &Head,
    binding: &Binding,
    started_at: Timestamp,
    looked: bool,
    now: Timestamp,
) -> Step {
    let worn = binding.registrations >= REGISTRATIONS_MAX
        || is_past(started_at, EXECUTION_AGE_MAX_MS, now);
    if worn {
        return replace(binding, Some(binding.fence), now);
    }
    if !head.acknowledged {
        return step(Rule::R1, Action::Acknowledge { fence: binding.fence });
    }
    if head.next_deadline.is_some_and(|at| at <= now) {
        return step(Rule::R1, Action::Fire);
    }
    let behind = binding.told_revision < head.wanted_revision;
    if binding.waits && behind {
        let timeout_s = wake_in(head.next_deadline, now);
        let tell = Action::Tell { revision: head.wanted_revision, ends: false, timeout_s };
        return step(Rule::R4, tell);
    }
    // It registers as soon as it runs, and again whenever it wakes up by itself. One that does not is doubtful.
    let silent_ms = if binding.waits { WAKE_MS + REGISTRATION_MS } else { REGISTRATION_MS };
    if !looked && is_past(binding.waits_since, silent_ms, now) {
        return step(Rule::R8, Action::Describe { fence: binding.fence });
    }
    if binding.waits { step(Rule::R4, Action::Settled) } else { step(Rule::R8, Action::Later) }
}

/// R5: a successor, later and later the more of them there were.
fn replace(binding: &Binding, evicts: Option<u64>, now: Timestamp) -> Step {
    let fresh = is_past(binding.window_at, SUCCESSOR_WINDOW_MS, now);
    let before = if fresh { 0 } else { binding.successors };
    let successors = before.saturating_add(1);
    let backoff =
        SUCCESSOR_BACKOFF_MS.saturating_mul(1 << before.min(20)).min(SUCCESSOR_BACKOFF_MAX_MS);
    let replacement = Replacement {
        fence: binding.fence.saturating_add(1),
        evicts,
        successors,
        window_at: if before == 0 { now } else { binding.window_at },
        not_before: now.plus_ms(backoff),
        alert: successors == SUCCESSORS_ALERT,
    };
    step(Rule::R5, Action::Replace(replacement))
}

/// `span_ms` have passed since `since`.
fn is_past(since: Timestamp, span_ms: i64, now: Timestamp) -> bool {
    now >= since.plus_ms(span_ms)
}

/// In how many seconds an execution wakes up by itself: always 1 to 86,400, since a missing or non-positive `TimeoutSeconds`
/// is an error that no state catches
/// ([Task state](https://docs.aws.amazon.com/step-functions/latest/dg/state-task.html)).
fn wake_in(next_deadline: Option<Timestamp>, now: Timestamp) -> u32 {
    let Some(at) = next_deadline else { return WAKE_MAX_S };
    let left_ms = at.as_ms().saturating_sub(now.as_ms()).max(0);
    let left_s = u32::try_from(left_ms.saturating_add(999) / 1_000).unwrap_or(WAKE_MAX_S);
    left_s.clamp(1, WAKE_MAX_S)
}
