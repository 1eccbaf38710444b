//! Faults of the store: before, after and instead of a commit, outcomes nobody knows, storms of conflicts, calls that are
//! dropped. No acknowledged call is lost, none is done twice, nothing moves a workflow that was not committed.

use futures_util::future::{Either, join, select};
use serde_json::{Value, json};
use wf_core::engine::Reply;
use wf_core::ports::StorageBackendPort as _;
use wf_testkit::fault::{Call as Method, Fault, Gate};

use crate::engine_bench::{Bench, ann, bob, code, finish, keyed, start, submit, sue};

fn is_unavailable(reply: &Reply) {
    assert_eq!(code(reply), "BACKEND_UNAVAILABLE", "{}", reply.body);
    assert_eq!(reply.body["error"]["retry"], "same_call");
}

/// A workflow whose first step is open, and the call that records it.
async fn ready(bench: &Bench) -> (String, Value) {
    let work = bench.started(&ann(), "U-7").await;
    let args = keyed(submit(&work, "ready", "yes"), "k-1");
    (work, args)
}

async fn revision(bench: &Bench, work: &str) -> u64 {
    bench.stored(&ann(), work).await.revision
}

#[tokio::test]
async fn surely_not_done_may_be_sent_again() {
    let bench = Bench::new().await;
    let (work, args) = ready(&bench).await;
    bench.store.fail_next(Method::Commit, Fault::Before);
    is_unavailable(&bench.call(&ann(), "submit_step", args.clone()).await);
    assert_eq!(revision(&bench, &work).await, 2);
    let again = bench.call(&ann(), "submit_step", args).await;
    assert_eq!((again.outcome.as_str(), again.duplicate), ("recorded", false));
}

#[tokio::test]
async fn done_with_its_answer_lost_is_found_by_its_row() {
    let bench = Bench::new().await;
    let (work, args) = ready(&bench).await;
    let sent = bench.commits();
    bench.store.fail_next(Method::Commit, Fault::After);
    let reply = bench.call(&ann(), "submit_step", args.clone()).await;
    assert_eq!((reply.outcome.as_str(), reply.duplicate), ("recorded", false));
    assert_eq!(bench.commits(), sent + 1, "looked up, not sent again");
    assert_eq!(revision(&bench, &work).await, 3);
    let again = bench.call(&ann(), "submit_step", args).await;
    assert!(again.duplicate);
}

#[tokio::test]
async fn done_with_answer_and_lookup_lost_is_done_once() {
    let bench = Bench::new().await;
    let (work, args) = ready(&bench).await;
    bench.store.fail_next(Method::Commit, Fault::After);
    // The call's own load passes, the search for the row fails: the same commit again meets its own row.
    bench.store.script(Method::Load, [None, Some(Fault::Before)]);
    let reply = bench.call(&ann(), "submit_step", args).await;
    assert_eq!((reply.outcome.as_str(), reply.duplicate), ("recorded", false), "{}", reply.body);
    assert_eq!(revision(&bench, &work).await, 3);
}

#[tokio::test]
async fn an_unknown_outcome_sends_the_very_same_commit_at_most_twice_more() {
    for (unknown, done) in [(1, true), (2, true), (3, false)] {
        let bench = Bench::new().await;
        let (work, args) = ready(&bench).await;
        let before = bench.commits();
        bench.store.script(Method::Commit, std::iter::repeat_n(Some(Fault::Instead), unknown));
        let reply = bench.call(&ann(), "submit_step", args.clone()).await;
        let sent = bench.store.commits().split_off(before);
        assert!(sent.windows(2).all(|pair| pair[0] == pair[1]), "the very same commit");
        if done {
            assert_eq!((reply.outcome.as_str(), sent.len()), ("recorded", unknown + 1));
            assert_eq!(revision(&bench, &work).await, 3);
        } else {
            is_unavailable(&reply);
            assert_eq!(sent.len(), 3, "at most twice more");
            assert!(reply.body["error"]["message"].as_str().unwrap().contains("unknown"));
            assert_eq!(revision(&bench, &work).await, 2);
            let again = bench.call(&ann(), "submit_step", args).await;
            assert_eq!((again.outcome.as_str(), again.duplicate), ("recorded", false));
        }
    }
}

