//! What is read, what is refused, and how.

use serde_json::json;

use super::*;

fn refused(body: &str) -> (i32, Option<Value>) {
    let fault = read(body.as_bytes()).unwrap_err();
    (fault.kind.code(), fault.id)
}

fn request(body: &str) -> Request {
    let Message::Request(request) = read(body.as_bytes()).unwrap() else {
        panic!("{body}");
    };
    request
}

#[test]
fn what_is_no_json_is_a_parse_error() {
    for body in ["", "{", "nonsense", "{\"a\":1,}", "\u{feff}{}", "{} {}", "{\"a\":NaN}", "[1"] {
        assert_eq!(refused(body), (-32700, None), "{body}");
    }
}

#[test]
fn what_is_no_message_is_an_invalid_request() {
    let cases = [
        ("[]", None),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, None),
        ("7", None),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, Some(json!(1))),
        (r#"{"id":"a","method":"ping"}"#, Some(json!("a"))),
        (r#"{"jsonrpc":"2.0","id":1}"#, Some(json!(1))),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Some(json!(1))),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, Some(json!(1))),
        (r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1e300,"method":"ping"}"#, None),
    ];
    for (body, id) in cases {
        assert_eq!(refused(body), (-32600, id), "{body}");
    }
}

#[test]
fn a_call_without_a_tool_name_has_invalid_params() {
    for params in ["{}", "null", r#"{"name":7}"#] {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{params}}}"#);
        assert_eq!(refused(&body), (-32602, Some(json!("q"))), "{params}");
    }
}

#[test]
fn requests_notifications_and_responses_are_told_apart() {
    let read = |body: &str| read(body.as_bytes()).unwrap();
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(read(body), Message::Notification);
    let body = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(read(body), Message::Response);
    let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#;
    assert_eq!(read(body), Message::Response);
    let ping = request(r#"{"jsonrpc":"2.0","id":"4e3b-0","method":"ping","params":null}"#);
    assert_eq!((ping.id, ping.params), (json!("4e3b-0"), None));
}

#[test]
fn arguments_are_taken_out_of_the_message() {
    let sent = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call",
        "params":{"name":"t","arguments":{"secret":"s"},"_meta":{"k":1}}}"#;
    let call = request(sent);
    assert_eq!(call.tool(), Some("t"));
    assert_eq!(call.meta(), json!({"k": 1}).as_object());
    assert_eq!(
        call.arguments,
        Arguments::Object(json!({"secret": "s"}).as_object().unwrap().clone())
    );
    let passed = String::from_utf8(call.to_bytes()).unwrap();
    assert!(!passed.contains("secret") && passed.contains("\"_meta\":{\"k\":1}"), "{passed}");
}

#[test]
fn arguments_that_are_no_object_are_the_tools_business() {
    for (arguments, kind) in [("[1]", "an array"), ("\"x\"", "a string"), ("5", "a number")] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
        );
        assert_eq!(request(&body).arguments, Arguments::NoObject(kind));
    }
}

#[test]
fn unsafe_arguments_of_a_sound_call_are_the_tools_business() {
    let deep = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    let cases = [
        (r#"{"a":1,"a":2}"#.to_owned(), "a"),
        (r#"{"a":1,"\u0061":2}"#.to_owned(), "a"),
        (r#"{"x":{"n":9007199254740993}}"#.to_owned(), "x.n"),
        (r#"{"$serde_json::private::RawValue":"1"}"#.to_owned(), "$serde_json::private::RawValue"),
        (format!(r#"{{"d":{deep}}}"#), "d"),
        (r#"{"a":{"b":"\ud800"}}"#.to_owned(), "a.b"),
        (r#"{"\udfff":1}"#.to_owned(), "arguments"),
    ];
    for (arguments, field) in cases {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{{"name":"t","arguments":{arguments},
            "_meta":{{"checkpoint/locale":"de","io.modelcontextprotocol/clientCapabilities":{{}},"x":1}}}}}}"#
        );
        let call = request(&body);
        assert_eq!(call.id, json!("q"));
        let meta =
            json!({"checkpoint/locale": "de", "io.modelcontextprotocol/clientCapabilities": {}});
        assert_eq!(call.meta(), meta.as_object());
        let Arguments::Unsafe { field: found, .. } = call.arguments else { panic!("{arguments}") };
        assert!(found.starts_with(field), "{found}");
    }
}

#[test]
fn arguments_that_are_no_json_at_all_are_a_parse_error() {
    for bad in ["{\"a\":NaN}", "{\"a\":01}", "{\"a\":1,}", "{\"a\":\"\u{1}\"}", "{\"a\":'b'}"] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{bad}}}}}"#
        );
        assert_eq!(refused(&body), (-32700, None), "{body}");
    }
}

#[test]
fn unsafe_arguments_of_an_unsound_message_are_refused() {
    let bad = r#""arguments":{"a":1,"a":2}"#;
    for body in [
        format!(r#"{{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{{"name":"t",{bad}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"t",{bad}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"name":"t",{bad}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t",{bad},"name":"u"}}}}"#),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},"arguments":{}}}"#.to_owned(),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t",{bad}}},,}}"#),
    ] {
        assert_eq!(refused(&body).0, -32600, "{body}");
    }
}
