//! HTTP that is wrong, slow or too large, byte for byte.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::client::{call, receive};
use crate::world::{World, within};

const HOST: &str = "localhost";

fn find() -> String {
    call("find_work", json!({})).to_string()
}

/// A request with these header lines, `\r\n` not added.
fn request(lines: &str, body: &str) -> Vec<u8> {
    let usual = "content-type: application/json\r\naccept: */*\r\n";
    format!("POST /mcp HTTP/1.1\r\n{usual}{lines}\r\n{body}").into_bytes()
}

#[tokio::test]
async fn heads_that_are_wrong_are_400_and_the_connection_ends() {
    let world = World::new().await;
    let body = find();
    let length = format!("content-length: {}\r\n", body.len());
    let cases = [
        ("no Host", request(&length, &body)),
        ("two Hosts", request(&format!("host: {HOST}\r\nhost: {HOST}\r\n{length}"), &body)),
        ("an empty Host", request(&format!("host: \r\n{length}"), &body)),
        ("no host name", request(&format!("host: a b\r\n{length}"), &body)),
        ("user in Host", request(&format!("host: u@{HOST}\r\n{length}"), &body)),
        ("a bare LF", request(&format!("host: {HOST}\n{length}"), &body)),
        ("an obsolete fold", request(&format!("host: {HOST}\r\n{length}x: a\r\n b\r\n"), &body)),
        ("NUL", request(&format!("host: {HOST}\r\n{length}x: a\0b\r\n"), &body)),
        ("two lengths", request(&format!("host: {HOST}\r\n{length}content-length: 1\r\n"), &body)),
        ("no number", request(&format!("host: {HOST}\r\ncontent-length: +3\r\n"), &body)),
        (
            "an unknown coding",
            request(&format!("host: {HOST}\r\ntransfer-encoding: gzip\r\n"), &body),
        ),
        (
            "another host in the target",
            [
                b"POST http://other.example/mcp HTTP/1.1\r\n".as_slice(),
                &request(&format!("host: {HOST}\r\n{length}"), &body)
                    ["POST /mcp HTTP/1.1\r\n".len()..],
            ]
            .concat(),
        ),
    ];
    for (what, bytes) in cases {
        let mut stream = world.client().connect().await;
        within(stream.write_all(&bytes)).await.expect("sends");
        let answer = receive(&mut stream).await.unwrap_or_else(|| panic!("{what}: no answer"));
        assert_eq!(answer.status, 400, "{what}: {answer:?}");
        assert!(receive(&mut stream).await.is_none(), "{what}: the connection lives on");
    }
    assert_eq!(world.store.events().await, 0);
}

#[tokio::test]
async fn a_length_beside_a_coding_never_smuggles_a_second_request() {
    let world = World::new().await;
    let body = find();
    let smuggled = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n{smuggled}", body.len());
    let lines = format!("host: {HOST}\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n");
    let mut stream = world.client().connect().await;
    within(stream.write_all(&request(&lines, &chunked))).await.expect("sends");
    let answer = receive(&mut stream).await.expect("an answer");
    assert!([200, 400].contains(&answer.status), "{answer:?}");
    assert!(receive(&mut stream).await.is_none(), "a second request was answered");
}

#[tokio::test]
async fn requests_behind_each_other_are_answered_one_and_closed() {
    let world = World::new().await;
    let body = find();
    let lines = format!("host: {HOST}\r\ncontent-length: {}\r\n", body.len());
    let one = request(&lines, &body);
    let mut stream = world.client().connect().await;
    within(stream.write_all(&[one.clone(), one.clone()].concat())).await.expect("sends");
    let answer = receive(&mut stream).await.expect("an answer");
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert!(receive(&mut stream).await.is_none());
    // One after the other they share a connection.
    let mut stream = world.client().connect().await;
    for _ in 0..3 {
        within(stream.write_all(&one)).await.expect("sends");
        let answer = receive(&mut stream).await.expect("an answer");
        assert_eq!((answer.status, answer.header("connection")), (200, None));
    }
}

