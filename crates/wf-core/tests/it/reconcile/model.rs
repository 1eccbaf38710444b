//! Two reconcilers and the executions of one workflow, in every order: each may stand still, or die, before every read, call
//! and write, while the other goes on. Explored to the end within the bounds below by stateright; the rules are the real
//! ones, the world is the one of [`super::world`].

use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::{Checker, HasDiscoveries, Model, Property};
use wf_core::models::Timestamp;
use wf_core::reconcile::{Action, Binding, Observation, Run, Step};

use super::world::{Execution, Reconciler, World, converges};

/// How long ago everything is after a time: more than every back-off, and than an execution sleeps.
const LONG_MS: i64 = 25 * 60 * 60 * 1_000;

const ONE_WRITER: &str = "at most one execution can write";
const NEVER_AGAIN: &str = "a fence that was replaced never comes back, so who had it cannot write";
const OVERTAKEN: &str = "a reconciler that was overtaken writes nothing";
const CONVERGES: &str = "passes bring one execution to an open workflow, none to a completed one";

/// Which writes are conditional, and how much may happen.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    reconcilers_fenced: bool,
    executions_fenced: bool,
    /// Passes that are begun, by both together.
    passes: u64,
    /// Times that the current execution ends by itself, is worn, or is not seen.
    ends: u8,
}

/// As it must be.
const FENCED: Bounds =
    Bounds { reconcilers_fenced: true, executions_fenced: true, passes: 2, ends: 1 };

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    world: World,
    phases: [Phase; 2],
    /// The epoch of the lease that was taken last.
    leases: u64,
    /// The highest fence that the binding has had.
    highest: u64,
    /// A write of an overtaken reconciler landed.
    late: bool,
    ends: u8,
}

/// What a reconciler does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Rests,
    Reads { epoch: u64, seen: Observation },
    Calls { by: Reconciler, step: Step },
    Writes { by: Reconciler, step: Step },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// A reconciler that rests takes the lease from whoever has it.
    Begins(usize),
    /// The next half-step of a reconciler.
    GoesOn(usize),
    /// An execution comes to its `Await`.
    Comes(usize),
    /// The current execution ends, in whatever status.
    Ends,
    /// The current execution nears its limits.
    Wears,
    /// A reconciler asks how an execution is, and is told that there is none: what it asks is consistent only eventually.
    Misses(usize),
    Completes,
    TimePasses,
}

impl Reconciler {
    /// Its step is decided: of what it read, only what its write is conditional on still matters.
    fn forgets_what_it_decided_with(&mut self) {
        let Binding { fence, registrations, evicts, .. } = self.binding;
        let epoch_of_time = Timestamp::from_ms(0);
        self.binding = Binding { fence, registrations, evicts, ..Binding::new(epoch_of_time) };
        self.head = World::started().head;
        self.seen = Observation::Nothing;
    }
}

impl State {
    /// The half-step of the reconciler `who`.
    fn goes_on(&mut self, who: usize) -> Option<()> {
        self.phases[who] = match self.phases[who] {
            Phase::Rests => return None,
            Phase::Reads { epoch, seen } => {
                let mut by = Reconciler::reads(&self.world, epoch, seen);
                let step = by.next(&self.world);
                by.forgets_what_it_decided_with();
                match step.action {
                    Action::Later | Action::Settled => Phase::Rests,
                    Action::Start { .. }
                    | Action::Describe { .. }
                    | Action::Stop { .. }
                    | Action::Tell { .. } => Phase::Calls { by, step },
                    // Only written: there is no call before which it could stand still.
                    Action::Acknowledge { .. }
                    | Action::Fire
                    | Action::Record
                    | Action::ForgetToken
                    | Action::Replace(_)
                    | Action::Close => Phase::Writes { by, step },
                }
            }
            Phase::Calls { by, step } => {
                let seen = by.applies(&mut self.world, step, 1);
                let evicts = matches!(step.action, Action::Stop { fence } if by.binding.evicts == Some(fence));
                let tells = matches!(step.action, Action::Tell { .. });
                if evicts || (tells && seen != Observation::TokenDead) {
                    Phase::Writes { by, step }
                } else {
                    Phase::Reads { epoch: by.epoch, seen }
                }
            }
            Phase::Writes { by, step } => {
                let (before, overtaken) = (self.world.writes, self.world.epoch > by.epoch);
                self.world.record(&by, step);
                self.late |= overtaken && self.world.writes > before;
                self.highest = self.highest.max(self.world.binding.fence);
                Phase::Reads { epoch: by.epoch, seen: Observation::Nothing }
            }
        };
        Some(())
    }

