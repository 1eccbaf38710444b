//! Disks, files and processes that misbehave under a server at work, and callers that do.
//!
//! [`cases`] is the table: each row a fault with what is expected while it lasts. Afterwards every row expects the same:
//! the service writes again within five seconds without a restart, whatever was left open is settled by repeating the
//! same call, and the audit of everything that callers saw finds nothing.
//!
//! Reading order: `case` (a row), `cases` (the rows), `phases` (a fault from beginning to end), `scene` (server, callers,
//! findings), `trouble` and `ground` (what is done to the files and what they lie on), `own` (cases with a shape of their
//! own), `sweep` (system calls that fail), `control` (the same over servers that are broken on purpose).

mod caller;
mod case;
mod cases;
mod control;
mod foreign;
mod ground;
mod own;
mod phases;
mod scene;
mod sweep;
mod trouble;

use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};

use super::run::say;
use super::{Bench, Report, Setting, Size};
use crate::fault::Fault;
use crate::harness::disk::rules::Rule;

use case::{Case, Draw, How};
use cases::CASES;
use scene::Scene;

/// Points of a sweep on one database: after each the whole history of its callers is gone through.
const POINTS_OF_A_DATABASE: usize = 40;
/// Cases that run at the same time; none of them uses what another has.
const LANES: usize = 2;

/// The bench.
pub(super) const DISK: Bench = Bench {
    name: "disk",
    what: "full, read-only and lying disks, locked, replaced, pinned and damaged files, floods and hang-ups",
    run,
    control: control::run,
};

fn run(setting: &Setting) -> Result<Report, Fault> {
    let folder = setting.folder.join("disk");
    let next = AtomicUsize::new(0);
    let report = Mutex::new(Report::default());
    let lane = || {
        while let Some(case) = CASES.get(next.fetch_add(1, Ordering::Relaxed)) {
            if setting.case.as_ref().is_some_and(|only| only != case.name) {
                continue;
            }
            let one = one(setting, case, &folder.join(case.name))?;
            let mut all = report.lock().unwrap_or_else(PoisonError::into_inner);
            all.done.extend(one.done);
            all.found.extend(one.found);
            all.skipped.extend(one.skipped);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        let broke = |_| Err(Fault::Run("a lane panicked".to_owned()));
        lanes.into_iter().try_for_each(|lane| lane.join().unwrap_or_else(broke))
    })?;
    Ok(report.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Runs one case in its folder. A case that cannot be run here is left out, visibly.
fn one(setting: &Setting, case: &Case, folder: &Path) -> Result<Report, Fault> {
    let mut report = Report::default();
    if let (Some(why), Size::Short) = (case.only_soak, setting.size) {
        report.skipped.push(format!("{}: {why}", case.name));
        return Ok(report);
    }
    let draw = Draw { seed: setting.seed, soak: setting.size == Size::Soak };
    let How::Calls(group) = case.how else {
        part(setting, case, folder, &draw, &[], &mut report)?;
        return Ok(report);
    };
    let points = sweep::points(group, &draw);
    let parts = points.len().div_ceil(POINTS_OF_A_DATABASE);
    for (number, points) in points.chunks(POINTS_OF_A_DATABASE).enumerate() {
        part(setting, case, &folder.join(number.to_string()), &draw, points, &mut report)?;
        if draw.soak {
            say(&format!("disk: {}: part {} of {parts}", case.name, number + 1));
        }
    }
    Ok(report)
}

/// One database of a case, with these points of a sweep.
fn part(
    setting: &Setting,
    case: &Case,
    folder: &Path,
    draw: &Draw,
    points: &[Rule],
    report: &mut Report,
) -> Result<(), Fault> {
    let begun = Instant::now();
    let place = match case.ground.make(folder)? {
        Ok(place) => place,
        Err(why) => {
            report.skipped.push(format!("{}: {why}", case.name));
            return Ok(());
        }
    };
    let mut scene = Scene::open(setting, case, place)?;
    let ran = runtime()?.block_on(async {
        match case.how {
            How::Fault(trouble, expect) => phases::run(&mut scene, trouble, expect).await,
            How::Calls(group) => sweep::run(&mut scene, group, points, draw).await,
            How::Own(own) => own(&mut scene, draw).await,
        }
    });
    if let Err(fault) = ran {
        // A server that broke down is what this bench is looking for.
        scene.wrong(fault.chain());
    }
    if scene.found().next().is_some() {
        // Its place may be gone with the case.
        scene.wrong(format!("last, the server said: {}", scene.last_words()));
    }
    let took = begun.elapsed().as_secs_f64();
    report.done.push(format!("{} ({took:.1} s): {}", case.name, scene.done.join(", ")));
    report.found.extend(scene.found().map(|what| format!("{}: {what}", case.name)));
    Ok(())
}

/// For the callers of one case.
fn runtime() -> Result<Runtime, Fault> {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(Fault::io("the threads of the callers"))
}
