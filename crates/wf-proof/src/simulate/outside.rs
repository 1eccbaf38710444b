//! What is outside the servers in a simulation with an orchestrator: the rows that bind executions to workflows, and the
//! executions. The rows are written under the conditions of a real table, each write in one moment; what must never happen is
//! noticed here, in the moment in which it does.
//!
//! Neighbours: `rows` (the way of a server to the rows), `executions` (its way to the orchestrator), `life` (what an execution
//! does), `verdict` (how everything must be in the end).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;
use wf_core::limits::{REGISTRATION_MS, WAKE_MAX_S};
use wf_core::models::{Phase, TenantId, Timestamp, Workflow, WorkflowId};
use wf_core::ports::{Attention, ClockPort as _, Commit, Epoch, Written};
use wf_core::reconcile::{Binding, Replacement};

use super::Broken;
use super::replica::Clock;
use super::rows::Bound;

/// How long a binding that nothing happens to is not looked at: an execution wakes up and registers within this.
const LOOK_MS: i64 = WAKE_MAX_S as i64 * 1_000 + 2 * REGISTRATION_MS;

/// Shared by everything in one simulation. Its clock is right.
#[derive(Debug, Clone)]
pub(super) struct Outside {
    state: Arc<Mutex<State>>,
    clock: Clock,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) rows: BTreeMap<WorkflowId, Row>,
    pub(super) executions: Vec<Execution>,
    lease: Option<Lease>,
    pub(super) tokens: u64,
    holders: u64,
    /// Writes and calls that arrive late, or never.
    late: Vec<Late>,
    broken: Option<Broken>,
    /// Writes to rows that landed for a reconciler, and calls of reconcilers that changed an execution.
    pub(super) changes: u64,
    pub(super) passes: u64,
    pub(super) found: Vec<String>,
}

type Late = Box<dyn FnOnce(&mut State) + Send>;

struct Lease {
    holder: u64,
    until: Timestamp,
    epoch: u64,
}

/// What is written of one workflow.
pub(super) struct Row {
    pub(super) work: Work,
    pub(super) binding: Binding,
    pub(super) token: Option<String>,
    /// The epoch of the last reconciler that wrote the binding.
    epoch: u64,
    pub(super) attention: Option<Ask>,
    /// When the binding is looked at next; never, once it is closed.
    pub(super) look: Option<Timestamp>,
    /// The revision that a commit asked for last, which no row forgets.
    pub(super) asked: u64,
    /// The highest fence that the binding has had.
    highest: u64,
}

/// What the last commit made of the workflow.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) tenant: TenantId,
    pub(super) revision: u64,
    pub(super) phase: Phase,
    pub(super) completed_at: Option<Timestamp>,
    pub(super) next_due: Option<Timestamp>,
}

/// The row by which a commit asks for a look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub(super) wanted: u64,
    pub(super) not_before: Timestamp,
    pub(super) looks: u32,
    epoch: u64,
}

/// An execution of the orchestrator.
pub(super) struct Execution {
    pub(super) workflow: WorkflowId,
    pub(super) fence: u64,
    /// It was started with another input: it is somebody else's.
    pub(super) foreign: bool,
    /// A description that was out of date hid it from whoever asked.
    pub(super) missed: bool,
    pub(super) began: Instant,
    pub(super) ended: Option<Instant>,
    /// Nobody knows of it any more.
    pub(super) vanished: bool,
    /// The token that it can be answered by.
    pub(super) token: Option<String>,
    /// The answer, until it goes on.
    pub(super) answer: Option<Answer>,
    /// What it was told last.
    pub(super) told: u64,
    pub(super) moved: Arc<Notify>,
}

/// What an execution is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) ends: bool,
    pub(super) revision: u64,
    pub(super) timeout_s: u32,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("broken", &self.broken).finish_non_exhaustive()
    }
}

