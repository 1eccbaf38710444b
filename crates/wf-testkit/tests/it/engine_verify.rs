//! `verify`: clean on what the engine wrote, and a finding for each kind of damage. The damage is done to the commits of
//! a true story, which are then written into an empty store: the store takes whatever it is given.

use serde_json::{Value, json};
use wf_core::engine::verify::{VerifyReport, verify};
use wf_core::idempotency::IdempotencyKey;
use wf_core::locks::LockChange;
use wf_core::models::WorkflowId;
use wf_core::ports::{Commit, StorageBackendPort as _};
use wf_core::state_machine::chain::event_hash;
use wf_core::state_machine::{Event, EventBody};
use wf_testkit::build::{CommitBuilder, asset, at};
use wf_testkit::fault::{Call as Method, Fault, FaultStore};
use wf_testkit::model::ModelStore;

use crate::engine_bench::{Bench, ann, bob, finish, keyed, operator, resolve, start, sue, with};
use crate::plain_policy::id;

/// Ann finishes work on U-7 after a block; Bob starts with U-7, the operator takes it away; Ann starts with U-8.
async fn story() -> (Vec<Commit>, [String; 3]) {
    let bench = Bench::new().await;
    let args = with(start("U-7"), "inputs", &json!({"order": "A-1", "hush": "CANARY"}));
    let begun = bench.call(&ann(), "start_workflow", args).await;
    let first = begun.body["workflow"]["id"].as_str().unwrap().to_owned();
    bench.submit(&ann(), &first, "ready", "yes").await;
    bench.submit(&ann(), &first, "amount", "25").await;
    bench.submit(&ann(), &first, "shape", "torn").await;
    bench.call(&sue(), "resolve_block", resolve(&first, "block-6", "go_on")).await;
    bench.submit(&ann(), &first, "whisper", "CANARY").await;
    bench.call(&ann(), "finish_workflow", finish(&first, "good")).await;
    let second = bench.started(&bob(), "U-7").await;
    bench.submit(&bob(), &second, "ready", "yes").await;
    let args = json!({"workflow_id": second, "asset_id": "U-7", "reason": "holder left"});
    bench.call(&operator(), "release_lock", args).await;
    let third = bench.started(&ann(), "U-8").await;
    bench.submit(&ann(), &third, "ready", "yes").await;
    (bench.store.commits(), [first, second, third])
}

async fn written(commits: Vec<Commit>) -> ModelStore {
    let store = ModelStore::new();
    for commit in commits {
        store.commit(commit).await.unwrap();
    }
    store
}

async fn report(store: &ModelStore) -> VerifyReport {
    verify(store, None, &mut |_| {}).await.unwrap()
}

/// (place, invariant, message) of what is found after `damage` is done to the story.
async fn found(damage: impl FnOnce(&mut Vec<Commit>)) -> Vec<(String, &'static str, String)> {
    let (mut commits, _) = story().await;
    damage(&mut commits);
    let findings = report(&written(commits).await).await.findings;
    findings.into_iter().map(|f| (f.workflow_id, f.invariant, f.message)).collect()
}

/// Exactly one finding, of this invariant, that says this.
async fn one(invariant: &str, says: &str, damage: impl FnOnce(&mut Vec<Commit>)) {
    let found = found(damage).await;
    let right = |f: &(String, &str, String)| f.1 == invariant && f.2.contains(says);
    assert!(found.len() == 1 && found.iter().all(right), "{invariant} {says}: {found:#?}");
}

fn rehash(event: &mut Event) {
    event.hash = event_hash(event).unwrap();
}

#[tokio::test]
async fn what_the_engine_wrote_is_clean() {
    let (commits, [first, ..]) = story().await;
    let events: usize = commits.iter().map(|c| c.events.len()).sum();
    let store = written(commits).await;
    let mut told = Vec::new();
    let all = verify(&store, None, &mut |n| told.push(n)).await.unwrap();
    assert_eq!(all.findings, []);
    assert_eq!((all.workflows, all.events), (3, u64::try_from(events).unwrap()));
    assert_eq!(all.locks, 2, "U-8 is held, U-7 is free again");
    assert_eq!(told, [1, 2, 3]);
    let only: WorkflowId = id(&first);
    let one = verify(&store, Some(&only), &mut |_| {}).await.unwrap();
    assert_eq!((one.workflows, one.locks, one.findings.len()), (1, 0, 0));
}

#[tokio::test]
async fn a_long_history_is_read_in_pages() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    for n in 0..450 {
        let note = json!({"workflow_id": work, "summary": format!("note {n}"), "severity": "note"});
        bench.call(&ann(), "report_problem", note).await;
    }
    let all = report(&bench.model).await;
    assert_eq!((all.events, all.findings.len()), (452, 0));
}

#[tokio::test]
async fn a_changed_event_is_found() {
    one("I4", "event 3 was changed", |commits| {
        commits[1].events[0].actor_name = Some("Eve".to_owned());
    })
    .await;
    // With its hash made right again, the next event no longer follows it.
    let found = found(|commits| {
        commits[1].events[0].actor_name = Some("Eve".to_owned());
        rehash(&mut commits[1].events[0]);
    })
    .await;
    assert!(
        found.iter().any(|f| f.1 == "I4" && f.2.contains("event 4 does not follow")),
        "{found:?}"
    );
}

