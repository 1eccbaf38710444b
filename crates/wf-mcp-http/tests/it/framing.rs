//! Where one request ends and the next begins: everything that two readers could understand differently. Whatever the
//! first answer is, what hides behind it is never answered.

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::client::{Answer, call, receive};
use crate::world::{World, within};

/// What is smuggled: it would be answered with 200.
const HIDDEN: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

fn find() -> String {
    call("find_work", json!({})).to_string()
}

fn chunked(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

/// The first answer to these bytes; there must be no second.
async fn only_answer(world: &World, what: &str, bytes: &[u8]) -> Answer {
    let mut stream = world.client().connect().await;
    within(stream.write_all(bytes)).await.expect("sends");
    let answer = receive(&mut stream).await.unwrap_or_else(|| panic!("{what}: no answer"));
    let second = receive(&mut stream).await;
    assert!(second.is_none(), "{what}: a second answer: {second:?}");
    answer
}

/// A call with these lines about its body, and something hidden behind it.
fn with(lines: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n{lines}\r\n{body}{HIDDEN}"
    )
    .into_bytes()
}

#[tokio::test]
async fn a_body_whose_end_is_in_doubt_is_400() {
    let world = World::new().await;
    let body = find();
    let (length, chunks) = (format!("content-length: {}\r\n", body.len()), chunked(&body));
    let long = format!("{:x};{}\r\n{body}\r\n0\r\n\r\n", body.len(), "e".repeat(64 * 1024));
    let cases = [
        ("another coding last", with("transfer-encoding: chunked, identity\r\n", &chunks)),
        ("a coding that is none", with("transfer-encoding: xchunked\r\n", &chunks)),
        (
            "two lines of codings",
            with("transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n", &chunks),
        ),
        ("a space before the colon", with("transfer-encoding : chunked\r\n", &chunks)),
        ("a tab before the colon", with("transfer-encoding\t: chunked\r\n", &chunks)),
        ("a vertical tab in the coding", with("transfer-encoding:\u{b}chunked\r\n", &chunks)),
        ("lengths that differ", with(&format!("{length}content-length: 1\r\n"), &body)),
        ("a list of lengths", with("content-length: 1, 2\r\n", &body)),
        ("a length with a sign", with("content-length: +3\r\n", &body)),
        ("a negative length", with("content-length: -1\r\n", &body)),
        ("a hexadecimal length", with("content-length: 0x10\r\n", &body)),
        ("a length that overflows", with("content-length: 18446744073709551616\r\n", &body)),
        (
            "a chunk that overflows",
            with("transfer-encoding: chunked\r\n", "fffffffffffffffff\r\n{}\r\n0\r\n\r\n"),
        ),
        ("a chunk with a sign", with("transfer-encoding: chunked\r\n", "+2\r\n{}\r\n0\r\n\r\n")),
        (
            "a chunk longer than it says",
            with("transfer-encoding: chunked\r\n", "1\r\n{}\r\n0\r\n\r\n"),
        ),
        (
            "a bare LF behind a chunk's size",
            with("transfer-encoding: chunked\r\n", "2\n{}\r\n0\r\n\r\n"),
        ),
        (
            "a bare LF in a chunk's extension",
            with("transfer-encoding: chunked\r\n", "2;a\nb\r\n{}\r\n0\r\n\r\n"),
        ),
        ("64 KiB of extension", with("transfer-encoding: chunked\r\n", &long)),
        (
            "chunks in HTTP/1.0",
            String::from_utf8_lossy(&with("transfer-encoding: chunked\r\n", &chunks))
                .replacen("HTTP/1.1", "HTTP/1.0", 1)
                .into_bytes(),
        ),
    ];
    for (what, bytes) in cases {
        let answer = only_answer(&world, what, &bytes).await;
        assert_eq!(answer.status, 400, "{what}: {answer:?}");
    }
    assert_eq!(world.store.events().await, 0);
}

#[tokio::test]
async fn a_clear_end_beside_a_doubtful_sign_is_one_answer() {
    let world = World::new().await;
    let body = find();
    let chunks = chunked(&body);
    // Without anything doubtful the same call is a call: what is refused above is refused for what it is.
    let plain = [
        with(&format!("content-length: {}\r\n", body.len()), &body),
        with("transfer-encoding: chunked\r\n", &chunks),
    ];
    for bytes in plain {
        assert_eq!(only_answer(&world, "a plain call", &bytes).await.status, 200);
    }
    let cases = [
        // RFC 9112 section 6.3: the coding counts, and the connection ends.
        (
            "a length and a coding",
            with("content-length: 5\r\ntransfer-encoding: chunked\r\n", &chunks),
        ),
        (
            "trailers",
            with(
                "transfer-encoding: chunked\r\ntrailer: authorization\r\n",
                &chunks.replace("0\r\n\r\n", "0\r\nauthorization: Bearer x\r\nhost: evil\r\n\r\n"),
            ),
        ),
        ("no body and one behind", with("content-length: 0\r\n", "")),
    ];
    for (what, bytes) in cases {
        let answer = only_answer(&world, what, &bytes).await;
        assert!([200, 400].contains(&answer.status), "{what}: {answer:?}");
        assert_eq!(answer.header("connection"), Some("close"), "{what}");
    }
}

#[tokio::test]
async fn request_lines_and_names_are_read_strictly() {
    let world = World::new().await;
    for (what, line) in [
        ("two spaces", "GET  /healthz HTTP/1.1\r\nhost: localhost\r\n"),
        ("a tab", "GET\t/healthz HTTP/1.1\r\nhost: localhost\r\n"),
        ("another version", "GET /healthz HTTP/1.2\r\nhost: localhost\r\n"),
        ("no version", "GET /healthz\r\nhost: localhost\r\n"),
        ("a space in a name", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx y: 1\r\n"),
        ("no colon", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nxy\r\n"),
        ("an empty name", "GET /healthz HTTP/1.1\r\nhost: localhost\r\n: 1\r\n"),
        ("a space before the first", "GET /healthz HTTP/1.1\r\n host: localhost\r\n"),
        ("a CR in a value", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: a\rb\r\n"),
    ] {
        let answer = only_answer(&world, what, format!("{line}\r\n").as_bytes()).await;
        assert_eq!(answer.status, 400, "{what}: {answer:?}");
    }
}

/// HTTP/2 is for the proxy in front (docs/adr/0010): neither by prior knowledge nor by an upgrade.
#[tokio::test]
async fn http2_is_not_spoken() {
    let world = World::new().await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let mut stream = world.client().connect().await;
    within(stream.write_all(preface)).await.expect("sends");
    let answer = receive(&mut stream).await;
    assert!(answer.is_none_or(|answer| answer.status == 400));

    let upgrade = "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAAAAIAAAAA\r\n";
    let head = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{upgrade}\r\n");
    let answer = world.client().raw(head.as_bytes()).await;
    assert_eq!((answer.status, answer.header("upgrade")), (200, None));
}
