//! The thorough check: is there an order of calls, each at one instant between sending and answer, in which a sequential
//! machine gives the same answers? Wing and Gong's search, with the configurations that were looked at remembered as
//! Lowe does, taken forwards in time: after each answer only the configurations are kept in which that call has
//! happened. How many there are grows with the number of calls in flight at once, not with the length of the history.

use std::collections::BTreeSet;

/// An object as it behaves when one call comes after the other.
pub trait Machine {
    /// What it remembers.
    type State: Clone + Ord;
    /// A call with its answer.
    type Input;
    /// Before the first call.
    fn start(&self) -> Self::State;
    /// The state after the call; none when the call would have been answered otherwise.
    fn step(&self, state: &Self::State, input: &Self::Input) -> Option<Self::State>;
}

/// A call with its answer and its time.
#[derive(Debug, Clone)]
pub struct Timed<I> {
    /// When it was sent.
    pub sent: u64,
    /// When it was over; `u64::MAX` when nobody knows, and then it may also never have happened.
    pub over: u64,
    /// The call and its answer.
    pub input: I,
}

/// What a search says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Searched {
    /// There is such an order.
    Explained,
    /// There is none: at the latest with the answer of this call.
    Contradiction {
        /// Its index.
        call: usize,
    },
    /// Too many orders are possible, or more than 64 calls are in flight at once.
    GaveUp {
        /// How many answers were explained before.
        calls: usize,
    },
}

/// Calls in flight that have happened, as bits, and the state after them.
type Configuration<S> = (u64, S);

/// Looks for an order, at most `budget` configurations wide between two answers.
pub fn search<M: Machine>(machine: &M, calls: &[Timed<M::Input>], budget: usize) -> Searched {
    let mut flight = Flight { slots: Vec::new() };
    let mut now: BTreeSet<Configuration<M::State>> = BTreeSet::from([(0, machine.start())]);
    let mut answered = 0;
    for (_, ends, index) in moments(calls) {
        if !ends {
            if flight.enter(index).is_none() {
                return Searched::GaveUp { calls: answered };
            }
            continue;
        }
        let Some(slot) = flight.slot(index) else { continue };
        let Some(next) = after(machine, calls, &flight, slot, now, budget) else {
            return Searched::GaveUp { calls: answered };
        };
        if next.is_empty() {
            return Searched::Contradiction { call: index };
        }
        now = next;
        flight.leave(slot);
        answered += 1;
    }
    Searched::Explained
}

/// Sendings and answers in the order of time; at the same instant sendings first, so that calls that touch overlap.
fn moments<I>(calls: &[Timed<I>]) -> Vec<(u64, bool, usize)> {
    let mut moments = Vec::with_capacity(calls.len().saturating_mul(2));
    for (index, call) in calls.iter().enumerate() {
        moments.push((call.sent, false, index));
        if call.over != u64::MAX {
            moments.push((call.over, true, index));
        }
    }
    moments.sort_unstable();
    moments
}

/// Calls that are sent and not over, each in a slot whose number is its bit.
struct Flight {
    slots: Vec<Option<usize>>,
}

impl Flight {
    fn enter(&mut self, index: usize) -> Option<usize> {
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.unwrap_or(self.slots.len());
        if slot >= 64 {
            return None;
        }
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        *self.slots.get_mut(slot)? = Some(index);
        Some(slot)
    }

    fn slot(&self, index: usize) -> Option<usize> {
        self.slots.iter().position(|slot| *slot == Some(index))
    }

    fn leave(&mut self, slot: usize) {
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = None;
        }
    }
}

/// A call that changes nothing may as well happen as soon as it is answered right: whatever can follow without it can
/// follow with it. So looks never multiply the configurations.
fn looked<M: Machine>(
    machine: &M,
    calls: &[Timed<M::Input>],
    flight: &Flight,
    mut happened: u64,
    state: &M::State,
) -> u64 {
    for (number, index) in flight.slots.iter().enumerate() {
        let call = index.and_then(|index| calls.get(index));
        if call.is_some_and(|call| machine.step(state, &call.input).as_ref() == Some(state)) {
            happened |= 1_u64 << number;
        }
    }
    happened
}

/// All configurations in which the call in `slot` has happened; its bit is cleared. None beyond the budget.
fn after<M: Machine>(
    machine: &M,
    calls: &[Timed<M::Input>],
    flight: &Flight,
    slot: usize,
    now: BTreeSet<Configuration<M::State>>,
    budget: usize,
) -> Option<BTreeSet<Configuration<M::State>>> {
    let due = 1_u64 << slot;
    let mut next = BTreeSet::new();
    let mut seen = now.clone();
    let mut open: Vec<_> = now.into_iter().collect();
    while let Some((happened, state)) = open.pop() {
        let happened = looked(machine, calls, flight, happened, &state);
        if happened & due != 0 {
            next.insert((happened & !due, state));
            continue;
        }
        for (number, index) in flight.slots.iter().enumerate() {
            let bit = 1_u64 << number;
            let call = index.and_then(|index| calls.get(index)).filter(|_| happened & bit == 0);
            let Some(after) = call.and_then(|call| machine.step(&state, &call.input)) else {
                continue;
            };
            let configuration = (happened | bit, after);
            if seen.insert(configuration.clone()) {
                open.push(configuration);
            }
        }
        if seen.len() > budget {
            return None;
        }
    }
    Some(next)
}
