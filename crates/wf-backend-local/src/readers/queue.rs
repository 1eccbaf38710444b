//! A bounded queue that many threads take from: what waits for a reader.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Why something did not get into a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Too much waits already.
    Full,
    /// Nobody takes any more.
    Closed,
}

/// What a thread gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken<T> {
    /// The first that waited.
    Thing(T),
    /// Nothing came within the time.
    Nothing,
}

/// First in, first out.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
    max: usize,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<T>,
    /// Threads that sleep. Nobody is woken when there is none, which spares a system call.
    idle: usize,
    closed: bool,
}

impl<T> Queue<T> {
    /// Of at most `max` things.
    pub(crate) fn new(max: usize) -> Self {
        let state = State { waiting: VecDeque::new(), idle: 0, closed: false };
        Self { state: Mutex::new(state), arrived: Condvar::new(), max }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing in here panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something at the end, at once or not at all.
    pub(crate) fn push(&self, thing: T) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        if state.waiting.len() >= self.max {
            return Err(Refused::Full);
        }
        state.waiting.push_back(thing);
        let someone_sleeps = state.idle > 0;
        drop(state);
        if someone_sleeps {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Takes the first; sleeps until there is one, or the time is over. `None` when the queue is closed and empty.
    pub(crate) fn next(&self, within: Option<Duration>) -> Option<Taken<T>> {
        let mut state = self.lock();
        let mut is_over = false;
        loop {
            if let Some(thing) = state.waiting.pop_front() {
                return Some(Taken::Thing(thing));
            }
            if state.closed {
                return None;
            }
            if is_over {
                return Some(Taken::Nothing);
            }
            state.idle += 1;
            (state, is_over) = self.wait(state, within);
            state.idle -= 1;
        }
    }

    /// Until something arrived, or not; true when the time is over.
    fn wait<'s>(
        &'s self,
        state: MutexGuard<'s, State<T>>,
        within: Option<Duration>,
    ) -> (MutexGuard<'s, State<T>>, bool) {
        let Some(within) = within else {
            let state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
            return (state, false);
        };
        let waited = self.arrived.wait_timeout(state, within);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (state, waited.timed_out())
    }

    /// Lets nothing more in. What waits is still taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use std::time::Duration;

    use super::{Queue, Refused, Taken};

    fn next<T>(queue: &Queue<T>) -> Option<T> {
        match queue.next(None)? {
            Taken::Thing(thing) => Some(thing),
            Taken::Nothing => unreachable!("it waits for ever"),
        }
    }

    #[test]
    fn everything_is_taken_once_by_one_of_many() {
        let queue = Arc::new(Queue::new(10_000));
        let takers: Vec<_> = (0..4)
            .map(|_| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || std::iter::from_fn(|| next(&queue)).collect::<Vec<u32>>())
            })
            .collect();
        for n in 0..10_000 {
            queue.push(n).unwrap();
        }
        queue.close();
        let mut taken: Vec<u32> = takers.into_iter().flat_map(|t| t.join().unwrap()).collect();
        taken.sort_unstable();
        assert!(taken.into_iter().eq(0..10_000));
    }

    #[test]
    fn full_and_closed_are_refused_and_what_waits_is_taken() {
        let queue = Queue::new(2);
        assert_eq!(
            [queue.push(1), queue.push(2), queue.push(3)],
            [Ok(()), Ok(()), Err(Refused::Full)]
        );
        queue.close();
        assert_eq!(queue.push(4), Err(Refused::Closed));
        assert_eq!([next(&queue), next(&queue), next(&queue)], [Some(1), Some(2), None]);
    }
    #[test]
    fn nothing_that_comes_in_time_is_told_and_what_comes_later_is_taken() {
        let queue = Queue::new(2);
        assert_eq!(queue.next(Some(Duration::from_millis(1))), Some(Taken::Nothing));
        queue.push(1).unwrap();
        assert_eq!(queue.next(Some(Duration::ZERO)), Some(Taken::Thing(1)));
        queue.close();
        assert_eq!(queue.next(Some(Duration::from_secs(60))), None);
    }
}
