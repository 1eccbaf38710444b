//! Step Functions fails, is deleted, throttles, answers ambiguously: workflows stay as they are, technicians go on, and
//! afterwards everything comes right without anybody's help.

use std::collections::BTreeMap;

use serde_json::json;
use wf_testkit::step_functions::Status;

use crate::orchestrated::{HOUR_MS, World};
use crate::wire::{self, Fault};

const CALLS: [&str; 5] =
    ["StartExecution", "StopExecution", "SendTaskSuccess", "DescribeExecution", "ListExecutions"];

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn technicians_go_on_while_step_functions_does_not() {
    for fault in [wire::THROTTLED, wire::INTERNAL, wire::UNAVAILABLE, Fault::Reset, Fault::Lost] {
        let world = World::new().await;
        let one = world.start("plain", "U-1").await;
        let process = world.process(false).await;
        world.converges(&process).await;
        for call in CALLS {
            process.bench.wire.always(call, [fault.clone()]);
        }
        // A workflow that starts, one that goes on, one that ends.
        let two = world.start("plain", "U-2").await;
        let reply = world.bench.submit(&one, "yes", "k-1").await;
        assert_eq!((reply.error, reply.outcome.as_str()), (None, "recorded"), "{}", reply.body);
        let three = world.start("plain", "U-3").await;
        assert_eq!(world.bench.abandon(&three, "k-3").await.error, None);
        let before = histories(&world, [&one, &three]).await;
        for _ in 0..4 {
            process.pass().await;
            world.plane.pass_time(2 * HOUR_MS).await;
        }
        assert_eq!(histories(&world, [&one, &three]).await, before, "{fault:?}");
        let reply = world.bench.submit(&two, "yes", "k-2").await;
        assert_eq!((reply.error, reply.outcome.as_str()), (None, "recorded"), "{}", reply.body);
        for call in CALLS {
            process.bench.wire.always(call, [Fault::Pass]);
        }
        world.converges(&process).await;
        assert_eq!(histories(&world, [&one, &three]).await, before, "{fault:?}");
    }
}

async fn histories<const N: usize>(world: &World, works: [&String; N]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for work in works {
        counts.insert(work.clone(), world.events(work).await.len());
    }
    counts
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_state_machine_that_is_deleted_and_made_anew_gets_its_executions_back() {
    let world = World::new().await;
    let (one, two) = (world.start("plain", "U-1").await, world.start("plain", "U-2").await);
    let process = world.process(false).await;
    world.converges(&process).await;
    let before = histories(&world, [&one, &two]).await;
    let machine = json!({ "stateMachineArn": world.machine() });
    assert_eq!(world.console("DeleteStateMachine", &machine).error(), None);
    // The executions end at their next transition, when they wake up.
    world.plane.pass_time(25 * HOUR_MS).await;
    assert_eq!(world.plane.executions(), [], "they are gone with it");
    for _ in 0..3 {
        process.pass().await;
        world.plane.pass_time(HOUR_MS).await;
    }
    assert_eq!(histories(&world, [&one, &two]).await, before);
    let reply = world.bench.submit(&one, "yes", "k-1").await;
    assert_eq!(reply.error, None, "{}", reply.body);
    assert_eq!(world.bench.abandon(&two, "k-2").await.error, None);
    world.make_machine();
    world.converges(&process).await;
    assert!(world.fence(&one).await >= 2, "the name of what is gone is not used again");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn executions_that_are_stopped_again_and_again_come_back_later_and_later() {
    let world = World::new().await;
    let work = world.start("plain", "U-1").await;
    let process = world.process(false).await;
    world.converges(&process).await;
    let before = world.events(&work).await.len();
    for _ in 0..6 {
        let fence = world.fence(&work).await;
        world.stop(&work, fence);
        // Somebody asks for a look: the end of the silence.
        world.plane.pass_time(25 * HOUR_MS).await;
        world.converges(&process).await;
        assert!(world.fence(&work).await > fence);
    }
    assert_eq!(world.events(&work).await.len(), before);
    let running = world.plane.executions();
    let running = running.iter().filter(|seen| seen.status == Status::Running).count();
    assert_eq!((running, world.plane.executions().len()), (1, 7), "one for each fence");
}
