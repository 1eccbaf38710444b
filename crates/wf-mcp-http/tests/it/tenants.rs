//! Two tenants at one server: what the one says is in no answer, log line or metric of the other, and what the one has is,
//! for the other, what never was.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use serde_json::{Value, json};
use wf_core::idempotency::Fingerprint;
use wf_core::models::{Actor, Principal, Scopes, TenantId};
use wf_mcp_http::{Authenticator, Caller, Refusal};
use wf_testkit::build::{CommitBuilder, asset, at, user, workflow_id};

use crate::client::{Answer, call};
use crate::records::{LINES, METRICS};
use crate::world::{Steady, World};

/// `Bearer <tenant>/<name>` is that person of that tenant, under one subject in all of them.
#[derive(Debug)]
struct ByTenant;

#[async_trait]
impl Authenticator for ByTenant {
    async fn authenticate(&self, head: &http::request::Parts) -> Result<Caller, Refusal> {
        let sent = head.headers.get("authorization").and_then(|v| v.to_str().ok());
        let word = sent.and_then(|v| v.strip_prefix("Bearer ")).ok_or(Refusal::Unauthenticated)?;
        let (tenant, name) = word.split_once('/').ok_or(Refusal::Unauthenticated)?;
        Ok(Caller::User(Arc::new(Principal {
            tenant: TenantId::parse(tenant).map_err(|_| Refusal::Unauthenticated)?,
            actor: Actor::User("the-same".to_owned()),
            name: Some(name.to_owned()),
            scopes: Scopes::ALL,
            ..Principal::local()
        })))
    }
}

async fn world() -> World {
    World::build(|_| {}, Some(Arc::new(ByTenant)), Arc::new(Steady)).await
}

async fn ask(world: &World, who: &str, tool: &str, arguments: Value) -> Answer {
    let token = format!("Bearer {who}");
    let body = call(tool, arguments).to_string();
    world.client().post(&[("authorization", &token)], body.as_bytes()).await
}

/// Everything that a person of a tenant may do, with `says` in all that can be said; every answer.
async fn day(world: &World, who: &str, says: &str) -> Vec<Answer> {
    let said = |what: &str| format!("{says} {what}");
    let thing = format!("{says}-1");
    let key = |n: u32| format!("key-{n}");
    let begin = json!({
        "procedure_id": "routine-one", "assets": {"main": thing}, "idempotency_key": key(0),
    });
    let started = ask(world, who, "start_workflow", begin.clone()).await;
    let view = started.result()["structuredContent"].clone();
    let work = view["workflow"]["id"].as_str().expect("started").to_owned();
    let mut told = vec![started];
    for (n, (tool, arguments)) in [
        ("submit_step", json!({"step_id": "step-1", "value": said("one"), "note": said("note")})),
        ("report_problem", json!({"summary": said("summary"), "severity": "note"})),
        ("report_problem", json!({"summary": said("trouble"), "severity": "high"})),
        ("resolve_block", json!({"block_id": "block-5", "decision": "continue", "comment": said("so")})),
        ("correct_step", json!({
            "step_id": "step-1", "value": said("two"), "reason_code": "REASON_ONE", "note": said("why"),
        })),
        ("skip_step", json!({"step_id": "step-2", "reason_code": "REASON_ONE", "note": said("no")})),
        ("transfer_workflow", json!({"action": "offer", "to": said("them")})),
        ("transfer_workflow", json!({"action": "offer"})),
        ("finish_workflow", json!({"result": "good", "note": said("end")})),
        ("finish_workflow", json!({"result": says, "note": said("end")})),
    ]
    .into_iter()
    .enumerate()
    {
        let mut arguments = arguments;
        arguments["workflow_id"] = json!(work);
        arguments["idempotency_key"] = json!(key(u32::try_from(n).expect("few") + 1));
        told.push(ask(world, who, tool, arguments).await);
    }
    for (tool, arguments) in [
        ("get_status", json!({"workflow_id": work, "detail": "full"})),
        ("get_status", json!({"asset_id": thing})),
        ("get_status", json!({})),
        ("find_work", json!({"query": says})),
        ("find_work", json!({"asset_id": thing})),
        ("check_value", json!({"workflow_id": work, "step_id": "step-1", "value": said("three")})),
        ("start_workflow", begin),
        (
            "start_workflow",
            json!({
                "procedure_id": "routine-one", "assets": {"main": "other"}, "idempotency_key": key(0),
            }),
        ),
        ("start_workflow", json!({"procedure_id": "routine-one", "assets": {"main": says}})),
    ] {
        told.push(ask(world, who, tool, arguments).await);
    }
    told
}

