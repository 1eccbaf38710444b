//! Many at once on one thing, while transactions conflict: one winner, no lost update.

use std::future::Future;
use std::sync::Arc;

use wf_backend_aws::AwsStore;
use wf_core::engine::Reply;
use wf_core::ports::{Commit, CommitError, Conflict, LoadQuery, StorageBackendPort as _};
use wf_testkit::build::{CommitBuilder, at};

use crate::bench::Bench;
use crate::cast::{start, tenant};
use crate::fixture::store;
use crate::wire::{self, CONFLICT, Fault, WRITE};

const CALLERS: u32 = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn of_many_who_start_on_one_asset_one_wins() {
    let (store, wire, _) = store().await;
    wire.always(WRITE, [CONFLICT, Fault::Pass, wire::THROTTLED, Fault::Pass, Fault::Lost]);
    let commits: Vec<Commit> = (1..=CALLERS).map(|n| start(n).asset_of(77).build()).collect();
    let answers = at_once(&store, commits.clone()).await;
    wire.always(WRITE, []);
    let won: Vec<_> = answers.iter().zip(&commits).filter(|(answer, _)| answer.is_ok()).collect();
    assert_eq!(won.len(), 1, "{answers:?}");
    for (answer, commit) in answers.iter().zip(&commits) {
        match answer {
            // After a lost answer the asset may still be freed: then it is not known, never wrong.
            Ok(()) | Err(CommitError::Ambiguous { .. }) => {}
            Err(CommitError::Conflict(Conflict::Asset { row, .. })) => {
                let holder = row.as_ref().and_then(|row| row.holder.as_ref());
                assert_eq!(holder.map(|h| &h.workflow_id), Some(&won[0].1.next.id));
            }
            Err(other) => panic!("{:?}: {other:?}", commit.next.id),
        }
    }
    let listed = store.open_of(tenant(), &commits[0].next.owner.id, 100).await.expect("a list");
    assert_eq!(listed, [won[0].1.next.clone()]);
}

/// The code of a refusal.
fn refusal(reply: &Reply) -> Option<&'static str> {
    reply.error.map(wf_core::errors::ErrorCode::as_str)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn of_many_callers_one_starts_and_one_records() {
    let bench = Bench::new().await;
    let storm = [CONFLICT, Fault::Pass, wire::THROTTLED, Fault::Pass, CONFLICT, Fault::Lost];
    bench.wire.always(WRITE, storm.clone());
    let start = |bench: Bench, key: String| async move { bench.by(&key).start("U-1", &key).await };
    let told = callers(&bench, start).await;
    bench.wire.always(WRITE, []);
    let view = winner(&bench, &told, "ASSET_LOCKED", start).await.body["workflow"].clone();
    let (work, owner) = (view["id"].as_str().expect("an id"), &view["owner"]["id"]);

    // One person with many windows.
    let bench = bench.by(owner.as_str().expect("an owner"));
    bench.wire.always(WRITE, storm);
    let submit = |bench: Bench, key: String| {
        let work = work.to_owned();
        async move { bench.submit(&work, "yes", &format!("step-{key}")).await }
    };
    let told = callers(&bench, submit).await;
    bench.wire.always(WRITE, []);
    winner(&bench, &told, "STEP_ALREADY_RECORDED", submit).await;
    let id = crate::plain_policy::id(work);
    let events = bench.store.events(tenant(), &id, 0, 1_000).await.expect("a read");
    let records = events.iter().filter(|event| event.body.kind() == "step_recorded").count();
    assert_eq!(records, 1, "{events:?}");
}

/// All call at once, each under a key of its own; what each is told.
async fn callers<F>(bench: &Bench, call: impl Fn(Bench, String) -> F) -> Vec<(String, Reply)>
where
    F: Future<Output = Reply> + Send + 'static,
{
    let keys = (0..CALLERS).map(|n| format!("caller-{n}"));
    let tasks: Vec<_> =
        keys.map(|key| (key.clone(), tokio::spawn(call(bench.clone(), key)))).collect();
    let mut told = Vec::new();
    for (key, task) in tasks {
        told.push((key, task.await.expect("a task")));
    }
    told
}

/// After a retry by everybody: one has it, and everybody else is refused with `code`. What was told in the storm agrees.
async fn winner<F>(
    bench: &Bench,
    told: &[(String, Reply)],
    code: &str,
    call: impl Fn(Bench, String) -> F,
) -> Reply
where
    F: Future<Output = Reply>,
{
    let mut winners = Vec::new();
    for (key, first) in told {
        let again = call(bench.clone(), key.clone()).await;
        match (refusal(first), refusal(&again)) {
            (None, None) => {
                assert!(again.duplicate, "{}", again.body);
                winners.push(again);
            }
            // The answer was not known then, and is now.
            (Some(then), None) => {
                assert_eq!(then, "BACKEND_UNAVAILABLE", "{}", first.body);
                winners.push(again);
            }
            (Some(then), Some(now)) => {
                assert!(then == code || then == "BACKEND_UNAVAILABLE", "{}", first.body);
                assert_eq!(now, code, "{}", again.body);
            }
            (None, Some(_)) => panic!("{key}: {} and then {}", first.body, again.body),
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    winners.remove(0)
}

async fn at_once(store: &AwsStore, commits: Vec<Commit>) -> Vec<Result<(), CommitError>> {
    let send = |commit| {
        let store = store.clone();
        tokio::spawn(async move { store.commit(commit).await })
    };
    let tasks: Vec<_> = commits.into_iter().map(send).collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.expect("a task"));
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn of_many_who_write_to_one_workflow_nobody_is_lost() {
    let (store, wire, _) = store().await;
    let first = start(1).build();
    store.commit(first.clone()).await.expect("a commit");
    wire.always(WRITE, [Fault::Pass, CONFLICT, Fault::Pass, Fault::Lost, Fault::Pass]);
    let id = Arc::new(first.next.id.clone());
    let tasks: Vec<_> = (0..CALLERS)
        .map(|n| tokio::spawn(note(store.clone(), Arc::clone(&id), format!("note {n}"))))
        .collect();
    for task in tasks {
        task.await.expect("a task");
    }
    wire.always(WRITE, []);
    let events = store.events(tenant(), &id, 0, 1_000).await.expect("a read");
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=u64::from(CALLERS) + 1).collect::<Vec<_>>());
    let text = serde_json::to_string(&events).expect("a text");
    for n in 0..CALLERS {
        assert_eq!(text.matches(&format!("\"note {n}\"")).count(), 1, "note {n}");
    }
}

/// Writes a note, deciding anew on each conflict as the engine does.
async fn note(store: AwsStore, id: Arc<wf_core::models::WorkflowId>, text: String) {
    loop {
        let query = LoadQuery {
            tenant: tenant().clone(),
            workflow: Some((*id).clone()),
            ledger: None,
            assets: Vec::new(),
            answered_as: None,
            count_open_of: None,
        };
        let state = store.load(&query).await.expect("a read").workflow.expect("a workflow");
        let commit = CommitBuilder::next(&state, at(700_000))
            .key(&text.replace(' ', "-"))
            .note(&text)
            .build();
        match store.commit(commit.clone()).await {
            Ok(()) => return,
            Err(CommitError::Conflict(Conflict::Revision { current })) => {
                assert!(current > commit.expected);
            }
            Err(other) => panic!("{text}: {other:?}"),
        }
    }
}
