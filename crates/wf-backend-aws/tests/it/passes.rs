//! The rules R1 to R8 as the product executes them, on the double of Step Functions: each is needed, and from a crash at any
//! write of a pass further passes come to the same end.

use std::sync::Arc;

use serde_json::json;
use wf_backend_aws::execution::{Looked, Report};
use wf_core::reconcile::{Action, Rule};
use wf_testkit::step_functions::Status;

use crate::fixture::meddle_number;
use crate::orchestrated::{HOUR_MS, Process, World};
use crate::plain_policy::PlainPolicy;
use crate::wire::{self, Fault};

/// The rules by which something was done, in order, without doubles.
fn rules(report: &Report) -> Vec<Rule> {
    let steps = report.workflows.iter().flat_map(|looked: &Looked| &looked.steps);
    let mut rules: Vec<Rule> = steps.map(|taken| taken.rule).collect();
    rules.dedup();
    rules
}

/// One workflow with its execution.
async fn settled() -> (World, Process, String) {
    let world = World::new().await;
    let work = world.start("plain", "U-1").await;
    let process = world.process(false).await;
    world.converges(&process).await;
    (world, process, work)
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn r1_what_is_due_is_fired_once_and_an_execution_decides_nothing() {
    let world = World::of(Arc::new(PlainPolicy::timed())).await;
    let work = world.start("timed", "U-1").await;
    let process = world.process(false).await;
    world.converges(&process).await;
    let kinds = world.kinds(&work).await;
    assert_eq!(kinds.get("orchestration_acknowledged"), Some(&1), "{kinds:?}");
    assert_eq!(kinds.get("deadline_passed"), None, "{kinds:?}");
    // Whoever has the token can answer anything: the workflow does not end by it.
    let token = world.binding(&work).await["task_token"].as_s().expect("a token").clone();
    let output = json!({ "timeout": 60, "state": "COMPLETED", "revision": 99 }).to_string();
    let told = world.console("SendTaskSuccess", &json!({ "taskToken": token, "output": output }));
    assert_eq!(told.error(), None);
    world.plane.run().await;
    assert_eq!(world.plane.running(), [""; 0], "the execution has ended");
    assert_eq!(world.kinds(&work).await, kinds, "the workflow has not");
    // Its first deadline is in four hours, the second in six.
    for (hours, passed) in [(5, 1), (7, 2), (30, 2)] {
        world.until(hours * HOUR_MS).await;
        world.converges(&process).await;
        let kinds = world.kinds(&work).await;
        assert_eq!(kinds.get("deadline_passed"), Some(&passed), "{kinds:?}");
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn r1_the_execution_signals_that_something_is_due() {
    let world = World::of(Arc::new(PlainPolicy::timed())).await;
    let work = world.start("timed", "U-1").await;
    let process = world.process(false).await;
    world.converges(&process).await;
    let before = world.number(&work, "due_revision").await;
    world.until(4 * HOUR_MS - 1).await;
    assert_eq!(world.number(&work, "due_revision").await, before, "not yet");
    world.until(4 * HOUR_MS + 1_000).await;
    let marked = world.binding(&work).await["state_sk"].as_s().expect("a place").clone();
    assert_eq!(marked, "0".repeat(15), "it woke up by itself, and is looked at first");
    assert!(world.number(&work, "due_revision").await.is_some());
    // One pass is enough: the mark makes the reconciler look.
    let report = process.pass().await;
    assert!(rules(&report).contains(&Rule::R1), "{report:#?}");
    assert_eq!(world.kinds(&work).await.get("deadline_passed"), Some(&1));
    world.converges(&process).await;
    assert_eq!(world.kinds(&work).await.get("deadline_passed"), Some(&1));
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn r2_an_open_workflow_gets_one_execution_under_its_own_name() {
    for eager in [false, true] {
        let world = World::new().await;
        let work = world.start("plain", "U-1").await;
        let process = world.process(eager).await;
        let report = process.pass().await;
        assert!(rules(&report).starts_with(&[Rule::R2, Rule::R3]), "{report:#?}");
        world.converges(&process).await;
        assert_eq!(world.plane.running(), [world.name(&work, 1)]);
        let input = &world.plane.executions()[0].input;
        let input: serde_json::Value = serde_json::from_str(input).expect("JSON");
        let table = &world.bench.config.table;
        let expected =
            json!({ "table": table, "tenant": "plant", "workflow_id": work, "fence": 1 });
        assert_eq!(input, expected, "references only");
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn r2_a_name_that_another_has_is_given_up() {
    let world = World::new().await;
    let work = world.start("plain", "U-1").await;
    let taken = json!({
        "stateMachineArn": world.machine(),
        "name": world.name(&work, 1),
        "input": json!({ "table": "x", "tenant": "plant", "workflow_id": work, "fence": 1 }).to_string(),
    });
    assert_eq!(world.console("StartExecution", &taken).error(), None);
    let process = world.process(false).await;
    world.converges(&process).await;
    assert_eq!(world.plane.running(), [world.name(&work, 2)]);
    let first = &world.plane.executions()[0];
    assert_eq!(
        (first.name.as_str(), first.status),
        (world.name(&work, 1).as_str(), Status::Aborted)
    );
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn r3_an_execution_that_runs_is_adopted() {
    let world = World::new().await;
    let work = world.start("plain", "U-1").await;
    // Somebody started it and was gone before it was recorded.
    world.start_execution(&work, 1);
    world.plane.run().await;
    let process = world.process(false).await;
    let report = process.pass().await;
    assert!(rules(&report).contains(&Rule::R3), "{report:#?}");
    world.converges(&process).await;
    assert_eq!(world.plane.running(), [world.name(&work, 1)]);
    assert!(world.number(&work, "started_at").await.is_some());
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn r4_an_execution_is_told_what_the_workflow_wants() {
    let world = World::of(Arc::new(PlainPolicy::timed())).await;
    let work = world.start("timed", "U-1").await;
    let process = world.process(false).await;
    world.converges(&process).await;
    let told = world.number(&work, "told_revision").await;
    assert!(told >= Some(1), "{told:?}");
    // A token that was answered by somebody else is dropped, and the next registration is waited for.
    let token = world.binding(&work).await["task_token"].as_s().expect("a token").clone();
    let output = json!({ "timeout": 600, "state": "RUNNING", "revision": 0 }).to_string();
    let answered =
        world.console("SendTaskSuccess", &json!({ "taskToken": token, "output": output }));
    assert_eq!(answered.error(), None);
    world.plane.run().await;
    assert_eq!(world.number(&work, "told_revision").await, Some(0), "an old answer");
    world.plane.pass_time(600_000).await;
    world.converges(&process).await;
    assert!(world.number(&work, "told_revision").await >= told, "corrected");
    assert_eq!(world.plane.running(), [world.name(&work, 1)]);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn r5_an_execution_that_ended_in_any_way_gets_a_successor() {
    // Told the end by somebody, stopped, failed by a full table, and forgotten with its state machine.
    for how in ["succeeded", "aborted", "failed", "timed out"] {
        let (world, process, work) = settled().await;
        let kinds = world.kinds(&work).await;
        let token = world.binding(&work).await["task_token"].as_s().expect("a token").clone();
        match how {
            "succeeded" => {
                let output = json!({ "timeout": 60, "state": "COMPLETED", "revision": 1 });
                let body = json!({ "taskToken": token, "output": output.to_string() });
                assert_eq!(world.console("SendTaskSuccess", &body).error(), None);
            }
            "aborted" => world.stop(&work, 1),
            "failed" => {
                // An answer without a time-out is an error that no state catches.
                let body = json!({ "taskToken": token, "output": "{\"state\":\"RUNNING\"}" });
                assert_eq!(world.console("SendTaskSuccess", &body).error(), None);
            }
            _ => world.plane.pass_time(366 * 24 * HOUR_MS).await,
        }
        world.plane.run().await;
        world.plane.pass_time(25 * HOUR_MS).await;
        world.converges(&process).await;
        assert!(world.fence(&work).await >= 2, "{how}");
        assert_eq!(world.kinds(&work).await, kinds, "{how}: the workflow is as it was");
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn r5_an_execution_that_is_worn_is_replaced() {
    let (world, process, work) = settled().await;
    let key = format!("T#plant#WF#{work}");
    meddle_number(&world.bench.config, &key, "ORCH", "registrations", "2000").await;
    world.plane.pass_time(25 * HOUR_MS).await;
    world.converges(&process).await;
    assert_eq!(world.plane.running(), [world.name(&work, 2)]);
    assert_eq!(world.number(&work, "evicts").await, None, "the first was stopped");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn r6_nothing_runs_for_a_workflow_that_has_ended() {
    for waits in [true, false] {
        let (world, process, work) = settled().await;
        if !waits {
            // Its token was answered, and it hangs on its way to the next one.
            world.bench.wire.take_log();
            let token = world.binding(&work).await["task_token"].as_s().expect("a token").clone();
            let output = json!({ "timeout": 60, "state": "RUNNING", "revision": 1 }).to_string();
            let body = json!({ "taskToken": token, "output": output });
            assert_eq!(world.console("SendTaskSuccess", &body).error(), None);
        }
        let reply = world.bench.abandon(&work, "k-1").await;
        assert_eq!(reply.error, None, "{}", reply.body);
        let kinds = world.kinds(&work).await;
        world.converges(&process).await;
        assert!(world.number(&work, "closed").await.is_some());
        let execution = &world.plane.executions()[0];
        assert_eq!(execution.status, Status::Succeeded, "told, not stopped: {execution:?}");
        assert_eq!(world.kinds(&work).await, kinds);
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn r7_executions_of_other_fences_and_of_nobody_are_stopped() {
    let (world, process, work) = settled().await;
    world.start_execution(&work, 9);
    world.start_execution("no-such-work", 1);
    // They have not come to their first write yet, at which they would end by themselves.
    let report = process.pass().await;
    assert!(rules(&report).contains(&Rule::R7), "{report:#?}");
    world.converges(&process).await;
    let cause = |name: String| {
        let seen = world.plane.executions().into_iter().find(|seen| seen.name == name);
        seen.map(|seen| (seen.status, seen.cause.unwrap_or_default())).expect("an execution")
    };
    let (status, why) = cause(world.name("no-such-work", 1));
    assert!(status == Status::Aborted && why.starts_with("R7"), "{status:?} {why}");
    let (status, why) = cause(world.name(&work, 9));
    assert!(status == Status::Aborted && why.contains("fence 9"), "{status:?} {why}");
    // A fence that was handed out before is not handed out again.
    assert!(world.fence(&work).await > 9);
    // What is not of this store is let alone.
    let foreign =
        json!({ "stateMachineArn": world.machine(), "name": "theirs-w-1", "input": "{}" });
    assert_eq!(world.console("StartExecution", &foreign).error(), None);
    process.pass().await;
    assert!(world.plane.running().contains(&"theirs-w-1".to_owned()));
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn r8_what_is_unclear_causes_nothing_now() {
    for fault in [wire::THROTTLED, wire::INTERNAL, Fault::Reset, Fault::Lost] {
        let world = World::new().await;
        let work = world.start("plain", "U-1").await;
        let process = world.process(false).await;
        process.bench.wire.next("StartExecution", [fault.clone()]);
        let report = process.pass().await;
        let steps = &report.workflows[0].steps;
        assert_eq!(steps.len(), 1, "{fault:?}: {steps:#?}");
        assert!(matches!(steps[0].action, Action::Start { fence: 1 }), "{steps:#?}");
        assert_eq!(world.fence(&work).await, 1, "{fault:?}");
        assert_eq!(world.number(&work, "started_at").await, None, "{fault:?}");
        world.converges(&process).await;
        assert_eq!(world.plane.running(), [world.name(&work, 1)], "{fault:?}: never two");
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn r8_a_look_that_is_out_of_date_causes_nothing() {
    let world = World::new().await;
    let work = world.start("plain", "U-1").await;
    let process = world.process(false).await;
    // Looks see the time before it started; it is silent, so it is looked at.
    world.plane.lags(50);
    process.pass().await;
    for _ in 0..3 {
        world.plane.pass_time(15_000).await;
        process.pass().await;
    }
    assert_eq!(world.fence(&work).await, 1);
    world.plane.lags(0);
    world.converges(&process).await;
    assert_eq!(world.plane.running(), [world.name(&work, 1)]);
    assert_eq!(world.plane.executions().len(), 1);
}