    /// The reconcilers are alike: which of them stands where makes no difference.
    fn forgets_who_is_who(&mut self) {
        let place = |phase: &Phase| {
            let mut hasher = DefaultHasher::new();
            phase.hash(&mut hasher);
            hasher.finish()
        };
        self.phases.sort_by_key(place);
    }

    /// Time passes. The clock stands still and everything else gets older, so that the space has an end: whatever happened
    /// before is as long ago as it matters.
    fn ages(&mut self) {
        let older = self.world.now.plus_ms(-LONG_MS);
        let Binding { started_at, waits_since, window_at, not_before, .. } =
            &mut self.world.binding;
        for at in [waits_since, window_at, not_before].into_iter().chain(started_at.as_mut()) {
            *at = older;
        }
        let completed_at = &mut self.world.head.completed_at;
        *completed_at = completed_at.map(|_| older);
        for phase in &mut self.phases {
            if let Phase::Writes { step: Step { action: Action::Replace(to), .. }, .. } = phase {
                (to.window_at, to.not_before) = (older, older);
            }
        }
    }

    /// The fences of the executions whose next write would land.
    fn writers(&self) -> impl Iterator<Item = u64> {
        let runs = |execution: &&Execution| execution.run == Run::Running;
        let writers = self.world.executions.iter().filter(runs);
        writers.filter(|execution| self.world.may_register(execution)).map(|found| found.fence)
    }

    /// A reconciler stands before a write, and another has written since it took the lease.
    fn stands_overtaken(&self) -> bool {
        self.phases.iter().any(|phase| match phase {
            Phase::Writes { by, .. } => by.epoch < self.world.epoch,
            Phase::Rests | Phase::Reads { .. } | Phase::Calls { .. } => false,
        })
    }

    /// From here the passes of a third reconciler settle everything, though both others never go on.
    fn would_converge(&self) -> bool {
        let mut world = self.world.clone();
        world.epoch = world.epoch.max(self.leases);
        converges(&mut world)
    }
}

impl Model for Bounds {
    type State = State;
    type Action = Turn;

    fn init_states(&self) -> Vec<State> {
        let mut world = World::started();
        world.fenced = self.reconcilers_fenced;
        world.executions_fenced = self.executions_fenced;
        let phases = [Phase::Rests; 2];
        vec![State { world, phases, leases: 0, highest: 1, late: false, ends: 0 }]
    }

    fn actions(&self, state: &State, turns: &mut Vec<Turn>) {
        turns.extend([0, 1].map(Turn::GoesOn));
        if state.leases < self.passes {
            turns.extend([0, 1].map(Turn::Begins));
        }
        turns.extend((0..state.world.executions.len()).map(Turn::Comes));
        if state.ends < self.ends {
            turns.extend([Turn::Ends, Turn::Wears, Turn::Misses(0), Turn::Misses(1)]);
        }
        turns.extend([Turn::Completes, Turn::TimePasses]);
    }

