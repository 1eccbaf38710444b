//! Two tenants that do the very same, with the very same names: nothing of the one is in any answer, row or message of
//! the other (domain.md, I11). Everything that the first says or is called carries a canary.

use serde_json::{Value, json};
use wf_core::models::Principal;
use wf_core::ports::OutboxQuery;
use wf_core::ports::StorageBackendPort as _;
use wf_testkit::build::{tenant, user};

use crate::engine_bench::{
    Bench, ann, code, correct, finish, keyed, resolve, start, submit, sue, with,
};

/// Stands in all that the first tenant says.
const CANARY: &str = "Kanari";

/// The same person, a supervisor, in either tenant: same subject, same scopes; only the names differ.
fn in_tenant(name: &str, says: &str) -> Principal {
    let said = |what: &str| format!("{says} {what}");
    Principal { tenant: tenant(name), actor: user("the-same"), name: Some(said("Name")), ..sue() }
}

/// Drives one workflow by every kind of call, with the same keys in either tenant. All answers.
async fn day(bench: &Bench, by: &Principal, says: &str) -> Vec<Value> {
    let said = |what: &str| Value::from(format!("{says} {what}"));
    let inputs = json!({"order": said("order"), "hush": said("hush")});
    let begin = keyed(with(start("U-7"), "inputs", &inputs), "k-start");
    let mut told = vec![bench.call(by, "start_workflow", begin.clone()).await.body];
    let work = told[0]["workflow"]["id"].as_str().unwrap().to_owned();
    let call = async |tool: &'static str, key: &str, args: Value| {
        bench.call(by, tool, keyed(args, key)).await.body
    };
    let noted = |args: Value| with(args, "note", &said("note"));
    told.push(call("submit_step", "k-1", noted(submit(&work, "ready", "yes"))).await);
    let asked = call("submit_step", "k-2", submit(&work, "amount", "70")).await;
    let token = &asked["confirm"]["token"];
    let confirmed = with(submit(&work, "amount", "70"), "confirm_token", token);
    told.push(call("submit_step", "k-2", confirmed).await);
    let block = told.last().unwrap()["blocks"][0]["id"].as_str().unwrap().to_owned();
    let report = json!({"workflow_id": work, "summary": said("summary"), "severity": "high"});
    told.push(call("report_problem", "k-3", report).await);
    for block in [block.as_str(), "block-6"] {
        let decided = with(resolve(&work, block, "go_on"), "comment", &said("comment"));
        told.push(call("resolve_block", &format!("k-{block}"), decided).await);
    }
    for (step, value) in [("share", "5"), ("shape", "flat")] {
        told.push(bench.submit(by, &work, step, value).await.body);
    }
    told.push(
        call("skip_step", "k-4", noted(json!({"workflow_id": work, "step_id": "remark"}))).await,
    );
    let whisper = said("whisper");
    told.push(
        call("submit_step", "k-5", submit(&work, "whisper", whisper.as_str().unwrap())).await,
    );
    told.push(call("correct_step", "k-6", noted(correct(&work, "share", "6"))).await);
    told.push(bench.status(by, json!({"workflow_id": work, "detail": "full"})).await.body);
    told.push(bench.status(by, json!({"asset_id": "U-7"})).await.body);
    told.push(bench.find(by, json!({"query": "unit"})).await.body);
    // The same again: a replay, a conflict, a twin.
    told.push(bench.call(by, "start_workflow", begin.clone()).await.body);
    told.push(call("start_workflow", "k-1", start("U-8")).await);
    told.push(call("start_workflow", "k-twin", with(start("U-7"), "inputs", &inputs)).await);
    told.push(call("start_workflow", "k-other", start("U-7")).await);
    told.push(call("finish_workflow", "k-7", noted(finish(&work, "bad"))).await);
    told.push(bench.status(by, json!({})).await.body);
    told.push(bench.find(by, json!({"asset_id": "u 7"})).await.body);
    told.push(bench.find(by, json!({"scope": "blocked"})).await.body);
    told
}

/// What a tenant's answer would be, whoever else is in the store: without ids, which are of one workflow.
fn shape(told: &[Value]) -> Vec<String> {
    told.iter().map(|body| format!("{} {}", body["outcome"], body["speech"])).collect()
}

