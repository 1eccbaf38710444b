//! Work through the engine: starts, read-backs, blocks and their ends, corrections, locks, ends, people. The rules
//! themselves are tested in wf-core; here it is what callers are told.

use std::sync::Arc;

use serde_json::{Value, json};
use wf_core::models::Principal;
use wf_core::policy::DomainPolicyPort;
use wf_core::ports::StorageBackendPort as _;
use wf_testkit::build::{CommitBuilder, at};

use crate::engine_bench::{
    Bench, PlainCompiler, abroad, ann, bob, cleo, code, correct, finish, keyed, operator, resolve,
    start, submit, sue, with,
};
use crate::plain_policy::PlainPolicy;

#[tokio::test]
async fn a_whole_procedure_knowing_only_what_was_told() {
    let bench = Bench::new().await;
    let mut reply = bench.call(&ann(), "start_workflow", start("u 7")).await;
    assert_eq!(reply.outcome.as_str(), "started");
    assert_eq!(reply.body["workflow"]["state"], "RUNNING", "acknowledged in the same commit");
    assert_eq!(reply.body["workflow"]["revision"], 2);
    assert_eq!(reply.speech, "Plain work on unit 7 is started. Next: Please tell the ready.");
    let work = reply.body["workflow"]["id"].as_str().unwrap().to_owned();
    let mut seen = Vec::new();
    while let Some(step) = reply.body.get("step").filter(|s| s["required"] == json!(true)) {
        let step_id = step["id"].as_str().unwrap().to_owned();
        let value = match step["kind"].as_str().unwrap() {
            "confirm" => "yes",
            "number" => "25",
            "choice" => step["choices"][0]["id"].as_str().unwrap(),
            _ => "CANARY",
        }
        .to_owned();
        seen.push(step_id.clone());
        let key = reply.body["next_idempotency_key"].as_str().unwrap();
        let args = keyed(submit(&work, &step_id, &value), key);
        reply = bench.call(&ann(), "submit_step", args).await;
        assert_eq!(reply.outcome.as_str(), "recorded", "{}", reply.body);
        // What may be left out is left out.
        if reply.body["step"]["skip"] == "free" && reply.body["step"]["required"] == json!(false) {
            let args = json!({"workflow_id": work, "step_id": reply.body["step"]["id"]});
            reply = bench.call(&ann(), "skip_step", args).await;
            assert_eq!(reply.outcome.as_str(), "skipped");
        }
    }
    assert_eq!(seen, ["ready", "amount", "shape", "whisper"]);
    assert_eq!(reply.body["workflow"]["progress"], json!({"settled": 4, "required": 4}));
    assert_eq!(reply.speech, "Recorded. All steps are done. Finish as good or bad?");
    let result = reply.body["workflow"]["results"][0]["id"].as_str().unwrap().to_owned();
    let end = bench.call(&ann(), "finish_workflow", finish(&work, &result)).await;
    assert_eq!(end.speech, "Plain work on unit 7 is finished as good.");
    assert_eq!(end.body["workflow"]["result"], "good");
}

#[tokio::test]
async fn an_orchestrator_that_is_down_stops_nobody() {
    let policies: Vec<Arc<dyn DomainPolicyPort>> = vec![Arc::new(PlainPolicy::loose())];
    let bench = Bench::with(policies, None, false).await;
    let args = with(start("U-7"), "procedure_id", &json!("loose"));
    let begun = bench.call(&ann(), "start_workflow", args).await;
    assert_eq!(begun.body["workflow"]["state"], "CREATED");
    let work = begun.body["workflow"]["id"].as_str().unwrap();
    let noted = json!({"workflow_id": work, "summary": "dusty", "severity": "note"});
    let noted = bench.call(&bob(), "report_problem", noted).await;
    assert_eq!(noted.body["workflow"]["state"], "CREATED", "a note is no progress");
    let args = json!({"workflow_id": work, "step_id": "amount", "reason_code": "NOT_THERE"});
    let skipped = bench.call(&ann(), "skip_step", args).await;
    assert_eq!(skipped.body["workflow"]["state"], "RUNNING");
}

