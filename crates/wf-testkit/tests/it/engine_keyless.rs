//! Calls without a key: what is a repeat and what is new (idempotency.md, Without a key).

use std::sync::Arc;

use serde_json::{Value, json};
use wf_core::engine::Reply;
use wf_core::policy::DomainPolicyPort;

use crate::engine_bench::{
    Bench, PlainCompiler, ann, bob, code, correct, finish, keyed, resolve, start, submit, sue, with,
};
use crate::plain_policy::PlainPolicy;

fn is_repeat_of(again: &Reply, first: &Reply) {
    assert!(again.duplicate, "{}", again.body);
    let mut expected = first.body.clone();
    expected["duplicate"] = json!(true);
    assert_eq!(again.body, expected);
}

fn is_new(reply: &Reply) {
    assert!(!reply.duplicate && reply.error.is_none(), "{}", reply.body);
}

#[tokio::test]
async fn the_same_reading_again_is_a_repeat_whatever_its_note_says() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    bench.submit(&ann(), &work, "ready", "yes").await;
    let args = submit(&work, "amount", "25");
    let first = bench.call(&ann(), "submit_step", with(args.clone(), "note", &json!("one"))).await;
    is_new(&first);
    let commits = bench.commits();
    is_repeat_of(&bench.call(&ann(), "submit_step", args.clone()).await, &first);
    let noted = with(args.clone(), "note", &json!("two"));
    is_repeat_of(&bench.call(&ann(), "submit_step", noted).await, &first);
    // Other digits and another person are no repeat.
    let digits = bench.submit(&ann(), &work, "amount", "25.0").await;
    assert_eq!(code(&digits), "STEP_ALREADY_RECORDED");
    let details = &digits.body["error"]["details"];
    assert_eq!(
        (details["value"].as_str(), details["by"]["name"].as_str()),
        (Some("25"), Some("Ann"))
    );
    assert_eq!(code(&bench.call(&sue(), "submit_step", args).await), "STEP_ALREADY_RECORDED");
    assert_eq!(bench.commits(), commits);
    let row = bench.store.commits().last().unwrap().ledger.key.key.to_string();
    assert!(row.starts_with("rk_"), "it got a random key inside: {row}");
}

#[tokio::test]
async fn the_same_reading_after_a_redo_is_a_new_reading() {
    let bench = Bench::new().await;
    let (work, block) = bench.blocked("U-7").await;
    let args = submit(&work, "amount", "70");
    let repeat = bench.call(&ann(), "submit_step", args.clone()).await;
    assert!(repeat.duplicate, "blocked by it, and said again: {}", repeat.body);
    is_new(&bench.call(&sue(), "resolve_block", resolve(&work, &block, "again")).await);
    let again = bench.confirmed(&ann(), "submit_step", args).await;
    is_new(&again);
    let stored = bench.stored(&ann(), &work).await;
    assert_eq!(stored.steps["amount"].attempt, 2);
    assert_ne!(again.body["blocks"][0]["id"], block.as_str(), "another block");
}

#[tokio::test]
async fn another_event_on_the_target_makes_a_call_fresh() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    bench.submit(&ann(), &work, "ready", "yes").await;
    bench.submit(&ann(), &work, "amount", "25").await;
    let to = |value: &str| correct(&work, "amount", value);
    let first = bench.call(&ann(), "correct_step", to("26")).await;
    is_repeat_of(&bench.call(&ann(), "correct_step", to("26")).await, &first);
    is_new(&bench.call(&ann(), "correct_step", to("27")).await);
    is_new(&bench.call(&ann(), "correct_step", to("26")).await);
    assert_eq!(bench.stored(&ann(), &work).await.steps["amount"].attempt, 4);
    // Events on other targets do not.
    is_new(&bench.submit(&ann(), &work, "shape", "flat").await);
    assert!(bench.call(&ann(), "correct_step", to("26")).await.duplicate);
}

#[tokio::test]
async fn a_start_joins_its_own_open_twin() {
    let bench = Bench::new().await;
    let begun = bench.call(&ann(), "start_workflow", start("U-7")).await;
    let commits = bench.commits();
    for args in [start("U-7"), start(" u 007"), keyed(start("U-7"), "k-1")] {
        let reply = bench.call(&ann(), "start_workflow", args).await;
        assert_eq!(reply.outcome.as_str(), "joined", "{}", reply.body);
        assert_eq!(reply.body["workflow"]["id"], begun.body["workflow"]["id"]);
        assert_eq!(reply.body["step"]["id"], "ready");
        assert!(!reply.duplicate);
    }
    assert_eq!(bench.commits(), commits, "nothing was written");
    assert_eq!(bench.row(&ann(), "k-1").await, None);
}