fn sings(text: &str) -> bool {
    text.to_lowercase().contains("kanari")
}

#[tokio::test]
async fn canaries_of_one_tenant_are_in_no_answer_line_or_metric_of_another() {
    let (lines, metrics) = (LazyLock::force(&LINES), LazyLock::force(&METRICS));
    let world = world().await;
    let theirs = day(&world, "alpha/Kanari Singer", "Kanari").await;
    let told = day(&world, "beta/Sparrow", "Spatz").await;
    let text = |answer: &Answer| format!("{answer:?} {}", String::from_utf8_lossy(&answer.body));
    assert!(theirs.iter().filter(|answer| sings(&text(answer))).count() > 10, "it sings at home");
    let outcomes = |told: &[Answer]| -> Vec<String> {
        told.iter()
            .map(|answer| answer.result()["structuredContent"]["outcome"].to_string())
            .collect()
    };
    assert_eq!(outcomes(&told), outcomes(&theirs));
    for outcome in ["started", "noted", "blocked", "resolved", "corrected", "finished", "verdict"] {
        assert!(outcomes(&told).contains(&format!("{outcome:?}")), "{outcome} is told");
    }
    for answer in &told {
        assert_eq!(answer.status, 200);
        assert!(!sings(&text(answer)), "{}", text(answer));
    }
    // What is logged above the wire is logged for one tenant or for nobody, and nothing that was said is.
    let text = lines.text();
    let of = |tenant: &str| text.matches(&format!("tenant=\"{tenant}\"")).count();
    assert!(
        of("alpha") >= theirs.len() && of("beta") >= told.len(),
        "{} {}",
        of("alpha"),
        of("beta")
    );
    for line in text.lines().filter(|line| !line.contains(" hyper::") && !line.contains(" rmcp::"))
    {
        assert!(!sings(line), "{line}");
        assert!(
            !line.contains("tenant=\"alpha\" ") || !line.contains("tenant=\"beta\" "),
            "{line}"
        );
    }
    // rmcp shows messages where it is asked to show everything: those of a tenant in the tenant's own requests.
    for line in text.lines().filter(|line| line.contains("tenant=\"beta\"")) {
        assert!(!sings(line), "{line}");
    }
    let page = metrics.render();
    assert!(!sings(&page), "{page}");
    let calls = page.lines().filter(|line| line.starts_with("checkpoint_tool_calls_total{"));
    let mut counted = std::collections::BTreeMap::<&str, usize>::new();
    for line in calls {
        let tenant = line.split("tenant=\"").nth(1).and_then(|rest| rest.split('"').next());
        let count: usize = line.rsplit(' ').next().expect("a number").parse().expect("a number");
        *counted.entry(tenant.expect("every count is somebody's")).or_default() += count;
    }
    assert_eq!(counted, [("alpha", theirs.len()), ("beta", told.len())].into());
}

