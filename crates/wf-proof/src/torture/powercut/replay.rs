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
use super::tally::{Carried, Tally};
use crate::fault::Fault;
use crate::harness::audit::audit;
use crate::torture::Setting;

/// One image in so many is audited.
const AUDITED: u32 = 20;
const AUDITED_OF_CONTROL: u32 = 3;
/// How many images that something is wrong with are kept, and told.
const KEPT_MAX: usize = 3;
const TOLD_MAX: usize = 10;

/// What was known before the first record: nothing, or for a recovery what was known before the power was cut.
#[derive(Debug, Clone, Default)]
struct Before {
    acknowledged: BTreeMap<String, String>,
    attempts: Vec<Attempt>,
    keys: BTreeSet<String>,
    /// What may be there instead of what is acknowledged: a backup is about to take the place of it.
    instead: Option<BTreeMap<String, String>>,
}

/// What an image is held against.
struct Look<'a> {
    expected: Expected<'a>,
    instead: Option<&'a BTreeMap<String, String>>,
    /// For the audit.
    attempts: Option<Vec<Attempt>>,
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
    /// One image in so many is audited.
    audited: u32,
}

impl Replay {
    pub(super) fn new(folder: &Path, evidence: &Path, name: String) -> Self {
        let evidence = Some(evidence.to_owned());
        Self { folder: folder.to_owned(), evidence, name, kept: 0, told: 0, audited: AUDITED }
    }

    /// For a control: what is wrong was broken on purpose, and the audit is to see it too.
    pub(super) fn of_control(mut self) -> Self {
        self.evidence = None;
        self.audited = AUDITED_OF_CONTROL;
        self
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
            instead: None,
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

    /// Cuts the power at `count` moments while a backup takes the place of the database of a life: either is there, whole.
    /// When it is done, the backup is.
    ///
    /// # Errors
    /// As [`Replay::images`].
    pub(super) fn restoring(
        &mut self,
        recording: &Recording,
        restore: &Recording,
        count: u64,
        random: &mut StdRng,
    ) -> Result<Tally, Fault> {
        let instead = recording.backup.as_ref().map(|backup| backup.acknowledged.clone());
        let before = Before {
            acknowledged: recording.acknowledged(),
            attempts: Vec::new(),
            keys: recording.keys.clone(),
            instead: instead.clone(),
        };
        let mut tally = self.cut(restore, &before, count, random)?;
        let all: u64 = tally.images.values().sum();
        tally.images = BTreeMap::from([(Doing::Restoring, all)]);
        let mut disk = Disk::holding(restore.found.clone());
        for record in &restore.records {
            disk.apply(record)?;
        }
        let acknowledged = instead.unwrap_or_default();
        let expected = Look {
            expected: Expected { acknowledged: &acknowledged, keys: &before.keys },
            instead: None,
            attempts: None,
        };
        self.look(&disk.cut(Left::Nothing, random), &expected, "after restoring", &mut tally)?;
        Ok(tally)
    }

    fn cut(
        &mut self,
        recording: &Recording,
        before: &Before,
        count: u64,
        random: &mut StdRng,
    ) -> Result<Tally, Fault> {
        let mut tally = Tally { carried: Carried::of(&recording.records), ..Tally::default() };
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
                let audited = before.instead.is_none() && random.random_ratio(1, self.audited);
                let attempts = audited.then(|| {
                    let mut attempts = before.attempts.clone();
                    attempts.extend(history(&recording.seen, at));
                    attempts
                });
                let look = Look {
                    expected: Expected { acknowledged: &acknowledged, keys: &before.keys },
                    instead: before.instead.as_ref(),
                    attempts,
                };
                *tally.images.entry(doing).or_default() += 1;
                tally.in_doubt += u64::from(!disk.is_settled());
                self.look(&image, &look, &place, &mut tally)?;
            }
        }
        Ok(tally)
    }

    fn look(
        &mut self,
        image: &Image,
        look: &Look<'_>,
        place: &str,
        tally: &mut Tally,
    ) -> Result<(), Fault> {
        check::place(image, &self.folder)?;
        let mut wrong = Vec::new();
        let expected = &look.expected;
        if let Some(attempts) = &look.attempts {
            // Looks at a copy, so it comes first.
            let found = audit(&self.folder.join(FILES[0].0), attempts)?;
            wrong.extend(found.into_iter().map(Wrong::Audit));
            tally.audited += 1;
        }
        wrong.extend(check::quick(&self.folder, expected));
        if let Some(acknowledged) = look.instead.filter(|_| !wrong.is_empty()) {
            let instead = Expected { acknowledged, keys: expected.keys };
            if check::quick(&self.folder, &instead).is_empty() {
                wrong.clear();
            }
        }
        let is = |test: fn(&Wrong) -> bool| u64::from(wrong.iter().any(test));
        tally.looked_for += u64::try_from(expected.acknowledged.len()).unwrap_or(u64::MAX);
        tally.lost += is(|wrong| matches!(wrong, Wrong::Lost(_)));
        tally.damaged += is(|wrong| matches!(wrong, Wrong::Damaged(_)));
        tally.half += is(|wrong| matches!(wrong, Wrong::Half(_)));
        tally.accused += is(|wrong| matches!(wrong, Wrong::Audit(_)));
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
