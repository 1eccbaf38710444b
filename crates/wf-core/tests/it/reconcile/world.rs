//! One workflow, its binding row, and executions that start, wait, wake up and end as Step Functions lets them; and a
//! reconciler that reads, calls and writes.

use wf_core::models::Timestamp;
use wf_core::reconcile::{Action, Binding, Head, Observation, Rule, Run, Step, reconcile};

/// More steps than any pass needs.
const STEPS_MAX: usize = 40;
/// More passes than any convergence needs.
const PASSES_MAX: usize = 40;
/// Between passes; longer than every back-off, much shorter than the life of an execution.
pub(super) const BETWEEN_MS: i64 = 5 * 60 * 60 * 1_000;
/// An execution that is told nothing wakes up by itself after this.
const WAKE_MS: i64 = 24 * 60 * 60 * 1_000;

/// An execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Execution {
    pub(super) fence: u64,
    pub(super) run: Run,
    /// What it was told last.
    pub(super) told: u64,
    /// The token with which it waits: the number of its registration; 0 when it does not wait.
    pub(super) token: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) head: Head,
    pub(super) binding: Binding,
    /// The epoch of the last reconciler that wrote.
    pub(super) epoch: u64,
    /// Writes of reconcilers are conditional, as they must be.
    pub(super) fenced: bool,
    /// And so are those of executions.
    pub(super) executions_fenced: bool,
    /// The rule that is left out, to show what it is for.
    pub(super) without: Option<Rule>,
    pub(super) executions: Vec<Execution>,
    /// Writes to the binding that landed, and calls that changed an execution.
    pub(super) writes: usize,
    pub(super) calls: usize,
    pub(super) alerts: usize,
}

/// A reconciler: what it read, and what it was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Reconciler {
    pub(super) epoch: u64,
    pub(super) binding: Binding,
    pub(super) head: Head,
    pub(super) seen: Observation,
}

impl World {
    pub(super) fn started() -> Self {
        let now = Timestamp::from_ms(1_000_000_000);
        let head = Head {
            completed_at: None,
            acknowledged: false,
            wanted_revision: 1,
            next_deadline: None,
        };
        Self {
            now,
            head,
            binding: Binding::new(now),
            epoch: 0,
            fenced: true,
            executions_fenced: true,
            without: None,
            executions: Vec::new(),
            writes: 0,
            calls: 0,
            alerts: 0,
        }
    }

    pub(super) fn complete(&mut self) {
        if self.head.completed_at.is_none() {
            self.head.completed_at = Some(self.now);
            self.head.wanted_revision += 1;
            self.head.next_deadline = None;
        }
    }

    /// A commit that sets a deadline.
    pub(super) fn deadline(&mut self, in_ms: i64) {
        self.head.wanted_revision += 1;
        self.head.next_deadline = Some(self.now.plus_ms(in_ms));
    }

    pub(super) fn execution(&mut self, fence: u64) -> Option<&mut Execution> {
        self.executions.iter_mut().find(|execution| execution.fence == fence)
    }

    /// Every execution comes to its `Await`, if it can.
    fn executions_go_on(&mut self) {
        for index in 0..self.executions.len() {
            self.execution_goes_on(index);
        }
    }

    /// An execution that runs, and does not wait or has waited its time, comes to its `Await`: it registers, or finds that it
    /// is superseded. Says whether it came there.
    pub(super) fn execution_goes_on(&mut self, index: usize) -> bool {
        let execution = self.executions[index];
        let waits = self.now < self.binding.waits_since.plus_ms(WAKE_MS);
        if execution.run != Run::Running || (execution.token > 0 && waits) {
            return false;
        }
        if self.may_register(&execution) {
            self.binding.registrations += 1;
            self.binding.waits = true;
            self.binding.waits_since = self.now;
            self.binding.told_revision = execution.told;
            self.executions[index].token = self.binding.registrations;
        } else {
            self.executions[index].run = Run::Closed;
        }
        true
    }

    /// The condition of what an execution writes.
    pub(super) fn may_register(&self, execution: &Execution) -> bool {
        let current = execution.fence == self.binding.fence && !self.binding.closed;
        current || !self.executions_fenced
    }

    /// One execution that knows what it must while the workflow is open, none afterwards.
    pub(super) fn is_right(&self) -> bool {
        if self.head.completed_at.is_some() {
            return self.running().is_empty() && self.binding.closed;
        }
        self.running() == [self.binding.fence]
            && self.head.acknowledged
            && self.head.next_deadline.is_none_or(|at| at > self.now)
            && self.binding.told_revision >= self.head.wanted_revision
    }

    pub(super) fn running(&self) -> Vec<u64> {
        let open = [Run::Running, Run::Foreign];
        let running = self.executions.iter().filter(|execution| open.contains(&execution.run));
        running.map(|execution| execution.fence).collect()
    }

    /// A conditional write on behalf of a reconciler: of its fence and of no later epoch.
    fn write(&mut self, by: &Reconciler, change: impl FnOnce(&mut Binding)) {
        let late = self.binding.fence != by.binding.fence || self.epoch > by.epoch;
        if self.fenced && late {
            return;
        }
        self.epoch = self.epoch.max(by.epoch);
        change(&mut self.binding);
        self.writes += 1;
    }

