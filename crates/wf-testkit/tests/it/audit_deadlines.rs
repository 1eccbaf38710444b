//! The audit of deadlines: clean on what the engine does, red on each thing that must not be.

use std::sync::Arc;

use serde_json::json;
use wf_core::policy::DomainPolicyPort as _;
use wf_core::ports::{Commit, StorageBackendPort as _};
use wf_core::state_machine::{Event, EventBody};
use wf_testkit::audit::{Invariant, Violation, audit};
use wf_testkit::build::key;
use wf_testkit::model::ModelStore;

use crate::engine_bench::{Bench, PlainCompiler, ann, start, with};
use crate::plain_policy::{MINUTE_MS, PlainPolicy};

const MINUTE: u64 = MINUTE_MS.unsigned_abs();

/// A report that nobody answers and both deadlines of the whole: four firings.
async fn story() -> Vec<Commit> {
    let bench = Bench::with(vec![Arc::new(PlainPolicy::timed())], None, true).await;
    let args = with(start("U-7"), "procedure_id", &json!("timed"));
    let begun = bench.call(&ann(), "start_workflow", args).await;
    let work = begun.body["workflow"]["id"].clone();
    let report = json!({"workflow_id": work, "summary": "it leaks", "severity": "high"});
    bench.call(&ann(), "report_problem", report).await;
    for minutes in [15, 30, 400] {
        bench.clock.advance(minutes * MINUTE);
        assert!(bench.engine.fire_due(64).await.unwrap().settled > 0);
    }
    bench.store.commits()
}

/// What the audit says of deadlines and of everything that the clock did.
async fn found(commits: &[Commit]) -> Vec<Violation> {
    let store = ModelStore::new();
    store.put_definition(PlainPolicy::timed().definition()).await.unwrap();
    for commit in commits {
        store.commit(commit.clone()).await.unwrap();
    }
    let said = audit(&store, &[], Some(&PlainCompiler)).await.unwrap().violations;
    // Nobody wrote down what Ann sent.
    said.into_iter().filter(|v| !v.message.contains("nobody sent")).collect()
}

/// The first events of each firing, in order.
fn firings(commits: &mut [Commit]) -> Vec<&mut Event> {
    let is = |event: &Event| matches!(event.body, EventBody::DeadlinePassed { .. });
    commits.iter_mut().map(|c| &mut c.events[0]).filter(|event| is(event)).collect()
}

fn id_of(event: &mut Event) -> &mut String {
    let EventBody::DeadlinePassed { deadline_id, .. } = &mut event.body else {
        unreachable!("the event of a firing is a deadline that passed")
    };
    deadline_id
}

#[tokio::test]
async fn what_the_engine_does_is_clean() {
    let mut commits = story().await;
    assert_eq!(found(&commits).await, []);
    assert_eq!(firings(&mut commits).len(), 4);
}

#[tokio::test]
async fn each_thing_that_must_not_be_is_red() {
    type Damage = fn(&mut Vec<Commit>);
    let damages: [(Invariant, &str, Damage); 7] = [
        (Invariant::I2, "passed twice", |commits| {
            let mut all = firings(commits);
            let first = id_of(all[0]).clone();
            *id_of(all[1]) = first;
        }),
        (Invariant::I2, "another key than its own", |commits| {
            firings(commits)[0].cause.key = key("another");
        }),
        (Invariant::I8, "was not set", |commits| *id_of(firings(commits)[0]) = "w/9/9".to_owned()),
        (Invariant::I8, "before it was due", |commits| {
            let early = &mut firings(commits)[0].at;
            *early = early.plus_ms(-1);
        }),
        (Invariant::I8, "overtook an earlier one", |commits| {
            let mut all = firings(commits);
            let (one, other) = (id_of(all[2]).clone(), id_of(all[3]).clone());
            (*id_of(all[2]), *id_of(all[3])) = (other, one);
        }),
        (Invariant::I8, "while one has time", |commits| {
            let second = commits.iter_mut().filter(|c| c.events.len() == 2).nth(1);
            let events = &mut second.unwrap().events;
            events.swap(0, 1);
        }),
        (Invariant::I13, "not those that its events set", |commits| {
            commits.last_mut().unwrap().next.deadlines.clear();
            let late = story_deadline(commits);
            commits.last_mut().unwrap().next.deadlines.extend([late]);
        }),
    ];
    let story = story().await;
    for (invariant, says, damage) in damages {
        let mut damaged = story.clone();
        damage(&mut damaged);
        let found = found(&damaged).await;
        assert!(
            found.iter().any(|v| v.invariant == invariant && v.message.contains(says)),
            "{invariant} {says}: {found:#?}"
        );
    }
}

/// A deadline that was set at the start and passed long ago.
fn story_deadline(commits: &[Commit]) -> (String, wf_core::models::OpenDeadline) {
    let set = commits[0].next.deadlines.iter().next().unwrap();
    (set.0.clone(), set.1.clone())
}
