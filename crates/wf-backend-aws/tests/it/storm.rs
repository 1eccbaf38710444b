//! Many at once on one thing, while transactions conflict: one winner, no lost update.

use std::sync::Arc;

use wf_backend_aws::AwsStore;
use wf_core::ports::{Commit, CommitError, Conflict, LoadQuery, StorageBackendPort as _};
use wf_testkit::build::{CommitBuilder, at};

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
