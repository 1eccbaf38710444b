//! Resources over real sockets: what can be read, by whom, and that what others have cannot be told from what never was.

use serde_json::{Value, json};
use wf_core::access::Visibility;
use wf_core::evidence::{Damage, verify};

use crate::client::Answer;
use crate::readers::{self, ask, read, start, tool};
use crate::world::World;

const ANN: &str = "t1/ann/rw";
const SUE: &str = "t1/sue/rws";
/// Of the same tenant, without a right to see the work of others where visibility is one's own.
const BOB: &str = "t1/bob/rw";
/// Another tenant.
const EVE: &str = "t2/eve/rws";

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

async fn uris(world: &World, who: &str) -> Vec<String> {
    let listed = ask(world, who, "resources/list", json!({})).await.result();
    let all = listed["resources"].as_array().expect("a list").iter();
    all.map(|resource| resource["uri"].as_str().expect("an address").to_owned()).collect()
}

#[tokio::test]
async fn everything_of_a_workflow_is_read_by_address() {
    let (world, _) = readers::world(Visibility::Tenant).await;
    let id = start(&world, ANN, "asset-a", json!({"order": "A-1"})).await;
    let step = json!({"workflow_id": id, "step_id": "step-1", "value": "one", "note": "as said"});
    tool(&world, ANN, "submit_step", step).await;
    let own = format!("workflow://workflows/{id}");
    let listed = uris(&world, ANN).await;
    assert_eq!(listed, ["workflow://procedures/routine-one", "workflow://schemas/result", &own]);

    let schema = read(&world, ANN, "workflow://schemas/result").await;
    assert_eq!(json_of(&schema), wf_mcp_http::result_schema());
    let procedure = json_of(&read(&world, ANN, "workflow://procedures/routine-one").await);
    assert_eq!(procedure["document"], json!({"id": "routine-one", "version": 1}));
    assert_eq!(procedure["needs"]["assets"][0]["role"], "main");

    let view = json_of(&read(&world, ANN, &own).await);
    assert_eq!(view, tool(&world, ANN, "get_status", json!({"workflow_id": id})).await);
    let history = json_of(&read(&world, ANN, &format!("{own}/history")).await);
    let kinds: Vec<&str> = history["history"]
        .as_array()
        .expect("events")
        .iter()
        .map(|event| event["kind"].as_str().expect("a kind"))
        .collect();
    assert_eq!(kinds, ["workflow_started", "orchestration_acknowledged", "step_recorded"]);

    let evidence = read(&world, ANN, &format!("{own}/evidence")).await;
    let whole = verify(evidence.as_bytes()).expect("whole");
    assert_eq!((whole.workflow.id.as_str(), whole.events.len()), (id.as_str(), 3));
    assert_eq!(json_of(&evidence)["definition"]["document"], procedure["document"]);
    let broken = evidence.replace("as said", "as saie");
    let damage = verify(broken.as_bytes()).expect_err("changed");
    assert!(damage.iter().any(|Damage { message, .. }| message.contains("event 3")), "{damage:?}");
}

#[tokio::test]
async fn answers_say_how_long_they_hold_in_the_revision_that_has_it() {
    let world = World::new().await;
    let id = world.start("asset-a").await;
    for (method, params, ttl) in [
        ("resources/list", json!({}), 0),
        ("resources/templates/list", json!({}), 300_000),
        ("prompts/list", json!({}), 300_000),
        ("resources/read", json!({"uri": format!("workflow://workflows/{id}")}), 0),
        ("resources/read", json!({"uri": "workflow://schemas/result"}), 300_000),
    ] {
        let modern = ask(&world, "", method, params.clone()).await.result();
        assert_eq!(
            (modern["ttlMs"].as_u64(), &modern["cacheScope"]),
            (Some(ttl), &json!("private")),
            "{modern}"
        );
        assert_eq!(modern["resultType"], "complete");
        let legacy = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let legacy = world.post(&legacy).await.result();
        for key in ["ttlMs", "cacheScope", "resultType"] {
            assert_eq!(legacy.get(key), None, "{legacy}");
        }
    }
    let templates = ask(&world, "", "resources/templates/list", json!({})).await.result();
    let templates = templates["resourceTemplates"].as_array().expect("templates").clone();
    let templates: Vec<_> = templates.iter().map(|t| t["uriTemplate"].clone()).collect();
    assert_eq!(
        templates,
        [
            "workflow://procedures/{id}",
            "workflow://workflows/{id}",
            "workflow://workflows/{id}/evidence",
            "workflow://workflows/{id}/history{?page}",
        ]
    );
}

