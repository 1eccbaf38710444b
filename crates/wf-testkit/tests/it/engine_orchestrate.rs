//! What an orchestrator outside the process asks of the engine: acknowledging a start, firing what is due in one workflow.
//! Whatever it asks, and however often, is decided like any other call.

use std::sync::Arc;

use serde_json::{Map, json};
use wf_core::engine::{Call, CallMeta, Request};
use wf_core::errors::ErrorCode;
use wf_core::models::{Phase, WorkflowId};
use wf_core::policy::DomainPolicyPort;
use wf_core::ports::StorageBackendPort as _;
use wf_core::state_machine::{Event, EventBody};
use wf_testkit::build::tenant;
use wf_testkit::fault::{Call as Method, Fault};

use crate::engine_bench::{Bench, ann, start, sue, with};
use crate::plain_policy::{MINUTE_MS, PlainPolicy};

const MINUTE: u64 = MINUTE_MS.unsigned_abs();

/// An engine whose orchestrator acknowledges nothing by itself, and a workflow with two limits, after four and six hours.
async fn started() -> (Bench, WorkflowId) {
    let policies: Vec<Arc<dyn DomainPolicyPort>> = vec![Arc::new(PlainPolicy::timed())];
    let bench = Bench::with(policies, None, false).await;
    let args = with(start("U-7"), "procedure_id", &json!("timed"));
    let reply = bench.call(&ann(), "start_workflow", args).await;
    assert_eq!(reply.outcome.as_str(), "started", "{}", reply.body);
    let work = reply.body["workflow"]["id"].as_str().unwrap().parse().unwrap();
    (bench, work)
}

async fn events(bench: &Bench, work: &WorkflowId) -> Vec<Event> {
    bench.model.events(&tenant("main"), work, 0, 100).await.unwrap()
}

async fn passed(bench: &Bench, work: &WorkflowId) -> Vec<String> {
    let of = |event: Event| {
        if let EventBody::DeadlinePassed { deadline_id, .. } = event.body {
            Some(deadline_id)
        } else {
            None
        }
    };
    events(bench, work).await.into_iter().filter_map(of).collect()
}

#[tokio::test]
async fn a_start_is_acknowledged_once_and_by_no_older_execution() {
    let (bench, work) = started().await;
    let main = tenant("main");
    assert_eq!(bench.stored(&ann(), work.as_str()).await.phase, Phase::Created);
    let before = events(&bench, &work).await.len();

    bench.engine.acknowledge_orchestration(&main, &work, 0).await.unwrap();
    assert_eq!(events(&bench, &work).await.len(), before, "an older fence says nothing");

    bench.store.fail_next(Method::Commit, Fault::Before);
    let refused = bench.engine.acknowledge_orchestration(&main, &work, 3).await;
    assert_eq!(refused, Err(ErrorCode::BackendUnavailable));
    for _ in 0..2 {
        bench.engine.acknowledge_orchestration(&main, &work, 3).await.unwrap();
        let workflow = bench.stored(&ann(), work.as_str()).await;
        assert_eq!((workflow.phase, workflow.fence), (Phase::Running, 3));
        assert_eq!(events(&bench, &work).await.len(), before + 1);
    }

    let nobody: WorkflowId = "nobody".parse().unwrap();
    for (of, id) in [(&main, &nobody), (&tenant("abroad"), &work)] {
        let refused = bench.engine.acknowledge_orchestration(of, id, 1).await;
        assert_eq!(refused, Err(ErrorCode::WorkflowNotFound));
    }
}

#[tokio::test]
async fn nobody_else_acknowledges_a_start() {
    let (bench, work) = started().await;
    let call = Call {
        operation: "acknowledge_orchestration",
        arguments: Map::new(),
        key: None,
        request: Request::AcknowledgeOrchestration { workflow_id: work.clone(), fence: 1 },
        meta: CallMeta::default(),
    };
    for by in [ann(), sue()] {
        let reply = bench.engine.execute(&by, &call).await;
        assert_eq!(reply.error, Some(ErrorCode::NotAllowed), "{}", reply.body);
    }
    assert_eq!(bench.stored(&ann(), work.as_str()).await.phase, Phase::Created);
}

#[tokio::test]
async fn what_is_due_in_one_workflow_fires_once_whoever_fires_it() {
    let (bench, work) = started().await;
    let main = tenant("main");
    assert_eq!(bench.engine.fire_due_of(&main, &work).await, Ok(0), "nothing is due");
    bench.clock.advance(5 * 60 * MINUTE);
    bench.store.fail_next(Method::Commit, Fault::Before);
    let refused = bench.engine.fire_due_of(&main, &work).await;
    assert_eq!(refused, Err(ErrorCode::BackendUnavailable));
    assert_eq!(bench.engine.fire_due_of(&main, &work).await, Ok(1));
    assert_eq!(bench.engine.fire_due_of(&main, &work).await, Ok(0));

    bench.clock.advance(2 * 60 * MINUTE);
    // The clock of another server is faster: the row is gone, and there is nothing left to fire.
    assert_eq!(bench.engine.fire_due(64).await.unwrap().settled, 1);
    assert_eq!(bench.engine.fire_due_of(&main, &work).await, Ok(0));
    assert_eq!(passed(&bench, &work).await, [format!("{work}/1/1"), format!("{work}/1/2")]);
    assert_eq!(bench.engine.fire_due_of(&main, &"nobody".parse().unwrap()).await, Ok(0));
}

#[tokio::test]
async fn all_that_is_due_fires_in_order() {
    let (bench, work) = started().await;
    bench.clock.advance(7 * 60 * MINUTE);
    assert_eq!(bench.engine.fire_due_of(&tenant("main"), &work).await, Ok(2));
    assert_eq!(passed(&bench, &work).await, [format!("{work}/1/1"), format!("{work}/1/2")]);
    assert_eq!(bench.engine.fire_due(64).await.unwrap().settled, 0, "their rows went with them");
}
