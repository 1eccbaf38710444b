//! A bounded queue that many threads take from: what waits for a reader.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Why something did not get into a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Too much waits already.
    Full,
    /// Nobody takes any more.
    Closed,
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

    /// Takes the first; sleeps until there is one. `None` when the queue is closed and empty.
    pub(crate) fn next(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(thing) = state.waiting.pop_front() {
                return Some(thing);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
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

    use super::{Queue, Refused};

    #[test]
    fn everything_is_taken_once_by_one_of_many() {
        let queue = Arc::new(Queue::new(10_000));
        let takers: Vec<_> = (0..4)
            .map(|_| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || std::iter::from_fn(|| queue.next()).collect::<Vec<u32>>())
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
        assert_eq!([queue.next(), queue.next(), queue.next()], [Some(1), Some(2), None]);
    }
}