/// An id of another tenant, and one that never was, are one answer: status, headers and every byte of the body.
#[tokio::test]
async fn a_foreign_id_and_an_unknown_one_are_one_answer() {
    let world = world().await;
    let begin = json!({"procedure_id": "routine-one", "assets": {"main": "thing-1"}});
    let started = ask(&world, "alpha/Ann", "start_workflow", begin).await;
    let foreign = started.result()["structuredContent"]["workflow"]["id"].clone();
    let foreign = foreign.as_str().expect("started");
    let unknown = "00000000-0000-7000-8000-00000000abcd";
    assert_ne!(foreign, unknown);
    let step = |more: Value| {
        let mut arguments = json!({"step_id": "step-1", "value": "7", "idempotency_key": "key-1"});
        arguments.as_object_mut().expect("one").extend(more.as_object().expect("one").clone());
        arguments
    };
    for (tool, arguments) in [
        ("get_status", json!({"detail": "full"})),
        ("check_value", json!({"step_id": "step-1", "value": "7"})),
        ("submit_step", step(json!({}))),
        ("correct_step", step(json!({"reason_code": "REASON_ONE"}))),
        ("skip_step", json!({"step_id": "step-1", "reason_code": "REASON_ONE"})),
        ("report_problem", json!({"summary": "it squeaks"})),
        ("resolve_block", json!({"block_id": "block-1", "decision": "continue", "comment": "so"})),
        ("transfer_workflow", json!({"action": "offer"})),
        ("transfer_workflow", json!({"action": "accept"})),
        ("transfer_workflow", json!({"action": "take_over", "reason_code": "REASON_ONE"})),
        ("finish_workflow", json!({"result": "good"})),
        ("finish_workflow", json!({"result": "abandoned"})),
    ] {
        let about = async |id: &str| {
            let mut arguments = arguments.clone();
            arguments["workflow_id"] = json!(id);
            ask(&world, "beta/Bob", tool, arguments).await
        };
        let answer = about(foreign).await;
        let code = answer.result()["structuredContent"]["error"]["code"].clone();
        assert_eq!(code, "WORKFLOW_NOT_FOUND", "{tool}");
        assert_eq!(answer.comparable(), about(unknown).await.comparable(), "{tool}");
    }
    let (held, free) = (json!({"asset_id": "thing-1"}), json!({"asset_id": "thing-2"}));
    let held = ask(&world, "beta/Bob", "get_status", held).await;
    assert_eq!(held.comparable(), ask(&world, "beta/Bob", "get_status", free).await.comparable());
}

/// What the engine calls a bug is logged under the id of the request, and the caller learns that id and nothing else.
#[tokio::test]
async fn a_bug_inside_is_logged_under_the_incident_that_is_told() {
    let lines = LazyLock::force(&LINES);
    let world = world().await;
    let arguments = json!({"workflow_id": "wf-1", "summary": "dusty", "severity": "note"});
    let payload = arguments.as_object().expect("an object");
    // A stored answer that nobody can read.
    let (tenant, owner) = (TenantId::parse("alpha").expect("an id"), user("the-same"));
    let start = CommitBuilder::start(&tenant, &workflow_id("wf-1"), &owner, at(0));
    let mut commit = start.acquire(&asset("THING-1"), 1).key("k-1").build();
    commit.ledger.entry.operation = "report_problem".to_owned();
    commit.ledger.entry.fingerprint =
        Fingerprint::of("report_problem", payload, &[]).expect("canonical");
    commit.ledger.entry.result = json!({"outcome": "Kanari"}).to_string();
    world.store.port().commit(commit).await.expect("taken");
    let mut arguments = arguments;
    arguments["idempotency_key"] = json!("k-1");
    let body = call("report_problem", arguments).to_string();
    let headers = [("authorization", "Bearer alpha/Ann"), ("x-request-id", "incident-9")];
    let answer = world.client().post(&headers, body.as_bytes()).await;
    let error = answer.result()["structuredContent"]["error"].clone();
    assert_eq!(error["code"], "INTERNAL", "{error}");
    assert_eq!(error["details"], json!({"incident": "incident-9"}));
    assert_eq!(error["message"], "an internal error");
    let text = lines.text();
    let logged = |line: &&str| line.contains(" ERROR ") && line.contains("incident=\"incident-9\"");
    let line = text.lines().find(logged).expect("a line");
    assert!(line.contains("the stored result cannot be read"), "{line}");
    assert!(line.contains("tool=\"report_problem\""), "{line}");
}