#[tokio::test]
async fn what_a_start_lacks_is_asked_for_with_what_is_needed() {
    let bench = Bench::new().await;
    let plain = |assets: Value, inputs: Value| json!({"procedure_id": "plain", "assets": assets, "inputs": inputs});
    for (args, question) in [
        (plain(json!({}), json!({"order": "A-1"})), "Which unit?"),
        (plain(json!({"unit": "U-7"}), json!({})), "What is the order?"),
    ] {
        let reply = bench.call(&ann(), "start_workflow", keyed(args, "k-1")).await;
        assert_eq!(reply.outcome.as_str(), "needs_input");
        assert!(reply.speech.starts_with(question), "{}", reply.speech);
        let needs = &reply.body["candidates"][0]["needs"];
        assert_eq!(needs["assets"][0], json!({"role": "unit", "say": "unit", "example": "U-7"}));
        assert_eq!(needs["inputs"][0]["required"], true);
    }
    let wrong = plain(json!({"unit": "U-7"}), json!({"order": 1}));
    let reply = bench.call(&ann(), "start_workflow", keyed(wrong, "k-1")).await;
    assert_eq!(code(&reply), "VALIDATION_ERROR");
    assert_eq!(reply.body["error"]["details"]["field"], "inputs.order");
    assert_eq!(reply.body["candidates"][0]["procedure_id"], "plain");
    let unknown = json!({"procedure_id": "fancy", "assets": {}, "inputs": {}});
    let reply = bench.call(&ann(), "start_workflow", keyed(unknown, "k-1")).await;
    assert_eq!(code(&reply), "PROCEDURE_NOT_FOUND");
    assert_eq!(reply.body["error"]["details"]["available"], json!(["bare", "plain"]));
    assert_eq!(reply.body["candidates_total"], 2);
    assert!(reply.body["candidates"][0]["needs"].is_object());
    assert_eq!(bench.commits(), 0);
}

#[tokio::test]
async fn a_read_back_is_confirmed_by_its_token_only() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    bench.submit(&ann(), &work, "ready", "yes").await;
    let args = submit(&work, "amount", "70");
    let asked = bench.call(&ann(), "submit_step", args.clone()).await;
    let token = asked.body["confirm"]["token"].clone();
    assert_eq!(asked.body["confirm"]["read_back"], "70 marks is outside. Is that right?");
    assert_eq!(asked.speech, "70 marks is outside. Is that right?");
    let commits = bench.commits();
    let confirm = |args: &Value, token: &Value| with(args.clone(), "confirm_token", token);
    let other_value = submit(&work, "amount", "71");
    for (by, args, token) in [
        (ann(), args.clone(), json!("")),
        (ann(), args.clone(), json!("nonsense")),
        (ann(), args.clone(), json!(format!("{}x", token.as_str().unwrap()))),
        (ann(), other_value, token.clone()),
        (sue(), args.clone(), token.clone()),
    ] {
        let again = bench.call(&by, "submit_step", confirm(&args, &token)).await;
        assert_eq!(again.outcome.as_str(), "needs_confirmation", "{args} {token}");
        assert_ne!(again.body["confirm"]["token"], token, "with a new token");
    }
    bench.clock.advance(5 * 60 * 1_000);
    let late = bench.call(&ann(), "submit_step", confirm(&args, &token)).await;
    assert_eq!(late.outcome.as_str(), "needs_confirmation", "five minutes are over");
    assert_eq!(bench.commits(), commits, "nothing was written");
    // A restart in between, and another replica: the keys are the store's.
    let replica = bench.replica().await;
    let fresh = confirm(&args, &late.body["confirm"]["token"]);
    let done = replica.call(&ann(), "submit_step", fresh).await;
    assert_eq!(done.outcome.as_str(), "out_of_range", "{}", done.body);
    assert_eq!(done.body["workflow"]["state"], "BLOCKED");
    let said = "Recorded 70 marks, which is outside the limits.";
    assert!(done.speech.starts_with(said), "{}", done.speech);
}

#[tokio::test]
async fn a_no_records_nothing() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let reply = bench.submit(&ann(), &work, "ready", "no").await;
    assert_eq!(reply.outcome.as_str(), "not_recorded");
    assert!(reply.speech.contains("report a problem"), "{}", reply.speech);
    assert_eq!(reply.body["step"]["id"], "ready");
    assert_eq!(bench.stored(&ann(), &work).await.revision, 2);
}

