//! The search for an order against histories that have one, against a search through all orders, and against histories
//! that were broken: locks that two callers hold, looks at old states, swapped commits.

use proptest::prelude::*;
use proptest::sample::Index;
use wf_testkit::audit::linear::order::{Point, disorder};
use wf_testkit::audit::linear::search::{Machine, Searched, Timed, search};

const BUDGET: usize = 100_000;

/// A lock of a few holders.
struct Lock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Take(u8),
    Free(u8),
    HeldBy(u8),
}

impl Machine for Lock {
    type State = Option<u8>;
    type Input = Access;

    fn start(&self) -> Option<u8> {
        None
    }

    fn step(&self, state: &Option<u8>, input: &Access) -> Option<Option<u8>> {
        match *input {
            Access::Take(by) => state.is_none().then_some(Some(by)),
            Access::Free(by) => (*state == Some(by)).then_some(None),
            Access::HeldBy(by) => (*state == Some(by)).then_some(*state),
        }
    }
}

/// A register of revisions.
struct Register;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Revision {
    Commit(u64),
    Read(u64),
}

impl Machine for Register {
    type State = u64;
    type Input = Revision;

    fn start(&self) -> u64 {
        0
    }

    fn step(&self, state: &u64, input: &Revision) -> Option<u64> {
        match *input {
            Revision::Commit(to) => (state + 1 == to).then_some(to),
            Revision::Read(is) => (is == *state).then_some(is),
        }
    }
}

/// What `callers` saw who took turns at instants 100 apart, each call sent and answered up to `slack` around its own. A
/// caller has one call in flight at most.
fn around<I>(inputs: Vec<I>, callers: usize, slacks: &[(u64, u64)]) -> Vec<Timed<I>> {
    let mut over = vec![0; callers];
    let slack = slacks.iter().cycle();
    let mut timed = Vec::new();
    for ((number, input), (before, after)) in inputs.into_iter().enumerate().zip(slack) {
        let instant = 100 * (u64::try_from(number).unwrap() + 1);
        let caller = number % callers;
        let sent = instant.saturating_sub(*before).max(over[caller]).min(instant);
        // The caller's next turn comes at an instant of its own.
        let next = 100 * u64::try_from(callers).unwrap();
        over[caller] = instant + (*after).min(next - 1);
        timed.push(Timed { sent, over: over[caller], input });
    }
    timed
}

fn slacks() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0_u64..900, 0_u64..900), 40)
}

/// Accesses of a lock as they are lawful one after the other: `choices` say who asks.
fn lock_story(choices: &[u8]) -> Vec<Access> {
    let mut holder = None;
    let mut story = Vec::new();
    for choice in choices {
        let by = choice % 5;
        story.push(match holder {
            None => {
                holder = Some(by);
                Access::Take(by)
            }
            Some(held) if by == held => {
                holder = None;
                Access::Free(by)
            }
            Some(held) => Access::HeldBy(held),
        });
    }
    story
}

/// Revisions as they are lawful one after the other.
fn register_story(choices: &[u8]) -> Vec<Revision> {
    let mut revision = 0;
    let step = |choice: &u8| {
        if choice.is_multiple_of(2) {
            revision += 1;
            Revision::Commit(revision)
        } else {
            Revision::Read(revision)
        }
    };
    choices.iter().map(step).collect()
}

fn points(accesses: &[Timed<Revision>]) -> Vec<Point> {
    let of = |timed: &Timed<Revision>| {
        let (low, high) = match timed.input {
            Revision::Commit(to) => (to - 1, to),
            Revision::Read(is) => (is, is),
        };
        let what = format!("{:?}", timed.input);
        Point { low, high, sent: timed.sent, over: timed.over, what }
    };
    accesses.iter().map(of).collect()
}

/// Tries all orders.
fn has_order<M: Machine>(machine: &M, state: &M::State, left: &[Timed<M::Input>]) -> bool
where
    M::Input: Clone,
{
    let first_over = left.iter().map(|call| call.over).min();
    // Calls of which nobody knows may also never happen.
    let Some(first_over) = first_over.filter(|over| *over != u64::MAX) else { return true };
    left.iter().enumerate().filter(|(_, call)| call.sent <= first_over).any(|(index, call)| {
        machine.step(state, &call.input).is_some_and(|next| {
            let mut left = left.to_vec();
            left.remove(index);
            has_order(machine, &next, &left)
        })
    })
}

