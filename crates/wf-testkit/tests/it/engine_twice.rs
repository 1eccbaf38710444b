//! Two copies of one call at once, and what else makes a row look like, or unlike, the commit that wrote it: exactly one
//! copy is told that it did the work.

use futures_util::future::join;
use wf_core::ports::StorageBackendPort as _;
use wf_testkit::fault::{Call as Method, Fault, Gate};

use crate::engine_bench::{Bench, ann, code, finish, keyed, resolve, submit, sue, with};

/// Two copies of one call, decided in the same millisecond on the same state, would write the same row but for its mark.
/// The one whose outcome was unknown must not take the row of the other for its own.
#[tokio::test]
async fn the_row_of_another_copy_of_the_call_is_not_ones_own() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let args = keyed(submit(&work, "ready", "yes"), "k-1");
    let gate = Gate::new();
    bench.store.fail_next(Method::Commit, Fault::Instead);
    // The call's own load passes; then, before it looks for its row, the other copy has its turn.
    bench.store.script(Method::Load, [None, Some(Fault::Hold(gate.clone()))]);
    let by = ann();
    let replica = bench.replica().await;
    let other = async {
        gate.arrived(1).await;
        let reply = replica.call(&ann(), "submit_step", args.clone()).await;
        gate.open();
        reply
    };
    let (one, other) = join(bench.call(&by, "submit_step", args.clone()), other).await;
    assert_eq!((one.outcome.as_str(), other.outcome.as_str()), ("recorded", "recorded"));
    assert_eq!((one.duplicate, other.duplicate), (true, false), "{}", one.body);
    assert_eq!(bench.stored(&ann(), &work).await.revision, 3);
}

/// A sweep may touch the row of a completed workflow before the call that wrote it has looked for it.
#[tokio::test]
async fn ones_own_row_is_ones_own_after_a_sweep() {
    for retention_ms in [1_000, 0] {
        let bench = Bench::new().await;
        let work = bench.started(&ann(), "U-7").await;
        let asked = bench.call(&ann(), "finish_workflow", finish(&work, "abandoned")).await;
        let token = &asked.body["confirm"]["token"];
        let args = keyed(with(finish(&work, "abandoned"), "confirm_token", token), "k-1");
        let gate = Gate::new();
        bench.store.fail_next(Method::Commit, Fault::After);
        bench.store.script(Method::Load, [None, Some(Fault::Hold(gate.clone()))]);
        let by = ann();
        let sweep = async {
            gate.arrived(1).await;
            let now = wf_core::ports::ClockPort::now(&bench.clock);
            // Sets the expiry; the rows themselves stay, as after a sweep that met its limit.
            let swept = bench.model.sweep(now.plus_ms(-1), retention_ms, 100).await.unwrap();
            assert!(swept.expiries_set > 0);
            gate.open();
        };
        let (reply, ()) = join(bench.call(&by, "finish_workflow", args), sweep).await;
        assert_eq!(
            (reply.outcome.as_str(), reply.duplicate),
            ("finished", false),
            "retention {retention_ms}: {}",
            reply.body
        );
    }
}

/// A step whose rule cannot be evaluated has no value to be recognised by, only the block that its submission made.
#[tokio::test]
async fn a_step_that_could_only_block_is_repeated_without_a_key() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    bench.submit(&ann(), &work, "ready", "yes").await;
    // The condition of the next step cannot be evaluated for this amount.
    bench.submit(&ann(), &work, "amount", "33").await;
    let first = bench.submit(&ann(), &work, "share", "20").await;
    assert_eq!((first.outcome.as_str(), first.duplicate), ("blocked", false), "{}", first.body);
    let again = bench.submit(&ann(), &work, "share", "20").await;
    assert_eq!((again.outcome.as_str(), again.duplicate), ("blocked", true), "{}", again.body);
    assert_eq!(again.body["workflow"]["revision"], first.body["workflow"]["revision"]);
    // Other words, and another person, are no repeat; neither is the same once the block is decided.
    for (by, value) in [(ann(), "21"), (sue(), "20")] {
        assert_eq!(code(&bench.submit(&by, &work, "share", value).await), "INVALID_TRANSITION");
    }
    let block = first.body["blocks"][0]["id"].as_str().unwrap();
    let decision = first.body["blocks"][0]["decisions"][0]["id"].as_str().unwrap();
    let decided = bench.call(&sue(), "resolve_block", resolve(&work, block, decision)).await;
    assert_eq!(decided.outcome.as_str(), "resolved", "{}", decided.body);
    let anew = bench.submit(&ann(), &work, "share", "20").await;
    assert_eq!((anew.outcome.as_str(), anew.duplicate), ("blocked", false), "{}", anew.body);
}
