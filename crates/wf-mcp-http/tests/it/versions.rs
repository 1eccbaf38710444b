//! The four revisions of MCP, from one stateless handler.

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::world::World;

const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN: &str = "2026-07-28";

fn initialize(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": "4e3bdaee-0", "method": "initialize", "params": {
        "protocolVersion": version,
        "capabilities": {"roots": {"listChanged": true}},
        "clientInfo": {"name": "a client", "version": "1"},
    }})
}

/// A request of 2026-07-28 with everything that it must have.
fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "a client", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

async fn post(client: &Client, headers: &[(&str, &str)], body: &Value) -> Answer {
    client.post(headers, body.to_string().as_bytes()).await
}

#[tokio::test]
async fn the_handshake_agrees_on_what_both_speak() {
    let world = World::new().await;
    let mut cases: Vec<_> = LEGACY.map(|version| (version, version)).to_vec();
    // Without the handshake there is nothing newer to agree on; older ones and unknown ones get the newest with it.
    cases.extend([(MODERN, "2025-11-25"), ("2024-11-05", "2025-11-25"), ("1999", "2025-11-25")]);
    for (asked, agreed) in cases {
        let result = world.post(&initialize(asked)).await.result();
        assert_eq!(result["protocolVersion"], agreed, "{asked}");
        assert_eq!(result["serverInfo"]["name"], "checkpoint");
        let can = json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}});
        assert_eq!(result["capabilities"], can, "no resources/subscribe, which needs a session");
        let rules = result["instructions"].as_str().expect("rules");
        assert!(rules.contains("next_idempotency_key") && rules.contains("confirm.read_back"));
        assert_eq!(result.get("resultType"), None, "{asked}");
    }
}

#[tokio::test]
async fn every_legacy_revision_lists_and_calls_without_a_handshake() {
    let world = World::new().await;
    let client = world.client();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let call = crate::client::call("find_work", json!({}));
    let mut seen = Vec::new();
    for version in LEGACY.iter().map(Some).chain([None]) {
        let headers: Vec<_> = version.map(|v| ("mcp-protocol-version", *v)).into_iter().collect();
        let listed = post(&client, &headers, &list).await.result();
        assert_eq!(listed["tools"], wf_mcp_http::tool_list()["tools"]);
        assert_eq!((listed.get("ttlMs"), listed.get("resultType")), (None, None), "{version:?}");
        let called = post(&client, &headers, &call).await.result();
        assert_eq!((&called["isError"], called.get("resultType")), (&json!(false), None));
        seen.push(called);
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
}

#[tokio::test]
async fn the_published_conversation_of_a_voice_client_works() {
    let world = World::new().await;
    let client = world.client();
    let hello = post(&client, &[], &initialize("2025-03-26")).await;
    assert_eq!(hello.json()["id"], "4e3bdaee-0");
    assert_eq!(hello.result()["protocolVersion"], "2025-03-26");
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(&client, &[], &initialized).await.status, 202);
    let list = json!({"jsonrpc": "2.0", "id": "4e3bdaee-1", "method": "tools/list", "params": {}});
    assert!(post(&client, &[], &list).await.result()["tools"].is_array());
    // The follow-up comes on another connection, without a session.
    let workflow = world.start("asset-a").await;
    let status = world.call("get_status", json!({})).await;
    assert_eq!(status["workflow"]["id"], workflow.as_str(), "{status}");
}