/// The limits hold for who calls the engine without a transport before it, too.
#[tokio::test]
async fn texts_have_their_limits_in_characters() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let long = |n: usize| json!("ž".repeat(n));
    let report = json!({"workflow_id": work, "summary": "it squeaks", "severity": "note"});
    let decide = resolve(&work, "block-3", "go_on");
    let free = json!({"workflow_id": work, "asset_id": "U-7", "reason": "holder left"});
    for (by, tool, args, field, max) in [
        (ann(), "submit_step", submit(&work, "ready", "yes"), "value", 200),
        (ann(), "submit_step", submit(&work, "ready", "yes"), "note", 1_000),
        (ann(), "submit_step", submit(&work, "ready", "yes"), "unit", 200),
        (ann(), "correct_step", correct(&work, "ready", "yes"), "value", 200),
        (ann(), "skip_step", json!({"workflow_id": work, "step_id": "remark"}), "note", 1_000),
        (ann(), "report_problem", report, "summary", 1_000),
        (sue(), "resolve_block", decide, "comment", 1_000),
        (operator(), "release_lock", free, "reason", 1_000),
        (ann(), "finish_workflow", finish(&work, "abandoned"), "note", 1_000),
    ] {
        let reply = bench.call(&by, tool, with(args.clone(), field, &long(max + 1))).await;
        assert_eq!(code(&reply), "VALIDATION_ERROR", "{tool} {field}");
        assert_eq!(reply.body["error"]["details"]["field"], field);
        assert_eq!(reply.body["error"]["details"]["max"], max);
        if ["summary", "comment", "reason"].contains(&field) {
            let silent = bench.call(&by, tool, with(args.clone(), field, &json!("  "))).await;
            assert_eq!(silent.body["error"]["details"]["field"], field, "somebody's words");
        }
        let fits = bench.call(&by, tool, with(args, field, &long(max))).await;
        let details = &fits.body["error"]["details"];
        assert!(details.get("max").is_none(), "{tool} {field}: {}", fits.body);
    }
}

#[tokio::test]
async fn a_block_ends_by_its_decisions() {
    let bench = Bench::new().await;
    for (n, (decision, state)) in
        [("go_on", "RUNNING"), ("again", "RUNNING"), ("stop", "COMPLETED")].into_iter().enumerate()
    {
        let (work, block) = bench.blocked(&format!("U-{n}")).await;
        let stopped = bench.submit(&ann(), &work, "shape", "flat").await;
        assert_eq!(code(&stopped), "INVALID_TRANSITION");
        assert_eq!(stopped.body["error"]["details"]["state"], "BLOCKED");
        assert_eq!(stopped.body["blocks"][0]["escalated_to"], "duty");
        let unknown = bench.call(&sue(), "resolve_block", resolve(&work, &block, "whim")).await;
        assert_eq!(code(&unknown), "DECISION_NOT_ALLOWED");
        let offered = unknown.body["error"]["details"]["decisions"].as_array().unwrap();
        assert_eq!(offered.len(), 3);
        let missing =
            bench.call(&sue(), "resolve_block", resolve(&work, "block-99", "go_on")).await;
        assert_eq!(missing.body["error"]["details"]["open"], json!([block]));
        let not_mine = bench.call(&ann(), "resolve_block", resolve(&work, &block, decision)).await;
        assert_eq!(code(&not_mine), "NOT_ALLOWED");
        let reply = bench.call(&sue(), "resolve_block", resolve(&work, &block, decision)).await;
        assert_eq!(reply.outcome.as_str(), "resolved", "{}", reply.body);
        assert_eq!(reply.body["workflow"]["state"], state);
        match decision {
            "again" => {
                assert_eq!(reply.body["step"]["id"], "amount");
                assert_eq!(reply.body["step"]["attempt"], 2);
            }
            "stop" => {
                assert_eq!(reply.body["workflow"]["result"], "abandoned");
                bench.started(&bob(), &format!("U-{n}")).await;
            }
            _ => assert_eq!(reply.body["step"]["id"], "share"),
        }
    }
}

