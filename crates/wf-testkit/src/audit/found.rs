//! Collects violations, bounded: a broken store must not make a report that nobody can read.

use std::collections::BTreeMap;

use super::{Invariant, Violation};

/// How many violations of one invariant are told one by one.
const TOLD_MAX: usize = 20;

/// The violations so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    told: Vec<Violation>,
    counts: BTreeMap<Invariant, usize>,
}

impl Found {
    pub(super) fn add(
        &mut self,
        invariant: Invariant,
        place: impl Into<String>,
        message: impl Into<String>,
    ) {
        let count = self.counts.entry(invariant).or_default();
        *count += 1;
        if *count <= TOLD_MAX {
            self.told.push(Violation::new(invariant, place, message));
        }
    }

    /// By invariant, with a line that says how many were not told one by one.
    pub(super) fn into_violations(mut self) -> Vec<Violation> {
        for (invariant, count) in self.counts {
            let more = count.saturating_sub(TOLD_MAX);
            if more > 0 {
                self.told.push(Violation::new(invariant, "elsewhere", format!("{more} more")));
            }
        }
        self.told.sort_by_key(|violation| violation.invariant);
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_counted() {
        let mut found = Found::default();
        for n in 0..25 {
            found.add(Invariant::I4, format!("w-{n}"), "wrong");
        }
        found.add(Invariant::I1, "k", "lost");
        let told = found.into_violations();
        assert_eq!(told.len(), 22);
        assert_eq!(told[0].invariant, Invariant::I1);
        assert_eq!(told[21].message, "5 more");
    }
}
