//! Calls with a key: replay byte for byte, conflicts, what is stored and what is not, the order of checks
//! (idempotency.md). Calls without one: `engine_keyless`.

use futures_util::future::join;
use serde_json::{Value, json};
use wf_core::engine::Reply;
use wf_core::idempotency::canonical_string;
use wf_core::models::Principal;
use wf_core::ports::StorageBackendPort as _;
use wf_testkit::build::{CommitBuilder, at};
use wf_testkit::fault::{Call as Method, Fault, Gate};

use crate::engine_bench::{
    Bench, RETENTION_MS, abroad, ann, bob, cleo, code, correct, finish, keyed, operator, reader,
    resolve, start, submit, sue, with,
};

/// The replay of `first` is its very bytes, but for `duplicate`.
fn is_replay_of(replay: &Reply, first: &Reply) {
    assert!(replay.duplicate, "{}", replay.body);
    let mut expected = first.body.clone();
    expected["duplicate"] = json!(true);
    assert_eq!(canonical_string(&replay.body).unwrap(), canonical_string(&expected).unwrap());
    assert_eq!((replay.outcome, &replay.speech), (first.outcome, &first.speech));
}

/// One call of every kind, each with its own key, by whom it is allowed.
fn script(work: &str) -> Vec<(Principal, &'static str, Value)> {
    let key = |args: Value, n: usize| keyed(args, &format!("call-{n}"));
    let report = |severity: &str| json!({"workflow_id": work, "summary": "it squeaks", "severity": severity});
    vec![
        (ann(), "submit_step", key(submit(work, "ready", "yes"), 1)),
        (ann(), "submit_step", key(submit(work, "amount", "25"), 2)),
        (ann(), "correct_step", key(correct(work, "amount", "26.50"), 3)),
        (ann(), "report_problem", key(report("note"), 4)),
        (ann(), "report_problem", key(report("high"), 5)),
        (sue(), "resolve_block", key(resolve(work, "block-7", "go_on"), 6)),
        (ann(), "submit_step", key(submit(work, "shape", "flat"), 7)),
        (ann(), "skip_step", key(json!({"workflow_id": work, "step_id": "remark"}), 8)),
        (ann(), "submit_step", key(submit(work, "whisper", "CANARY"), 9)),
        (ann(), "finish_workflow", key(finish(work, "good"), 10)),
    ]
}

#[tokio::test]
async fn every_call_is_replayed_byte_for_byte_at_once_and_later() {
    let bench = Bench::new().await;
    let begin = keyed(start("U-7"), "call-0");
    let first = bench.call(&ann(), "start_workflow", begin.clone()).await;
    let work = first.body["workflow"]["id"].as_str().unwrap().to_owned();
    let mut answers = vec![(ann(), "start_workflow", begin, first)];
    for (by, tool, args) in script(&work) {
        let before = bench.stored(&ann(), &work).await.revision;
        let first = bench.call(&by, tool, args.clone()).await;
        assert!(first.error.is_none() && !first.duplicate, "{tool}: {}", first.body);
        let after = bench.stored(&ann(), &work).await;
        assert!(after.revision > before, "{tool}");
        bench.clock.advance(60_000);
        let (commits, loads) = (bench.commits(), bench.store.count(Method::Load));
        is_replay_of(&bench.call(&by, tool, args.clone()).await, &first);
        assert_eq!(bench.commits(), commits, "{tool}: a replay commits nothing");
        assert_eq!(bench.store.count(Method::Load), loads + 1, "{tool}: a replay is one read");
        assert_eq!(bench.stored(&ann(), &work).await, after, "{tool}");
        answers.push((by, tool, args, first));
    }
    // Everything is over, another replica answers, and each answer is still the first one.
    let replica = bench.replica().await;
    for (by, tool, args, first) in &answers {
        is_replay_of(&replica.call(by, tool, args.clone()).await, first);
    }
    let row = bench.row(&ann(), "call-2").await.unwrap();
    assert_eq!(row.entry.result, canonical_string(&answers[2].3.body).unwrap());
    assert_eq!((row.workflow_id.as_str(), row.entry.operation.as_str()), (&*work, "submit_step"));
}