#[tokio::test]
async fn a_correction_inside_the_limits_ends_the_block() {
    let bench = Bench::new().await;
    let (work, _) = bench.blocked("U-7").await;
    let other = bench.call(&ann(), "correct_step", correct(&work, "ready", "yes")).await;
    assert_eq!(code(&other), "INVALID_TRANSITION", "only the step that caused it");
    let no_reason = submit(&work, "amount", "45");
    let asked = bench.call(&ann(), "correct_step", no_reason).await;
    assert_eq!(code(&asked), "REASON_REQUIRED");
    assert_eq!(asked.body["error"]["details"]["reasons"][1]["code"], "HEARD_WRONG");
    let still = bench.confirmed(&ann(), "correct_step", correct(&work, "amount", "80")).await;
    assert_eq!(still.body["workflow"]["state"], "BLOCKED", "judged like a submitted value");
    assert_eq!(still.body["blocks"].as_array().unwrap().len(), 1);
    let reply = bench.call(&ann(), "correct_step", correct(&work, "amount", "45")).await;
    assert_eq!(reply.outcome.as_str(), "corrected");
    assert_eq!(reply.body["workflow"]["state"], "RUNNING");
    assert_eq!(reply.speech, "Corrected to 45 marks. Next: Please tell the share.");
    let history = bench.status(&ann(), json!({"workflow_id": work, "detail": "full"})).await;
    let values: Vec<&str> = history.body["history"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|e| e["step_id"] == "amount")
        .filter_map(|e| e["value"].as_str())
        .collect();
    assert_eq!(values, ["70", "80", "45"], "the originals stay");
}

#[tokio::test]
async fn a_re_check_tells_the_value_before() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    for (step, value) in [("ready", "yes"), ("amount", "40"), ("share", "5"), ("shape", "flat")] {
        bench.submit(&ann(), &work, step, value).await;
    }
    bench.submit(&ann(), &work, "whisper", "CANARY").await;
    let reply = bench.call(&ann(), "correct_step", correct(&work, "amount", "45")).await;
    assert_eq!(reply.body["step"]["id"], "share");
    assert_eq!(reply.body["step"]["recheck"], json!({"value": "5", "unit": "mark"}));
    assert!(reply.speech.contains("It was 5 marks."), "{}", reply.speech);
    let early = bench.call(&ann(), "finish_workflow", finish(&work, "good")).await;
    assert_eq!(code(&early), "INVALID_TRANSITION");
    assert_eq!(early.body["error"]["details"]["unsettled"], json!(["share"]));
    let same = bench.submit(&ann(), &work, "share", "5").await;
    assert_eq!(same.outcome.as_str(), "recorded", "the same value is fine, and is no repeat");
    assert!(!same.duplicate);
    let end = bench.call(&ann(), "finish_workflow", finish(&work, "good")).await;
    assert_eq!(end.outcome.as_str(), "finished", "{}", end.body);
}

#[tokio::test]
async fn an_end_needs_everything_settled_and_a_result_that_fits() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let early = bench.call(&ann(), "finish_workflow", finish(&work, "bad")).await;
    assert_eq!(code(&early), "INVALID_TRANSITION");
    assert!(early.speech.contains("still to be done"), "{}", early.speech);
    bench.submit(&ann(), &work, "ready", "yes").await;
    bench.confirmed(&ann(), "submit_step", submit(&work, "amount", "70")).await;
    bench.call(&sue(), "resolve_block", resolve(&work, "block-5", "go_on")).await;
    for (step, value) in [("share", "5"), ("shape", "flat"), ("whisper", "CANARY")] {
        bench.submit(&ann(), &work, step, value).await;
    }
    for result in ["good", "whim"] {
        let reply = bench.call(&ann(), "finish_workflow", finish(&work, result)).await;
        assert_eq!(code(&reply), "VALIDATION_ERROR", "{result}");
        let results = reply.body["error"]["details"]["results"].as_array().unwrap();
        assert!(results.iter().all(|r| r["id"] != "good"), "{results:?}");
    }
    let end = bench.call(&ann(), "finish_workflow", finish(&work, "bad")).await;
    assert_eq!(end.body["workflow"]["result"], "bad");
    let after = bench.submit(&ann(), &work, "remark", "late").await;
    assert_eq!(code(&after), "INVALID_TRANSITION");
    assert_eq!(after.body["error"]["details"]["allowed"], json!([]));
}

