//! Questions: `get_status`, `find_work`, `check_value`. Never a guess, never a write.

use serde_json::{Value, json};
use wf_core::engine::Reply;
use wf_core::models::{Principal, Scopes};
use wf_testkit::fault::{Call as Method, Fault};

use crate::engine_bench::{
    Bench, abroad, ann, bob, code, correct, finish, reader, resolve, submit, sue,
};

const HOUR_MS: u64 = 60 * 60 * 1_000;

fn labels(reply: &Reply) -> Vec<&str> {
    let candidates = reply.body["candidates"].as_array().map_or(&[][..], Vec::as_slice);
    candidates.iter().filter_map(|c| c["label"].as_str()).collect()
}

#[tokio::test]
async fn nothing_open_is_told_with_what_was_finished_last() {
    let bench = Bench::new().await;
    let nothing = bench.status(&ann(), json!({})).await;
    assert_eq!(nothing.outcome.as_str(), "none");
    assert_eq!(nothing.speech, "Nothing is open.");
    bench.clock.advance(10 * HOUR_MS + 12 * 60_000);
    let work = bench.finished(&ann(), "U-204").await;
    let last = bench.status(&ann(), json!({})).await;
    assert_eq!(last.outcome.as_str(), "none");
    assert_eq!(
        last.speech,
        "Nothing is open. Plain work on unit 204 was finished as good at 10:12."
    );
    assert_eq!(last.body["last_completed"]["workflow_id"], work.as_str());
    assert_eq!(last.body["last_recorded"]["step_id"], "whisper");
    assert_eq!(last.body["last_recorded"]["withheld"], true);
    assert!(bench.status(&bob(), json!({})).await.body.get("last_completed").is_none());
    bench.clock.advance(24 * HOUR_MS);
    assert!(bench.status(&ann(), json!({})).await.body.get("last_completed").is_some());
    bench.clock.advance(1);
    let later = bench.status(&ann(), json!({})).await;
    assert_eq!(later.speech, "Nothing is open.", "that was yesterday");
    assert!(later.body.get("last_completed").is_none());
}

#[tokio::test]
async fn one_open_is_shown_and_several_are_asked_about() {
    let bench = Bench::new().await;
    let first = bench.started(&ann(), "U-1").await;
    let one = bench.status(&ann(), json!({})).await;
    assert_eq!(one.outcome.as_str(), "view");
    assert_eq!(one.body["workflow"]["id"], first.as_str());
    assert_eq!(one.body["step"]["id"], "ready");
    assert_eq!(
        one.speech,
        "Plain work on unit 1 is under way; nothing is recorded yet. Next: Please tell the ready."
    );
    for n in 2..=7 {
        bench.started(&ann(), &format!("U-{n}")).await;
    }
    bench.started(&bob(), "U-9").await;
    let several = bench.status(&ann(), json!({})).await;
    assert_eq!(several.outcome.as_str(), "disambiguation");
    assert_eq!(several.body["candidates_total"], 7);
    assert_eq!(labels(&several).len(), 5);
    assert!(several.speech.starts_with("7 match. Which one: "), "{}", several.speech);
    assert!(several.body.get("workflow").is_none(), "never a guess");
    let named = bench.status(&ann(), json!({"workflow_id": first})).await;
    assert_eq!(named.body["workflow"]["id"], first.as_str());
    let by_asset = bench.status(&ann(), json!({"asset_id": "u 003"})).await;
    assert_eq!(by_asset.body["workflow"]["label"], "plain work on unit 3");
}

#[tokio::test]
async fn an_asset_tells_who_holds_it_or_what_was_last() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let held = bench.status(&bob(), json!({"asset_id": "u7"})).await;
    assert_eq!(held.body["workflow"]["id"], work.as_str());
    assert_eq!(held.body["workflow"]["owner"]["name"], "Ann");
    bench.confirmed(&ann(), "finish_workflow", finish(&work, "abandoned")).await;
    let free = bench.status(&bob(), json!({"asset_id": "U-7"})).await;
    assert_eq!(free.outcome.as_str(), "none");
    assert!(free.speech.starts_with("It is free."), "{}", free.speech);
    assert_eq!(free.body["last_completed"]["result"], "abandoned");
    assert!(free.speech.contains("Plain work on unit 7 was abandoned at "), "{}", free.speech);
    for unknown in ["U-99", "no such thing", ""] {
        let reply = bench.status(&bob(), json!({"asset_id": unknown})).await;
        assert_eq!(reply.outcome.as_str(), "none", "{unknown}");
        let free = reply.speech.starts_with("It is free");
        assert_eq!(
            free,
            unknown == "U-99",
            "what cannot be named is not said to be free: {unknown}"
        );
    }
    assert_eq!(
        code(&bench.status(&bob(), json!({"workflow_id": "nothing"})).await),
        "WORKFLOW_NOT_FOUND"
    );
}

