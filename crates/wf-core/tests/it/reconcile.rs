//! The reconciler's rules over a small world: one workflow, its binding row, and executions that start, wait, wake up and end
//! as Step Functions lets them. Crashes and pauses at every point.

use wf_core::models::Timestamp;
use wf_core::reconcile::{Action, Binding, Head, Observation, Rule, Run, Step, reconcile};

/// More steps than any pass needs.
const STEPS_MAX: usize = 40;
/// More passes than any convergence needs.
const PASSES_MAX: usize = 40;
/// Between passes; longer than every back-off, much shorter than the life of an execution.
const BETWEEN_MS: i64 = 5 * 60 * 60 * 1_000;
/// An execution that is told nothing wakes up by itself after this.
const WAKE_MS: i64 = 24 * 60 * 60 * 1_000;

/// An execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Execution {
    fence: u64,
    run: Run,
    /// What it was told last.
    told: u64,
    /// The token with which it waits: the number of its registration; 0 when it does not wait.
    token: u32,
}

#[derive(Debug, Clone)]
struct World {
    now: Timestamp,
    head: Head,
    binding: Binding,
    /// The epoch of the last reconciler that wrote.
    epoch: u64,
    /// Writes are conditional, as they must be.
    fenced: bool,
    /// The rule that is left out, to show what it is for.
    without: Option<Rule>,
    executions: Vec<Execution>,
    /// Writes to the binding that landed, and calls that changed an execution.
    writes: usize,
    calls: usize,
    alerts: usize,
}

/// A reconciler: what it read, and what it was answered.
#[derive(Debug, Clone, Copy)]
struct Reconciler {
    epoch: u64,
    binding: Binding,
    head: Head,
    seen: Observation,
}

