//! Clock, ids, sink and orchestrators do what they say.

use std::sync::Arc;

use wf_core::models::Phase;
use wf_core::ports::{ClockPort, IdPort, Message, NotificationPort, OrchestratorPort};
use wf_testkit::build::{CommitBuilder, at, tenant, user, workflow_id};
use wf_testkit::clock::ManualClock;
use wf_testkit::fault::Gate;
use wf_testkit::ids::SequentialIds;
use wf_testkit::notification::{Delivery, RecordingSink};
use wf_testkit::orchestrator::{ImmediateOrchestrator, SilentOrchestrator};

fn commit() -> wf_core::ports::Commit {
    let id = workflow_id("wf-1");
    CommitBuilder::start(&tenant("plant"), &id, &user("ann"), at(0)).message("log").build()
}

fn message() -> Message {
    commit().outbox.first().unwrap().clone()
}

#[tokio::test]
async fn a_sleep_ends_when_its_time_has_passed_and_not_before() {
    let clock = ManualClock::default();
    let short = tokio::spawn(clock.sleep(1_000));
    let long = tokio::spawn(clock.sleep(5_000));
    clock.until_sleeping(2).await;
    assert_eq!((clock.sleeping(), clock.until_next_wake_ms()), (2, Some(1_000)));

    clock.advance(999);
    tokio::task::yield_now().await;
    assert!(!short.is_finished());
    clock.advance(1);
    short.await.unwrap();
    assert_eq!((clock.sleeping(), clock.until_next_wake_ms()), (1, Some(4_000)));
    assert_eq!(clock.now(), at(1_000));

    // Setting the clock is no waiting.
    clock.set(at(1_000_000));
    tokio::task::yield_now().await;
    assert!(!long.is_finished());
    clock.advance(4_000);
    long.await.unwrap();
    assert_eq!(clock.now(), at(1_004_000));
}

#[tokio::test]
async fn a_dropped_sleep_is_forgotten_and_an_empty_one_is_ready() {
    let clock = ManualClock::default();
    drop(clock.sleep(1_000));
    assert_eq!(clock.sleeping(), 0);
    clock.sleep(0).await;
}

#[test]
fn ids_count() {
    let ids = SequentialIds::new();
    assert_eq!(ids.workflow_id(), SequentialIds::workflow(1));
    assert_eq!(ids.workflow_id(), SequentialIds::workflow(2));
    assert!(SequentialIds::workflow(9) < SequentialIds::workflow(10));
    assert_eq!(ids.random_hex(), format!("{:0>32}", 1));
    assert_eq!(ids.random_hex().len(), 32);
    assert_eq!(workflow_id(&ids.workflow_id()).as_str(), SequentialIds::workflow(3));
}

#[tokio::test]
async fn a_sink_takes_refuses_and_loses_answers_as_told() {
    let sink = RecordingSink::new();
    sink.refuse(1, true);
    sink.script([
        Delivery::AnswerLost,
        Delivery::Refused { permanent: false, retry_after_ms: Some(7) },
    ]);
    let refused = sink.deliver(&message()).await.unwrap_err();
    assert!(refused.permanent);
    assert!(sink.taken().is_empty());
    let lost = sink.deliver(&message()).await.unwrap_err();
    assert!(!lost.permanent);
    assert_eq!(sink.taken().len(), 1);
    let busy = sink.deliver(&message()).await.unwrap_err();
    assert_eq!(busy.retry_after_ms, Some(7));
    sink.deliver(&message()).await.unwrap();
    assert_eq!((sink.attempts().len(), sink.taken()), (4, vec![message(), message()]));
}

#[tokio::test]
async fn a_held_delivery_waits_for_its_gate() {
    let (sink, gate) = (RecordingSink::new(), Gate::new());
    sink.script([Delivery::Held(gate.clone())]);
    let delivering = tokio::spawn({
        let sink = sink.clone();
        async move { sink.deliver(&message()).await }
    });
    gate.arrived(1).await;
    assert_eq!((sink.attempts().len(), sink.taken().len()), (1, 0));
    gate.open();
    delivering.await.unwrap().unwrap();
    assert_eq!(sink.taken().len(), 1);
}

#[tokio::test]
async fn orchestrators_record_what_they_are_told() {
    let immediate = ImmediateOrchestrator::default();
    let silent = SilentOrchestrator::default();
    let both: [Arc<dyn OrchestratorPort>; 2] =
        [Arc::new(immediate.clone()), Arc::new(silent.clone())];
    let state = commit().next;
    for one in &both {
        one.committed(&state).await;
    }
    assert!(immediate.acknowledges_at_start());
    assert!(!silent.acknowledges_at_start());
    for told in [immediate.told(), silent.told()] {
        let told = told.first().unwrap();
        assert_eq!((told.revision, told.phase), (1, Phase::Running));
    }
}
