//! The reconciler's rules R1 to R8: what to do next about the execution that gives a workflow its life in time.
//!
//! | | rule | what it does here |
//! |---|---|---|
//! | R1 | authority | nothing that is seen changes business state; what is due becomes a command, which is decided like any other |
//! | R2 | start | an open workflow without an execution of its fence gets one, under its own name |
//! | R3 | adopt | an execution of the fence that runs, and that the binding does not know, is recorded |
//! | R4 | advance | an execution that waits, and knows less than the workflow wants, is told; a dead token is dropped |
//! | R5 | replace | an execution that ended, is gone, is another's or nears its limits gets a successor under a higher fence |
//! | R6 | retire | the execution of a completed workflow is told so, stopped when it does not end, and then forgotten |
//! | R7 | evict | an execution of another fence, or of no known workflow, is stopped; the binding goes above a higher one |
//! | R8 | defer | what is unclear, or may be out of date, causes nothing now |
//!
//! [`reconcile`] is pure and returns one step. Whoever executes it (a backend with an orchestrator outside the process)
//! applies the step, and asks again with the rows as they are then and with what the call answered, until the step is
//! [`Action::Settled`] or [`Action::Later`]. Every write of a step is conditional on the fence and on the reconciler's
//! epoch; every call that cannot be fenced is harmless when it arrives late.

mod rules;

use crate::models::Timestamp;

pub use rules::reconcile;

/// What storage says of the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Head {
    /// When it ended; `None` while it is open.
    pub completed_at: Option<Timestamp>,
    /// Its start was acknowledged.
    pub acknowledged: bool,
    /// The revision at which it started, ended, or got another next deadline last: what its execution must know.
    pub wanted_revision: u64,
    /// When its next deadline is due.
    pub next_deadline: Option<Timestamp>,
}

/// What the binding row says of the executions of the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The fence: only the execution with this one may write. Starts at 1.
    pub fence: u64,
    /// When the execution of this fence was seen to run; `None` when it never was.
    pub started_at: Option<Timestamp>,
    /// The execution has registered a token and waits for its answer.
    pub waits: bool,
    /// Since when `waits` is as it is.
    pub waits_since: Timestamp,
    /// The revision that the execution knew when it registered.
    pub told_revision: u64,
    /// How often it has registered a token.
    pub registrations: u32,
    /// The execution of this fence was replaced before, and may run: it is to be stopped.
    pub evicts: Option<u64>,
    /// Successors since [`Binding::window_at`].
    pub successors: u32,
    /// When the first of them was decided.
    pub window_at: Timestamp,
    /// No execution is started before this.
    pub not_before: Timestamp,
    /// The workflow ended, and so did its execution.
    pub closed: bool,
}

impl Binding {
    /// The binding of a workflow that starts.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self {
            fence: 1,
            started_at: None,
            waits: false,
            waits_since: now,
            told_revision: 0,
            registrations: 0,
            evicts: None,
            successors: 0,
            window_at: now,
            not_before: now,
            closed: false,
        }
    }
}

/// What the last call to the orchestrator answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Observation {
    /// Nothing was asked yet.
    Nothing,
    /// The execution with this fence is so; asked for, or met under the name that was to be started.
    Seen {
        /// Its fence, from its name.
        fence: u64,
        /// How it is.
        run: Run,
    },
    /// The token that was answered is settled, timed out or unknown.
    TokenDead,
    /// Throttled, timed out, contradictory.
    Unclear,
}

/// How an execution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Run {
    /// It runs, with the input that it must have.
    Running,
    /// It runs with another input: it is not ours.
    Foreign,
    /// It ended, in whatever status.
    Closed,
    /// There is none.
    Absent,
}

/// A rule, as in the table of this module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Authority.
    R1,
    /// Start.
    R2,
    /// Adopt.
    R3,
    /// Advance.
    R4,
    /// Replace.
    R5,
    /// Retire.
    R6,
    /// Evict.
    R7,
    /// Defer.
    R8,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Submit `acknowledge_orchestration` with this fence.
    Acknowledge {
        /// The fence of the execution that runs.
        fence: u64,
    },
    /// Submit `deadline_reached` for what is due.
    Fire,
    /// Start the execution of this fence. The answer is the next observation.
    Start {
        /// Whose.
        fence: u64,
    },
    /// Ask how the execution of this fence is. The answer is the next observation.
    Describe {
        /// Whose.
        fence: u64,
    },
    /// Record that the execution of the binding's fence runs.
    Record,
    /// Answer the registered token, then drop it from the binding if it is still the same.
    Tell {
        /// The revision that is told.
        revision: u64,
        /// The workflow has ended, so the execution ends.
        ends: bool,
        /// In how many seconds the execution wakes up by itself.
        timeout_s: u32,
    },
    /// Drop the token from the binding if it is still the same.
    ForgetToken,
    /// Raise the fence, and forget what is known of the execution before.
    Replace(Replacement),
    /// Stop the execution of this fence, which is not the binding's or of an ended workflow; then, if it is the one that the
    /// binding evicts, take it off there.
    Stop {
        /// Whose.
        fence: u64,
    },
    /// Mark the binding closed.
    Close,
    /// Nothing now; look again after a while.
    Later,
    /// Nothing, and nothing to come back for.
    Settled,
}

/// A binding after its fence was raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Replacement {
    /// The new fence.
    pub fence: u64,
    /// The execution to stop, if the one that was replaced may run.
    pub evicts: Option<u64>,
    /// Successors in the window, with this one.
    pub successors: u32,
    /// When the window began.
    pub window_at: Timestamp,
    /// When the successor may start.
    pub not_before: Timestamp,
    /// There were so many that an operator must know.
    pub alert: bool,
}

impl Replacement {
    /// The binding as it is afterwards.
    #[must_use]
    pub fn of(&self, binding: &Binding, now: Timestamp) -> Binding {
        Binding {
            fence: self.fence,
            evicts: self.evicts.or(binding.evicts),
            successors: self.successors,
            window_at: self.window_at,
            not_before: self.not_before,
            ..Binding::new(now)
        }
    }
}

/// A step, and the rule that asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// Why.
    pub rule: Rule,
    /// What.
    pub action: Action,
}
