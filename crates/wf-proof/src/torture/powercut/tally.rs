//! What was done and found, counted for the summary.

use std::collections::BTreeMap;
use std::fmt;

use super::cuts::Doing;
use crate::harness::disk::log::{Class, Record, What};

/// What was done and found.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) images: BTreeMap<Doing, u64>,
    /// Images of which something was not surely on the disk.
    pub(super) in_doubt: u64,
    pub(super) of_recoveries: u64,
    pub(super) audited: u64,
    /// Acknowledged calls that were looked for, over all images.
    pub(super) looked_for: u64,
    /// Images without an acknowledged call, damaged, with half of something.
    pub(super) lost: u64,
    pub(super) damaged: u64,
    pub(super) half: u64,
    /// Audits that found something.
    pub(super) accused: u64,
    pub(super) carried: Carried,
    pub(super) found: Vec<String>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        for (doing, count) in other.images {
            *self.images.entry(doing).or_default() += count;
        }
        self.in_doubt += other.in_doubt;
        self.of_recoveries += other.of_recoveries;
        self.audited += other.audited;
        self.looked_for += other.looked_for;
        self.lost += other.lost;
        self.damaged += other.damaged;
        self.half += other.half;
        self.accused += other.accused;
        self.carried.add(other.carried);
        self.found.extend(other.found);
    }

    /// For the summary.
    pub(super) fn lines(&self, how: &str) -> Vec<String> {
        let images: u64 = self.images.values().sum();
        let told = self.images.iter().map(|(doing, count)| format!("{count} {}", doing.words()));
        let told: Vec<String> = told.collect();
        vec![
            format!(
                "images: {images}, lost acknowledged: {}, damaged: {}, by half: {}, accused by the audit: {} of {} ({how})",
                self.lost, self.damaged, self.half, self.accused, self.audited
            ),
            format!(
                "{}; {} with something unsynced, {} of recoveries; {} acknowledged calls looked for; {}",
                told.join(", "),
                self.in_doubt,
                self.of_recoveries,
                self.looked_for,
                self.carried
            ),
        ]
    }
}

/// What happened to the log in the lives that were replayed.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Carried {
    over: u64,
    cut_back: u64,
    begun_again: u64,
}

impl Carried {
    fn add(&mut self, other: Self) {
        self.over += other.over;
        self.cut_back += other.cut_back;
        self.begun_again += other.begun_again;
    }

    pub(super) fn of(records: &[Record]) -> Self {
        let mut carried = Self::default();
        let mut used = false;
        for record in records.iter().filter(|record| record.errno == 0) {
            match (record.class, &record.what) {
                (Some(Class::Database), What::SyncEnd { .. }) => carried.over += 1,
                (Some(Class::Wal), What::Truncate { length: 0 }) => {
                    carried.cut_back += 1;
                    used = false;
                }
                (Some(Class::Wal), What::Open { created: true, .. }) => used = false,
                (Some(Class::Wal), What::Write { offset, .. }) => {
                    carried.begun_again += u64::from(used && *offset == 0);
                    used |= *offset > 0;
                }
                _ => {}
            }
        }
        carried
    }
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { over, cut_back, begun_again } = self;
        write!(f, "log carried over {over} times, cut back {cut_back}, begun again {begun_again}")
    }
}