    fn next_state(&self, last: &State, turn: Turn) -> Option<State> {
        let mut state = last.clone();
        let world = &mut state.world;
        match turn {
            Turn::Begins(who) => {
                if state.phases[who] != Phase::Rests {
                    return None;
                }
                state.leases += 1;
                let epoch = state.leases;
                state.phases[who] = Phase::Reads { epoch, seen: Observation::Nothing };
            }
            Turn::GoesOn(who) => state.goes_on(who)?,
            Turn::Comes(index) => {
                // One that waits for its answer comes again after a day; that has no end, so only one that is superseded
                // does here.
                let execution = world.executions[index];
                if execution.token > 0 && world.may_register(&execution) {
                    return None;
                }
                world.execution_goes_on(index).then_some(())?;
            }
            Turn::Ends => {
                let fence = world.binding.fence;
                world.execution(fence).filter(|execution| execution.run == Run::Running)?;
                world.end(fence);
                state.ends += 1;
            }
            Turn::Wears => {
                world.binding.started_at.filter(|_| world.head.completed_at.is_none())?;
                world.binding.registrations = u32::MAX - 1_000;
                state.ends += 1;
            }
            Turn::Misses(who) => {
                let Phase::Calls { by, step: Step { action: Action::Describe { fence }, .. } } =
                    state.phases[who]
                else {
                    return None;
                };
                let seen = Observation::Seen { fence, run: Run::Absent };
                state.phases[who] = Phase::Reads { epoch: by.epoch, seen };
                state.ends += 1;
            }
            Turn::Completes => world.complete(),
            Turn::TimePasses => state.ages(),
        }
        // What only counts, and what ended executions knew, is no part of a state.
        (state.world.writes, state.world.calls, state.world.alerts) = (0, 0, 0);
        for execution in &mut state.world.executions {
            if execution.run == Run::Closed {
                (execution.told, execution.token) = (0, 0);
            }
        }
        state.forgets_who_is_who();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always(ONE_WRITER, |_, state: &State| state.writers().count() <= 1),
            Property::always(NEVER_AGAIN, |_, state: &State| {
                let back = state.world.binding.fence < state.highest;
                !back && state.writers().all(|fence| fence == state.highest)
            }),
            Property::always(OVERTAKEN, |_, state: &State| !state.late),
            // The space holds what it is about.
            Property::sometimes("one stands overtaken", |_, state: &State| {
                state.stands_overtaken()
            }),
            Property::sometimes("an older execution runs", |_, state: &State| {
                state.world.running().iter().any(|fence| *fence < state.highest)
            }),
            Property::sometimes("it came to its end", |_, state: &State| {
                state.world.head.completed_at.is_some() && state.world.is_right()
            }),
        ];
        if self.reconcilers_fenced && self.executions_fenced {
            all.push(Property::always(CONVERGES, |_, state: &State| state.would_converge()));
        }
        all
    }
}

#[test]
fn two_reconcilers_in_every_order_keep_one_writer_and_converge() {
    let checked = FENCED.checker().threads(2).spawn_bfs().join();
    checked.assert_properties();
    assert!(checked.is_done() && checked.unique_state_count() > 10_000);
}

/// Looks until `property` is found broken; the way there.
fn broken(bounds: Bounds, property: &'static str) -> Vec<Turn> {
    let until = HasDiscoveries::AnyOf([property].into());
    let checked = bounds.checker().threads(2).finish_when(until).spawn_bfs().join();
    checked.assert_any_discovery(property).into_actions()
}

#[test]
fn without_the_fences_of_reconcilers_there_is_a_counterexample() {
    let unfenced = Bounds { reconcilers_fenced: false, ends: 2, ..FENCED };
    for property in [OVERTAKEN, NEVER_AGAIN] {
        let turns = broken(unfenced, property);
        let passes = turns.iter().filter(|turn| matches!(turn, Turn::Begins(_))).count();
        assert_eq!(passes, 2, "it takes two of them: {turns:?}");
    }
}

#[test]
fn without_the_fences_of_executions_there_is_a_counterexample() {
    let unfenced = Bounds { executions_fenced: false, ends: 2, ..FENCED };
    for property in [ONE_WRITER, NEVER_AGAIN] {
        let turns = broken(unfenced, property);
        let ends = [Turn::Wears, Turn::Misses(0), Turn::Misses(1)];
        assert!(turns.iter().any(|turn| ends.contains(turn)), "one is replaced: {turns:?}");
    }
}