#[tokio::test]
async fn a_long_history_is_read_by_pages_and_none_is_missing() {
    let (world, _) = readers::world(Visibility::Tenant).await;
    let id = start(&world, ANN, "asset-a", json!({})).await;
    for n in 0..203 {
        let note = json!({"workflow_id": id, "summary": format!("note {n}"), "severity": "note"});
        assert_eq!(tool(&world, ANN, "report_problem", note).await["outcome"], "noted");
    }
    let page = |n: u32| format!("workflow://workflows/{id}/history?page={n}");
    let mut seqs = Vec::new();
    for n in 1..=3 {
        let history = json_of(&read(&world, ANN, &page(n)).await);
        assert_eq!((&history["pages"], &history["page"]), (&json!(3), &json!(n)));
        assert_eq!(history["revision"], 205);
        let events = history["history"].as_array().expect("events");
        assert!(events.len() <= 100);
        seqs.extend(events.iter().map(|event| event["seq"].as_u64().expect("a number")));
    }
    assert_eq!(seqs, (1..=205).collect::<Vec<u64>>());
    for n in [0, 4, 4_000_000_000] {
        let refused = ask(&world, ANN, "resources/read", json!({"uri": page(n)})).await;
        assert_eq!(refused.rpc(), (200, -32602), "{n}");
        assert_eq!(refused.json()["error"]["data"]["code"], "VALIDATION_ERROR");
    }
    let evidence = read(&world, ANN, &format!("workflow://workflows/{id}/evidence")).await;
    assert_eq!(verify(evidence.as_bytes()).expect("whole").events.len(), 205);
}

/// All that an answer says, but for the id that was asked for.
fn said(answer: &Answer, id: &str) -> String {
    let (status, headers, body) = answer.comparable();
    let headers: Vec<_> =
        headers.into_iter().filter(|(name, _)| name != "content-length").collect();
    format!("{status} {headers:?} {}", String::from_utf8_lossy(&body).replace(id, "<id>"))
}

#[tokio::test]
async fn what_others_have_is_answered_like_what_never_was() {
    let (world, _) = readers::world(Visibility::Own).await;
    let id = start(&world, ANN, "asset-a", json!({})).await;
    for (reader, sees) in [(ANN, true), (SUE, true), (BOB, false), (EVE, false)] {
        for rest in ["", "/history", "/history?page=1", "/history?page=9", "/evidence"] {
            let of = |id: &str| json!({"uri": format!("workflow://workflows/{id}{rest}")});
            let asked = ask(&world, reader, "resources/read", of(&id)).await;
            let never = ask(&world, reader, "resources/read", of("never-was")).await;
            assert_eq!(never.json()["error"]["code"], -32602);
            assert_eq!(said(&asked, &id) == said(&never, "never-was"), !sees, "{reader} {rest}");
        }
        let explain = |id: &str| json!({"name": "explain_block", "arguments": {"workflow_id": id}});
        let asked = ask(&world, reader, "prompts/get", explain(&id)).await;
        let never = ask(&world, reader, "prompts/get", explain("never-was")).await;
        assert_eq!(said(&asked, &id) == said(&never, "never-was"), !sees, "{reader}");

        let listed = uris(&world, reader).await;
        assert_eq!(
            listed.iter().any(|uri| uri.contains(&id)),
            reader == ANN,
            "{reader}: {listed:?}"
        );
        let complete = json!({
            "ref": {"type": "ref/resource", "uri": "workflow://workflows/{id}"},
            "argument": {"name": "id", "value": ""},
        });
        let completed = ask(&world, reader, "completion/complete", complete).await.result();
        let values = completed["completion"]["values"].as_array().expect("values");
        assert_eq!(values.contains(&json!(id)), reader == ANN, "{reader}: {values:?}");
    }
    // An address that is none is no more than one of nothing.
    let odd = ask(&world, EVE, "resources/read", json!({"uri": "workflow://workflows/a/b"})).await;
    assert_eq!(odd.json()["error"]["message"], "there is no such resource");
    let legacy =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "x:y"}});
    let token = format!("Bearer {EVE}");
    let legacy =
        world.client().post(&[("authorization", &token)], legacy.to_string().as_bytes()).await;
    assert_eq!(legacy.rpc(), (200, -32002), "as these revisions say it");
}

#[tokio::test]
async fn evidence_of_sensitive_values_is_for_supervisors() {
    let (world, _) = readers::world(Visibility::Tenant).await;
    let secret = "a word that is nowhere else";
    let id = start(&world, ANN, "asset-a", json!({"hush": secret})).await;
    let uri = format!("workflow://workflows/{id}/evidence");
    let refused = ask(&world, ANN, "resources/read", json!({"uri": uri})).await;
    assert_eq!(refused.rpc(), (200, -32602));
    assert_eq!(refused.json()["error"]["data"]["code"], "NOT_ALLOWED");
    let told = read(&world, SUE, &uri).await;
    let whole = verify(told.as_bytes()).expect("whole");
    assert!(told.contains(secret) && whole.is_sensitive());
    for rest in ["", "/history"] {
        for reader in [ANN, SUE] {
            let told = read(&world, reader, &format!("workflow://workflows/{id}{rest}")).await;
            assert!(!told.contains(secret), "{reader} {rest}");
            // Nor what it could be tried against.
            assert!(!told.contains("fingerprint"), "{reader} {rest}");
        }
    }
}

