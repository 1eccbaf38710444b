//! The reconciler's rules over the small [`world`]: crashes and pauses at every point, and what each rule is for. [`model`]
//! explores two reconcilers in every order.

mod model;
mod world;

use wf_core::reconcile::{Action, Binding, Observation, Rule, Run, Step, reconcile};

use world::{BETWEEN_MS, Execution, Reconciler, World, converges, pass};

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
