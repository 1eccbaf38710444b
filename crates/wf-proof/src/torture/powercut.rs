//! Power cuts: what a cut of the power at any moment may leave on the disk of a server at work must hold every call that
//! was acknowledged before, whole, and nothing by half.
//!
//! A real server runs under the preload library ([`life`]), which writes down every change of its files and every answer in one
//! order. From that log [`disk`] knows at each moment what is surely on the disk and what may be; [`cuts`] chooses the moments;
//! [`replay`] makes images and has each opened and held against the answers so far ([`answers`], [`check`]). Some images are
//! given to a server again, and the power is cut during its recovery; and while a backup takes the place of the database.

mod answers;
mod check;
mod cuts;
mod disk;
mod life;
mod replay;
mod tally;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::{Bench, Report, Setting, Size};
use crate::fault::Fault;
use crate::harness::disk::log::{Class, Record, What};
use life::{Recording, Script};
use replay::Replay;
use tally::Tally;

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
/// Images of one life, its recoveries included: in a soak fewer lives are looked at more closely.
const OF_A_LIFE: u64 = 250;
const OF_A_LONG_LIFE: u64 = 1_000;
/// Recoveries of one life. A tenth of its images is of each, and a tenth of a restore.
const RECOVERIES: u64 = 2;
/// Lives at the same time: servers and callers wait for the disk and for the checkpointer's periods most of the time.
const THREADS: u64 = 4;

fn run(setting: &Setting) -> Result<Report, Fault> {
    let (images, of_one) = match setting.size {
        Size::Short => (SHORT, OF_A_LIFE),
        Size::Soak => (setting.count.unwrap_or(SOAK), OF_A_LONG_LIFE),
    };
    let lives = images.div_ceil(of_one);
    let next = AtomicU64::new(0);
    let work = || {
        let mut tally = Tally::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= lives {
                return Ok(tally);
            }
            tally.add(one_life(setting, number, of_one.min(images - number * of_one))?);
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
fn one_life(setting: &Setting, number: u64, images: u64) -> Result<Tally, Fault> {
    let mut random = StdRng::seed_from_u64(setting.seed.wrapping_add(number));
    let place = Place::new(setting, &format!("life {number} of seed {}", setting.seed))?;
    let home = place.fresh();
    let recording = live(setting, &home, Script { calls: 30, normal: false }, &mut random)?;
    let mut replay = Replay::new(&place.images, &setting.folder, place.name.clone());
    let share = images / 10;
    let of_life = images - (RECOVERIES + 1) * share;
    let mut all = replay.images(&recording, of_life, &mut random)?;
    for _ in 0..RECOVERIES {
        let home = place.fresh();
        all.add(replay.recovery(setting, &recording, &home, share, &mut random)?);
    }
    if let Some(backup) = &recording.backup {
        let restore = life::restore(setting, &home.join("server"), &place.fresh(), backup)?;
        all.add(replay.restoring(&recording, &restore, share, &mut random)?);
    }
    Ok(all)
}

/// The same over a server that breaks the promise, and over disks that do; a cut must show each of them, and the audit
/// must see what the quick check sees.
fn control(setting: &Setting) -> Result<Report, Fault> {
    const IMAGES: u64 = 150;
    let mut random = StdRng::seed_from_u64(setting.seed ^ 0xC0DE);
    let place = Place::new(setting, "control")?;
    let script = Script { calls: 15, normal: true };
    let mut replay = Replay::new(&place.images, &setting.folder, "control".to_owned()).of_control();
    let normal = live(setting, &place.fresh(), script, &mut random)?;
    let normal = replay.images(&normal, IMAGES, &mut random)?;
    // Syncs of the database are what lets a checkpoint cut the log back, those of the copy what lets a restore begin.
    let home = place.fresh();
    let full = live(setting, &home, Script { normal: false, ..script }, &mut random)?;
    let Some(backup) = &full.backup else {
        return Err(Fault::Run("a life made no backup".to_owned()));
    };
    let restore = life::restore(setting, &home.join("server"), &place.fresh(), backup)?;
    let restore = with_failing_syncs(restore, Class::Other);
    let restore = replay.restoring(&full, &restore, IMAGES, &mut random)?;
    let full = with_failing_syncs(full, Class::Database);
    let checkpoint = replay.images(&full, IMAGES, &mut random)?;
    let seen = [
        ("NORMAL", normal.lost > 0 && normal.accused > 0, normal),
        ("syncs of checkpoints fail", checkpoint.lost > 0 && checkpoint.accused > 0, checkpoint),
        ("syncs of a restore fail", restore.damaged + restore.lost > 0, restore),
    ];
    let mut report = Report::default();
    let all_seen = seen.iter().all(|(_, is_seen, _)| *is_seen);
    for (name, _, tally) in seen {
        report.done.extend(tally.lines(name));
        report.found.extend(tally.found.into_iter().filter(|_| all_seen));
    }
    Ok(report)
}

/// The same life on a disk whose syncs of such a file failed, and nobody noticed.
fn with_failing_syncs(mut recording: Recording, class: Class) -> Recording {
    let is_sync = |record: &Record| {
        record.class == Some(class) && matches!(record.what, What::SyncEnd { .. })
    };
    for record in recording.records.iter_mut().filter(|record| is_sync(record)) {
        record.errno = rustix::io::Errno::IO.raw_os_error();
    }
    recording
}

fn live(
    setting: &Setting,
    home: &Path,
    script: Script,
    random: &mut StdRng,
) -> Result<Recording, Fault> {
    life::live(setting, &home.join("server"), &home.join("log"), script, random)
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
        let folder = |beside: &Path| {
            tempfile::Builder::new()
                .prefix("wf-powercut-")
                .tempdir_in(beside)
                .map_err(Fault::io("a temporary folder"))
        };
        let memory = Path::new("/dev/shm");
        let images = folder(memory).or_else(|_| folder(&setting.folder))?;
        Ok(Self {
            name: name.to_owned(),
            lives: folder(&setting.folder)?,
            images: images.path().to_owned(),
            _images: images,
            count: AtomicU64::new(0),
        })
    }

    /// A folder that is not there yet.
    fn fresh(&self) -> PathBuf {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        self.lives.path().join(number.to_string())
    }
}