#[tokio::test]
async fn another_payload_under_the_same_key_is_a_conflict_that_names_fields_and_no_values() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    bench.submit(&ann(), &work, "ready", "yes").await;
    let first = keyed(with(submit(&work, "amount", "25.10"), "note", &json!("n-one")), "k-1");
    let recorded = bench.call(&ann(), "submit_step", first.clone()).await;
    let next = recorded.body["next_idempotency_key"].clone();
    for (args, fields) in [
        (with(first.clone(), "value", &json!("31.70")), vec!["value"]),
        // 25.10 and 25.1 are two texts.
        (with(first.clone(), "value", &json!("25.1")), vec!["value"]),
        // Free texts count, and a member more or less does.
        (with(first.clone(), "note", &json!("n-two")), vec!["note"]),
        (with(first.clone(), "unit", &json!("mark")), vec!["unit"]),
        (
            with(with(first.clone(), "value", &json!("9")), "step_id", &json!("shape")),
            vec!["step_id", "value"],
        ),
    ] {
        let reply = bench.call(&ann(), "submit_step", args.clone()).await;
        assert_eq!(code(&reply), "IDEMPOTENCY_CONFLICT", "{args}");
        let error = &reply.body["error"];
        let mut differs: Vec<&str> = error["details"]["differs"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        differs.sort_unstable();
        assert_eq!(differs, fields, "{args}");
        assert_eq!(error["retry"], "changed_call");
        assert_eq!(error["details"]["recorded"]["operation"], "submit_step");
        assert!(error["details"]["recorded"]["at"].is_string());
        assert_eq!(error["details"]["next_idempotency_key"], next);
        let text = reply.body.to_string();
        for value in ["25.1", "31.70", "n-one", "n-two"] {
            assert!(!text.contains(value), "{value} in {text}");
        }
        assert!(reply.speech.contains("another action"), "{}", reply.speech);
    }
    // The same arguments under another operation.
    let other =
        bench.call(&ann(), "correct_step", with(first, "reason_code", &json!("HEARD_WRONG"))).await;
    assert_eq!(code(&other), "IDEMPOTENCY_CONFLICT");
    assert_eq!(bench.stored(&ann(), &work).await.revision, 4, "nothing was recorded");
}

#[tokio::test]
async fn a_start_under_a_used_key_tells_the_next_key_of_what_it_started() {
    let bench = Bench::new().await;
    let first = bench.call(&ann(), "start_workflow", keyed(start("U-7"), "k-1")).await;
    let reply = bench.call(&ann(), "start_workflow", keyed(start("U-8"), "k-1")).await;
    assert_eq!(code(&reply), "IDEMPOTENCY_CONFLICT");
    let details = &reply.body["error"]["details"];
    assert_eq!(details["differs"], json!(["assets"]));
    assert_eq!(details["next_idempotency_key"], first.body["next_idempotency_key"]);
}

#[tokio::test]
async fn a_confirmed_call_and_its_unconfirmed_form_are_one() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    bench.submit(&ann(), &work, "ready", "yes").await;
    let args = keyed(submit(&work, "amount", "70"), "k-1");
    let first = bench.confirmed(&ann(), "submit_step", args.clone()).await;
    is_replay_of(&bench.call(&ann(), "submit_step", args.clone()).await, &first);
    let old = with(args, "confirm_token", &json!("ct1.0.AAAA"));
    is_replay_of(&bench.call(&ann(), "submit_step", old).await, &first);
}

#[tokio::test]
async fn a_key_belongs_to_one_person_of_one_tenant() {
    let bench = Bench::new().await;
    for (by, asset) in [(ann(), "U-1"), (bob(), "U-2"), (abroad(&ann()), "U-1")] {
        let reply = bench.call(&by, "start_workflow", keyed(start(asset), "k-1")).await;
        assert_eq!(reply.outcome.as_str(), "started", "{}", reply.body);
        assert!(!reply.duplicate);
    }
    // The operator at the command line is another actor than the user of that name.
    let same_name = Principal { actor: wf_core::models::Actor::User("root".to_owned()), ..ann() };
    for (by, asset) in [(operator(), "U-3"), (same_name, "U-4")] {
        let reply = bench.call(&by, "start_workflow", keyed(start(asset), "k-1")).await;
        assert!(!reply.duplicate && reply.error.is_none(), "{}", reply.body);
    }
}