#[tokio::test]
async fn rights_come_before_everything() {
    let (world, _) = readers::world(Visibility::Tenant).await;
    let id = start(&world, ANN, "asset-a", json!({})).await;
    let uri = format!("workflow://workflows/{id}");
    let nobody = "t1/ned/";
    assert_eq!(uris(&world, nobody).await, ["workflow://schemas/result"]);
    let prompts = ask(&world, nobody, "prompts/list", json!({})).await.result();
    assert_eq!(prompts["prompts"], json!([]));
    for uri in [uri.as_str(), "workflow://workflows/never-was", "workflow://schemas/result"] {
        let refused = ask(&world, nobody, "resources/read", json!({"uri": uri})).await;
        assert_eq!(refused.json()["error"]["data"]["code"], "NOT_ALLOWED", "{uri}");
    }
    // A service learns what there is, of nobody's work.
    assert_eq!(
        uris(&world, "service").await,
        ["workflow://procedures/routine-one", "workflow://schemas/result"]
    );
    for (method, params) in [
        ("resources/read", json!({"uri": "workflow://schemas/result"})),
        ("prompts/get", json!({"name": "resume_my_work"})),
        ("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [uri]}})),
    ] {
        assert_eq!(ask(&world, "service", method, params).await.status, 401, "{method}");
    }
}

#[tokio::test]
async fn a_long_list_is_read_by_pages() {
    let (world, _) = readers::world(Visibility::Tenant).await;
    for n in 0..100 {
        start(&world, ANN, &format!("asset-{n}"), json!({})).await;
    }
    let first = ask(&world, ANN, "resources/list", json!({})).await.result();
    assert_eq!(first["resources"].as_array().map(Vec::len), Some(100));
    let cursor = first["nextCursor"].clone();
    let second = ask(&world, ANN, "resources/list", json!({"cursor": cursor})).await.result();
    assert_eq!(second["resources"].as_array().map(Vec::len), Some(2));
    assert_eq!(second.get("nextCursor"), None);
    let wrong = ask(&world, ANN, "resources/list", json!({"cursor": "made up"})).await;
    assert_eq!(wrong.json()["error"]["code"], -32602);
}

#[tokio::test]
async fn the_beginning_of_what_is_meant_is_completed() {
    let (world, _) = readers::world(Visibility::Tenant).await;
    let one = start(&world, ANN, "asset-204", json!({})).await;
    let other = start(&world, ANN, "asset-7", json!({})).await;
    tool(
        &world,
        ANN,
        "report_problem",
        json!({"workflow_id": other, "summary": "x", "severity": "high"}),
    )
    .await;
    let complete = async |reference: Value, name: &str, value: &str| {
        let params = json!({"ref": reference, "argument": {"name": name, "value": value}});
        ask(&world, ANN, "completion/complete", params).await.result()["completion"]["values"]
            .clone()
    };
    let template = |uri: &str| json!({"type": "ref/resource", "uri": uri});
    let history = template("workflow://workflows/{id}/history{?page}");
    assert_eq!(complete(history.clone(), "id", "Routine 204").await, json!([one]), "by its words");
    assert_eq!(complete(history.clone(), "id", &other).await, json!([other]), "by its id");
    assert_eq!(complete(history, "page", "").await, json!([]));
    let procedure = template("workflow://procedures/{id}");
    assert_eq!(complete(procedure, "id", "rout").await, json!(["routine-one"]));
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    assert_eq!(
        complete(prompt("explain_block"), "workflow_id", "").await,
        json!([other]),
        "only what is blocked"
    );
    let end = json!({"workflow_id": one, "result": "abandoned"});
    let asked = tool(&world, ANN, "finish_workflow", end.clone()).await;
    let mut end = end;
    end["confirm_token"] = asked["confirm"]["token"].clone();
    assert_eq!(tool(&world, ANN, "finish_workflow", end).await["outcome"], "finished");
    let assets = complete(prompt("start_routine-one"), "main", "ASSET").await;
    assert_eq!(assets, json!(["ASSET-204"]), "what is free, not what is held");
    let params = json!({"ref": template("shop://{id}"), "argument": {"name": "id", "value": ""}});
    assert_eq!(
        ask(&world, ANN, "completion/complete", params).await.json()["error"]["code"],
        -32602
    );
}