#[tokio::test]
async fn canaries_of_one_tenant_are_in_nothing_of_another() {
    let bench = Bench::new().await;
    let (first, second) = (in_tenant("main", CANARY), in_tenant("main.2", "Spatz"));
    let theirs = day(&bench, &first, CANARY).await;
    let before = bench.store.commits().len();
    let told = day(&bench, &second, "Spatz").await;
    assert_eq!(shape(&theirs).len(), shape(&told).len());
    let tells = |body: &Value, what: &str| body.to_string().contains(what);
    assert!(theirs.iter().any(|body| tells(body, CANARY)), "the canary sings where it lives");
    assert!(told.iter().any(|body| tells(body, "Spatz")));
    let ids: Vec<&str> = theirs.iter().filter_map(|body| body["workflow"]["id"].as_str()).collect();
    for body in &told {
        assert!(!tells(body, CANARY), "{body}");
        assert!(ids.iter().all(|id| !tells(body, id)), "{body}");
    }
    // Word for word as if the first had never been there.
    let alone = day(&Bench::new().await, &second, "Spatz").await;
    assert_eq!(shape(&told), shape(&alone));
    for commit in &bench.store.commits()[before..] {
        assert_eq!(commit.next.tenant, second.tenant);
        assert_eq!(commit.ledger.key.tenant, second.tenant);
        assert!(commit.outbox.iter().all(|message| message.tenant == second.tenant));
        // Debug of sensitive values shows none; their bodies are looked at too.
        let kept = format!("{commit:?} {}", serde_json::to_string(&commit.events).unwrap());
        assert!(!kept.contains(CANARY), "{kept}");
    }
}

#[tokio::test]
async fn messages_say_whose_they_are_and_hold_nothing_of_others() {
    let bench = Bench::new().await;
    day(&bench, &in_tenant("main", CANARY), CANARY).await;
    day(&bench, &in_tenant("main.2", "Spatz"), "Spatz").await;
    let query = OutboxQuery { limit: 1_000, ..OutboxQuery::default() };
    let rows = bench.model.list_outbox(&query).await.unwrap().items;
    let mut of = std::collections::BTreeMap::<String, usize>::new();
    for row in &rows {
        let written = serde_json::to_string(&row.message).unwrap();
        let whose = if row.message.tenant.as_str() == "main" { "Spatz" } else { CANARY };
        assert!(!written.contains(whose), "{written}");
        *of.entry(row.message.tenant.to_string()).or_default() += 1;
    }
    assert_eq!(of.len(), 2);
    assert_eq!(of["main"], of["main.2"], "{of:?}");
}

/// A key, an asset and a workflow of one tenant are free in another, and neither knows.
#[tokio::test]
async fn the_same_names_are_two_of_each() {
    let bench = Bench::new().await;
    let far = Principal { tenant: tenant("abroad"), ..ann() };
    let args = keyed(start("U-7"), "k-1");
    let here = bench.call(&ann(), "start_workflow", args.clone()).await;
    let there = bench.call(&far, "start_workflow", args.clone()).await;
    assert!(!here.duplicate && !there.duplicate, "{}", there.body);
    assert_ne!(here.body["workflow"]["id"], there.body["workflow"]["id"]);
    let (work, theirs) = (&here.body["workflow"]["id"], &there.body["workflow"]["id"]);
    // Ended here, held there.
    let end = finish(work.as_str().unwrap(), "abandoned");
    bench.confirmed(&ann(), "finish_workflow", end).await;
    let again = keyed(with(start("U-7"), "inputs", &json!({"order": "other"})), "k-2");
    let locked = bench.call(&far, "start_workflow", again).await;
    assert_eq!(code(&locked), "ASSET_LOCKED");
    assert_eq!(&locked.body["error"]["details"]["workflow_id"], theirs);
    let going_on = bench.submit(&far, theirs.as_str().unwrap(), "ready", "yes").await;
    assert!(going_on.error.is_none(), "{}", going_on.body);
    // A read-back of one tenant confirms nothing in another.
    let third = bench.started(&ann(), "U-9").await;
    bench.submit(&ann(), &third, "ready", "yes").await;
    let asked = bench.call(&ann(), "submit_step", submit(&third, "amount", "70")).await;
    let token = &asked.body["confirm"]["token"];
    let forged = submit(theirs.as_str().unwrap(), "amount", "70");
    let forged = bench.call(&far, "submit_step", with(forged, "confirm_token", token)).await;
    assert_eq!(forged.outcome.as_str(), "needs_confirmation");
}