#[tokio::test]
async fn giving_up_is_asked_for_once_from_any_open_state() {
    let bench = Bench::new().await;
    let running = bench.started(&ann(), "U-1").await;
    let (blocked, _) = bench.blocked("U-2").await;
    for work in [running, blocked] {
        let asked = bench.call(&ann(), "finish_workflow", finish(&work, "abandoned")).await;
        assert_eq!(asked.outcome.as_str(), "needs_confirmation");
        assert!(asked.speech.starts_with("Abandon plain work on unit"), "{}", asked.speech);
        let token = &asked.body["confirm"]["token"];
        let other = with(finish(&work, "abandoned"), "confirm_token", token);
        let not_hers = bench.call(&sue(), "finish_workflow", other.clone()).await;
        assert_eq!(not_hers.outcome.as_str(), "needs_confirmation", "asked of Ann");
        let done = bench.call(&ann(), "finish_workflow", other).await;
        assert_eq!(done.body["workflow"]["result"], "abandoned");
        assert!(done.body.get("blocks").is_none());
        assert!(done.speech.ends_with("is abandoned."), "{}", done.speech);
    }
    bench.started(&bob(), "U-1").await;
}

#[tokio::test]
async fn assets_are_taken_all_or_none() {
    let bench = Bench::new().await;
    let both = |unit: &str, spare: &str| {
        with(start(unit), "assets", &json!({"unit": unit, "spare": spare}))
    };
    bench.started(&bob(), "U-2").await;
    let refused = bench.call(&ann(), "start_workflow", both("U-1", "U-2")).await;
    assert_eq!(code(&refused), "ASSET_LOCKED");
    let twice = bench.call(&ann(), "start_workflow", both("U-1", "u 1")).await;
    assert_eq!(code(&twice), "VALIDATION_ERROR", "one id in two roles");
    let free = bench.call(&ann(), "start_workflow", both("U-1", "U-3")).await;
    assert_eq!(free.outcome.as_str(), "started", "U-1 was left free: {}", free.body);
    let blind = Principal {
        scopes: wf_core::models::Scopes { write: true, ..Default::default() },
        ..bob()
    };
    let reply = bench.call(&blind, "start_workflow", start("U-1")).await;
    assert_eq!(reply.body["error"]["details"], json!({}), "who may not look learns nothing more");
    assert_eq!(reply.speech, "Unit 1 is in use. Take another.");
}

#[tokio::test]
async fn work_that_lost_its_asset_can_only_be_ended() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    bench.submit(&ann(), &work, "ready", "yes").await;
    let args = json!({"workflow_id": work, "asset_id": "U-7", "reason": "holder left"});
    let released = bench.call(&operator(), "release_lock", args.clone()).await;
    assert_eq!(released.outcome.as_str(), "view", "{}", released.body);
    assert!(released.speech.starts_with("The asset is free again."), "{}", released.speech);
    let again = bench.call(&operator(), "release_lock", args).await;
    assert_eq!(code(&again), "LOCK_LOST", "it is not there to be released twice");
    let other = bench.started(&bob(), "U-7").await;
    for (tool, args) in [
        ("submit_step", submit(&work, "amount", "25")),
        ("correct_step", correct(&work, "ready", "yes")),
        (
            "skip_step",
            json!({"workflow_id": work, "step_id": "amount", "reason_code": "NOT_THERE"}),
        ),
    ] {
        let reply = bench.call(&ann(), tool, args).await;
        assert_eq!(code(&reply), "LOCK_LOST", "{tool}");
        assert!(reply.speech.contains("Bob has it; you can only abandon it"), "{}", reply.speech);
    }
    let report = json!({"workflow_id": work, "summary": "it is gone", "severity": "high"});
    let told = bench.call(&ann(), "report_problem", report).await;
    assert_eq!(told.outcome.as_str(), "blocked");
    let block = told.body["blocks"][0]["id"].as_str().unwrap();
    let go_on = bench.call(&sue(), "resolve_block", resolve(&work, block, "go_on")).await;
    assert_eq!(code(&go_on), "LOCK_LOST");
    let stop = bench.call(&sue(), "resolve_block", resolve(&work, block, "stop")).await;
    assert_eq!(stop.body["workflow"]["state"], "COMPLETED");
    // The end of the one never frees what the other holds.
    let going_on = bench.submit(&bob(), &other, "ready", "yes").await;
    assert_eq!(going_on.outcome.as_str(), "recorded");
}