#[tokio::test]
async fn a_bare_line_feed_is_seen_in_the_second_request_too() {
    let world = World::new().await;
    let body = find();
    let length = format!("content-length: {}\r\n", body.len());
    let mut stream = world.client().connect().await;
    let good = request(&format!("host: {HOST}\r\n{length}"), &body);
    within(stream.write_all(&good)).await.expect("sends");
    assert_eq!(receive(&mut stream).await.expect("an answer").status, 200);
    let bad = request(&format!("host: {HOST}\n{length}"), &body);
    within(stream.write_all(&bad)).await.expect("sends");
    assert_eq!(receive(&mut stream).await.expect("an answer").status, 400);
}

#[tokio::test]
async fn heads_that_are_too_large_are_431() {
    let world = World::with(|config| config.max_header_bytes = 4_096).await;
    let body = find();
    let length = format!("host: {HOST}\r\ncontent-length: {}\r\n", body.len());
    let large = format!("{length}x-large: {}\r\n", "a".repeat(5_000));
    assert_eq!(world.client().raw(&request(&large, &body)).await.status, 431);
    let many = format!("{length}{}", "x: y\r\n".repeat(120));
    assert_eq!(world.client().raw(&request(&many, &body)).await.status, 431);
    let fitting = format!("{length}x-large: {}\r\n", "a".repeat(2_000));
    assert_eq!(world.client().raw(&request(&fitting, &body)).await.status, 200);
}

#[tokio::test]
async fn bodies_that_are_too_large_are_413() {
    let world = World::with(|config| config.max_body_bytes = 1_000).await;
    let large = "x".repeat(1_001);
    let answer = world.client().post(&[], large.as_bytes()).await;
    assert_eq!((answer.status, &answer.json()["error"]), (413, &json!("body_too_large")));
    // A length that lies cannot be sent; chunks need no length.
    let chunks = format!("3e9\r\n{large}\r\n0\r\n\r\n");
    let lines = format!("host: {HOST}\r\ntransfer-encoding: chunked\r\n");
    let answer = world.client().raw(&request(&lines, &chunks)).await;
    assert_eq!((answer.status, &answer.json()["error"]), (413, &json!("body_too_large")));
    // Said to be huge: refused before it comes.
    let lines = format!("host: {HOST}\r\ncontent-length: 99999999999\r\n");
    assert_eq!(world.client().raw(&request(&lines, "")).await.status, 413);
    let chunked = format!("{:x}\r\n{}\r\n0\r\n\r\n", find().len(), find());
    let lines = format!("host: {HOST}\r\ntransfer-encoding: chunked\r\n");
    assert_eq!(world.client().raw(&request(&lines, &chunked)).await.status, 200);
}

#[tokio::test]
async fn a_client_that_sends_far_too_much_hears_why() {
    let world = World::new().await;
    let large = vec![b'x'; 5 * 1024 * 1024];
    let answer = world.client().post(&[], &large).await;
    assert_eq!(answer.status, 413);
    let mut chunks = format!("{:x}\r\n", large.len()).into_bytes();
    chunks.extend_from_slice(&large);
    chunks.extend_from_slice(b"\r\n0\r\n\r\n");
    let lines = format!("host: {HOST}\r\ntransfer-encoding: chunked\r\n");
    let bytes = [request(&lines, ""), chunks].concat();
    assert_eq!(world.client().raw(&bytes).await.status, 413);
    // One that asks first is told before it sends anything.
    let lines = format!("host: {HOST}\r\nexpect: 100-continue\r\ncontent-length: 9999999\r\n");
    assert_eq!(world.client().raw(&request(&lines, "")).await.status, 413);
}