#[tokio::test]
async fn a_joined_twin_is_shown_by_the_definition_that_it_pinned() {
    let bench = Bench::new().await;
    bench.started(&ann(), "U-7").await;
    let newer: Vec<Arc<dyn DomainPolicyPort>> = vec![Arc::new(PlainPolicy::version(2))];
    let able = bench.restarted(newer.clone(), Some(Arc::new(PlainCompiler))).await;
    let joined = able.call(&ann(), "start_workflow", start("U-7")).await;
    assert_eq!(joined.outcome.as_str(), "joined", "{}", joined.body);
    assert_eq!(joined.body["workflow"]["procedure"]["version"], 1);
    assert_eq!(joined.body["step"]["of"], 6, "version 2 has a step more");
    // Where nobody knows the definition any more, what only it knows is left out.
    let ignorant = bench.restarted(newer, None).await;
    let joined = ignorant.call(&ann(), "start_workflow", start("U-7")).await;
    assert_eq!(joined.outcome.as_str(), "joined", "{}", joined.body);
    assert!(joined.body.get("step").is_none());
}

#[tokio::test]
async fn a_twin_is_known_however_its_numbers_are_written() {
    let bench = Bench::new().await;
    let counted = |json: &str| with(start("U-7"), "inputs", &serde_json::from_str(json).unwrap());
    let begun = bench.call(&ann(), "start_workflow", counted(r#"{"order":"A-1","n":[7.0]}"#)).await;
    is_new(&begun);
    for same in [r#"{"order":"A-1","n":[7]}"#, r#"{"n":[70e-1],"order":"\u0041-1"}"#] {
        let reply = bench.call(&ann(), "start_workflow", counted(same)).await;
        assert_eq!(reply.outcome.as_str(), "joined", "{}", reply.body);
        assert_eq!(reply.body["workflow"]["id"], begun.body["workflow"]["id"]);
    }
    let other = counted(r#"{"order":"A-1","n":["7"]}"#);
    assert_eq!(code(&bench.call(&ann(), "start_workflow", other).await), "ASSET_LOCKED");
}

#[tokio::test]
async fn what_is_locked_is_named_as_it_is_spoken() {
    let bench = Bench::new().await;
    let two = |unit: &str, spare: &str| {
        with(start("U-7"), "assets", &json!({"unit": unit, "spare": spare}))
    };
    is_new(&bench.call(&ann(), "start_workflow", two("U-7", "U-8")).await);
    // The same two in other roles: which of them is met first follows the roles, not the ids.
    for (unit, spare) in [("U-7", "U-8"), ("U-8", "U-7")] {
        let reply = bench.call(&bob(), "start_workflow", two(unit, spare)).await;
        assert_eq!(code(&reply), "ASSET_LOCKED");
        let named = reply.body["error"]["details"]["asset_id"].as_str().unwrap();
        let spoken = format!("unit {} is in use", named.trim_start_matches("U-"));
        assert!(reply.speech.to_lowercase().starts_with(&spoken), "{named}: {}", reply.speech);
    }
}

#[tokio::test]
async fn a_start_that_differs_meets_the_lock() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let differ = |inputs: Value| with(start("U-7"), "inputs", &inputs);
    for args in [differ(json!({"order": "B-2"})), differ(json!({"order": "A-1", "hush": "CANARY"}))]
    {
        let reply = bench.call(&ann(), "start_workflow", args).await;
        assert_eq!(code(&reply), "ASSET_LOCKED");
        assert_eq!(reply.body["error"]["details"]["workflow_id"], work.as_str());
        assert!(reply.speech.starts_with("You already use unit 7"), "{}", reply.speech);
    }
    // One more asset is another start; so is another person's.
    let both = with(start("U-7"), "assets", &json!({"unit": "U-7", "spare": "U-8"}));
    assert_eq!(code(&bench.call(&ann(), "start_workflow", both).await), "ASSET_LOCKED");
    let reply = bench.call(&bob(), "start_workflow", start("U-7")).await;
    assert_eq!(code(&reply), "ASSET_LOCKED");
    assert_eq!(reply.body["error"]["details"]["holder"]["name"], "Ann");
    assert!(reply.body["error"]["details"]["since"].is_string());
    assert!(reply.speech.contains("in use by Ann since"), "{}", reply.speech);
    assert_eq!(bench.commits(), 1);
    let other = bench.call(&ann(), "start_workflow", start("U-9")).await;
    is_new(&other);
}

#[tokio::test]
async fn sensitive_inputs_are_compared_without_being_kept() {
    let bench = Bench::new().await;
    let secret = |word: &str| {
        with(start("U-7"), "inputs", &json!({"order": "A-1", "hush": format!("CANARY {word}")}))
    };
    let begun = bench.call(&ann(), "start_workflow", secret("one")).await;
    is_new(&begun);
    let again = bench.call(&ann(), "start_workflow", secret("one")).await;
    assert_eq!(again.outcome.as_str(), "joined", "{}", again.body);
    assert_eq!(code(&bench.call(&ann(), "start_workflow", secret("two")).await), "ASSET_LOCKED");
    assert_eq!(code(&bench.call(&ann(), "start_workflow", start("U-7")).await), "ASSET_LOCKED");
}

#[tokio::test]
async fn a_start_without_assets_needs_a_key() {
    let bench = Bench::new().await;
    let args = json!({"procedure_id": "bare", "inputs": {"order": "A-1"}});
    let reply = bench.call(&ann(), "start_workflow", args.clone()).await;
    assert_eq!(code(&reply), "VALIDATION_ERROR");
    assert_eq!(reply.body["error"]["details"]["field"], "idempotency_key");
    assert_eq!(bench.commits(), 0);
    // What is missing is asked for first.
    let nothing = bench.call(&ann(), "start_workflow", json!({"procedure_id": "bare"})).await;
    assert_eq!(nothing.outcome.as_str(), "needs_input");
    let one = bench.call(&ann(), "start_workflow", keyed(args.clone(), "k-1")).await;
    is_new(&one);
    assert!(bench.call(&ann(), "start_workflow", keyed(args.clone(), "k-1")).await.duplicate);
    let two = bench.call(&ann(), "start_workflow", keyed(args, "k-2")).await;
    is_new(&two);
    assert_ne!(one.body["workflow"]["id"], two.body["workflow"]["id"]);
}

#[tokio::test]
async fn a_problem_reported_again_is_its_open_block() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let report =
        |summary: &str| json!({"workflow_id": work, "summary": summary, "severity": "low"});
    let first = bench.call(&ann(), "report_problem", report("it squeaks")).await;
    is_new(&first);
    is_repeat_of(&bench.call(&ann(), "report_problem", report("it squeaks")).await, &first);
    is_repeat_of(&bench.call(&ann(), "report_problem", report("it squeaks a lot")).await, &first);
    // Another person, another step: another block.
    is_new(&bench.call(&bob(), "report_problem", report("it squeaks")).await);
    let on_step = with(report("it squeaks"), "step_id", &json!("shape"));
    is_new(&bench.call(&ann(), "report_problem", on_step).await);
    // The same with a key is a call of its own.
    is_new(&bench.call(&ann(), "report_problem", keyed(report("it squeaks"), "k-1")).await);
    let blocks = bench.stored(&ann(), &work).await.blocks;
    assert_eq!(blocks.len(), 4);
    for block in blocks {
        is_new(
            &bench.call(&sue(), "resolve_block", resolve(&work, block.id.as_str(), "go_on")).await,
        );
    }
    is_new(&bench.call(&ann(), "report_problem", report("it squeaks")).await);
}

#[tokio::test]
async fn a_note_again_is_a_repeat_and_another_note_is_not() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let note = |text: &str| json!({"workflow_id": work, "summary": text, "severity": "note"});
    let first = bench.call(&ann(), "report_problem", note("dusty")).await;
    assert_eq!(first.outcome.as_str(), "noted");
    is_repeat_of(&bench.call(&ann(), "report_problem", note("dusty")).await, &first);
    is_new(&bench.call(&ann(), "report_problem", note("damp")).await);
    assert_eq!(bench.stored(&ann(), &work).await.phase.as_str(), "RUNNING");
}