#[tokio::test]
async fn only_the_owner_and_supervisors_change_work() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let refused = bench.submit(&bob(), &work, "ready", "yes").await;
    assert_eq!(code(&refused), "NOT_ALLOWED");
    let owner = &refused.body["error"]["details"]["owner"];
    assert_eq!(owner, &json!({"id": "sub|Ann", "name": "Ann"}));
    assert_eq!(refused.speech, "Ann is doing this work. Ask them to hand it over.");
    assert_eq!(bench.submit(&sue(), &work, "ready", "yes").await.outcome.as_str(), "recorded");
    let report = json!({"workflow_id": work, "summary": "it squeaks"});
    let told = bench.call(&bob(), "report_problem", report).await;
    assert_eq!(told.outcome.as_str(), "blocked", "anybody who may write may tell");
    let stored = bench.stored(&ann(), &work).await;
    assert_eq!(stored.blocks[0].severity.as_str(), "low", "unless it is said how bad");
}

#[tokio::test]
async fn a_person_without_a_name_is_never_spoken_by_id() {
    let bench = Bench::new().await;
    let nameless = Principal { name: None, ..ann() };
    let work = bench.started(&nameless, "U-7").await;
    let refused = bench.submit(&bob(), &work, "ready", "yes").await;
    assert_eq!(code(&refused), "NOT_ALLOWED");
    assert!(!refused.speech.contains("sub|"), "{}", refused.speech);
    let locked = bench.call(&bob(), "start_workflow", start("U-7")).await;
    assert_eq!(code(&locked), "ASSET_LOCKED");
    assert!(!locked.speech.contains("sub|"), "{}", locked.speech);
}

#[tokio::test]
async fn nothing_of_one_tenant_exists_for_another() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let far = abroad(&ann());
    let calls = |work: &str| {
        [
            ("submit_step", submit(work, "ready", "yes")),
            ("report_problem", json!({"workflow_id": work, "summary": "it squeaks"})),
            ("finish_workflow", finish(work, "abandoned")),
        ]
    };
    for ((tool, args), (_, unknown)) in calls(&work).into_iter().zip(calls("no-such-work")) {
        let foreign = bench.call(&far, tool, args).await;
        assert_eq!(code(&foreign), "WORKFLOW_NOT_FOUND");
        assert_eq!(foreign.body, bench.call(&far, tool, unknown).await.body, "{tool}");
    }
    let foreign = bench.status(&far, json!({"workflow_id": work})).await;
    let unknown = bench.status(&far, json!({"workflow_id": "no-such-work"})).await;
    assert_eq!(foreign.body, unknown.body);
    bench.started(&far, "U-7").await;
}

#[tokio::test]
async fn a_pinned_definition_outlives_its_file() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let other: Vec<Arc<dyn DomainPolicyPort>> = vec![Arc::new(PlainPolicy::version(2))];
    let ignorant = bench.restarted(other.clone(), None).await;
    let refused = ignorant.submit(&ann(), &work, "ready", "yes").await;
    assert_eq!(code(&refused), "PROCEDURE_NOT_FOUND");
    let pinned = bench.stored(&ann(), &work).await.procedure.digest;
    assert_eq!(refused.body["error"]["details"]["digest"], pinned.as_str());
    assert!(refused.speech.contains("not installed here"), "{}", refused.speech);
    assert_eq!(bench.stored(&ann(), &work).await.revision, 2, "nothing changed");
    let shown = ignorant.status(&ann(), json!({"workflow_id": work})).await;
    assert_eq!(shown.body["workflow"]["procedure"]["version"], 1);
    assert!(shown.body.get("step").is_none());
    let check = json!({"workflow_id": work, "step_id": "ready", "value": "yes"});
    assert_eq!(code(&ignorant.check(&ann(), check).await), "PROCEDURE_NOT_FOUND");

    let able = bench.restarted(other, Some(Arc::new(PlainCompiler))).await;
    let reply = able.submit(&ann(), &work, "ready", "yes").await;
    assert_eq!(reply.body["workflow"]["procedure"]["version"], 1, "{}", reply.body);
    let newer = able.call(&ann(), "start_workflow", start("U-8")).await;
    assert_eq!(newer.body["workflow"]["procedure"]["version"], 2);
}

