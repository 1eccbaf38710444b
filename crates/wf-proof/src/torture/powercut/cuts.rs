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
    /// No server: a backup takes the place of the database.
    Restoring,
}

impl Doing {
    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Starting => "while starting",
            Self::Committing => "while committing",
            Self::Checkpointing => "while checkpointing",
            Self::Ending => "while ending",
            Self::Restoring => "while restoring",
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

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::{Doing, choose, doing};
    use crate::harness::disk::log::{Class, Record, What};

    fn record(class: Option<Class>, what: What) -> Record {
        let (by_rule, errno, process, fd, inode, at_ns) = (false, 0, 1, 0, 1, 0);
        Record { what, class, by_rule, errno, process, fd, inode, at_ns }
    }

    fn write(class: Class) -> Record {
        record(Some(class), What::Write { offset: 0, bytes: b"x".as_slice().into() })
    }

    fn answer() -> Record {
        record(None, What::Leaving { token: 1, bytes: b"x".as_slice().into() })
    }

    fn life() -> Vec<Record> {
        let start = record(None, What::Start);
        let cut_back = record(Some(Class::Wal), What::Truncate { length: 0 });
        let once = [
            start,
            write(Class::Database),
            answer(),
            write(Class::Wal),
            write(Class::Database),
            cut_back,
            answer(),
            write(Class::Database),
        ];
        [&once[..], &once[..]].concat()
    }

    #[test]
    fn what_a_server_does_is_told_from_its_answers_and_files() {
        use Doing::{Checkpointing, Committing, Ending, Starting};
        let once = [
            Starting,
            Starting,
            Committing,
            Committing,
            Checkpointing,
            Checkpointing,
            Committing,
            Ending,
        ];
        assert_eq!(doing(&life()), [once, once].concat());
    }

    #[test]
    fn everything_gets_its_share_of_the_moments() {
        let chosen = choose(&life(), 101, &mut StdRng::seed_from_u64(1));
        assert_eq!(chosen.len(), 101);
        assert!(chosen.is_sorted());
        let of = |what| chosen.iter().filter(|(_, doing)| *doing == what).count();
        assert_eq!(of(Doing::Starting), 26);
        assert_eq!(of(Doing::Ending), 23);
    }
}