#[tokio::test]
async fn what_is_not_recorded_stores_nothing_and_leaves_the_key_free() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let commits = bench.commits();
    for (args, outcome) in [
        (submit(&work, "ready", "no"), "not_recorded"),
        (submit(&work, "ready", "maybe"), "error"),
        (submit(&work, "nowhere", "1"), "error"),
    ] {
        let reply = bench.call(&ann(), "submit_step", keyed(args, "k-1")).await;
        assert_eq!(reply.outcome.as_str(), outcome);
        assert_eq!(bench.row(&ann(), "k-1").await, None);
    }
    let reply =
        bench.call(&ann(), "submit_step", keyed(submit(&work, "ready", "yes"), "k-1")).await;
    assert_eq!(reply.outcome.as_str(), "recorded", "the caller may correct it under the same key");
    let asked =
        bench.call(&ann(), "submit_step", keyed(submit(&work, "amount", "70"), "k-2")).await;
    assert_eq!(asked.outcome.as_str(), "needs_confirmation");
    let other =
        bench.call(&ann(), "submit_step", keyed(submit(&work, "amount", "25"), "k-2")).await;
    assert_eq!(other.outcome.as_str(), "recorded", "{}", other.body);
    assert_eq!(bench.commits(), commits + 2);
}

#[tokio::test]
async fn scope_comes_before_the_ledger() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let args = keyed(submit(&work, "ready", "yes"), "k-1");
    bench.call(&ann(), "submit_step", args.clone()).await;
    let loads = bench.store.count(Method::Load);
    let restricted = Principal { scopes: reader().scopes, ..ann() };
    let reply = bench.call(&restricted, "submit_step", args).await;
    assert_eq!(code(&reply), "NOT_ALLOWED");
    assert_eq!(reply.body["error"]["details"]["scope"], "workflow:write");
    let block = resolve(&work, "block-9", "go_on");
    let reply = bench.call(&ann(), "resolve_block", block).await;
    assert_eq!(reply.body["error"]["details"]["scope"], "workflow:supervise");
    let args = json!({"workflow_id": work, "asset_id": "U-7", "reason": "holder left"});
    assert_eq!(code(&bench.call(&ann(), "release_lock", args).await), "NOT_ALLOWED");
    assert_eq!(bench.store.count(Method::Load), loads, "nothing was read for them");
}

#[tokio::test]
async fn the_ledger_comes_before_revision_ownership_state_and_definition() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let args = keyed(submit(&work, "ready", "yes"), "k-1");
    let first = bench.call_at(&ann(), "submit_step", args.clone(), Some(2)).await;
    assert!(first.error.is_none(), "{}", first.body);
    // Revision: the workflow has moved on, by this very call.
    is_replay_of(&bench.call_at(&ann(), "submit_step", args.clone(), Some(2)).await, &first);
    // Ownership: somebody else's now.
    let current = bench.stored(&ann(), &work).await;
    let transfer = CommitBuilder::next(&current, at(1)).transfer(&cleo().actor).build();
    bench.model.commit(transfer).await.unwrap();
    is_replay_of(&bench.call(&ann(), "submit_step", args.clone()).await, &first);
    let fresh = keyed(submit(&work, "amount", "25"), "k-2");
    let refused = bench.call_at(&ann(), "submit_step", fresh.clone(), Some(3)).await;
    assert_eq!(code(&refused), "VERSION_CONFLICT", "revision before ownership");
    assert_eq!(code(&bench.call(&ann(), "submit_step", fresh).await), "NOT_ALLOWED");
    // State: over.
    let abandon = finish(&work, "abandoned");
    bench.confirmed(&cleo(), "finish_workflow", abandon).await;
    is_replay_of(&bench.call(&ann(), "submit_step", args.clone()).await, &first);
    // Definition: gone.
    let elsewhere = bench.restarted(Vec::new(), None).await;
    is_replay_of(&elsewhere.call(&ann(), "submit_step", args).await, &first);
}

#[tokio::test]
async fn an_expected_revision_is_the_revision_or_nothing_happens() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let args = submit(&work, "ready", "yes");
    for stale in [0, 1, 3] {
        let reply = bench.call_at(&ann(), "submit_step", args.clone(), Some(stale)).await;
        assert_eq!(code(&reply), "VERSION_CONFLICT");
        assert_eq!(reply.body["error"]["details"]["current_revision"], 2);
    }
    let first = bench.call_at(&ann(), "submit_step", args.clone(), Some(2)).await;
    assert!(first.error.is_none(), "{}", first.body);
    // A repeat without a key is judged like a replay: before the revision.
    is_replay_of(&bench.call_at(&ann(), "submit_step", args, Some(2)).await, &first);
}