    fn look(&self, fence: u64) -> Observation {
        let found = self.executions.iter().find(|execution| execution.fence == fence);
        Observation::Seen { fence, run: found.map_or(Run::Absent, |execution| execution.run) }
    }

    /// What a call does to the orchestrator, and what it answers. The half of a step that cannot be fenced.
    pub(super) fn call(&mut self, step: Step) -> Observation {
        match step.action {
            Action::Start { fence } => {
                if self.execution(fence).is_none() {
                    self.calls += 1;
                    self.executions.push(Execution { fence, run: Run::Running, told: 0, token: 0 });
                }
                self.look(fence)
            }
            Action::Describe { fence } => self.look(fence),
            Action::Stop { fence } => {
                self.calls += 1;
                self.end(fence);
                Observation::Nothing
            }
            Action::Acknowledge { .. }
            | Action::Fire
            | Action::Record
            | Action::Tell { .. }
            | Action::ForgetToken
            | Action::Replace(_)
            | Action::Close
            | Action::Later
            | Action::Settled => Observation::Nothing,
        }
    }

    pub(super) fn end(&mut self, fence: u64) {
        if let Some(execution) = self.execution(fence) {
            execution.run = Run::Closed;
            execution.token = 0;
        }
    }

    /// Answers the token that the reconciler read.
    pub(super) fn answer(&mut self, by: &Reconciler, revision: u64, ends: bool) -> Observation {
        let token = by.binding.registrations;
        let found = self.execution(by.binding.fence);
        let Some(execution) = found.filter(|execution| execution.token == token && token > 0)
        else {
            return Observation::TokenDead;
        };
        execution.token = 0;
        execution.told = revision;
        if ends {
            execution.run = Run::Closed;
        }
        self.calls += 1;
        Observation::Nothing
    }

    /// What a step writes, after its call.
    pub(super) fn record(&mut self, by: &Reconciler, step: Step) {
        let now = self.now;
        match step.action {
            Action::Acknowledge { .. } => {
                if self.head.completed_at.is_none() && !self.head.acknowledged {
                    self.head.acknowledged = true;
                }
            }
            Action::Fire => {
                if self.head.next_deadline.is_some_and(|at| at <= now) {
                    self.head.next_deadline = None;
                    self.head.wanted_revision += 1;
                }
            }
            Action::Record => self.write(by, |binding| {
                binding.started_at = Some(now);
                binding.waits_since = now;
            }),
            // The token that was used is dropped, not one that was registered since.
            Action::Tell { .. } | Action::ForgetToken => {
                let used = by.binding.registrations;
                self.write(by, |binding| {
                    if binding.registrations == used {
                        binding.waits = false;
                        binding.waits_since = now;
                    }
                });
            }
            Action::Replace(to) => {
                self.alerts += usize::from(to.alert);
                self.write(by, |binding| *binding = to.of(binding, now));
            }
            Action::Stop { fence } if by.binding.evicts == Some(fence) => {
                self.write(by, |binding| binding.evicts = None);
            }
            Action::Close => self.write(by, |binding| binding.closed = true),
            Action::Stop { .. }
            | Action::Start { .. }
            | Action::Describe { .. }
            | Action::Later
            | Action::Settled => {}
        }
    }
}

impl Reconciler {
    pub(super) fn reads(world: &World, epoch: u64, seen: Observation) -> Self {
        Self { epoch, binding: world.binding, head: world.head, seen }
    }

    pub(super) fn next(&self, world: &World) -> Step {
        let step = reconcile(Some(&self.head), &self.binding, self.seen, world.now);
        if Some(step.rule) == world.without { Step { action: Action::Later, ..step } } else { step }
    }

    /// Its call, then its write. `halves`: 0 crashes before both, 1 between them, 2 does both.
    pub(super) fn applies(&self, world: &mut World, step: Step, halves: usize) -> Observation {
        let mut seen = Observation::Nothing;
        if halves > 0 {
            seen = match step.action {
                Action::Tell { revision, ends, .. } => world.answer(self, revision, ends),
                _ => world.call(step),
            };
        }
        if halves > 1 && seen != Observation::TokenDead {
            world.record(self, step);
        }
        seen
    }
}

/// One pass; it crashes in the `crash.0`th step after `crash.1` halves of it.
pub(super) fn pass(world: &mut World, crash: Option<(usize, usize)>) {
    let epoch = world.epoch + 1;
    let mut seen = Observation::Nothing;
    for number in 0..STEPS_MAX {
        let reconciler = Reconciler::reads(world, epoch, seen);
        let step = reconciler.next(world);
        if matches!(step.action, Action::Later | Action::Settled) {
            return;
        }
        match crash {
            Some((at, halves)) if at == number => {
                reconciler.applies(world, step, halves);
                return;
            }
            Some(_) | None => seen = reconciler.applies(world, step, 2),
        }
        world.executions_go_on();
    }
    panic!("a pass without end: {world:?}");
}

/// Passes until nothing changes, or there were too many.
pub(super) fn converges(world: &mut World) -> bool {
    for _ in 0..PASSES_MAX {
        let before = (world.writes, world.calls, world.head);
        world.executions_go_on();
        pass(world, None);
        if world.is_right() && before == (world.writes, world.calls, world.head) {
            return true;
        }
        world.now = world.now.plus_ms(BETWEEN_MS);
    }
    false
}