#[tokio::test]
async fn the_full_view_has_the_last_fifty_events_oldest_first() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    bench.submit(&ann(), &work, "ready", "yes").await;
    bench.submit(&ann(), &work, "amount", "25").await;
    for n in 0..60 {
        let value = if n % 2 == 0 { "26" } else { "27" };
        bench.call(&ann(), "correct_step", correct(&work, "amount", value)).await;
    }
    let full = bench.status(&ann(), json!({"workflow_id": work, "detail": "full"})).await;
    let history = full.body["history"].as_array().unwrap();
    let seqs: Vec<u64> = history.iter().filter_map(|e| e["seq"].as_u64()).collect();
    assert_eq!(seqs, (15..=64).collect::<Vec<_>>());
    let last = history.last().unwrap();
    assert_eq!(
        (last["kind"].as_str(), last["value"].as_str()),
        (Some("step_corrected"), Some("27"))
    );
    assert_eq!((last["attempt"].as_u64(), last["by"]["name"].as_str()), (Some(61), Some("Ann")));
    let brief = bench.status(&ann(), json!({"workflow_id": work})).await;
    assert!(brief.body.get("history").is_none());
}

#[tokio::test]
async fn work_is_found_by_words_assets_and_scope() {
    let bench = Bench::new().await;
    let empty = bench.find(&ann(), json!({"scope": "mine"})).await;
    assert_eq!(empty.outcome.as_str(), "none");
    assert!(empty.speech.contains("Ask what is available"), "{}", empty.speech);
    bench.started(&ann(), "U-204").await;
    bench.started(&ann(), "U-31").await;
    let (_, _) = bench.blocked("U-5").await;
    bench.started(&bob(), "U-6").await;
    let found = |args: Value| async { bench.find(&ann(), args).await };
    let all = found(json!({})).await;
    assert_eq!(all.outcome.as_str(), "list");
    assert_eq!(all.body["candidates_total"], 5, "three of hers, two procedures");
    let mine = found(json!({"scope": "mine"})).await;
    assert_eq!(mine.body["candidates_total"], 3);
    let blocked = bench.find(&bob(), json!({"scope": "blocked"})).await;
    assert_eq!(labels(&blocked), ["plain work on unit 5"], "of the whole tenant");
    assert_eq!(blocked.body["candidates"][0]["state"], "BLOCKED");
    let available = found(json!({"scope": "available"})).await;
    assert_eq!(labels(&available), ["bare work", "plain work"]);
    assert_eq!(available.body["candidates"][1]["needs"]["assets"][0]["role"], "unit");
    for query in ["unit 204", "UNIT 0204", "204 pla", "u-204"] {
        let hit = found(json!({"query": query, "scope": "mine"})).await;
        assert_eq!(labels(&hit), ["plain work on unit 204"], "{query}");
    }
    for query in ["unit 20 5", "nit", "fancy"] {
        let miss = found(json!({"query": query})).await;
        assert_eq!(miss.outcome.as_str(), "none", "{query}: {}", miss.body);
    }
    let by_asset = found(json!({"asset_id": "u 031"})).await;
    assert_eq!(by_asset.body["candidates"][0]["label"], "plain work on unit 31");
    let foreign = bench.find(&abroad(&ann()), json!({"scope": "mine"})).await;
    assert_eq!(foreign.outcome.as_str(), "none");
}

#[tokio::test]
async fn an_asset_is_found_with_its_last_completed_work() {
    let bench = Bench::new().await;
    let work = bench.finished(&ann(), "U-7").await;
    let reply = bench.find(&bob(), json!({"asset_id": "u 7"})).await;
    assert_eq!(reply.body["last_completed"]["workflow_id"], work.as_str());
    assert_eq!(reply.body["last_completed"]["result"], "good");
    assert_eq!(labels(&reply), ["plain work"], "the procedures that use such an asset");
}

