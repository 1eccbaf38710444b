//! Bodies that are made to cost much or to mean two things, beyond those in `wire`.

use serde_json::{Value, json};

use crate::client::{Answer, call};
use crate::world::World;

/// A call of `find_work` with arguments as text.
async fn find_with(world: &World, arguments: &str) -> Answer {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"find_work","arguments":{arguments}}}}}"#
    );
    world.client().post(&[], body.as_bytes()).await
}

fn code(answer: &Answer) -> Value {
    answer.result()["structuredContent"]["error"]["code"].clone()
}

#[tokio::test]
async fn as_many_keys_as_fit_are_refused_and_more_are_too_large() {
    let world = World::new().await;
    let keys = |count: usize| {
        let keys: Vec<_> = (0..count).map(|n| format!("\"{n:x}\":0")).collect();
        format!("{{{}}}", keys.join(","))
    };
    assert_eq!(code(&find_with(&world, &keys(100_000)).await), "VALIDATION_ERROR");
    assert_eq!(find_with(&world, &keys(1_000_000)).await.status, 413);
    let string = format!("{{\"query\":\"{}\"}}", "q".repeat(10 * 1024 * 1024));
    assert_eq!(find_with(&world, &string).await.status, 413);
    let digits = format!("{{\"query\":{}}}", "9".repeat(1_000_000));
    assert_eq!(code(&find_with(&world, &digits).await), "VALIDATION_ERROR");
    assert_eq!(world.store.events().await, 0);
}

#[tokio::test]
async fn numbers_that_are_none_are_400() {
    let world = World::new().await;
    for number in ["NaN", "Infinity", "-Infinity", "01", "+1", "1.", ".5", "0x1", "1e", "1_000"] {
        let answer = find_with(&world, &format!("{{\"query\":{number}}}")).await;
        assert_eq!(answer.rpc(), (400, -32700), "{number}");
    }
    for number in ["1e400", "-1e400", "9007199254740993", "-9007199254740993"] {
        let answer = find_with(&world, &format!("{{\"query\":{number}}}")).await;
        assert_eq!(code(&answer), "VALIDATION_ERROR", "{number}");
    }
}

#[tokio::test]
async fn text_that_is_not_unicode_is_400() {
    let world = World::new().await;
    let frame = |text: &[u8]| {
        let mut body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find_work","arguments":{"query":""#.to_vec();
        body.extend_from_slice(text);
        body.extend_from_slice(br#""}}}"#);
        body
    };
    for (what, text) in [
        ("a lone continuation byte", b"\x80".as_slice()),
        ("an overlong slash", b"\xc0\xaf"),
        ("an overlong NUL", b"\xe0\x80\x80"),
        ("a surrogate in UTF-8", b"\xed\xa0\x80"),
        ("beyond Unicode", b"\xf4\x90\x80\x80"),
        ("half a character", b"\xe2\x82"),
        ("a line feed as it is", b"a\nb"),
        ("a NUL as it is", b"a\0b"),
    ] {
        let answer = world.client().post(&[], &frame(text)).await;
        assert_eq!(answer.rpc(), (400, -32700), "{what}");
    }
    // In the message itself half a pair is 400 (`wire`); in an argument it is that argument's fault.
    for half in [b"\\ud800".as_slice(), b"\\udc00", b"\\udc00\\ud800"] {
        let answer = world.client().post(&[], &frame(half)).await;
        assert_eq!(code(&answer), "VALIDATION_ERROR");
    }
    let whole = world.client().post(&[], &frame("\\ud83d\\ude00 😀".as_bytes())).await;
    assert_eq!(whole.result()["isError"], false);
}

#[tokio::test]
async fn names_with_a_meaning_elsewhere_are_plain_unknown_names_here() {
    let world = World::new().await;
    for name in ["__proto__", "constructor", "prototype", "$ref", "@type", "toString"] {
        let answer = find_with(&world, &format!("{{\"{name}\":{{\"admin\":true}}}}")).await;
        let error = answer.result()["structuredContent"]["error"].clone();
        assert_eq!(error["code"], "VALIDATION_ERROR", "{name}");
        assert_eq!(error["details"]["field"], name, "{error}");
    }
}

/// Two spellings of one name are two assets to the store and one to a person: such names are refused.
#[tokio::test]
async fn assets_have_names_that_cannot_be_mistaken() {
    let world = World::new().await;
    let start = async |asset: &str| {
        let arguments = json!({"procedure_id": "routine-one", "assets": {"main": asset}});
        world.call("start_workflow", arguments).await
    };
    for asset in [
        "caf\u{e9}",
        "cafe\u{301}",
        "\u{430}sset",
        "a\u{200b}sset",
        "\u{202e}tessa",
        "a b",
        "a/b",
        "../a",
        "a\u{0}",
        "a';DROP TABLE head;--",
        "",
    ] {
        let body = start(asset).await;
        assert_eq!(body["error"]["code"], "VALIDATION_ERROR", "{asset:?}: {body}");
    }
    let long = "a".repeat(129);
    assert_eq!(start(&long).await["error"]["code"], "VALIDATION_ERROR");
    assert_eq!(world.store.events().await, 0);
    assert_eq!(start("Asset.a_1:b-2").await["outcome"], "started");
}

#[tokio::test]
async fn ids_of_nothing_are_not_found_whatever_is_in_them() {
    let world = World::new().await;
    for id in ["' OR '1'='1", "../../etc/passwd", "%2e%2e%2f", "w\";--", "\u{1b}[31mw", "w\r\nx"] {
        let body = world.call("get_status", json!({"workflow_id": id})).await;
        let code = body["error"]["code"].as_str().unwrap_or_default();
        assert!(["WORKFLOW_NOT_FOUND", "VALIDATION_ERROR"].contains(&code), "{id:?}: {body}");
    }
}

#[tokio::test]
async fn an_id_is_a_string_or_a_whole_number_and_may_come_again() {
    let world = World::new().await;
    let ping = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    for id in ["null", "1e300", "1.5", "true", "{}", "[]", "-1e400", "18446744073709551616"] {
        let answer = world.client().post(&[], ping(id).as_bytes()).await;
        assert_eq!(answer.rpc().0, 400, "{id}");
    }
    // Nothing is remembered of an id, so nobody can take another's answer with it.
    for _ in 0..2 {
        let answer = world.client().post(&[], ping("\"same\"").as_bytes()).await;
        assert_eq!(answer.json()["id"], "same");
    }
}

#[tokio::test]
async fn a_notification_does_nothing() {
    let world = World::new().await;
    let workflow = world.start("asset-a").await;
    let before = world.store.events().await;
    let arguments = json!({"workflow_id": workflow, "step_id": "step-1", "value": "ok"});
    let mut message = call("submit_step", arguments);
    message.as_object_mut().expect("an object").remove("id");
    assert_eq!(world.post(&message).await.rpc(), (400, -32600));
    assert_eq!(world.store.events().await, before);
}
