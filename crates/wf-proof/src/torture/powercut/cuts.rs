//! Where the power is cut: the moments of a life, by what the server was doing.

use std::collections::BTreeMap;

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use crate::harness::disk::log::{Class, Record, What};

/// What a server was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doing {
    /// From its start to its first answer: making or migrating the database, recovering its log.
    Starting,
    /// Writing commits to the log.
    Committing,
    /// Carrying the log over into the database, or cutting it back.
    Checkpointing,
    /// From its last answer to its end.
    Ending,
}

impl Doing {
    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Starting => "while starting",
            Self::Committing => "while committing",
            Self::Checkpointing => "while checkpointing",
            Self::Ending => "while ending",
        }
    }
}

/// What was going on after each record.
fn doing(records: &[Record]) -> Vec<Doing> {
    let mut all = vec![Doing::Committing; records.len()];
    let starts: Vec<usize> = positions(records, |r| r.what == What::Start).collect();
    for (number, start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(records.len());
        let life = records.get(*start..end).unwrap_or_default();
        let leaving = |r: &Record| matches!(r.what, What::Leaving { .. });
        let first = positions(life, leaving).next().unwrap_or(life.len());
        let last = positions(life, leaving).last().unwrap_or(life.len());
        for (place, record) in life.iter().enumerate() {
            let checkpoint = record.class == Some(Class::Database)
                || matches!(
                    (record.class, &record.what),
                    (Some(Class::Wal), What::Truncate { .. })
                );
            let now = if place < first {
                Doing::Starting
            } else if place > last {
                Doing::Ending
            } else if checkpoint {
                Doing::Checkpointing
            } else {
                Doing::Committing
            };
            if let Some(slot) = all.get_mut(start + place) {
                *slot = now;
            }
        }
    }
    all
}

fn positions(records: &[Record], is_it: impl Fn(&Record) -> bool) -> impl Iterator<Item = usize> {
    records.iter().enumerate().filter(move |(_, record)| is_it(record)).map(|(at, _)| at)
}

/// `count` moments, each after a record, in order; a moment may come more than once, to be cut in several ways. All that
/// a server does gets an equal share; half of the share is where it matters most, around syncs, answers and names.
pub(super) fn choose(records: &[Record], count: usize, random: &mut StdRng) -> Vec<(usize, Doing)> {
    let mut by_doing: BTreeMap<Doing, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for (at, (doing, record)) in doing(records).into_iter().zip(records).enumerate() {
        if matches!(record.class, Some(Class::Shm | Class::Other)) {
            continue;
        }
        let (all, edges) = by_doing.entry(doing).or_default();
        all.push(at);
        if !matches!(record.what, What::Write { .. } | What::Left { .. } | What::Hangup) {
            // Before it and after it.
            edges.extend(at.checked_sub(1));
            edges.push(at);
        }
    }
    let mut chosen = Vec::with_capacity(count);
    let share = count.div_ceil(by_doing.len().max(1));
    for (doing, (all, edges)) in &by_doing {
        for _ in 0..share.min(count - chosen.len()) {
            let from = if random.random_bool(0.5) && !edges.is_empty() { edges } else { all };
            chosen.extend(from.choose(random).map(|at| (*at, *doing)));
        }
    }
    chosen.sort_unstable();
    chosen
}
