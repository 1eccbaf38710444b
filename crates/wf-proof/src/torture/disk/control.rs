//! The bench over a server that is broken on purpose: one that keeps the connection that a failed COMMIT poisoned, one that
//! acknowledges commits without writing them, and one that believes a disk after an error. Each must be found, by what is there
//! to find it.

use std::path::Path;

use super::case::{Case, Draw, Group, How};
use super::cases::SYNC_OF_LOG;
use super::ground::{Ground, Refusal};
use super::scene::Scene;
use super::trouble::Trouble;
use crate::fault::Fault;
use crate::harness::audit::audit;
use crate::harness::disk::rules::{Action, Call, File};
use crate::torture::{Report, Setting};

/// Keeps the connection, whatever happened to it.
const KEEPS: Case = Case {
    name: "control-poisoned-connection",
    env: &[("FAILPOINTS", "connection.kept=return")],
    how: How::Calls(Group {
        call: Call::Fsync,
        file: File::Wal,
        actions: &[Action::Fail("EIO")],
        reach: 1,
        points: 1,
        with: None,
    }),
    ..SYNC_OF_LOG
};

/// Lies about a few commits of many: some batches are no caller's, so that one alone may have nobody to lie to.
const LIES: Case = Case {
    name: "control-lost-commit",
    env: &[("FAILPOINTS", "commit.never=20*off->5*return->off")],
    how: How::Own(|scene, _| {
        Box::pin(async move {
            // Callers may hear that a workflow they started is not there; the audit must say why.
            scene.round(12).await?;
            Ok(())
        })
    }),
    ..SYNC_OF_LOG
};

/// Believes of blocks that could not be written back that they are on the disk once they are written again.
const HOPES: Case = Case {
    name: "control-lost-write-back",
    ground: Ground::Plain,
    env: &[("FAILPOINTS", "pages.kept=return")],
    how: How::Own(|scene, _| {
        Box::pin(async move {
            scene.work(6, "before the fault").await?;
            let put = Trouble::WriteBack.put(scene)?;
            scene.round(6).await?;
            put.take(scene)?;
            scene.round(6).await?;
            scene.take_server()?.kill()?;
            scene.place.reboot()
        })
    }),
    ..SYNC_OF_LOG
};

/// All. Nothing is reported as found when one of them is not.
pub(super) fn run(setting: &Setting) -> Result<Report, Fault> {
    let folder = setting.folder.join("disk");
    let (kept, lied) = std::thread::scope(|scope| {
        let lied = scope.spawn(|| {
            let lied = lies(setting, &LIES, &folder)?.map_err(Fault::Run)?;
            Ok::<_, Fault>((lied, lies(setting, &HOPES, &folder)?))
        });
        let kept = keeps(setting, &folder.join(KEEPS.name));
        (kept, lied.join())
    });
    let (lied, hoped) = lied.map_err(|_| Fault::Run("the control panicked".to_owned()))??;
    let mut report = Report::default();
    let all = [("a poisoned connection", kept?), ("a lost commit", lied)];
    match hoped {
        // Told, and not yet asked for: it has not been seen to be found each time.
        Ok(found) => report.done.push(format!("a lost write-back: {} found", found.len())),
        Err(why) => report.done.push(format!("a lost write-back: left out: {why}")),
    }
    for (what, found) in all {
        let seen = if found.is_empty() { "NOT found" } else { "found" };
        report.done.push(format!("{what}: {seen}"));
        if found.is_empty() {
            return Ok(Report { found: Vec::new(), ..report });
        }
        report.found.extend(found);
    }
    Ok(report)
}

/// What the five seconds say.
fn keeps(setting: &Setting, folder: &Path) -> Result<Vec<String>, Fault> {
    let report = super::one(setting, &KEEPS, folder)?;
    Ok(report.found.into_iter().filter(|what| what.contains("does not write again")).collect())
}

/// What the audit says; the inner error is why it cannot be asked here.
fn lies(
    setting: &Setting,
    case: &Case,
    folder: &Path,
) -> Result<Result<Vec<String>, Refusal>, Fault> {
    let place = match case.ground.make(&folder.join(case.name))? {
        Ok(place) => place,
        Err(why) => return Ok(Err(why)),
    };
    let mut scene = Scene::open(setting, case, place)?;
    let How::Own(own) = case.how else { return Ok(Ok(Vec::new())) };
    let draw = Draw { seed: setting.seed, soak: false };
    super::runtime()?.block_on(own(&mut scene, &draw))?;
    if scene.server().is_ok() {
        scene.stop_somehow()?;
    }
    audit(&scene.launch.database(), &scene.recorder.attempts()).map(Ok)
}