#[tokio::test]
async fn a_missing_event_is_found() {
    let gap = found(|commits| drop(commits[3].events.pop())).await;
    assert!(gap.iter().any(|f| f.1 == "I4" && f.2 == "event 7 follows event 5"), "{gap:?}");
    let end = found(|commits| commits.last_mut().unwrap().events.clear()).await;
    assert!(end.iter().any(|f| f.1 == "I4" && f.2 == "events after 2 are missing"), "{end:?}");
}

#[tokio::test]
async fn a_state_that_is_not_the_fold_is_found() {
    one("I13", "not the fold", |commits| {
        commits.last_mut().unwrap().next.label = "other work".into();
    })
    .await;
    one("I13", "not the fold", |commits| {
        let next = &mut commits.last_mut().unwrap().next;
        next.steps.get_mut("ready").unwrap().attempt = 2;
    })
    .await;
}

#[tokio::test]
async fn events_that_the_state_does_not_know_are_found() {
    one("I5", "events after the stored revision", |commits| {
        let last = commits.len() - 1;
        commits[last].next = commits[last - 1].next.clone();
    })
    .await;
}

#[tokio::test]
async fn an_event_after_the_end_is_found() {
    one("I6", "comes after the completion", |commits| {
        let over = commits.iter().rev().find(|c| !c.next.phase.is_open()).unwrap();
        let late = CommitBuilder::next(&over.next, at(0)).note("late").build();
        commits.push(late);
    })
    .await;
}

#[tokio::test]
async fn a_changed_sensitive_value_is_found_and_an_erased_one_is_lawful() {
    for commit in [0, 5] {
        one("I4", "a sensitive value was changed", |commits| {
            commits[commit].events[0].sensitive[0].value = json!("another");
        })
        .await;
        one("I4", "a sensitive value was changed", |commits| {
            commits[commit].events[0].sensitive[0].salt = "0".repeat(32);
        })
        .await;
    }
    // A value beside an event that chains none.
    one("I4", "a sensitive value was changed", |commits| {
        let beside = commits[0].events[0].sensitive.clone();
        commits[1].events[0].sensitive = beside;
    })
    .await;
    let erased = found(|commits| {
        for event in commits.iter_mut().flat_map(|c| &mut c.events) {
            event.sensitive.clear();
        }
    })
    .await;
    assert_eq!(erased, []);
}

#[tokio::test]
async fn a_commit_without_its_ledger_row_is_found() {
    one("I5", "event 3 has no ledger row", |commits| {
        commits.last_mut().unwrap().ledger.key.key = IdempotencyKey::parse("another").unwrap();
    })
    .await;
    one("I5", "event 3 has no ledger row", |commits| {
        let other = commits[0].ledger.entry.fingerprint;
        commits.last_mut().unwrap().ledger.entry.fingerprint = other;
    })
    .await;
}

/// A key belongs to one person: another may use the same one right afterwards, and that is another commit.
#[tokio::test]
async fn a_commit_under_the_same_key_of_another_person_needs_its_own_row() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let note = json!({"workflow_id": work, "summary": "loud", "severity": "note"});
    for by in [ann(), bob()] {
        let reply = bench.call(&by, "report_problem", keyed(note.clone(), "k-1")).await;
        assert_eq!((reply.outcome.as_str(), reply.duplicate), ("noted", false));
    }
    let mut commits = bench.store.commits();
    assert_eq!(report(&written(commits.clone()).await).await.findings, []);
    commits.last_mut().unwrap().ledger.key.key = IdempotencyKey::parse("another").unwrap();
    let findings = report(&written(commits).await).await.findings;
    assert!(findings.iter().any(|f| f.invariant == "I5" && f.message.contains("event 4")));
}

/// The digest is over salt and value in one: digits that move from a value to its salt change the value, not the digest.
#[tokio::test]
async fn a_salt_that_took_digits_of_its_value_is_found() {
    let bench = Bench::new().await;
    let args = with(start("U-7"), "inputs", &json!({"order": "A-1", "hush": 12}));
    bench.call(&ann(), "start_workflow", args).await;
    let mut commits = bench.store.commits();
    let beside = &mut commits[0].events[0].sensitive[0];
    let digest = beside.digest().unwrap();
    beside.salt.push('1');
    beside.value = json!(2);
    assert_eq!(beside.digest().unwrap(), digest);
    let findings = report(&written(commits).await).await.findings;
    assert!(findings.iter().any(|f| f.message.contains("a sensitive value was changed")));
}

/// The commits of one workflow.
fn of(commits: &mut [Commit], n: usize) -> Vec<&mut Commit> {
    let name = wf_testkit::ids::SequentialIds::workflow(u64::try_from(n).unwrap());
    commits.iter_mut().filter(|c| c.next.id.as_str() == name).collect()
}

