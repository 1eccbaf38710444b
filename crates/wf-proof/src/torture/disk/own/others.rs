//! Somebody else uses the database: a writer that is done soon, a reader that stays.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::case::{Draw, Running};
use super::super::foreign::Foreign;
use super::super::scene::{PATIENCE, Scene};
use super::super::trouble::Part;

/// How long the foreign writer writes; the server waits for two seconds.
const SHORT: Duration = Duration::from_millis(900);

/// How soon the log must be below its bound when nobody reads from it any more.
const CUT: Duration = Duration::from_secs(10);

/// Behind a foreign writer that is done soon, calls wait and are done.
pub(in super::super) fn short_writer<'a>(scene: &'a mut Scene, _: &'a Draw) -> Running<'a> {
    Box::pin(async move {
        scene.work(4, "before the foreign writer").await?;
        let foreign = Foreign::open(&scene.launch.database())?;
        foreign.lock()?;
        let begun = Instant::now();
        let leaving = async {
            // How long it writes is the experiment.
            tokio::time::sleep(SHORT).await;
            foreign.leave()
        };
        let (left, worked) = tokio::join!(leaving, scene.work(1, "behind the foreign writer"));
        left?;
        worked?;
        if begun.elapsed() < SHORT {
            scene.wrong("calls were done although somebody else held the write lock");
        }
        scene.work(4, "after the foreign writer").await?;
        scene.close()
    })
}

/// A reader that stays holds the log back: writes go on, the metric shows the log, and when the reader leaves the log is
/// cut.
pub(in super::super) fn pinned_log<'a>(scene: &'a mut Scene, draw: &'a Draw) -> Running<'a> {
    Box::pin(async move {
        let mib = if draw.soak { 80 } else { 6 };
        scene.work(2, "before the reader").await?;
        let log = Part::Log.of(&scene.launch.database());
        let reader = Foreign::open(&scene.launch.database())?;
        reader.read()?;
        let mut calls = 0;
        while size(&log) < mib << 20 {
            scene.work(50, "while a reader holds the log").await?;
            calls += 200;
            if calls > 200_000 {
                scene.wrong("the log does not grow: the reader does not hold it");
                break;
            }
        }
        let pinned = size(&log);
        if !shows(scene, pinned).await {
            scene.wrong(format!("checkpoint_wal_bytes does not show a log of {pinned} bytes"));
        }
        reader.leave()?;
        let begun = Instant::now();
        while size(&log) > 0 {
            if begun.elapsed() > CUT {
                scene.wrong(format!("the log still has {} bytes {CUT:?} later", size(&log)));
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let cut = begun.elapsed().as_millis();
        scene.done.push(format!("a log of {} MiB cut after {cut} ms", pinned >> 20));
        scene.work(4, "after the reader").await?;
        scene.close()
    })
}

/// Whether the metric comes to show so many bytes: it is looked at once a second.
async fn shows(scene: &Scene, bytes: u64) -> bool {
    let end = Instant::now() + PATIENCE;
    loop {
        let shown = scene.metric("checkpoint_wal_bytes").await;
        // Both are exact below 2^53.
        #[expect(clippy::cast_precision_loss, reason = "sizes of files here are far below 2^53")]
        let wanted = bytes as f64;
        if shown.is_some_and(|shown| shown >= wanted) {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}