proptest! {
    #[test]
    fn what_has_an_order_is_explained(
        choices in prop::collection::vec(any::<u8>(), 0..120),
        slacks in slacks(),
        callers in 1_usize..9,
    ) {
        let lock = around(lock_story(&choices), callers, &slacks);
        prop_assert_eq!(search(&Lock, &lock, BUDGET), Searched::Explained);
        let register = around(register_story(&choices), callers, &slacks);
        prop_assert_eq!(search(&Register, &register, BUDGET), Searched::Explained);
        let points = points(&register);
        prop_assert_eq!(disorder(&points), None);
    }

    /// Histories that are as often broken as not, small enough for all orders.
    #[test]
    fn the_search_agrees_with_all_orders(
        calls in prop::collection::vec((0_u8..6, 0_u64..40, 1_u64..12, any::<bool>()), 0..7),
    ) {
        let timed: Vec<Timed<Access>> = calls
            .into_iter()
            .map(|(kind, sent, length, answered)| Timed {
                sent,
                over: if answered { sent + length } else { u64::MAX },
                input: match kind {
                    0 | 1 => Access::Take(kind),
                    2 | 3 => Access::Free(kind - 2),
                    _ => Access::HeldBy(kind - 4),
                },
            })
            .collect();
        let explained = search(&Lock, &timed, BUDGET) == Searched::Explained;
        prop_assert_eq!(explained, has_order(&Lock, &None, &timed));
    }

    /// Somebody else is told that they have it too, after it was taken and before it is given back.
    #[test]
    fn a_double_lock_is_found(
        choices in prop::collection::vec(any::<u8>(), 10..120),
        at in any::<Index>(),
        slacks in prop::collection::vec((0_u64..40, 0_u64..40), 40),
        callers in 1_usize..9,
    ) {
        let mut story = around(lock_story(&choices), callers, &slacks);
        let is_take = |n: &usize| matches!(story[*n].input, Access::Take(_));
        let is_free = |n: &usize| matches!(story[*n].input, Access::Free(_));
        let tenures: Vec<(usize, usize)> = (0..story.len())
            .filter(is_take)
            .filter_map(|take| Some((take, (take..story.len()).find(is_free)?)))
            .collect();
        prop_assume!(!tenures.is_empty());
        let (take, free) = tenures[at.index(tenures.len())];
        let (sent, over) = (story[take].over + 1, story[free].sent - 1);
        story.push(Timed { sent, over, input: Access::Take(200) });
        let found = search(&Lock, &story, BUDGET);
        let contradiction = matches!(found, Searched::Contradiction { .. });
        prop_assert!(contradiction, "{found:?}");
    }

    /// A look at a state that was over before it was sent.
    #[test]
    fn a_stale_read_is_found(
        choices in prop::collection::vec(any::<u8>(), 2..120),
        slacks in slacks(),
        callers in 1_usize..9,
    ) {
        let mut story = around(register_story(&choices), callers, &slacks);
        let commits: Vec<(u64, u64)> = story
            .iter()
            .filter_map(|timed| match timed.input {
                Revision::Commit(to) => Some((to, timed.over)),
                Revision::Read(_) => None,
            })
            .collect();
        let Some((to, over)) = commits.last().copied() else { return Ok(()) };
        story.push(Timed { sent: over + 1, over: over + 2, input: Revision::Read(to - 1) });
        let found = search(&Register, &story, BUDGET);
        let contradiction = matches!(found, Searched::Contradiction { .. });
        prop_assert!(contradiction, "{found:?}");
        prop_assert!(disorder(&points(&story)).is_some());
    }

    /// Two commits that did not overlap, with their revisions swapped.
    #[test]
    fn a_swapped_order_is_found(choices in prop::collection::vec(any::<u8>(), 2..60)) {
        let mut story = around(register_story(&choices), 1, &[(0, 0)]);
        let commits: Vec<usize> = (0..story.len())
            .filter(|n| matches!(story[*n].input, Revision::Commit(_)))
            .collect();
        prop_assume!(commits.len() > 1);
        let (first, second) = (commits[0], commits[1]);
        (story[first].input, story[second].input) = (story[second].input, story[first].input);
        let found = search(&Register, &story, BUDGET);
        let contradiction = matches!(found, Searched::Contradiction { .. });
        prop_assert!(contradiction, "{found:?}");
        prop_assert!(disorder(&points(&story)).is_some());
    }
}

#[test]
fn a_call_of_which_nobody_knows_may_have_happened_or_not() {
    let open = Timed { sent: 0, over: u64::MAX, input: Access::Take(1) };
    let seen = Timed { sent: 10, over: 20, input: Access::HeldBy(1) };
    let free = Timed { sent: 30, over: 40, input: Access::Take(2) };
    let explained = |calls: &[Timed<Access>]| search(&Lock, calls, BUDGET) == Searched::Explained;
    assert!(explained(&[open.clone(), seen.clone()]));
    assert!(explained(&[open.clone(), free.clone()]));
    assert!(!explained(&[open, seen, free]));
}

#[test]
fn it_says_what_it_gave_up() {
    // Each holder takes it and gives it back, all at once: in any order.
    let taking = |holders: u8| -> Vec<Timed<Access>> {
        let of = |by| [Access::Take(by), Access::Free(by)];
        let all = (0..holders).flat_map(of);
        all.map(|input| Timed { sent: 0, over: 100, input }).collect()
    };
    assert_eq!(search(&Lock, &taking(5), BUDGET), Searched::Explained);
    assert_eq!(search(&Lock, &taking(20), BUDGET), Searched::GaveUp { calls: 0 });
    assert_eq!(search(&Lock, &taking(33), usize::MAX), Searched::GaveUp { calls: 0 });
}

/// Looks at a state do not multiply what there is to look at.
#[test]
fn many_looks_at_once_are_cheap() {
    let look = |n: u64| Timed { sent: 0, over: 100 + n, input: Revision::Read(0) };
    let mut calls: Vec<Timed<Revision>> = (0..60).map(look).collect();
    calls.push(Timed { sent: 0, over: 50, input: Revision::Commit(1) });
    assert_eq!(search(&Register, &calls, 100), Searched::Explained);
}