#[tokio::test]
async fn a_hundred_may_be_open_and_no_more() {
    let bench = Bench::new().await;
    for n in 0..100 {
        bench.started(&ann(), &format!("U-{n}")).await;
    }
    let refused = bench.call(&ann(), "start_workflow", start("U-100")).await;
    assert_eq!(code(&refused), "LIMIT_EXCEEDED");
    assert_eq!(refused.body["error"]["details"]["max"], 100);
    let joined = bench.call(&ann(), "start_workflow", start("U-42")).await;
    assert_eq!(joined.outcome.as_str(), "joined", "what is open is still found");
    bench.started(&bob(), "U-100").await;
    let which = bench.status(&ann(), json!({})).await;
    assert_eq!(which.body["candidates_total"], 100);
    let work = joined.body["workflow"]["id"].as_str().unwrap();
    bench.confirmed(&ann(), "finish_workflow", finish(work, "abandoned")).await;
    bench.started(&ann(), "U-101").await;
}

#[tokio::test]
async fn a_new_owner_may_go_on_and_the_old_one_may_not() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let current = bench.stored(&ann(), &work).await;
    let transfer = CommitBuilder::next(&current, at(1)).transfer(&cleo().actor).build();
    bench.model.commit(transfer).await.unwrap();
    assert_eq!(code(&bench.submit(&ann(), &work, "ready", "yes").await), "NOT_ALLOWED");
    assert_eq!(bench.submit(&cleo(), &work, "ready", "yes").await.outcome.as_str(), "recorded");
}

#[tokio::test]
async fn a_definition_never_changes_under_its_version() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    // The same id and version with another step: refused with both digests, and what was there stays.
    let changed: Arc<dyn DomainPolicyPort> = Arc::new(PlainPolicy::version(1));
    let error = bench.engine.reload(vec![Arc::clone(&changed)]).await.unwrap_err();
    let new = changed.definition().digest.to_string();
    assert!(error.to_string().contains(&new), "{error}");
    let source = std::error::Error::source(&error).unwrap().to_string();
    let old = bench.stored(&ann(), &work).await.procedure.digest;
    assert!(source.contains(old.as_str()), "{source}");
    let reply = bench.call(&ann(), "start_workflow", start("U-8")).await;
    assert_eq!(reply.body["workflow"]["procedure"]["digest"], old.as_str());
    let twice: Vec<Arc<dyn DomainPolicyPort>> =
        vec![Arc::new(PlainPolicy::new()), Arc::new(PlainPolicy::version(3))];
    assert!(bench.engine.reload(twice).await.is_err(), "one procedure twice");
}

#[tokio::test]
async fn a_reload_changes_what_may_be_started_and_nothing_that_runs() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    bench.engine.reload(vec![Arc::new(PlainPolicy::version(2))]).await.unwrap();
    let going_on = bench.submit(&ann(), &work, "ready", "yes").await;
    assert_eq!(going_on.body["workflow"]["procedure"]["version"], 1, "{}", going_on.body);
    assert_eq!(going_on.body["step"]["of"], 6);
    let newer = bench.call(&ann(), "start_workflow", start("U-8")).await;
    assert_eq!(newer.body["step"]["of"], 7);
    let gone = json!({"procedure_id": "bare", "inputs": {"order": "A-1"}});
    let gone = bench.call(&ann(), "start_workflow", keyed(gone, "k-1")).await;
    assert_eq!(code(&gone), "PROCEDURE_NOT_FOUND");
}