#[tokio::test]
async fn the_modern_revision_discovers_lists_and_calls() {
    let world = World::new().await;
    let client = world.client();
    let headers =
        |method: &'static str| vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
    let discover = modern("server/discover", json!({}));
    let found = post(&client, &headers("server/discover"), &discover).await.result();
    assert_eq!(found["supportedVersions"], json!(wf_mcp_http::SUPPORTED_VERSIONS));
    assert_eq!(found["resultType"], "complete");
    assert!(found["ttlMs"].as_u64().is_some_and(|ttl| ttl > 0), "{found}");
    assert_eq!(found["cacheScope"], "private");
    assert!(found["instructions"].is_string());

    let listed = post(&client, &headers("tools/list"), &modern("tools/list", json!({}))).await;
    let listed = listed.result();
    assert_eq!(listed["resultType"], "complete");
    assert!(listed["ttlMs"].as_u64().is_some_and(|ttl| ttl > 0), "{listed}");
    assert_eq!(listed["cacheScope"], "private");

    let mut with_name = headers("tools/call");
    with_name.push(("mcp-name", "find_work"));
    let call = modern("tools/call", json!({"name": "find_work", "arguments": {}}));
    let called = post(&client, &with_name, &call).await.result();
    assert_eq!(called["resultType"], "complete");
    assert_eq!(called["isError"], false);
    let info = &called["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "checkpoint", "{called}");
}

#[tokio::test]
async fn refused_arguments_are_complete_results_in_the_modern_revision_too() {
    let world = World::new().await;
    let headers =
        [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "find_work")];
    let call = modern("tools/call", json!({"name": "find_work", "arguments": {"query": "a"}}));
    let doubled = call.to_string().replace(r#"{"query":"a"}"#, r#"{"query":"a","query":"b"}"#);
    assert_ne!(doubled, call.to_string());
    let answer = world.client().post(&headers, doubled.as_bytes()).await;
    let result = answer.result();
    assert_eq!((&result["isError"], &result["resultType"]), (&json!(true), &json!("complete")));
    assert_eq!(result["structuredContent"]["error"]["details"]["field"], "query");
}

#[tokio::test]
async fn header_and_body_must_agree_in_the_modern_revision() {
    let world = World::new().await;
    let client = world.client();
    let call = modern("tools/call", json!({"name": "find_work", "arguments": {}}));
    let version = ("mcp-protocol-version", MODERN);
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "find_work");
    let cases: [(&[(&str, &str)], &str); 8] = [
        (&[method, name], "no version"),
        (&[("mcp-protocol-version", "2025-11-25"), method, name], "another version"),
        (&[version, version, method, name], "the version twice"),
        (&[version, name], "no method"),
        (&[version, ("mcp-method", "tools/list"), name], "another method"),
        (&[version, method], "no name"),
        (&[version, method, ("mcp-name", "get_status")], "another name"),
        (&[version, method, ("mcp-name", "=?base64?Z2V0X3N0YXR1cw==?=")], "another name, coded"),
    ];
    for (headers, what) in cases {
        assert_eq!(post(&client, headers, &call).await.rpc(), (400, -32020), "{what}");
    }
    // find_work in Base64, as the revision allows.
    let coded = ("mcp-name", "=?base64?ZmluZF93b3Jr?=");
    assert_eq!(post(&client, &[version, method, coded], &call).await.status, 200);
    assert_eq!(world.store.events().await, 0);
}

#[tokio::test]
async fn unknown_revisions_are_refused_with_the_known_ones() {
    let world = World::new().await;
    let client = world.client();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for version in ["2024-11-05", "2099-01-01", "nonsense"] {
        let answer = post(&client, &[("mcp-protocol-version", version)], &list).await;
        assert_eq!(answer.rpc(), (400, -32022), "{version}");
        let data = &answer.json()["error"]["data"];
        assert_eq!(data["requested"], version);
        assert_eq!(data["supported"], json!(wf_mcp_http::SUPPORTED_VERSIONS));
    }
    let mut call = modern("tools/list", json!({}));
    call["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01".into();
    let headers = [("mcp-protocol-version", "2099-01-01"), ("mcp-method", "tools/list")];
    assert_eq!(post(&client, &headers, &call).await.rpc(), (400, -32022));
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")];
    assert_eq!(post(&client, &headers, &call).await.rpc(), (400, -32020));
}

#[tokio::test]
async fn the_modern_revision_has_its_own_statuses() {
    let world = World::new().await;
    let client = world.client();
    let headers = |method: &'static str| [("mcp-protocol-version", MODERN), ("mcp-method", method)];
    for method in ["no/such", "initialize", "ping", "resources/subscribe", "tasks/get"] {
        let answer = post(&client, &headers(method), &modern(method, json!({}))).await;
        assert_eq!(answer.rpc(), (404, -32601), "{method}");
    }
    let mut bare = modern("tools/list", json!({}));
    bare["params"]["_meta"]
        .as_object_mut()
        .expect("meta")
        .remove("io.modelcontextprotocol/clientCapabilities");
    assert_eq!(post(&client, &headers("tools/list"), &bare).await.rpc(), (400, -32602));
    bare["params"] = json!({});
    assert_eq!(post(&client, &headers("tools/list"), &bare).await.rpc(), (400, -32602));
    let unknown = modern("tools/call", json!({"name": "no_such", "arguments": {}}));
    let mut named = headers("tools/call").to_vec();
    named.push(("mcp-name", "no_such"));
    assert_eq!(post(&client, &named, &unknown).await.rpc(), (200, -32602));
    // There are no requests from the server that a client could answer.
    let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let answer = post(&client, &[("mcp-protocol-version", MODERN)], &response).await;
    assert_eq!(answer.rpc(), (400, -32600));
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let answer = post(&client, &headers("notifications/cancelled"), &cancelled).await;
    assert_eq!(answer.status, 202, "{answer:?}");
}
