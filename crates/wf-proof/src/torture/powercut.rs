//! Power cuts: what a cut of the power at any moment may leave on the disk of a server at work must hold every call that
//! was acknowledged before, whole, and nothing by half.
//!
//! A real server runs under the preload library ([`life`]), which writes down every change of its files and every answer in one
//! order. From that log [`disk`] knows at each moment what is surely on the disk and what may be; [`cuts`] chooses the moments;
//! [`replay`] makes images and has each opened and held against the answers so far ([`answers`], [`check`]). Some images are
//! given to a server again, and the power is cut during its recovery.

mod answers;
mod check;
mod cuts;
mod disk;
mod life;
mod replay;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::{Bench, Report, Setting, Size};
use crate::fault::Fault;
use crate::harness::disk::log::{Class, Record, What};
use life::{Recording, Script};
use replay::{Replay, Tally};

/// The bench.
pub(super) const POWERCUT: Bench = Bench {
    name: "powercut",
    what: "the power is cut at any moment; what was acknowledged is on the disk, whole, and nothing by half",
    run,
    control,
};

/// Images of a short run, and of a soak that does not say how many.
const SHORT: u64 = 1_000;
const SOAK: u64 = 20_000;
/// Images of one life, its recoveries included.
const OF_A_LIFE: u64 = 250;
/// Lives at the same time.
const THREADS: u64 = 2;

fn run(setting: &Setting) -> Result<Report, Fault> {
    let images = match setting.size {
        Size::Short => SHORT,
        Size::Soak => setting.count.unwrap_or(SOAK),
    };
    let lives = images.div_ceil(OF_A_LIFE);
    let next = AtomicU64::new(0);
    let work = || {
        let mut tally = Tally::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= lives {
                return Ok(tally);
            }
            tally.add(one_life(setting, number)?);
        }
    };
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS.min(lives)).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let done = worker.join().map_err(|_| Fault::Run("a replay panicked".to_owned()))?;
            tally.add(done?);
        }
        Ok::<(), Fault>(())
    })?;
    let mut report = Report { done: tally.lines("FULL"), ..Report::default() };
    report.found = tally.found;
    Ok(report)
}

/// A life of a server, images of it, and images of recoveries from some of them.
fn one_life(setting: &Setting, number: u64) -> Result<Tally, Fault> {
    let mut random = StdRng::seed_from_u64(setting.seed.wrapping_add(number));
    let place = Place::new(setting, &format!("life {number} of seed {}", setting.seed))?;
    let recording = place.live(setting, Script { calls: 40, normal: false }, &mut random)?;
    let mut replay = Replay::new(&place.images, &setting.folder, place.name.clone());
    let tally = replay.images(&recording, OF_A_LIFE * 4 / 5, &mut random)?;
    let mut all = tally;
    for _ in 0..2 {
        let count = OF_A_LIFE / 10;
        all.add(replay.recovery(setting, &recording, &place.fresh()?, count, &mut random)?);
    }
    Ok(all)
}

/// The same over servers and disks that break the promise; a cut must show each of them.
fn control(setting: &Setting) -> Result<Report, Fault> {
    let mut random = StdRng::seed_from_u64(setting.seed ^ 0xC0DE);
    let mut report = Report::default();
    let mut silent = false;
    let script = Script { calls: 20, normal: true };
    let place = Place::new(setting, "control")?;
    let normal = place.live(setting, script, &mut random)?;
    let full = Place::new(setting, "control")?;
    let full = full.live(setting, Script { normal: false, ..script }, &mut random)?;
    // A disk that says that it synced and did not: the database's syncs are what lets a checkpoint cut the log back.
    let unsynced = without_syncs(full, Class::Database);
    for (name, recording) in [("NORMAL", &normal), ("the database never synced", &unsynced)] {
        let mut replay = Replay::new(&place.images, &setting.folder, "control".to_owned());
        replay.keep_nothing();
        let tally = replay.images(recording, 150, &mut random)?;
        report.done.extend(tally.lines(name));
        silent |= tally.found.is_empty();
        report.found.extend(tally.found);
    }
    if silent {
        report.found.clear();
    }
    Ok(report)
}

fn without_syncs(mut recording: Recording, class: Class) -> Recording {
    let is_sync = |record: &Record| {
        record.class == Some(class) && matches!(record.what, What::SyncEnd { .. })
    };
    for record in recording.records.iter_mut().filter(|record| is_sync(record)) {
        // Keeps its place, so that positions still are what they were.
        record.what = What::Hangup;
    }
    recording
}

/// Where a life is lived and looked at.
struct Place {
    name: String,
    /// On the disk, so that syncs take as long as they do.
    lives: tempfile::TempDir,
    /// In memory where there is such a folder: nothing in it needs to last.
    images: PathBuf,
    _images: tempfile::TempDir,
    count: AtomicU64,
}

impl Place {
    fn new(setting: &Setting, name: &str) -> Result<Self, Fault> {
        let folder = |beside: &std::path::Path| {
            tempfile::Builder::new()
                .prefix("wf-powercut-")
                .tempdir_in(beside)
                .map_err(Fault::io("a temporary folder"))
        };
        let memory = std::path::Path::new("/dev/shm");
        let images = folder(memory).or_else(|_| folder(&setting.folder))?;
        Ok(Self {
            name: name.to_owned(),
            lives: folder(&setting.folder)?,
            images: images.path().to_owned(),
            _images: images,
            count: AtomicU64::new(0),
        })
    }

    fn live(
        &self,
        setting: &Setting,
        script: Script,
        random: &mut StdRng,
    ) -> Result<Recording, Fault> {
        let home = self.fresh()?;
        life::live(setting, &home.join("server"), &home.join("log"), script, random)
    }

    /// A folder that is not there yet.
    fn fresh(&self) -> Result<PathBuf, Fault> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        Ok(self.lives.path().join(number.to_string()))
    }
}
