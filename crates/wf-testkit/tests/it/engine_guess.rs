//! What an engine decides on how it left a workflow itself (`wf_core::engine`, `recent`): a guess that only a commit may
//! come of. Two engines over one store take turns; whatever one of them does not know, the store tells.

use serde_json::Value;
use wf_testkit::fault::{Call as Method, Fault};

use crate::engine_bench::{Bench, ann, bob, code, correct, finish, keyed, start, submit};

fn loads(bench: &Bench) -> usize {
    bench.store.count(Method::Load)
}

/// A workflow whose next step is `amount`, as `bench` left it: its next call needs no read.
async fn under_way(bench: &Bench) -> String {
    let work = bench.started(&ann(), "U-7").await;
    let ready = keyed(submit(&work, "ready", "yes"), "k-ready");
    let first = bench.call(&ann(), "submit_step", ready).await;
    assert_eq!(first.outcome.as_str(), "recorded");
    work
}

fn amount(work: &str, value: &str, key: &str) -> Value {
    keyed(submit(work, "amount", value), key)
}

#[tokio::test]
async fn the_call_after_one_s_own_reads_nothing() {
    let bench = Bench::new().await;
    let work = under_way(&bench).await;
    let before = loads(&bench);
    let reply = bench.call(&ann(), "submit_step", amount(&work, "25", "k-1")).await;
    assert_eq!(reply.outcome.as_str(), "recorded", "{}", reply.body);
    assert_eq!(loads(&bench), before);
    let shape = keyed(submit(&work, "shape", "flat"), "k-2");
    assert_eq!(bench.call(&ann(), "submit_step", shape).await.outcome.as_str(), "recorded");
    assert_eq!(loads(&bench), before, "what was committed on a guess is guessed on");
}

#[tokio::test]
async fn what_the_other_engine_recorded_is_found_by_the_commit() {
    let bench = Bench::new().await;
    let other = bench.replica().await;
    let work = under_way(&bench).await;
    let done = other.call(&ann(), "submit_step", amount(&work, "25", "k-1")).await;
    assert_eq!(done.outcome.as_str(), "recorded");
    // Fits what this engine knows, not what is: it is sent, refused, and decided again.
    let (sent, before) = (bench.commits(), loads(&bench));
    let reply = bench.call(&ann(), "submit_step", amount(&work, "26", "k-2")).await;
    assert_eq!(code(&reply), "STEP_ALREADY_RECORDED", "{}", reply.body);
    assert_eq!((bench.commits(), loads(&bench)), (sent + 1, before + 1));
    assert_eq!(bench.stored(&ann(), &work).await.revision, 4, "nothing was written");
}

#[tokio::test]
async fn a_call_that_only_the_store_knows_to_fit_is_recorded() {
    let bench = Bench::new().await;
    let other = bench.replica().await;
    let work = under_way(&bench).await;
    other.call(&ann(), "submit_step", amount(&work, "25", "k-1")).await;
    let shape = keyed(submit(&work, "shape", "flat"), "k-2");
    let reply = bench.call(&ann(), "submit_step", shape).await;
    assert_eq!(reply.outcome.as_str(), "recorded", "{}", reply.body);
}

#[tokio::test]
async fn a_key_that_the_other_engine_used_is_answered_from_the_ledger() {
    let bench = Bench::new().await;
    let other = bench.replica().await;
    let work = under_way(&bench).await;
    let first = other.call(&ann(), "submit_step", amount(&work, "25", "k-1")).await;
    let again = bench.call(&ann(), "submit_step", amount(&work, "25", "k-1")).await;
    assert!(again.duplicate, "{}", again.body);
    assert_eq!(again.speech, first.speech);
    let reply = bench.call(&ann(), "submit_step", amount(&work, "26", "k-1")).await;
    assert_eq!(code(&reply), "IDEMPOTENCY_CONFLICT");
    // And a key of another step of the same workflow, which this engine wrote itself.
    let shape = keyed(submit(&work, "shape", "flat"), "k-ready");
    let reply = bench.call(&ann(), "submit_step", shape).await;
    assert_eq!(code(&reply), "IDEMPOTENCY_CONFLICT");
}

#[tokio::test]
async fn a_revision_that_only_the_store_has_is_expected_rightly() {
    let bench = Bench::new().await;
    let other = bench.replica().await;
    let work = under_way(&bench).await;
    let known = bench.stored(&ann(), &work).await.revision;
    other.call(&ann(), "submit_step", amount(&work, "25", "k-1")).await;
    let now = bench.stored(&ann(), &work).await.revision;
    let fix = keyed(correct(&work, "ready", "yes"), "k-2");
    let stale = bench.call_at(&ann(), "correct_step", fix.clone(), Some(known)).await;
    assert_eq!(code(&stale), "VERSION_CONFLICT", "{}", stale.body);
    let shape = keyed(submit(&work, "shape", "flat"), "k-3");
    let reply = bench.call_at(&ann(), "submit_step", shape, Some(now)).await;
    assert_eq!(reply.outcome.as_str(), "recorded", "{}", reply.body);
}

#[tokio::test]
async fn what_the_other_engine_ended_takes_nothing_more() {
    let bench = Bench::new().await;
    let other = bench.replica().await;
    let work = under_way(&bench).await;
    for (step, value) in [("amount", "25"), ("shape", "flat"), ("whisper", "CANARY")] {
        let reply = other.submit(&ann(), &work, step, value).await;
        assert!(reply.error.is_none(), "{}", reply.body);
    }
    let ended = other.call(&ann(), "finish_workflow", finish(&work, "good")).await;
    assert_eq!(ended.outcome.as_str(), "finished", "{}", ended.body);
    // The asset is somebody else's by now.
    let next = bench.call(&bob(), "start_workflow", keyed(start("U-7"), "k-b")).await;
    assert_eq!(next.outcome.as_str(), "started", "{}", next.body);
    let reply = bench.call(&ann(), "submit_step", amount(&work, "25", "k-1")).await;
    assert_eq!(code(&reply), "INVALID_TRANSITION", "{}", reply.body);
}

#[tokio::test]
async fn a_guess_whose_outcome_is_unknown_is_looked_up_like_any_other() {
    for fault in [Fault::After, Fault::Instead] {
        let bench = Bench::new().await;
        let work = under_way(&bench).await;
        bench.store.fail_next(Method::Commit, fault);
        let reply = bench.call(&ann(), "submit_step", amount(&work, "25", "k-1")).await;
        assert_eq!((reply.outcome.as_str(), reply.duplicate), ("recorded", false));
        assert!(bench.call(&ann(), "submit_step", amount(&work, "25", "k-1")).await.duplicate);
        assert_eq!(bench.stored(&ann(), &work).await.revision, 4);
    }
}

#[tokio::test]
async fn without_a_key_the_store_is_asked() {
    let bench = Bench::new().await;
    let work = under_way(&bench).await;
    let before = loads(&bench);
    let reply = bench.submit(&ann(), &work, "amount", "25").await;
    assert_eq!(reply.outcome.as_str(), "recorded");
    assert_eq!(loads(&bench), before + 1);
}

#[tokio::test]
async fn another_caller_is_judged_as_ever() {
    let bench = Bench::new().await;
    let work = under_way(&bench).await;
    let reply = bench.call(&bob(), "submit_step", amount(&work, "25", "k-b")).await;
    assert_eq!(code(&reply), "NOT_ALLOWED", "{}", reply.body);
}
