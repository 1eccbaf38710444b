//! A process that ends at any write of a pass: before it arrives, or after it arrived and before the answer. Other processes
//! come to the same end, with one execution for each open workflow and none for a completed one, and nothing is added to
//! the history of a workflow or lost from it.

use serde_json::json;

use crate::fixture::meddle_number;
use crate::orchestrated::{HOUR_MS, Process, World};

/// What a pass is about to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Turn {
    /// To start an execution, and to record it.
    Start,
    /// To tell it what it must know.
    Advance,
    /// To replace what was stopped by hand.
    Replace,
    /// To replace what is worn, and stop it.
    Wear,
    /// To end with the workflow.
    Retire,
    /// To end with the workflow an execution that was stopped by hand.
    RetireStopped,
    /// To go above an execution of a higher fence, and stop it.
    Evict,
}

/// A world in which that is about to happen, the workflow it happens to, and a process that has seen nothing yet.
pub(crate) async fn about_to(turn: Turn) -> (World, String, Process) {
    let world = World::new().await;
    let work = world.start("plain", "U-1").await;
    let first = world.process(false).await;
    match turn {
        Turn::Start => {}
        Turn::Advance => {
            first.pass().await;
            world.plane.run().await;
            world.plane.pass_time(5_000).await;
        }
        Turn::Replace => {
            world.converges(&first).await;
            world.stop(&work, 1);
            world.plane.pass_time(25 * HOUR_MS).await;
        }
        Turn::Wear => {
            world.converges(&first).await;
            let key = format!("T#plant#WF#{work}");
            meddle_number(&world.bench.config, &key, "ORCH", "registrations", "2000").await;
            world.plane.pass_time(25 * HOUR_MS).await;
        }
        Turn::Retire | Turn::RetireStopped => {
            world.converges(&first).await;
            if matches!(turn, Turn::RetireStopped) {
                world.stop(&work, 1);
            }
            let reply = world.bench.abandon(&work, "k-1").await;
            assert_eq!(reply.error, None, "{}", reply.body);
        }
        Turn::Evict => {
            world.converges(&first).await;
            world.start_execution(&work, 9);
            let foreign = json!({ "executionArn": world.arn(&work, 9) });
            assert_eq!(world.console("DescribeExecution", &foreign).error(), None);
        }
    }
    let process = world.process(false).await;
    (world, work, process)
}

/// Ends a process at each write of the pass; how many ends were tried.
async fn from_every_crash_point(turn: Turn) -> usize {
    let mut tried = 0;
    for left in 0.. {
        for arrives in [false, true] {
            let (world, work, process) = about_to(turn).await;
            let before = world.events(&work).await;
            let dead = process.bench.wire.dies(left, arrives);
            tokio::select! {
                () = dead.notified() => {}
                report = process.pass() => {
                    // It has no more writes.
                    assert!(tried > 0, "{turn:?}: {report:#?}");
                    return tried;
                }
            }
            drop(process);
            tried += 1;
            // The lease of the dead is over before the next process comes.
            world.plane.run().await;
            world.plane.pass_time(60_000).await;
            let next = world.process(false).await;
            world.converges(&next).await;
            let after = world.events(&work).await;
            let kept = &after[..before.len()];
            assert_eq!(kept, before, "{turn:?} {left} {arrives}: nothing is lost");
            let added: Vec<_> = after[before.len()..].iter().map(|e| e.body.kind()).collect();
            let acknowledged = before.iter().any(|e| e.body.kind() == "orchestration_acknowledged");
            let wanted: &[&str] = if acknowledged { &[] } else { &["orchestration_acknowledged"] };
            assert_eq!(added, wanted, "{turn:?} {left} {arrives}: nothing is added");
        }
    }
    tried
}

macro_rules! crash_points {
    ($($name:ident $turn:ident $least:literal),+ $(,)?) => {$(
        #[tokio::test]
        #[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
        async fn $name() {
            let tried = from_every_crash_point(Turn::$turn).await;
            assert!(tried >= $least, "{tried} crash points");
        }
    )+};
}

crash_points! {
    start_and_record Start 6,
    advance Advance 4,
    replace Replace 4,
    replace_what_is_worn Wear 6,
    retire Retire 6,
    retire_what_was_stopped RetireStopped 4,
    evict Evict 6,
}