#[tokio::test]
async fn a_commit_that_lands_late_is_the_answer_of_the_next_try() {
    let bench = Bench::new().await;
    let (work, args) = ready(&bench).await;
    bench.store.script(Method::Commit, std::iter::repeat_n(Some(Fault::Later), 3));
    is_unavailable(&bench.call(&ann(), "submit_step", args.clone()).await);
    let landed = bench.store.land().await;
    let done: Vec<bool> = landed.iter().map(Result::is_ok).collect();
    assert_eq!(done, [true, false, false], "the ledger row lets one of them in");
    let again = bench.call(&ann(), "submit_step", args).await;
    assert!(again.duplicate, "{}", again.body);
    assert_eq!(again.outcome.as_str(), "recorded");
    assert_eq!(revision(&bench, &work).await, 3);
}

#[tokio::test]
async fn a_first_try_that_lands_after_the_second_was_done_changes_nothing() {
    let bench = Bench::new().await;
    let (work, args) = ready(&bench).await;
    bench.store.fail_next(Method::Commit, Fault::Later);
    let reply = bench.call(&ann(), "submit_step", args).await;
    assert_eq!((reply.outcome.as_str(), reply.duplicate), ("recorded", false));
    assert!(bench.store.land().await.iter().all(Result::is_err));
    assert_eq!(revision(&bench, &work).await, 3);
}

/// After an attempt whose outcome is unknown nothing may be refused any more: the attempt may still land, and the caller
/// would have been told that it was not done.
#[tokio::test]
async fn nothing_is_refused_after_an_unknown_outcome() {
    let bench = Bench::new().await;
    let (work, args) = ready(&bench).await;
    let gate = Gate::new();
    bench.store.fail_next(Method::Commit, Fault::Later);
    bench.store.script(Method::Load, [None, Some(Fault::Hold(gate.clone()))]);
    let by = ann();
    let call = bench.call(&by, "submit_step", args.clone());
    let meanwhile = async {
        gate.arrived(1).await;
        // Somebody else records the step before the commit is sent again.
        let replica = bench.replica().await;
        let other = replica.submit(&sue(), &work, "ready", "yes").await;
        assert_eq!(other.outcome.as_str(), "recorded");
        gate.open();
    };
    let (reply, ()) = join(call, meanwhile).await;
    is_unavailable(&reply);
    assert!(bench.store.land().await.iter().all(Result::is_err), "it never lands now");
    // The next try starts afresh and may be told how things stand.
    assert_eq!(code(&bench.call(&ann(), "submit_step", args).await), "STEP_ALREADY_RECORDED");
}

#[tokio::test]
async fn a_refusal_of_the_store_after_an_unknown_outcome_stays_unknown() {
    for fault in [Fault::Before, Fault::Corrupt] {
        let bench = Bench::new().await;
        let (_, args) = ready(&bench).await;
        bench.store.script(Method::Commit, [Some(Fault::Later), Some(fault)]);
        is_unavailable(&bench.call(&ann(), "submit_step", args.clone()).await);
        assert!(bench.store.land().await.iter().all(Result::is_ok), "it was on its way");
        assert!(bench.call(&ann(), "submit_step", args).await.duplicate);
    }
}

#[tokio::test]
async fn a_storm_of_conflicts_ends_in_an_answer() {
    let bench = Bench::new().await;
    let (work, args) = ready(&bench).await;
    let before = bench.commits();
    let gates: Vec<Gate> = (0..8).map(|_| Gate::new()).collect();
    bench.store.script(Method::Commit, gates.iter().cloned().map(Fault::Hold).map(Some));
    let replica = bench.replica().await;
    let storm = async {
        for (n, gate) in gates.iter().enumerate() {
            gate.arrived(1).await;
            let note =
                json!({"workflow_id": work, "summary": format!("note {n}"), "severity": "note"});
            let noted = replica.call(&bob(), "report_problem", note).await;
            assert_eq!(noted.outcome.as_str(), "noted");
            gate.open();
        }
    };
    let (reply, ()) = join(bench.call(&ann(), "submit_step", args.clone()), storm).await;
    is_unavailable(&reply);
    assert!(reply.body["error"]["after_ms"].as_i64().is_some_and(|ms| ms > 0));
    assert_eq!(bench.commits() - before, 8, "decided again a bounded number of times");
    let calm = bench.call(&ann(), "submit_step", args).await;
    assert_eq!(calm.outcome.as_str(), "recorded");
    assert_eq!(calm.body["workflow"]["revision"], 11);
}

