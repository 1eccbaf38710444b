//! The reconciler as it runs: keeps up, shares the shards with others, ends within seconds; one that only looks; the
//! message to operators, in the write that it is about.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use wf_backend_aws::execution::{End, Outcome, Reconciler, SHARDS, ShardLease};
use wf_core::limits::{LEASE_MS, SUCCESSORS_ALERT};
use wf_core::ports::{ClockPort as _, LeaseToken, OutboxQuery, OutboxRow, StorageBackendPort as _};
use wf_core::reconcile::{Action, Rule};

use crate::bench::Bench;
use crate::orchestrated::World;
use crate::wire::Wire;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than every back-off of the rules.
const BETWEEN_MS: i64 = 16 * 60 * 1_000;
/// How long a reconciler may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A reconciler that runs.
struct Running {
    bench: Bench,
    wake: Arc<Notify>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Running {
    async fn new(world: &World) -> Self {
        let bench = world.bench.beside(Wire::with_states(&world.plane, true)).await;
        let (engine, clock) = (Arc::clone(bench.engine()), Arc::new(bench.clock.clone()));
        let wake = Arc::new(Notify::new());
        let made = Reconciler::connect(&bench.store, engine, clock, Arc::clone(&wake)).await;
        let reconciler = made.expect("a reconciler").expect("a state machine");
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(async move { reconciler.run(stopped).await });
        Self { bench, wake, stop, task }
    }

    /// Ends it as a server does.
    async fn ends(self) {
        self.stop.send_replace(true);
        let ended = tokio::time::timeout(ENDS_WITHIN, self.task).await;
        ended.expect("it ends within seconds").expect("it ends well");
    }
}

/// Time goes on until all is as it should be.
async fn right(world: &World, running: &[&Running]) {
    let until = Instant::now() + PATIENCE;
    loop {
        world.plane.run().await;
        let wrong = world.wrong().await;
        if wrong.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "{wrong:#?}");
        world.plane.pass_time(1_000).await;
        for one in running {
            one.wake.notify_one();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Shards whose lease nobody has.
async fn free(world: &World) -> usize {
    let mut free = 0;
    let token = LeaseToken("somebody".to_owned());
    for shard in 0..SHARDS {
        let lease = ShardLease::new(shard, token.clone(), world.bench.clock.now(), LEASE_MS);
        let rows = world.bench.store.bindings();
        if rows.hold(&lease).await.expect("an answer").is_some() {
            free += 1;
            rows.release(shard, &token).await.expect("an answer");
        }
    }
    free
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn it_keeps_up_and_ends_within_seconds_with_its_leases_given_back() {
    let world = World::new().await;
    let running = Running::new(&world).await;
    for asset in ["U-1", "U-2", "U-3", "U-4", "U-5"] {
        world.start("plain", asset).await;
    }
    right(&world, &[&running]).await;
    assert_eq!(world.plane.running().len(), 5);
    assert_eq!(free(&world).await, 0, "it has the lease of every shard");
    running.ends().await;
    assert_eq!(free(&world).await, usize::from(SHARDS));
}

/// Two share the shards; one that is killed keeps its leases, and the other takes over when they end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn another_takes_over_from_one_that_was_killed() {
    let world = World::new().await;
    let first = Running::new(&world).await;
    world.start("plain", "U-1").await;
    right(&world, &[&first]).await;
    let second = Running::new(&world).await;
    first.task.abort();
    assert_eq!(free(&world).await, 0, "nobody gave them back");
    world.plane.pass_time(LEASE_MS + 1).await;
    for asset in ["U-2", "U-3", "U-4"] {
        world.start("plain", asset).await;
    }
    right(&world, &[&second]).await;
    assert_eq!(world.plane.running().len(), 4, "one each");
    second.ends().await;
}

/// A table that does not answer ends nothing, and what hangs does not keep it from ending.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn it_ends_within_seconds_while_step_functions_hangs() {
    let world = World::new().await;
    world.start("plain", "U-1").await;
    let running = Running::new(&world).await;
    running.bench.wire.always("StartExecution", [crate::wire::Fault::Hang]);
    running.wake.notify_one();
    let until = Instant::now() + PATIENCE;
    let hangs = |running: &Running| {
        running.bench.wire.take_operations().iter().any(|operation| operation == "StartExecution")
    };
    while !hangs(&running) {
        assert!(Instant::now() < until, "nothing was started");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    running.ends().await;
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn one_that_only_looks_writes_nothing_and_says_what_would_be_done() {
    let world = World::new().await;
    let work = world.start("plain", "U-1").await;
    world.start_execution("no-such-work", 1);
    let process = world.process(false).await;
    let report = process.reconciler.once(true).await.expect("a look");
    let sent = process.bench.wire.take_operations();
    let reads = ["GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan"];
    let looks = ["DescribeExecution", "ListExecutions"];
    let others: Vec<_> = sent
        .iter()
        .filter(|one| !reads.contains(&one.as_str()) && !looks.contains(&one.as_str()))
        .collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!((report.listed, report.problems.len()), (Some(1), 0), "{report:#?}");
    let [first, stray] = report.workflows.as_slice() else { unreachable!("{report:#?}") };
    let told = |index: usize| {
        let looked = &report.workflows[index];
        let taken = looked.steps.first().expect("a step");
        (looked.workflow_id.as_str(), taken.rule, taken.action, &taken.outcome)
    };
    assert_eq!(told(0), (work.as_str(), Rule::R2, Action::Start { fence: 1 }, &Outcome::WouldBe));
    let stop = Action::Stop { fence: 1 };
    assert_eq!(told(1), ("no-such-work", Rule::R7, stop, &Outcome::WouldBe));
    assert_eq!((&first.end, &stray.end), (&End::Proposed, &End::Proposed));
    assert_eq!(first.steps[0].to_string(), "R2 start fence 1: would be done");
    // One that does more than look does it.
    world.converges(&process).await;
    assert_eq!(world.plane.running(), [world.name(&work, 1)]);
}

/// Messages to operators.
async fn alerts(world: &World) -> Vec<OutboxRow> {
    let all = OutboxQuery { limit: 100, ..OutboxQuery::default() };
    let rows = world.bench.store.list_outbox(&all).await.expect("an answer").items;
    rows.into_iter().filter(|row| row.message.recipient == "operations").collect()
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn operators_are_told_once_of_executions_that_do_not_last() {
    let world = World::new().await;
    let work = world.start("plain", "U-1").await;
    let process = world.process(false).await;
    process.pass().await;
    let before = world.kinds(&work).await;
    // Somebody stops each before it does anything.
    let mut told = Vec::new();
    while world.fence(&work).await <= u64::from(SUCCESSORS_ALERT) + 2 {
        let name = world.name(&work, world.fence(&work).await);
        if world.plane.running() == [name] {
            world.stop(&work, world.fence(&work).await);
        }
        world.plane.pass_time(BETWEEN_MS).await;
        process.pass().await;
        told.push(alerts(&world).await.len());
        assert!(told.len() < 100, "no successor comes: {told:?}");
    }
    assert_eq!((told.first(), told.last()), (Some(&0), Some(&1)), "{told:?}");
    let message = alerts(&world).await.remove(0).message;
    let stands = world.events(&work).await.last().expect("an event").seq;
    assert_eq!((message.kind.as_str(), message.seq), ("orchestration_unstable", stands));
    assert_eq!(message.data["successors"], json!(SUCCESSORS_ALERT));
    assert_eq!(message.id, format!("{work}/orchestration-{}/operations", SUCCESSORS_ALERT + 1));
    assert_eq!(world.kinds(&work).await, before, "the workflow is as it was");
    let strays = world.bench.store.strays().await.expect("a look");
    assert!(strays.is_empty(), "{strays:?}");
    world.converges(&process).await;
}
