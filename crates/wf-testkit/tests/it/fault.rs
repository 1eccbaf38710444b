//! Each fault does what it says, to a commit and to other calls.

use std::sync::Arc;

use wf_core::models::Digest;
use wf_core::ports::{
    Claim, Commit, CommitError, Conflict, LeaseToken, LoadQuery, ReadError, SettleError,
    StorageBackendPort,
};
use wf_testkit::build::{CommitBuilder, at, tenant, user, workflow_id};
use wf_testkit::fault::{Call, Fault, FaultStore, Gate};
use wf_testkit::model::ModelStore;

fn faulty() -> (ModelStore, FaultStore) {
    let model = ModelStore::new();
    (model.clone(), FaultStore::new(Arc::new(model)))
}

fn commit(n: u32) -> Commit {
    let id = workflow_id(&format!("wf-{n}"));
    CommitBuilder::start(&tenant("plant"), &id, &user("ann"), at(0)).message("log").build()
}

async fn is_there(store: &dyn StorageBackendPort, commit: &Commit) -> bool {
    let query = LoadQuery {
        tenant: commit.next.tenant.clone(),
        workflow: Some(commit.next.id.clone()),
        ledger: None,
        assets: Vec::new(),
        answered_as: None,
        count_open_of: None,
    };
    store.load(&query).await.unwrap().workflow.is_some()
}

#[tokio::test]
async fn a_commit_fails_before_after_instead_and_later() {
    let (model, store) = faulty();
    let all = [Fault::Before, Fault::After, Fault::Instead, Fault::Later, Fault::Corrupt];
    store.script(Call::Commit, all.map(Some));

    let before = store.commit(commit(1)).await;
    assert!(matches!(before, Err(CommitError::Unavailable { .. })), "{before:?}");
    assert!(!is_there(&model, &commit(1)).await);
    let after = store.commit(commit(2)).await;
    assert!(matches!(after, Err(CommitError::Ambiguous { .. })), "{after:?}");
    assert!(is_there(&model, &commit(2)).await);
    let instead = store.commit(commit(3)).await;
    assert!(matches!(instead, Err(CommitError::Ambiguous { .. })), "{instead:?}");
    assert!(!is_there(&model, &commit(3)).await);
    let later = store.commit(commit(4)).await;
    assert!(matches!(later, Err(CommitError::Ambiguous { .. })), "{later:?}");
    assert!(!is_there(&model, &commit(4)).await);
    let corrupt = store.commit(commit(5)).await;
    assert!(matches!(corrupt, Err(CommitError::Corrupt { .. })), "{corrupt:?}");
    store.commit(commit(6)).await.unwrap();

    let landed = store.land().await;
    assert!(matches!(landed.as_slice(), [Ok(())]), "{landed:?}");
    assert!(is_there(&model, &commit(4)).await);
    assert!(!is_there(&model, &commit(3)).await);
    assert!(store.land().await.is_empty());
    assert_eq!(store.commits(), (1..=6).map(commit).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_lands_late_is_subject_to_the_law() {
    let (_, store) = faulty();
    store.fail_next(Call::Commit, Fault::Later);
    store.commit(commit(1)).await.unwrap_err();
    // The caller sends it again before the first one lands.
    store.commit(commit(1)).await.unwrap();
    let landed = store.land().await;
    let Some(Err(CommitError::Conflict(Conflict::Ledger(row)))) = landed.first() else {
        panic!("{landed:?}");
    };
    assert_eq!(**row, commit(1).ledger);
}

#[tokio::test]
async fn reads_and_settlements_fail_as_they_can() {
    let (_, store) = faulty();
    store.commit(commit(1)).await.unwrap();
    store.fail_next(Call::Definition, Fault::Corrupt);
    let corrupt = store.definition(&Digest::of(b"x")).await;
    assert!(matches!(corrupt, Err(ReadError::Corrupt { .. })), "{corrupt:?}");
    store.fail_next(Call::Sweep, Fault::Corrupt);
    let swept = store.sweep(at(0), 0, 1).await;
    assert!(matches!(swept, Err(SettleError::Unavailable { .. })), "{swept:?}");

    // A claim whose answer is lost took the lease all the same.
    let claim = |token: &str| Claim {
        now: at(1_000),
        lease_ms: 60_000,
        token: LeaseToken(token.to_owned()),
        limit: 10,
    };
    store.fail_next(Call::ClaimOutbox, Fault::After);
    let lost = store.claim_outbox(&claim("a")).await;
    assert!(matches!(lost, Err(ReadError::Unavailable { .. })), "{lost:?}");
    assert_eq!(store.claim_outbox(&claim("b")).await.unwrap(), []);
}

#[tokio::test]
async fn always_is_until_healed_and_handles_share_the_script() {
    let (model, store) = faulty();
    let beside = store.beside(Arc::new(model));
    store.fail_always(Call::Identity, Some(Fault::Before));
    store.script(Call::Identity, [None]);
    assert!(beside.identity().await.is_ok(), "one call was let through");
    for handle in [&store, &beside] {
        assert!(handle.identity().await.is_err());
    }
    store.heal();
    assert!(beside.identity().await.is_ok());
    assert_eq!((store.count(Call::Identity), beside.records().len()), (4, 4));
}

#[tokio::test]
async fn gates_hold_a_commit_before_it_is_done_or_before_its_answer() {
    let (model, store) = faulty();
    let (request, answer) = (Gate::new(), Gate::new());
    store.script(
        Call::Commit,
        [Some(Fault::Hold(request.clone())), Some(Fault::HoldAnswer(answer.clone()))],
    );
    let sending = |n| {
        let store = store.clone();
        tokio::spawn(async move { store.commit(commit(n)).await })
    };
    let first = sending(1);
    request.arrived(1).await;
    let second = sending(2);
    answer.arrived(1).await;
    assert!(!is_there(&model, &commit(1)).await);
    assert!(is_there(&model, &commit(2)).await);
    assert!(!first.is_finished() && !second.is_finished());
    request.open();
    first.await.unwrap().unwrap();
    assert!(is_there(&model, &commit(1)).await);
    answer.open();
    second.await.unwrap().unwrap();
}