#[tokio::test]
async fn a_row_expires_after_its_workflow_and_is_then_replaced() {
    let bench = Bench::new().await;
    let begin = keyed(start("U-7"), "k-1");
    let first = bench.call(&ann(), "start_workflow", begin.clone()).await;
    let work = first.body["workflow"]["id"].as_str().unwrap().to_owned();
    let sweep = || bench.model.sweep(clock_now(&bench), RETENTION_MS, 100);
    // A row of an open workflow never expires.
    bench.clock.advance(RETENTION_MS.unsigned_abs() * 2);
    sweep().await.unwrap();
    is_replay_of(&bench.call(&ann(), "start_workflow", begin.clone()).await, &first);
    bench.confirmed(&ann(), "finish_workflow", finish(&work, "abandoned")).await;
    sweep().await.unwrap();
    bench.clock.advance(RETENTION_MS.unsigned_abs() - 1);
    is_replay_of(&bench.call(&ann(), "start_workflow", begin.clone()).await, &first);
    bench.clock.advance(1);
    let old = bench.row(&ann(), "k-1").await;
    assert!(old.is_some(), "the row is still there, only its time is past");
    let second = bench.call(&ann(), "start_workflow", begin.clone()).await;
    assert_eq!(second.outcome.as_str(), "started", "{}", second.body);
    assert!(!second.duplicate);
    assert_ne!(second.body["workflow"]["id"], first.body["workflow"]["id"]);
    assert_eq!(bench.store.commits().last().unwrap().replaces, old);
    is_replay_of(&bench.call(&ann(), "start_workflow", begin).await, &second);
}

fn clock_now(bench: &Bench) -> wf_core::models::Timestamp {
    use wf_core::ports::ClockPort as _;
    bench.clock.now()
}

#[tokio::test]
async fn two_calls_with_one_key_at_once_are_one_commit() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    for (n, other) in [(1, "yes"), (2, "no way")] {
        let gate = Gate::new();
        let key = format!("k-{n}");
        let step = if n == 1 { "ready" } else { "amount" };
        let value = if n == 1 { "yes" } else { "25" };
        let args = keyed(submit(&work, step, value), &key);
        bench.store.script(Method::Commit, [Some(Fault::Hold(gate.clone()))]);
        let by = ann();
        let slow = bench.call(&by, "submit_step", args.clone());
        let fast = async {
            gate.arrived(1).await;
            let mut fast_args = args.clone();
            if n == 2 {
                fast_args = with(fast_args, "note", &json!(other));
            }
            let reply = bench.call(&ann(), "submit_step", fast_args).await;
            gate.open();
            reply
        };
        let (slow, fast) = join(slow, fast).await;
        assert!(!fast.duplicate && fast.error.is_none(), "{}", fast.body);
        if n == 1 {
            is_replay_of(&slow, &fast);
        } else {
            assert_eq!(code(&slow), "IDEMPOTENCY_CONFLICT", "the same key with another payload");
        }
        assert_eq!(bench.stored(&ann(), &work).await.revision, 2 + n);
    }
}

#[tokio::test]
async fn a_minted_key_is_an_ordinary_key() {
    let bench = Bench::new().await;
    let begun = bench.call(&ann(), "start_workflow", start("U-7")).await;
    let work = begun.body["workflow"]["id"].as_str().unwrap().to_owned();
    let minted = begun.body["next_idempotency_key"].as_str().unwrap().to_owned();
    let status = bench.status(&ann(), json!({"workflow_id": work})).await;
    assert_eq!(status.body["next_idempotency_key"], minted.as_str(), "of the revision");
    let args = keyed(submit(&work, "ready", "yes"), &minted);
    let first = bench.call(&ann(), "submit_step", args.clone()).await;
    assert_ne!(first.body["next_idempotency_key"], minted.as_str());
    is_replay_of(&bench.call(&ann(), "submit_step", args).await, &first);
    // Used again for the next step: told, not guessed.
    let reply =
        bench.call(&ann(), "submit_step", keyed(submit(&work, "amount", "25"), &minted)).await;
    assert_eq!(code(&reply), "IDEMPOTENCY_CONFLICT");
    // Never checked against the revision: an older one that was not used counts.
    bench.submit(&ann(), &work, "amount", "25").await;
    let older = first.body["next_idempotency_key"].as_str().unwrap();
    let reply =
        bench.call(&ann(), "submit_step", keyed(submit(&work, "shape", "flat"), older)).await;
    assert_eq!(reply.outcome.as_str(), "recorded", "{}", reply.body);
}