#[tokio::test]
async fn a_value_is_judged_without_being_recorded() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let commits = bench.commits();
    let check = |value: &'static str| {
        let args = json!({"workflow_id": work, "step_id": "amount", "value": value});
        let bench = &bench;
        async move { bench.check(&bob(), args).await }
    };
    let fine = check("25").await;
    assert_eq!(fine.outcome.as_str(), "verdict");
    assert_eq!(
        fine.body["verdict"],
        json!({"out_of_range": false, "blocks": false, "confirm": false})
    );
    assert_eq!(fine.speech, "25 marks would be accepted. It is not recorded yet.");
    let warned = check("55").await;
    assert_eq!(warned.body["warnings"], json!(["That is near the limit."]));
    let outside = check("70").await;
    assert_eq!(
        outside.body["verdict"],
        json!({"out_of_range": true, "blocks": true, "confirm": true})
    );
    assert!(outside.speech.contains("would stop the work"), "{}", outside.speech);
    assert_eq!(code(&check("700").await), "IMPLAUSIBLE_VALUE");
    assert_eq!(code(&check("abc").await), "VALIDATION_ERROR");
    let unknown = json!({"workflow_id": work, "step_id": "nowhere", "value": "1"});
    let unknown = bench.check(&ann(), unknown).await;
    assert_eq!(unknown.body["error"]["details"]["field"], "step_id");
    let secret = json!({"workflow_id": work, "step_id": "whisper", "value": "CANARY"});
    let secret = bench.check(&ann(), secret).await;
    assert!(!secret.body.to_string().contains("CANARY"), "{}", secret.body);
    let torn = json!({"workflow_id": work, "step_id": "shape", "value": "torn"});
    let torn = bench.check(&ann(), torn).await;
    assert_eq!(torn.body["verdict"]["blocks"], true);
    assert_eq!(bench.commits(), commits);
    assert_eq!(bench.stored(&ann(), &work).await.revision, 2);
}

#[tokio::test]
async fn questions_need_their_scope_and_a_store() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let nobody = Principal { scopes: Scopes::default(), ..ann() };
    let check = json!({"workflow_id": work, "step_id": "amount", "value": "25"});
    for reply in [
        bench.status(&nobody, json!({})).await,
        bench.find(&nobody, json!({})).await,
        bench.check(&nobody, check.clone()).await,
    ] {
        assert_eq!(code(&reply), "NOT_ALLOWED");
        assert_eq!(reply.body["error"]["details"]["scope"], "workflow:read");
    }
    for by in [reader(), sue()] {
        let reply = bench.status(&by, json!({"workflow_id": work})).await;
        assert_eq!(reply.body["workflow"]["owner"]["name"], "Ann", "who may read sees every work");
    }
    for method in [Method::Load, Method::OpenOf, Method::Blocked, Method::OfferedTo] {
        bench.store.fail_always(method, Some(Fault::Before));
    }
    for reply in [
        bench.status(&ann(), json!({})).await,
        bench.status(&ann(), json!({"workflow_id": work})).await,
        bench.status(&ann(), json!({"asset_id": "U-7"})).await,
        bench.find(&ann(), json!({})).await,
        bench.find(&ann(), json!({"scope": "blocked"})).await,
        bench.find(&ann(), json!({"scope": "available"})).await,
        bench.check(&ann(), check).await,
    ] {
        assert_eq!(code(&reply), "BACKEND_UNAVAILABLE");
        assert_eq!(reply.body["error"]["retry"], "same_call");
    }
}

#[tokio::test]
async fn nothing_that_anybody_is_told_holds_a_sensitive_value() {
    let bench = Bench::new().await;
    let args = json!({
        "procedure_id": "plain",
        "assets": {"unit": "U-7"},
        "inputs": {"order": "A-1", "hush": "CANARY input"},
    });
    let mut told = vec![bench.call(&ann(), "start_workflow", args.clone()).await.body];
    let work = told[0]["workflow"]["id"].as_str().unwrap().to_owned();
    told.push(bench.call(&ann(), "start_workflow", args).await.body);
    for (step, value) in [("ready", "yes"), ("amount", "25"), ("shape", "torn")] {
        told.push(bench.submit(&ann(), &work, step, value).await.body);
    }
    told.push(bench.call(&sue(), "resolve_block", resolve(&work, "block-6", "go_on")).await.body);
    told.push(bench.submit(&ann(), &work, "whisper", "CANARY one").await.body);
    told.push(bench.call(&ann(), "submit_step", submit(&work, "whisper", "CANARY two")).await.body);
    told.push(
        bench.call(&ann(), "correct_step", correct(&work, "whisper", "CANARY three")).await.body,
    );
    told.push(bench.status(&ann(), json!({"workflow_id": work, "detail": "full"})).await.body);
    told.push(bench.call(&ann(), "finish_workflow", finish(&work, "good")).await.body);
    told.push(bench.status(&ann(), json!({})).await.body);
    for body in &told {
        assert!(!body.to_string().contains("CANARY"), "{body}");
    }
    for commit in bench.store.commits() {
        let kept = format!("{:?} {:?} {:?}", commit.ledger, commit.outbox, commit.next);
        assert!(!kept.contains("CANARY"), "{kept}");
        let bodies: Vec<String> =
            commit.events.iter().map(|e| serde_json::to_string(&e.body).unwrap()).collect();
        assert!(!bodies.concat().contains("CANARY"), "{bodies:?}");
    }
    let beside = bench
        .store
        .commits()
        .iter()
        .flat_map(|c| c.events.clone())
        .filter(|e| !e.sensitive.is_empty())
        .count();
    assert_eq!(beside, 3, "the values themselves stand beside their events");
}