impl World {
    fn started() -> Self {
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
            without: None,
            executions: Vec::new(),
            writes: 0,
            calls: 0,
            alerts: 0,
        }
    }

    fn complete(&mut self) {
        if self.head.completed_at.is_none() {
            self.head.completed_at = Some(self.now);
            self.head.wanted_revision += 1;
            self.head.next_deadline = None;
        }
    }

    /// A commit that sets a deadline.
    fn deadline(&mut self, in_ms: i64) {
        self.head.wanted_revision += 1;
        self.head.next_deadline = Some(self.now.plus_ms(in_ms));
    }

    fn execution(&mut self, fence: u64) -> Option<&mut Execution> {
        self.executions.iter_mut().find(|execution| execution.fence == fence)
    }

    /// Every execution that runs, and does not wait or has waited its time, comes to its `Await`: it registers, or finds that
    /// it is superseded.
    fn executions_go_on(&mut self) {
        let waits = self.now < self.binding.waits_since.plus_ms(WAKE_MS);
        for execution in &mut self.executions {
            if execution.run != Run::Running || (execution.token > 0 && waits) {
                continue;
            }
            if execution.fence == self.binding.fence && !self.binding.closed {
                self.binding.registrations += 1;
                self.binding.waits = true;
                self.binding.waits_since = self.now;
                self.binding.told_revision = execution.told;
                execution.token = self.binding.registrations;
            } else {
                execution.run = Run::Closed;
            }
        }
    }

    /// One execution that knows what it must while the workflow is open, none afterwards.
    fn is_right(&self) -> bool {
        if self.head.completed_at.is_some() {
            return self.running().is_empty() && self.binding.closed;
        }
        self.running() == [self.binding.fence]
            && self.head.acknowledged
            && self.head.next_deadline.is_none_or(|at| at > self.now)
            && self.binding.told_revision >= self.head.wanted_revision
    }

    fn running(&self) -> Vec<u64> {
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
    fn call(&mut self, step: Step) -> Observation {
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

    fn end(&mut self, fence: u64) {
        if let Some(execution) = self.execution(fence) {
            execution.run = Run::Closed;
            execution.token = 0;
        }
    }

    /// Answers the token that the reconciler read.
    fn answer(&mut self, by: &Reconciler, revision: u64, ends: bool) -> Observation {
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
    fn record(&mut self, by: &Reconciler, step: Step) {
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
    fn reads(world: &World, epoch: u64, seen: Observation) -> Self {
        Self { epoch, binding: world.binding, head: world.head, seen }
    }

    fn next(&self, world: &World) -> Step {
        let step = reconcile(Some(&self.head), &self.binding, self.seen, world.now);
        if Some(step.rule) == world.without { Step { action: Action::Later, ..step } } else { step }
    }

    /// Its call, then its write. `halves`: 0 crashes before both, 1 between them, 2 does both.
    fn applies(&self, world: &mut World, step: Step, halves: usize) -> Observation {
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
fn pass(world: &mut World, crash: Option<(usize, usize)>) {
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
fn converges(world: &mut World) -> bool {
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

/// What happens to the world between passes.
type Turn = (&'static str, fn(&mut World));

fn turns() -> Vec<Turn> {
    vec![
        ("nothing", |_| {}),
        ("a deadline", |world| world.deadline(BETWEEN_MS * 3)),
        ("a deadline that is due", |world| world.deadline(-1)),
        ("it is completed", World::complete),
        ("its execution ends", |world| world.end(world.binding.fence)),
        ("its execution ends, and it is completed", |world| {
            world.end(world.binding.fence);
            world.complete();
        }),
        ("its execution is forgotten", |world| {
            let fence = world.binding.fence;
            world.executions.retain(|execution| execution.fence != fence);
            world.deadline(BETWEEN_MS * 3);
        }),
        ("its name is taken", |world| {
            if world.executions.is_empty() && !world.binding.closed {
                let (fence, run) = (world.binding.fence, Run::Foreign);
                world.executions.push(Execution { fence, run, told: 0, token: 0 });
            }
        }),
        ("it is worn", |world| world.binding.registrations = u32::MAX - 1_000),
        ("its row is restored", |world| world.binding = Binding::new(world.now)),
    ]
}

/// Each world in which two turns follow each other, with passes to the end in between or none.
fn worlds(mut visit: impl FnMut(&str, &World)) {
    for (first, turn) in turns() {
        for (second, other) in turns() {
            for settled in [false, true] {
                let mut world = World::started();
                turn(&mut world);
                assert!(!settled || converges(&mut world), "{first}: {world:?}");
                other(&mut world);
                visit(&format!("{first}, {second}, settled: {settled}"), &world);
            }
        }
    }
}

#[test]
fn passes_from_every_crash_point_converge_and_then_write_nothing() {
    let mut tried = 0;
    worlds(|name, world| {
        for at in 0..8 {
            for halves in 0..3 {
                let mut world = world.clone();
                pass(&mut world, Some((at, halves)));
                assert!(converges(&mut world), "{name}, {at}, {halves}: {world:?}");
                let before = (world.writes, world.calls);
                pass(&mut world, None);
                assert_eq!(before, (world.writes, world.calls), "{name}: {world:?}");
                tried += 1;
            }
        }
    });
    assert_eq!(tried, 10 * 10 * 2 * 8 * 3);
}

/// A reconciler reads, decides and stands still; another does everything; then the first goes on. The worlds in which a
/// write of the first landed, and those that went back or did not come right.
fn overtaken(fenced: bool) -> (usize, usize) {
    let (mut landed, mut wrong) = (0, 0);
    worlds(|_, start| {
        for at in 0..6 {
            for called in [false, true] {
                for (_, turn) in turns() {
                    let mut world = start.clone();
                    world.fenced = fenced;
                    pass(&mut world, Some((at, 0)));
                    let slow = Reconciler::reads(&world, world.epoch, Observation::Nothing);
                    let step = slow.next(&world);
                    if called {
                        slow.applies(&mut world, step, 1);
                    }
                    turn(&mut world);
                    wrong += usize::from(!converges(&mut world));
                    let (before, overtaken) = (world.writes, world.epoch > slow.epoch);
                    let (fence, closed) = (world.binding.fence, world.binding.closed);
                    if called {
                        world.record(&slow, step);
                    } else {
                        slow.applies(&mut world, step, 2);
                    }
                    landed += usize::from(overtaken && world.writes > before);
                    // A fence that is handed out again lets two executions write; one that was forgotten lives on.
                    let back = world.binding.fence < fence || (closed && !world.binding.closed);
                    wrong += usize::from(back);
                    wrong += usize::from(!converges(&mut world));
                }
            }
        }
    });
    (landed, wrong)
}

#[test]
fn an_overtaken_reconciler_writes_nothing_and_does_no_harm() {
    assert_eq!(overtaken(true), (0, 0));
}

#[test]
fn without_fences_an_overtaken_reconciler_does_harm() {
    let (landed, wrong) = overtaken(false);
    assert!(landed > 0 && wrong > 0, "{landed} {wrong}");
}

#[test]
fn each_rule_is_needed() {
    use Rule::{R1, R2, R3, R4, R5, R6, R7};
    for rule in [R1, R2, R3, R4, R5, R6, R7] {
        let mut needed = Vec::new();
        worlds(|name, world| {
            let mut world = World { without: Some(rule), ..world.clone() };
            if !converges(&mut world) {
                needed.push(name.to_owned());
            }
        });
        assert!(!needed.is_empty(), "{rule:?} was not missed");
    }
}

#[test]
fn what_is_unclear_or_may_be_out_of_date_causes_nothing() {
    worlds(|name, world| {
        let step = reconcile(Some(&world.head), &world.binding, Observation::Unclear, world.now);
        assert_eq!(step, Step { rule: Rule::R8, action: Action::Later }, "{name}");
    });
    // Started a moment ago, and not visible yet.
    let mut world = World::started();
    assert!(converges(&mut world));
    world.binding.started_at = Some(world.now);
    let absent = Observation::Seen { fence: 1, run: Run::Absent };
    let early = reconcile(Some(&world.head), &world.binding, absent, world.now.plus_ms(1));
    assert_eq!(early, Step { rule: Rule::R8, action: Action::Later });
    let late = reconcile(Some(&world.head), &world.binding, absent, world.now.plus_ms(BETWEEN_MS));
    assert_eq!(late.rule, Rule::R5);
}

#[test]
fn executions_of_nobody_and_of_other_fences_are_evicted() {
    let world = World::started();
    for (fence, run) in [(7, Run::Running), (7, Run::Foreign)] {
        let seen = Observation::Seen { fence, run };
        let step = reconcile(None, &world.binding, seen, world.now);
        assert_eq!(step, Step { rule: Rule::R7, action: Action::Stop { fence } });
        // A fence above the binding's was handed out before a restore: the binding goes beyond it first.
        let step = reconcile(Some(&world.head), &world.binding, seen, world.now);
        let Action::Replace(to) = step.action else { unreachable!("{step:?}") };
        assert_eq!((step.rule, to.fence, to.evicts), (Rule::R7, 8, Some(7)));
    }
    let older = Binding { fence: 9, ..world.binding };
    let seen = Observation::Seen { fence: 7, run: Run::Running };
    let step = reconcile(Some(&world.head), &older, seen, world.now);
    assert_eq!(step, Step { rule: Rule::R7, action: Action::Stop { fence: 7 } });
}

#[test]
fn successors_come_later_and_later_and_an_operator_is_told_once() {
    let mut world = World::started();
    let mut waits = Vec::new();
    for _ in 0..12 {
        let seen = Observation::Seen { fence: world.binding.fence, run: Run::Closed };
        let step = reconcile(Some(&world.head), &world.binding, seen, world.now);
        let Action::Replace(to) = step.action else { unreachable!("{step:?}") };
        waits.push(to.not_before.since_ms(world.now));
        world.alerts += usize::from(to.alert);
        world.binding = to.of(&world.binding, world.now);
        let step = reconcile(Some(&world.head), &world.binding, Observation::Nothing, world.now);
        assert_eq!(step.action, Action::Later, "not before its time");
    }
    assert!(waits.is_sorted() && waits.first() < waits.last(), "{waits:?}");
    assert_eq!(waits.last(), Some(&wf_core::limits::SUCCESSOR_BACKOFF_MAX_MS));
    assert_eq!(world.alerts, 1);
}

#[test]
fn an_execution_wakes_up_in_1_to_86_400_seconds() {
    let mut world = World::started();
    assert!(converges(&mut world));
    for (in_ms, seconds) in
        [(1, 1), (999, 1), (1_000, 1), (1_001, 2), (86_400_000, 86_400), (86_400_001, 86_400)]
    {
        world.deadline(in_ms);
        let step = reconcile(Some(&world.head), &world.binding, Observation::Nothing, world.now);
        let Action::Tell { timeout_s, .. } = step.action else { unreachable!("{step:?}") };
        assert_eq!(timeout_s, seconds, "{in_ms} ms");
    }
}
