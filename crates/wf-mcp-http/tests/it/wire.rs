//! Bodies that are wrong, and what comes back: a table.

use serde_json::{Value, json};

use crate::client::{Answer, call};
use crate::world::World;

async fn post(world: &World, body: &str) -> Answer {
    world.client().post(&[], body.as_bytes()).await
}

#[tokio::test]
async fn malformed_messages_are_told_by_status_and_code() {
    let world = World::new().await;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let digits = "9".repeat(1_000_000);
    let cases = [
        ("", 400, -32700),
        ("{", 400, -32700),
        ("not json", 400, -32700),
        ("\u{feff}{}", 400, -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#, 400, -32700),
        (r#"{"jsonrpc":"2.0","id":NaN,"method":"ping"}"#, 400, -32700),
        (r#"{"jsonrpc":"2.0","id":01,"method":"ping"}"#, 400, -32700),
        (r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#, 400, -32700),
        ("[]", 400, -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, 400, -32600),
        ("null", 400, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, 400, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, 400, -32600),
        (r#"{"id":1,"method":"ping"}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"find_work"}}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, 200, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#, 200, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"2"}}"#, 200, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":2}}"#, 200, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":7}}"#, 200, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, 200, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, 200, -32601),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x"}}"#,
            200,
            -32601,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"resources/read"}"#, 200, -32602),
        (&deep, 400, -32600),
        (&format!(r#"{{"jsonrpc":"2.0","id":{digits},"method":"ping"}}"#), 400, -32600),
    ];
    for (body, status, code) in cases {
        let answer = post(&world, body).await;
        let shown: String = body.chars().take(80).collect();
        assert_eq!(answer.rpc(), (status, code), "{shown}");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{shown}");
    }
    // The process is as well as before.
    assert_eq!(world.call("find_work", json!({})).await["outcome"], "list");
    assert_eq!(world.store.events().await, 0);
}

#[tokio::test]
async fn only_arguments_may_be_large() {
    let world = World::new().await;
    let mut message = call("find_work", json!({"query": "q".repeat(500_000)}));
    let error = world.post(&message).await.result()["structuredContent"]["error"].clone();
    assert_eq!(error["details"]["max"], 200, "{error}");
    message["params"]["arguments"] = json!({});
    message["params"]["_meta"] = json!({"padding": "p".repeat(100_000)});
    assert_eq!(world.post(&message).await.rpc(), (400, -32600));
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"p": "p".repeat(100_000)}});
    assert_eq!(world.post(&notice).await.rpc(), (400, -32600));
}

#[tokio::test]
async fn an_error_carries_the_id_when_it_can_be_read() {
    let world = World::new().await;
    let id = |answer: Answer| answer.json().get("id").cloned();
    let body = r#"{"jsonrpc":"2.0","id":"4e3bdaee-0","method":"tools/call","params":{"name":"x"}}"#;
    assert_eq!(id(post(&world, body).await), Some(json!("4e3bdaee-0")));
    let body = r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#;
    assert_eq!(id(post(&world, body).await), Some(json!(7)));
    assert_eq!(id(post(&world, "[]").await), None);
}

#[tokio::test]
async fn string_and_integer_ids_come_back_as_sent() {
    let world = World::new().await;
    for sent in [json!("4e3bdaee-0"), json!("7"), json!(7), json!(0), json!(-3), json!("")] {
        let answer = world.post(&json!({"jsonrpc": "2.0", "id": sent, "method": "ping"})).await;
        assert_eq!(answer.json()["id"], sent);
        assert_eq!(answer.result(), json!({}));
    }
}

#[tokio::test]
async fn arguments_with_two_meanings_are_a_validation_error_of_the_tool() {
    let world = World::new().await;
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    for (arguments, field) in [
        (r#"{"query":"a","query":"b"}"#.to_owned(), "query"),
        (r#"{"query":"a","\u0071uery":"b"}"#.to_owned(), "query"),
        (r#"{"query":9007199254740993}"#.to_owned(), "query"),
        (r#"{"query":1e400}"#.to_owned(), "query"),
        (r#"{"$serde_json::private::RawValue":"1"}"#.to_owned(), "$serde_json"),
        (format!(r#"{{"query":{deep}}}"#), "query"),
        ("[1]".to_owned(), "arguments"),
        ("\"x\"".to_owned(), "arguments"),
    ] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{{"name":"find_work","arguments":{arguments}}}}}"#
        );
        let answer = post(&world, &body).await;
        let result = answer.result();
        assert_eq!(answer.json()["id"], "q");
        assert_eq!(result["isError"], true, "{arguments}");
        let error = &result["structuredContent"]["error"];
        assert_eq!(error["code"], "VALIDATION_ERROR", "{arguments}");
        let found = error["details"]["field"].as_str().unwrap_or_default();
        assert!(found.starts_with(field), "{arguments}: {error}");
    }
}

#[tokio::test]
async fn odd_but_harmless_messages_are_taken() {
    let world = World::new().await;
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#,
        r#"{"id":1,"extra":{"a":[1]},"method":"tools/list","jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":7}}}"#,
    ] {
        assert!(post(&world, body).await.result()["tools"].is_array(), "{body}");
    }
    for arguments in ["null", "{}"] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"find_work","arguments":{arguments}}}}}"#
        );
        assert_eq!(post(&world, &body).await.result()["isError"], false);
    }
}

