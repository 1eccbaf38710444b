//! Replays the log of a life, cuts the power at chosen moments, and has each image looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use wf_testkit::audit::history::{Attempt, Outcome};

use super::check::{self, Expected, Wrong};
use super::cuts::{self, Doing};
use super::disk::{Disk, Image, Left, WAYS};
use super::life::{self, FILES, Recording, Seen};
use crate::fault::Fault;
use crate::harness::audit::audit;
use crate::torture::Setting;

/// One image in so many is audited.
const AUDITED: u32 = 20;
/// How many images that something is wrong with are kept, and told.
const KEPT_MAX: usize = 3;
const TOLD_MAX: usize = 10;

/// What was known before the first record: nothing, or for a recovery what was known before the power was cut.
#[derive(Debug, Clone, Default)]
struct Before {
    acknowledged: BTreeMap<String, String>,
    attempts: Vec<Attempt>,
    keys: BTreeSet<String>,
}

/// What was done and found.
#[derive(Debug, Default)]
pub(super) struct Tally {
    images: BTreeMap<Doing, u64>,
    /// Images of which something was not surely on the disk.
    in_doubt: u64,
    of_recoveries: u64,
    audited: u64,
    /// Acknowledged calls that were looked for, over all images.
    looked_for: u64,
    /// Images without an acknowledged call, damaged, with half of something.
    lost: u64,
    damaged: u64,
    half: u64,
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
        self.found.extend(other.found);
    }

    /// For the summary.
    pub(super) fn lines(&self, how: &str) -> Vec<String> {
        let images: u64 = self.images.values().sum();
        let told = self.images.iter().map(|(doing, count)| format!("{count} {}", doing.words()));
        let told: Vec<String> = told.collect();
        vec![
            format!(
                "images: {images}, lost acknowledged: {}, damaged: {}, by half: {} ({how})",
                self.lost, self.damaged, self.half
            ),
            format!(
                "{}; {} with something unsynced, {} of recoveries, {} audited; {} acknowledged calls looked for",
                told.join(", "),
                self.in_doubt,
                self.of_recoveries,
                self.audited,
                self.looked_for
            ),
        ]
    }
}

/// Makes images in a folder and looks at them.
#[derive(Debug)]
pub(super) struct Replay {
    folder: PathBuf,
    /// Where images are kept that something is wrong with.
    evidence: Option<PathBuf>,
    name: String,
    kept: usize,
    told: usize,
}

impl Replay {
    pub(super) fn new(folder: &Path, evidence: &Path, name: String) -> Self {
        let evidence = Some(evidence.to_owned());
        Self { folder: folder.to_owned(), evidence, name, kept: 0, told: 0 }
    }

    /// For a control: what is wrong was broken on purpose.
    pub(super) fn keep_nothing(&mut self) {
        self.evidence = None;
    }

    /// Cuts the power at `count` moments of a life.
    ///
    /// # Errors
    /// When the log does not explain itself, or an image cannot be made.
    pub(super) fn images(
        &mut self,
        recording: &Recording,
        count: u64,
        random: &mut StdRng,
    ) -> Result<Tally, Fault> {
        let before = Before { keys: recording.keys.clone(), ..Before::default() };
        self.cut(recording, &before, count, random)
    }

    /// Cuts the power at one moment, starts a server on what is left, and cuts the power at `count` moments of its
    /// recovery.
    ///
    /// # Errors
    /// As [`Replay::images`].
    pub(super) fn recovery(
        &mut self,
        setting: &Setting,
        recording: &Recording,
        home: &Path,
        count: u64,
        random: &mut StdRng,
    ) -> Result<Tally, Fault> {
        let moments = cuts::choose(&recording.records, 8, random);
        let Some((moment, doing)) = moments.choose(random).copied() else {
            return Ok(Tally::default());
        };
        let mut disk = Disk::holding(recording.found.clone());
        for record in recording.records.iter().take(moment + 1) {
            disk.apply(record)?;
        }
        let folder = home.join("server");
        fs::create_dir_all(&folder).map_err(Fault::io("a folder"))?;
        check::place(&disk.cut(way(&disk, random), random), &folder)?;
        let known = recording.seen.iter().filter(|s| s.answered.is_some_and(|at| at <= moment));
        let before = Before {
            acknowledged: known.filter_map(owned).collect(),
            attempts: history(&recording.seen, moment),
            keys: recording.keys.clone(),
        };
        let recovery = match life::recover(setting, &folder, &home.join("log")) {
            Ok(recovery) => recovery,
            Err(fault @ Fault::Server { .. }) => {
                let what = format!("no server starts on an image cut {}: {fault}", doing.words());
                let mut tally = Tally { damaged: 1, ..Tally::default() };
                self.tell(&mut tally, &format!("record {moment}"), &[Wrong::Damaged(what)]);
                return Ok(tally);
            }
            Err(fault) => return Err(fault),
        };
        let mut tally = self.cut(&recovery, &before, count, random)?;
        tally.of_recoveries = tally.images.values().sum();
        Ok(tally)
    }