#[tokio::test]
async fn decisions_skips_and_ends_are_recognised() {
    let bench = Bench::new().await;
    let (work, block) = bench.blocked("U-7").await;
    let decide = resolve(&work, &block, "go_on");
    let first = bench.call(&sue(), "resolve_block", decide.clone()).await;
    is_new(&first);
    let other_words = with(decide.clone(), "comment", &json!("as I said"));
    is_repeat_of(&bench.call(&sue(), "resolve_block", other_words).await, &first);
    let other = bench.call(&sue(), "resolve_block", resolve(&work, &block, "again")).await;
    assert_eq!(code(&other), "INVALID_TRANSITION", "another decision is no repeat");

    let skip = json!({"workflow_id": work, "step_id": "share", "reason_code": "NOT_THERE"});
    let first = bench.call(&ann(), "skip_step", skip.clone()).await;
    is_new(&first);
    is_repeat_of(&bench.call(&ann(), "skip_step", skip).await, &first);

    let end = finish(&work, "abandoned");
    let first = bench.confirmed(&ann(), "finish_workflow", end.clone()).await;
    is_new(&first);
    is_repeat_of(&bench.call(&ann(), "finish_workflow", end).await, &first);
    assert_eq!(
        code(&bench.call(&ann(), "finish_workflow", finish(&work, "bad")).await),
        "INVALID_TRANSITION"
    );
}