#[tokio::test]
async fn an_asset_that_was_never_locked_is_found() {
    one("I3", "asset U-8 has no lock row", |commits| {
        of(commits, 3).into_iter().for_each(|c| c.locks.clear());
    })
    .await;
}

#[tokio::test]
async fn an_asset_that_is_held_after_the_end_is_found() {
    one("I3", "still held although the work is over", |commits| {
        commits.truncate(7);
        commits[6].locks.clear();
    })
    .await;
}

#[tokio::test]
async fn an_asset_that_nobody_released_and_nobody_holds_is_found() {
    one("I3", "asset U-8 is not held, and no event released it", |commits| {
        let last = commits.last_mut().unwrap();
        last.locks = vec![LockChange::Release { asset_id: asset("U-8"), fence: 1 }];
    })
    .await;
}

#[tokio::test]
async fn an_asset_that_is_held_for_nothing_is_found() {
    let found = found(|commits| {
        let taken = LockChange::Acquire { asset_id: asset("U-99"), fence: 1 };
        commits.last_mut().unwrap().locks.push(taken);
    })
    .await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].0.as_str(), found[0].1), ("U-99", "I3"));
    assert!(found[0].2.contains("does not have it"), "{found:?}");
}

#[tokio::test]
async fn a_fence_that_went_backwards_is_found() {
    let found = found(|commits| {
        // Only Bob's work on U-7, which has the second fence, over a row that has the first.
        commits.drain(..7);
        commits.truncate(1);
        commits[0].locks = vec![LockChange::Acquire { asset_id: asset("U-7"), fence: 1 }];
    })
    .await;
    assert!(
        found.iter().any(|f| f.1 == "I3" && f.2 == "asset U-7 has fence 1, below 2"),
        "{found:?}"
    );
}

#[tokio::test]
async fn two_that_acquired_with_one_fence_are_found() {
    let bench = Bench::new().await;
    bench.started(&ann(), "U-1").await;
    bench.started(&ann(), "U-7").await;
    let twin = bench.store.commits().pop().unwrap();
    let other = Bench::new().await;
    other.started(&bob(), "U-7").await;
    let mut commits = other.store.commits();
    commits.push(Commit { locks: Vec::new(), ..twin });
    let found = report(&written(commits).await).await.findings;
    assert!(
        found.iter().any(|f| f.invariant == "I3" && f.message.contains("with the same fence by")),
        "{found:?}"
    );
}

/// What changed between the listing and the look is no damage.
#[tokio::test]
async fn work_that_goes_on_meanwhile_is_no_finding() {
    let bench = Bench::new().await;
    let first = bench.started(&ann(), "U-7").await;
    bench.started(&ann(), "U-8").await;
    let gate = wf_testkit::fault::Gate::new();
    let store = FaultStore::new(std::sync::Arc::new(bench.model.clone()));
    // Listed, then much happens before anything else is read.
    store.fail_next(Method::List, Fault::HoldAnswer(gate.clone()));
    let mut nobody = |_| {};
    let verifying = verify(&store, None, &mut nobody);
    let working = async {
        gate.arrived(1).await;
        bench.submit(&ann(), &first, "ready", "yes").await;
        bench.confirmed(&ann(), "finish_workflow", finish(&first, "abandoned")).await;
        bench.started(&bob(), "U-7").await;
        gate.open();
    };
    let (report, ()) = futures_util::future::join(verifying, working).await;
    let report = report.unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.workflows, 2);
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_no_clean_store() {
    let bench = Bench::new().await;
    bench.started(&ann(), "U-7").await;
    for method in [Method::List, Method::Load, Method::Events, Method::ListLocks] {
        bench.store.heal();
        bench.store.fail_always(method, Some(Fault::Before));
        assert!(verify(&bench.store, None, &mut |_| {}).await.is_err(), "{method:?}");
    }
}

/// The fold is compared whole: whatever member of a state is changed, it is found.
#[tokio::test]
async fn any_member_of_a_state_counts() {
    let (commits, _) = story().await;
    let last = commits.last().unwrap().next.clone();
    let Value::Object(members) = serde_json::to_value(&last).unwrap() else { panic!("an object") };
    let mut changed = 0;
    for (name, value) in members {
        let other = if let Some(number) = value.as_u64() {
            json!(number + 1)
        } else if value.as_array().is_some_and(|items| !items.is_empty()) {
            json!([])
        } else if name == "inputs" {
            json!({})
        } else {
            continue;
        };
        if name == "revision" {
            continue;
        }
        let mut state = serde_json::to_value(&last).unwrap();
        state[&name] = other;
        let state = serde_json::from_value(state).unwrap();
        let found = found(|commits| commits.last_mut().unwrap().next = state).await;
        assert!(found.iter().any(|f| f.1 == "I13"), "{name}: {found:?}");
        changed += 1;
    }
    assert!(changed >= 3, "{changed} members");
    let started = matches!(commits[0].events[0].body, EventBody::WorkflowStarted { .. });
    assert!(started, "the story begins with a start");
}