    fn cut(
        &mut self,
        recording: &Recording,
        before: &Before,
        count: u64,
        random: &mut StdRng,
    ) -> Result<Tally, Fault> {
        let mut tally = Tally::default();
        let mut disk = Disk::holding(recording.found.clone());
        let mut acknowledged = before.acknowledged.clone();
        let mut answered: Vec<&Seen> =
            recording.seen.iter().filter(|seen| seen.answered.is_some()).collect();
        answered.sort_by_key(|seen| seen.answered);
        let mut answered = answered.into_iter().peekable();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut moments = cuts::choose(&recording.records, count, random).into_iter().peekable();
        for (at, record) in recording.records.iter().enumerate() {
            disk.apply(record)?;
            while let Some(seen) = answered.next_if(|seen| seen.answered == Some(at)) {
                acknowledged.extend(owned(seen));
            }
            while let Some((_, doing)) = moments.next_if(|(moment, _)| *moment == at) {
                let left = way(&disk, random);
                let image = disk.cut(left, random);
                let place = format!("record {at} of {} ({left:?})", recording.records.len());
                let expected = Expected { acknowledged: &acknowledged, keys: &before.keys };
                let attempts = random.random_ratio(1, AUDITED).then(|| {
                    let mut attempts = before.attempts.clone();
                    attempts.extend(history(&recording.seen, at));
                    attempts
                });
                *tally.images.entry(doing).or_default() += 1;
                tally.in_doubt += u64::from(!disk.is_settled());
                self.look(&image, &expected, attempts.as_deref(), &place, &mut tally)?;
            }
        }
        Ok(tally)
    }

    fn look(
        &mut self,
        image: &Image,
        expected: &Expected<'_>,
        attempts: Option<&[Attempt]>,
        place: &str,
        tally: &mut Tally,
    ) -> Result<(), Fault> {
        check::place(image, &self.folder)?;
        let mut wrong = Vec::new();
        if let Some(attempts) = attempts {
            // Looks at a copy, so it comes first.
            let found = audit(&self.folder.join(FILES[0].0), attempts)?;
            wrong.extend(found.into_iter().map(|what| Wrong::Half(format!("audit: {what}"))));
            tally.audited += 1;
        }
        wrong.extend(check::quick(&self.folder, expected));
        let is = |test: fn(&Wrong) -> bool| u64::from(wrong.iter().any(test));
        tally.looked_for += u64::try_from(expected.acknowledged.len()).unwrap_or(u64::MAX);
        tally.lost += is(|wrong| matches!(wrong, Wrong::Lost(_)));
        tally.damaged += is(|wrong| matches!(wrong, Wrong::Damaged(_)));
        tally.half += is(|wrong| matches!(wrong, Wrong::Half(_)));
        if !wrong.is_empty() {
            let kept = self.keep(image)?;
            self.tell(tally, &format!("{place}{kept}"), &wrong);
        }
        Ok(())
    }

    fn tell(&mut self, tally: &mut Tally, place: &str, wrong: &[Wrong]) {
        self.told += 1;
        if self.told <= TOLD_MAX {
            let told: Vec<String> = wrong.iter().take(3).map(ToString::to_string).collect();
            let more = wrong.len().saturating_sub(3);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            tally.found.push(format!("{}, {place}: {}{more}", self.name, told.join("; ")));
        }
    }

    /// Keeps an image; says where.
    fn keep(&mut self, image: &Image) -> Result<String, Fault> {
        let Some(evidence) = self.evidence.as_ref().filter(|_| self.kept < KEPT_MAX) else {
            return Ok(String::new());
        };
        let name = format!("{} {}", self.name, self.kept).replace(' ', "-");
        let folder = evidence.join("powercut").join(name);
        fs::create_dir_all(&folder).map_err(Fault::io("a folder"))?;
        check::place(image, &folder)?;
        self.kept += 1;
        Ok(format!(", kept in {}", folder.display()))
    }
}

/// One of the ways to be cut that makes a difference.
fn way(disk: &Disk, random: &mut StdRng) -> Left {
    if disk.is_settled() {
        return Left::Nothing;
    }
    WAYS.choose(random).copied().unwrap_or(Left::Nothing)
}

fn owned(seen: &Seen) -> Option<(String, String)> {
    seen.acknowledged().map(|(key, text)| (key.to_owned(), text))
}

/// What callers knew when the power was cut after this record.
fn history(seen: &[Seen], at: usize) -> Vec<Attempt> {
    let sent = seen.iter().filter(|seen| seen.sent <= at + 1);
    sent.map(|seen| {
        let mut attempt = seen.attempt.clone();
        let is_open = seen.answered.is_none_or(|answered| answered > at);
        if is_open && attempt.outcome != Outcome::NotSent {
            attempt.outcome = Outcome::Unknown { why: "the power was cut".to_owned() };
        }
        attempt
    })
    .collect()
}