#[tokio::test]
async fn what_wants_no_answer_gets_202() {
    let world = World::new().await;
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/of/no/kind","params":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}"#,
    ] {
        let answer = post(&world, body).await;
        assert_eq!((answer.status, answer.body.len()), (202, 0), "{body}");
    }
}

#[tokio::test]
async fn accept_is_taken_as_it_comes() {
    let world = World::new().await;
    let body = call("find_work", json!({})).to_string();
    for accept in ["*/*", "application/json", "", "application/*;q=0.5, text/html"] {
        let answer = world.client().post(&[("accept", accept)], body.as_bytes()).await;
        assert_eq!(answer.result()["isError"], false, "{accept}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    let answer = world.client().post(&[("accept", "text/html")], body.as_bytes()).await;
    assert_eq!((answer.status, &answer.json()["error"]), (406, &json!("not_acceptable")));
}

#[tokio::test]
async fn a_body_must_be_plain_json_by_its_labels() {
    let world = World::new().await;
    let body = call("find_work", json!({})).to_string();
    for (extra, word) in [
        (("content-type", "text/plain"), "unsupported_media_type"),
        (("content-type", ""), "unsupported_media_type"),
        (("content-encoding", "gzip"), "unsupported_content_encoding"),
        (("content-encoding", "br"), "unsupported_content_encoding"),
    ] {
        let answer = world.client().post(&[extra], body.as_bytes()).await;
        assert_eq!((answer.status, &answer.json()["error"]), (415, &json!(word)), "{extra:?}");
    }
    let identity = [("content-encoding", "identity")];
    assert_eq!(world.client().post(&identity, body.as_bytes()).await.status, 200);
}

#[tokio::test]
async fn session_ids_are_neither_minted_nor_believed() {
    let world = World::new().await;
    let body = call("find_work", json!({})).to_string();
    let extra = [("mcp-session-id", "somebody-elses"), ("last-event-id", "3")];
    let answer = world.client().post(&extra, body.as_bytes()).await;
    assert_eq!(answer.result()["isError"], false);
    assert_eq!(answer.header("mcp-session-id"), None);
}

#[tokio::test]
async fn metadata_chooses_language_and_revision() {
    let world = World::new().await;
    let workflow = world.start("asset-a").await;
    let with_meta = |meta: Value| {
        let arguments = json!({"workflow_id": workflow, "step_id": "step-1", "value": "ok"});
        let mut message = call("submit_step", arguments);
        message["params"]["_meta"] = meta;
        message
    };
    let error = |answer: Answer| answer.result()["structuredContent"]["error"].clone();
    let answer = world.post(&with_meta(json!({"checkpoint/expectedRevision": 99}))).await;
    assert_eq!(error(answer)["code"], "VERSION_CONFLICT");
    let answer = world.post(&with_meta(json!({"checkpoint/expectedRevision": "2"}))).await;
    let found = error(answer);
    assert_eq!(found["code"], "VALIDATION_ERROR");
    assert_eq!(found["details"]["field"], "_meta.checkpoint/expectedRevision");
    let good = json!({"checkpoint/expectedRevision": 2, "checkpoint/locale": "en-GB"});
    assert_eq!(error(world.post(&with_meta(good)).await), Value::Null);
}