#[tokio::test]
async fn a_conflict_is_decided_again_on_what_is_there_now() {
    let bench = Bench::new().await;
    let (work, args) = ready(&bench).await;
    let gate = Gate::new();
    bench.store.fail_next(Method::Commit, Fault::Hold(gate.clone()));
    let replica = bench.replica().await;
    let meanwhile = async {
        gate.arrived(1).await;
        replica.confirmed(&sue(), "finish_workflow", finish(&work, "abandoned")).await;
        gate.open();
    };
    let (reply, ()) = join(bench.call(&ann(), "submit_step", args), meanwhile).await;
    assert_eq!(code(&reply), "INVALID_TRANSITION", "it is over: {}", reply.body);

    let gate = Gate::new();
    bench.store.fail_next(Method::Commit, Fault::Hold(gate.clone()));
    let meanwhile = async {
        gate.arrived(1).await;
        replica.started(&bob(), "U-9").await;
        gate.open();
    };
    let by = ann();
    let begin = bench.call(&by, "start_workflow", start("U-9"));
    let (reply, ()) = join(begin, meanwhile).await;
    assert_eq!(code(&reply), "ASSET_LOCKED", "{}", reply.body);
}

#[tokio::test]
async fn two_starts_of_one_person_at_once_are_one_workflow() {
    let bench = Bench::new().await;
    let gate = Gate::new();
    bench.store.fail_next(Method::Commit, Fault::Hold(gate.clone()));
    let by = ann();
    let slow = bench.call(&by, "start_workflow", start("U-7"));
    let fast = async {
        gate.arrived(1).await;
        let begun = bench.started(&ann(), "U-7").await;
        gate.open();
        begun
    };
    let (slow, begun) = join(slow, fast).await;
    assert_eq!(slow.outcome.as_str(), "joined", "{}", slow.body);
    assert_eq!(slow.body["workflow"]["id"], begun.as_str());
}

#[tokio::test]
async fn a_caller_that_goes_away_has_its_answer_waiting() {
    let bench = Bench::new().await;
    let (work, args) = ready(&bench).await;
    let gate = Gate::new();
    bench.store.fail_next(Method::Commit, Fault::HoldAnswer(gate.clone()));
    {
        let by = ann();
        let call = std::pin::pin!(bench.call(&by, "submit_step", args.clone()));
        let arrived = std::pin::pin!(gate.arrived(1));
        let Either::Right(_) = select(call, arrived).await else { panic!("it must wait") };
    }
    assert_eq!(revision(&bench, &work).await, 3, "committed");
    assert!(bench.call(&ann(), "submit_step", args).await.duplicate);
}

#[tokio::test]
async fn a_store_that_does_not_answer_or_is_damaged_is_said_to_be_so() {
    let bench = Bench::new().await;
    let (work, args) = ready(&bench).await;
    for fault in [Fault::Before, Fault::Instead, Fault::Corrupt] {
        bench.store.fail_next(Method::Load, fault);
        is_unavailable(&bench.call(&ann(), "submit_step", args.clone()).await);
    }
    bench.store.fail_next(Method::Commit, Fault::Corrupt);
    let damaged = bench.call(&ann(), "submit_step", args.clone()).await;
    is_unavailable(&damaged);
    assert_eq!(revision(&bench, &work).await, 2);
    assert_eq!(bench.call(&ann(), "submit_step", args).await.outcome.as_str(), "recorded");
}

#[tokio::test]
async fn a_repeat_without_a_key_meets_faults_too() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    bench.store.fail_next(Method::Commit, Fault::After);
    bench.store.script(Method::Load, [None, Some(Fault::Before)]);
    let first = bench.submit(&ann(), &work, "ready", "yes").await;
    assert_eq!(first.outcome.as_str(), "recorded");
    bench.store.script(Method::Load, [None, Some(Fault::Before)]);
    is_unavailable(&bench.submit(&ann(), &work, "ready", "yes").await);
    let again = bench.submit(&ann(), &work, "ready", "yes").await;
    assert!(again.duplicate);
    assert_eq!(bench.model.load(&nothing()).await.unwrap(), Default::default());
}

fn nothing() -> wf_core::ports::LoadQuery {
    wf_core::ports::LoadQuery {
        tenant: ann().tenant,
        workflow: None,
        ledger: None,
        assets: Vec::new(),
        answered_as: None,
        count_open_of: None,
    }
}
