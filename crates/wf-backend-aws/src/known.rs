//! What this process has last seen of workflows, so that a commit needs no read of its own.
//!
//! An entry is a fact about one revision, and a revision never changes: where the revision is the one that a commit
//! expects, the entry is right, however old it is. Where it is not, or where there is none, `commit` reads the head.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::codec::head::Known;
use crate::keys::Key;

/// Entries of each of the two generations.
const ENTRIES_MAX: usize = 4_096;

/// The entries seen last; those not asked for in a while are forgotten.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    generations: Mutex<[HashMap<Key, Arc<Known>>; 2]>,
    fence_base: u64,
}

impl Memory {
    /// Nothing seen yet, of a store with this fence base.
    pub(crate) fn new(fence_base: u64) -> Self {
        Self { fence_base, ..Self::default() }
    }

    /// The fence of an asset that has no lock row; above 0 in a store that was restored once.
    pub(crate) fn fence_base(&self) -> u64 {
        self.fence_base
    }

    /// What is known of the workflow with this head.
    pub(crate) fn get(&self, head: &Key) -> Option<Arc<Known>> {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let [young, old] = &mut *generations;
        if let Some(known) = young.get(head) {
            return Some(Arc::clone(known));
        }
        let known = old.remove(head)?;
        young.insert(head.clone(), Arc::clone(&known));
        Some(known)
    }

    /// Remembers, unless something newer is known.
    pub(crate) fn put(&self, head: Key, known: Arc<Known>) {
        if self.get(&head).is_some_and(|other| other.revision > known.revision) {
            return;
        }
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let [young, old] = &mut *generations;
        if young.len() >= ENTRIES_MAX {
            *old = std::mem::take(young);
        }
        young.insert(head, known);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use super::{ENTRIES_MAX, Memory};
    use crate::codec::head::Known;
    use crate::keys::Key;

    fn key(n: usize) -> Key {
        Key::new(format!("T#t#WF#{n}"), "HEAD")
    }

    fn at(revision: u64) -> Arc<Known> {
        Arc::new(Known { revision, ..Known::default() })
    }

    #[test]
    fn the_newest_stays_and_the_number_is_bounded() {
        let memory = Memory::default();
        memory.put(key(0), at(5));
        memory.put(key(0), at(4));
        assert_eq!(memory.get(&key(0)).map(|k| k.revision), Some(5));
        for n in 1..=3 * ENTRIES_MAX {
            memory.put(key(n), at(1));
        }
        assert!(memory.get(&key(0)).is_none());
        assert!(memory.get(&key(3 * ENTRIES_MAX)).is_some());
        let held: usize = memory.generations.lock().unwrap().iter().map(HashMap::len).sum();
        assert!(held <= 2 * ENTRIES_MAX + 1, "{held}");
    }
}
