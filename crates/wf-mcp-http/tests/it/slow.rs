//! Peers that take their time on purpose: none of them keeps a place for long. Heads are in `http`.
//!
//! Where a test has one place for connections only, the next caller is answered when the slow one is gone, and not before.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{MissedTickBehavior, interval, timeout};
use wf_mcp_http::{HttpConfig, Probes};

use crate::client::{call, receive};
use crate::world::{World, within};

const SHORT: Duration = Duration::from_millis(100);

/// Its metrics are more than all buffers between it and a reader hold.
#[derive(Debug)]
pub(crate) struct Verbose;

const METRICS: &[u8] = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
const VERBOSE_BYTES: usize = 32 * 1024 * 1024;

#[async_trait]
impl Probes for Verbose {
    async fn ready(&self) -> Result<(), String> {
        Ok(())
    }

    fn metrics(&self) -> String {
        "x".repeat(VERBOSE_BYTES)
    }
}

async fn with_one_place(change: impl FnOnce(&mut HttpConfig)) -> World {
    let one = |config: &mut HttpConfig| {
        config.max_connections = 1;
        change(config);
    };
    World::build(one, None, Arc::new(Verbose)).await
}

/// Asks for much and takes at most what its smallest buffer holds.
async fn greedy(world: &World) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("a setting");
    let mut stream = within(socket.connect(world.address)).await.expect("connects");
    within(stream.write_all(METRICS)).await.expect("sends");
    stream
}

async fn next_is_answered(world: &World) {
    assert_eq!(world.client().ask("GET", "/healthz", &[]).await.status, 200);
}

#[tokio::test]
async fn a_reader_that_takes_nothing_loses_its_place() {
    let world = with_one_place(|config| config.write_timeout = SHORT).await;
    let silent = greedy(&world).await;
    next_is_answered(&world).await;
    drop(silent);
}

/// As fast as makes progress all the time, and too slow for the whole: that does not buy more time.
#[tokio::test]
async fn a_reader_that_takes_a_little_now_and_then_loses_its_place_too() {
    let world = with_one_place(|config| config.write_timeout = SHORT * 4).await;
    let mut trickling = world.client().connect().await;
    within(trickling.write_all(METRICS)).await.expect("sends");
    let trickle = tokio::spawn(async move {
        let (mut taken, mut some) = (0, vec![0; 64 * 1_024]);
        let mut beat = interval(SHORT / 20);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while let Ok(count @ 1..) = trickling.read(&mut some).await {
            taken += count;
            beat.tick().await;
        }
        taken
    });
    next_is_answered(&world).await;
    let taken = within(trickle).await.expect("no panic");
    assert!(taken < VERBOSE_BYTES, "all {taken} bytes were sent");
}

#[tokio::test]
async fn a_reader_that_takes_all_gets_all() {
    let world = with_one_place(|_| {}).await;
    let mut reader = greedy(&world).await;
    let answer = receive(&mut reader).await.expect("an answer");
    assert_eq!((answer.status, answer.body.len()), (200, VERBOSE_BYTES));
}

#[tokio::test]
async fn a_body_that_trickles_loses_its_place() {
    let world = with_one_place(|config| config.body_timeout = SHORT).await;
    let mut stream = world.client().connect().await;
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\ncontent-length: 100000\r\n\r\n{";
    within(stream.write_all(head.as_bytes())).await.expect("sends");
    let (mut reading, mut writing) = stream.into_split();
    let trickle = tokio::spawn(async move {
        let mut beat = interval(SHORT / 20);
        while writing.write_all(b" ").await.is_ok() {
            beat.tick().await;
        }
    });
    let mut answer = Vec::new();
    // Closed or reset: both are an end.
    let _ = within(reading.read_to_end(&mut answer)).await;
    assert!(answer.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&answer));
    next_is_answered(&world).await;
    trickle.abort();
}

#[tokio::test]
async fn a_head_that_trickles_loses_its_place() {
    let world = with_one_place(|config| config.header_timeout = SHORT).await;
    let mut stream = world.client().connect().await;
    let trickle = tokio::spawn(async move {
        let mut beat = interval(SHORT / 20);
        let line = b"GET /healthz HTTP/1.1\r\nx: ".iter().chain(std::iter::repeat(&b'x'));
        for byte in line {
            if stream.write_all(&[*byte]).await.is_err() {
                break;
            }
            beat.tick().await;
        }
    });
    next_is_answered(&world).await;
    within(trickle).await.expect("the connection is closed");
}

/// A refusal comes before the body is there; closing at once would reset the connection and lose it.
#[tokio::test]
async fn whoever_is_refused_in_the_middle_of_sending_hears_why() {
    let world = World::with(|config| config.allowed_hosts = Vec::new()).await;
    let body = vec![b' '; 900 * 1024];
    for (what, extra, path, status) in [
        ("a foreign host", "host: evil.example\r\n", "/mcp", 403),
        ("no such path", "host: localhost\r\n", "/nowhere", 404),
        ("a compressed body", "host: localhost\r\ncontent-encoding: gzip\r\n", "/mcp", 415),
    ] {
        let head = format!(
            "POST {path} HTTP/1.1\r\n{extra}content-type: application/json\r\naccept: */*\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = world.client().connect().await;
        within(stream.write_all(head.as_bytes())).await.expect("sends");
        // The server has answered before the rest is sent.
        within(stream.readable()).await.expect("an answer");
        for piece in body.chunks(64 * 1024) {
            within(stream.write_all(piece)).await.unwrap_or_else(|e| panic!("{what}: {e}"));
        }
        let answer = receive(&mut stream).await.unwrap_or_else(|| panic!("{what}: no answer"));
        assert_eq!(answer.status, status, "{what}");
    }
}

/// One that asks first is answered before it sends anything.
#[tokio::test]
async fn whoever_asks_before_sending_is_not_asked_to_send_what_is_refused() {
    let world = World::new().await;
    let mut stream = world.client().connect().await;
    let head = "POST /mcp HTTP/1.1\r\nhost: evil.example\r\nexpect: 100-continue\r\ncontent-length: 10\r\n\r\n";
    within(stream.write_all(head.as_bytes())).await.expect("sends");
    assert_eq!(receive(&mut stream).await.expect("an answer").status, 403);
}

/// A bug in one request ends neither the requests beside it on other connections nor the process.
#[tokio::test]
async fn a_bug_in_one_request_is_not_felt_by_others() {
    let world = World::new().await;
    let workflow = world.start("asset-a").await;
    world.store.hold();
    let client = world.client();
    let arguments =
        serde_json::json!({"workflow_id": workflow, "step_id": "step-1", "value": "ok"});
    let mut busy = client.connect().await;
    let submit = call("submit_step", arguments).to_string();
    within(busy.write_all(&client.request(&[], submit.as_bytes()))).await.expect("sends");
    world.store.waiting(1).await;
    let breaks = call("get_status", serde_json::json!({"asset_id": "breaks"}));
    assert_eq!(
        world.post(&breaks).await.result()["structuredContent"]["error"]["code"],
        "INTERNAL"
    );
    assert!(timeout(Duration::ZERO, busy.readable()).await.is_err(), "nothing is answered yet");
    world.store.release();
    assert_eq!(
        receive(&mut busy).await.expect("an answer").result()["structuredContent"]["outcome"],
        "recorded"
    );
}
