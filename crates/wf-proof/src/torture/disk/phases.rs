//! A fault from its beginning to its end: callers work, it is put in, answers are held against what is expected, it is
//! taken away, the service must come back by itself, and the audit must be clean.

use std::time::{Duration, Instant};

use super::caller::Said;
use super::case::{Expect, Reads, Ready, Writes};
use super::scene::{PATIENCE, Scene};
use super::trouble::Trouble;
use crate::fault::Fault;

/// How soon `/readyz` must tell of a fault.
const TOLD: Duration = Duration::from_secs(3);

/// Runs one.
pub(super) async fn run(scene: &mut Scene, trouble: Trouble, expect: Expect) -> Result<(), Fault> {
    scene.work(6, "before the fault").await?;
    let put = trouble.put(scene)?;
    writes(scene, expect).await?;
    reads(scene, expect.reads).await?;
    if expect.ready == Ready::No && !scene.is_ready_within(false, TOLD).await {
        scene.wrong("/readyz goes on saying 200");
    }
    put.take(scene)?;
    let took = scene.recover().await?;
    scene.done.push(format!("writes again after {} ms", took.as_millis()));
    scene.work(4, "after the fault").await?;
    if trouble == Trouble::WriteBack {
        // What is in memory only goes with the mount.
        scene.take_server()?.kill()?;
        scene.place.reboot()?;
        scene.start()?;
        scene.recover().await?;
        scene.work(2, "after the mount").await?;
    }
    scene.close()
}

async fn writes(scene: &mut Scene, expect: Expect) -> Result<(), Fault> {
    match expect.writes {
        Writes::Stop => {
            until_refused(scene, true).await?;
            for said in scene.round(2).await? {
                let is_refused = if let Said::Unavailable { after_ms } = said {
                    !expect.after_ms || after_ms.is_some()
                } else {
                    false
                };
                if !is_refused {
                    scene.wrong(format!("during the fault, a call got {said:?}"));
                }
            }
            Ok(())
        }
        Writes::Some => {
            until_refused(scene, false).await?;
            let said = scene.round(3).await?;
            scene.condemn(&said);
            Ok(())
        }
    }
}

/// Until all callers, or one of them, are refused.
async fn until_refused(scene: &mut Scene, all: bool) -> Result<(), Fault> {
    let end = Instant::now() + PATIENCE;
    loop {
        let said = scene.round(1).await?;
        scene.condemn(&said);
        let mut refused = said.iter().map(|said| matches!(said, Said::Unavailable { .. }));
        if if all { refused.all(|one| one) } else { refused.any(|one| one) } {
            return Ok(());
        }
        if Instant::now() > end {
            scene.wrong("the fault has no effect on writes");
            return Ok(());
        }
    }
}

async fn reads(scene: &mut Scene, expect: Reads) -> Result<(), Fault> {
    for said in scene.looks().await? {
        let fits = match expect {
            Reads::GoOn => said == Said::Done,
            Reads::Stop => matches!(said, Said::Unavailable { .. }),
        };
        if !fits {
            scene.wrong(format!("during the fault, a read got {said:?}"));
        }
    }
    Ok(())
}