impl Outside {
    pub(super) fn new(broken: Option<Broken>, begun: Instant) -> Self {
        let state = Arc::new(Mutex::new(State { broken, ..State::default() }));
        Self { state, clock: Clock::since(begun) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What a commit writes about executions, in its own write.
    pub(super) fn beside(&self, commit: &Commit) -> Box<dyn FnOnce() + Send> {
        let next = &commit.next;
        let (id, at, starts) = (next.id.clone(), next.updated_at, commit.expected == 0);
        let (work, fence) = (Work::of(next), next.fence.max(1));
        let outside = self.clone();
        Box::new(move || outside.lock().committed(id, work, starts.then_some(fence), at))
    }

    /// Whatever is on its way for long arrives.
    pub(super) fn land(&self) -> usize {
        let late = std::mem::take(&mut self.lock().late);
        let count = late.len();
        for arrives in late {
            arrives(&mut self.lock());
        }
        count
    }
}

impl Work {
    fn of(workflow: &Workflow) -> Self {
        Self {
            tenant: workflow.tenant.clone(),
            revision: workflow.revision,
            phase: workflow.phase,
            completed_at: workflow.completed_at,
            next_due: workflow.deadlines.values().map(|deadline| deadline.fire_at).min(),
        }
    }
}

impl State {
    pub(super) fn is(&self, broken: Broken) -> bool {
        self.broken == Some(broken)
    }

    pub(super) fn found(&mut self, what: String) {
        self.found.push(what);
    }

    /// It may arrive later, or never.
    pub(super) fn late(&mut self, arrives: impl FnOnce(&mut Self) + Send + 'static) {
        self.late.push(Box::new(arrives));
    }

    pub(super) fn committed(
        &mut self,
        id: WorkflowId,
        work: Work,
        starts: Option<u64>,
        at: Timestamp,
    ) {
        let (open, revision) = (work.phase.is_open(), work.revision);
        let mut changes = starts.is_some() || !open;
        let row = self.rows.entry(id).or_insert_with(|| {
            changes = true;
            let fence = starts.unwrap_or(1);
            Row {
                work: work.clone(),
                binding: Binding { fence, ..Binding::new(at) },
                token: None,
                epoch: 0,
                attention: None,
                look: Some(at.plus_ms(LOOK_MS)),
                asked: 0,
                highest: fence,
            }
        });
        changes |= row.work.next_due != work.next_due;
        row.work = work;
        if changes {
            row.asked = revision;
            let ask = Ask { wanted: revision, not_before: at, looks: 0, epoch: 0 };
            row.attention = Some(ask);
        }
    }

    /// Who asks for the lease, another for each start of a server.
    pub(super) fn new_holder(&mut self) -> u64 {
        self.holders += 1;
        self.holders
    }

    /// Takes or renews the lease of the reconciler; none when somebody else has it.
    pub(super) fn hold(&mut self, holder: u64, now: Timestamp, lease_ms: i64) -> Option<Epoch> {
        let until = now.plus_ms(lease_ms);
        let next = self.lease.as_ref().map_or(1, |lease| lease.epoch + 1);
        match &mut self.lease {
            Some(lease) if lease.holder == holder => {
                lease.until = until;
                Some(Epoch(lease.epoch))
            }
            // An expiry further ahead than two leases was given by a clock that was wrong.
            Some(lease) if now < lease.until && lease.until <= now.plus_ms(2 * lease_ms) => None,
            Some(_) | None => {
                self.lease = Some(Lease { holder, until, epoch: next });
                Some(Epoch(next))
            }
        }
    }

    /// What is to be looked at.
    pub(super) fn due(&self, now: Timestamp) -> Vec<Attention> {
        let due = self.rows.iter().filter_map(|(id, row)| {
            let asked = row.attention.filter(|ask| ask.not_before <= now);
            let not_before =
                asked.map(|ask| ask.not_before).or(row.look.filter(|at| *at <= now))?;
            Some(Attention {
                tenant: row.work.tenant.clone(),
                workflow_id: id.clone(),
                wanted_revision: asked.map(|ask| ask.wanted),
                not_before,
                looks: asked.map_or(0, |ask| ask.looks),
            })
        });
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|one| one.not_before);
        due
    }

    /// Writes a binding for a reconciler, on condition that it is as it was read, that no later one has written, and `when`.
    pub(super) fn write(
        &mut self,
        bound: &Bound,
        epoch: Epoch,
        when: impl FnOnce(&Row) -> bool,
        change: impl FnOnce(&mut Row),
    ) -> Written {
        let unfenced = self.is(Broken::ReconcilerUnfenced);
        let id = &bound.attention.workflow_id;
        let Some(row) = self.rows.get_mut(id) else { return Written::Overtaken };
        let fenced = row.binding.fence == bound.binding.fence && row.epoch <= epoch.0;
        if !(fenced || unfenced) || !when(row) {
            return Written::Overtaken;
        }
        let overtaken = row.epoch > epoch.0;
        change(row);
        row.epoch = row.epoch.max(epoch.0);
        let back = row.binding.fence < row.highest;
        row.highest = row.highest.max(row.binding.fence);
        self.changes += 1;
        if overtaken {
            self.found(format!("{id}: a reconciler that was overtaken wrote"));
        }
        if back {
            self.found(format!("{id}: a fence that was replaced came back"));
        }
        Written::Done
    }

    /// Takes the token that was read off the binding. Nobody else can tell its execution anything then.
    pub(super) fn drop_token(&mut self, bound: &Bound, epoch: Epoch, now: Timestamp) -> Written {
        let Some(used) = &bound.token else { return Written::Overtaken };
        let written = self.write(
            bound,
            epoch,
            |row| row.token.as_ref() == Some(used),
            |row| {
                row.token = None;
                (row.binding.waits, row.binding.waits_since) = (false, now);
            },
        );
        let lives = |execution: &Execution| execution.token.as_ref() == Some(used);
        if written == Written::Done && self.executions.iter().any(lives) {
            let id = &bound.attention.workflow_id;
            self.found(format!("{id}: a token was dropped that its execution waits with"));
        }
        written
    }

    pub(super) fn replace(
        &mut self,
        bound: &Bound,
        epoch: Epoch,
        by: &Replacement,
        now: Timestamp,
    ) -> Written {
        let next = by.of(&bound.binding, now);
        self.write(
            bound,
            epoch,
            |_| true,
            |row| {
                (row.binding, row.token, row.look) = (next, None, Some(next.not_before));
            },
        )
    }

    /// Nothing is left to do: the row of the commit goes, and the next look is put off.
    pub(super) fn settle(&mut self, bound: &Bound, epoch: Epoch, now: Timestamp) -> Written {
        let unfenced = self.is(Broken::ReconcilerUnfenced);
        let moves = bound.head.is_some() && bound.look.is_some_and(|look| look <= now);
        if bound.wanted.is_none() && !moves {
            return Written::Done;
        }
        let Some(row) = self.rows.get_mut(&bound.attention.workflow_id) else {
            return Written::Done;
        };
        let wanted = row.attention.map(|ask| ask.wanted);
        let told = row.binding.closed
            || (row.token.is_some() && bound.wanted.is_none_or(|w| row.binding.told_revision >= w));
        let same = bound.wanted.is_none() || wanted == bound.wanted;
        let unmoved = !moves || row.look == bound.look;
        let fenced = row.binding.fence == bound.binding.fence && row.epoch <= epoch.0;
        if !(told && same && unmoved && (fenced || unfenced)) {
            return Written::Overtaken;
        }
        if bound.wanted.is_some() {
            row.attention = None;
        }
        if moves && !row.binding.closed {
            row.epoch = row.epoch.max(epoch.0);
            row.look = Some(bound.next_look(now));
        }
        self.changes += 1;
        Written::Done
    }

    /// Looks again later, unless a commit asks for it earlier.
    pub(super) fn postpone(&mut self, bound: &Bound, epoch: Epoch, at: Timestamp) -> Written {
        let Some(wanted) = bound.wanted else {
            if bound.look.is_none() {
                return Written::Done;
            }
            return self.write(
                bound,
                epoch,
                |row| row.look == bound.look,
                |row| row.look = Some(at),
            );
        };
        let row = self.rows.get_mut(&bound.attention.workflow_id);
        match row.and_then(|row| row.attention.as_mut()) {
            Some(ask) if ask.wanted == wanted && ask.epoch <= epoch.0 => {
                let looks = bound.attention.looks.saturating_add(1);
                *ask = Ask { wanted, not_before: at, looks, epoch: epoch.0 };
                self.changes += 1;
                Written::Done
            }
            Some(_) | None => Written::Overtaken,
        }
    }
}