#[tokio::test]
async fn a_slow_body_is_408() {
    let world = World::with(|config| config.body_timeout = Duration::from_millis(50)).await;
    let begun = Instant::now();
    let lines = format!("host: {HOST}\r\ncontent-length: 100\r\n");
    let answer = world.client().raw(&request(&lines, "{\"json")).await;
    assert_eq!((answer.status, &answer.json()["error"]), (408, &json!("request_timeout")));
    assert!(begun.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn a_body_that_breaks_off_does_nothing() {
    let world = World::new().await;
    let mut stream = world.client().connect().await;
    let lines = format!("host: {HOST}\r\ncontent-length: 100\r\n");
    within(stream.write_all(&request(&lines, "{\"json"))).await.expect("sends");
    within(stream.shutdown()).await.expect("shuts down");
    let answer = receive(&mut stream).await;
    assert!(answer.is_none_or(|answer| answer.status == 400));
    assert_eq!(world.call("find_work", json!({})).await["outcome"], "list");
}

#[tokio::test]
async fn a_slow_head_is_cut_off() {
    let world = World::with(|config| config.header_timeout = Duration::from_millis(50)).await;
    // Nothing at all, and a beginning.
    for begin in [&b""[..], b"POST /mcp HTTP/1.1\r\nhost: loc"] {
        let mut stream = world.client().connect().await;
        within(stream.write_all(begin)).await.expect("sends");
        assert!(receive(&mut stream).await.is_none(), "{begin:?}");
    }
    // A connection that has proved itself may be idle for longer than a head may take ...
    let body = find();
    let lines = format!("host: {HOST}\r\ncontent-length: {}\r\n", body.len());
    let good = request(&lines, &body);
    let mut stream = world.client().connect().await;
    within(stream.write_all(&good)).await.expect("sends");
    assert_eq!(receive(&mut stream).await.expect("an answer").status, 200);
    let mut other = world.client().connect().await;
    assert!(receive(&mut other).await.is_none(), "a clock: the time of a head has passed");
    within(stream.write_all(&good)).await.expect("sends");
    assert_eq!(receive(&mut stream).await.expect("an answer").status, 200);
    // ... but its next head has the same time as every other.
    within(stream.write_all(b"POST /mcp HTTP/1.1\r\n")).await.expect("sends");
    assert!(receive(&mut stream).await.is_none());
}

#[tokio::test]
async fn many_slow_heads_do_not_keep_others_waiting() {
    let world = World::new().await;
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = world.client().connect().await;
        within(stream.write_all(b"POST /mcp HTTP/1.1\r\n")).await.expect("sends");
        slow.push(stream);
    }
    assert_eq!(world.call("find_work", json!({})).await["outcome"], "list");
}

#[tokio::test]
async fn other_methods_and_paths_are_told_apart() {
    let world = World::new().await;
    let client = world.client();
    for method in ["GET", "DELETE", "PUT", "PATCH", "HEAD"] {
        let head = format!("{method} /mcp HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\n\r\n");
        let mut stream = client.connect().await;
        within(stream.write_all(head.as_bytes())).await.expect("sends");
        if method == "HEAD" {
            continue;
        }
        let answer = receive(&mut stream).await.expect("an answer");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST, OPTIONS")));
    }
    for path in ["/", "/mcp/", "/MCP", "/mcp/x", "/..", "/favicon.ico"] {
        let answer = client.ask("GET", path, &[]).await;
        assert_eq!((answer.status, &answer.json()["error"]), (404, &json!("not_found")), "{path}");
    }
    let answer = client.ask("POST", "/healthz", &[("content-length", "0")]).await;
    assert_eq!(answer.status, 405);
}

#[tokio::test]
async fn answers_have_an_id_and_are_not_stored() {
    let world = World::new().await;
    let body = find();
    let answer = world.client().post(&[("x-request-id", "abc-1")], body.as_bytes()).await;
    assert_eq!(answer.header("x-request-id"), Some("abc-1"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let answer = world.client().post(&[("x-request-id", "a b\tc")], body.as_bytes()).await;
    assert!(answer.header("x-request-id").is_some_and(|id| id.starts_with("t-")), "{answer:?}");
}
