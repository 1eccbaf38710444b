//! Calls against time: clients that leave, deadlines, load, bugs, shutdown.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use wf_core::models::{Actor, Principal};
use wf_mcp_http::{Authenticator, Caller, Drained, Refusal};

use crate::client::{call, receive};
use crate::world::{Steady, World, within};

fn submit(workflow: &str, key: &str) -> Value {
    let arguments = json!({
        "workflow_id": workflow, "step_id": "step-1", "value": "ok", "idempotency_key": key,
    });
    call("submit_step", arguments)
}

async fn send(world: &World, message: &Value) -> tokio::net::TcpStream {
    let client = world.client();
    let mut stream = client.connect().await;
    let bytes = client.request(&[], message.to_string().as_bytes());
    within(stream.write_all(&bytes)).await.expect("sends");
    stream
}

/// Polls until `done`; there is nobody to wait for.
async fn until(done: impl AsyncFn() -> bool) {
    let poll = async {
        while !done().await {
            tokio::task::yield_now().await;
        }
    };
    within(poll).await;
}

#[tokio::test]
async fn a_call_outlives_its_connection_and_the_retry_replays_it() {
    let world = World::new().await;
    let workflow = world.start("asset-a").await;
    world.store.hold();
    let before = world.store.events().await;
    let stream = send(&world, &submit(&workflow, "k-1")).await;
    world.store.waiting(1).await;
    drop(stream);
    // Something else has its turn while the connection is noticed to be gone.
    assert_eq!(world.call("find_work", json!({})).await["outcome"], "list");
    world.store.release();
    until(async || world.store.events().await == before + 1).await;
    let again = world.post(&submit(&workflow, "k-1")).await.result();
    let body = &again["structuredContent"];
    assert_eq!((&body["outcome"], &body["duplicate"]), (&json!("recorded"), &json!(true)));
    assert_eq!(world.store.events().await, before + 1);
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_answered_and_goes_on() {
    let world = World::with(|config| config.request_timeout = Duration::from_millis(50)).await;
    let workflow = world.start("asset-a").await;
    world.store.hold();
    let before = world.store.events().await;
    let answer = world.post(&submit(&workflow, "k-1")).await.result();
    let error = &answer["structuredContent"]["error"];
    assert_eq!(
        (&error["code"], &error["retry"]),
        (&json!("BACKEND_UNAVAILABLE"), &json!("same_call"))
    );
    assert_eq!(answer["isError"], true);
    world.store.release();
    until(async || world.store.events().await == before + 1).await;
    let again = world.post(&submit(&workflow, "k-1")).await.result();
    assert_eq!(again["structuredContent"]["duplicate"], true);
}

#[tokio::test]
async fn too_many_calls_are_shed_and_health_is_not() {
    let world = World::with(|config| config.max_in_flight = 2).await;
    let workflow = world.start("asset-a").await;
    world.store.hold();
    let mut held = Vec::new();
    for (count, key) in ["k-1", "k-2"].iter().enumerate() {
        held.push(send(&world, &submit(&workflow, key)).await);
        world.store.waiting(count + 1).await;
    }
    let shed = world.post(&submit(&workflow, "k-3")).await;
    assert_eq!((shed.status, shed.header("retry-after")), (503, Some("1")));
    assert_eq!(shed.json()["error"], "overloaded");
    assert_eq!(world.client().ask("GET", "/healthz", &[]).await.status, 200);
    world.store.release();
    for stream in &mut held {
        assert_eq!(receive(stream).await.expect("an answer").status, 200);
    }
    assert_eq!(world.call("find_work", json!({})).await["outcome"], "list");
}

#[tokio::test]
async fn connections_beyond_the_bound_wait_their_turn() {
    let world = World::with(|config| config.max_connections = 1).await;
    let health = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut first = world.client().connect().await;
    within(first.write_all(health)).await.expect("sends");
    assert_eq!(receive(&mut first).await.expect("an answer").status, 200);
    let mut second = world.client().connect().await;
    within(second.write_all(health)).await.expect("sends");
    // The server has had its turn often enough to answer the second one, if it wanted to.
    for _ in 0..20 {
        within(first.write_all(health)).await.expect("sends");
        assert_eq!(receive(&mut first).await.expect("an answer").status, 200);
    }
    assert!(timeout(Duration::ZERO, second.readable()).await.is_err(), "two at once");
    drop(first);
    assert_eq!(receive(&mut second).await.expect("an answer").status, 200);
}

#[tokio::test]
async fn a_bug_in_a_call_is_an_internal_error_with_its_id() {
    let world = World::new().await;
    let message = call("get_status", json!({"asset_id": "breaks"})).to_string();
    let answer = world.client().post(&[("x-request-id", "incident-7")], message.as_bytes()).await;
    let result = answer.result();
    let body = &result["structuredContent"];
    assert_eq!((&body["error"]["code"], &result["isError"]), (&json!("INTERNAL"), &json!(true)));
    assert!(body.to_string().contains("incident-7"), "{body}");
    assert!(!body.to_string().contains("planted"), "{body}");
    assert_eq!(world.call("find_work", json!({})).await["outcome"], "list");
}

#[derive(Debug)]
struct ByName;

#[async_trait]
impl Authenticator for ByName {
    async fn authenticate(&self, head: &http::request::Parts) -> Result<Caller, Refusal> {
        let value = head.headers.get("authorization").and_then(|v| v.to_str().ok());
        match value.and_then(|v| v.strip_prefix("Bearer ")) {
            Some("panics") => panic!("a planted bug"),
            Some(name) => {
                let actor = Actor::User(name.to_owned());
                Ok(Caller::User(Arc::new(Principal { actor, ..Principal::local() })))
            }
            None => Err(Refusal::Unauthenticated),
        }
    }
}

#[tokio::test]
async fn the_authenticator_says_who_asks_before_the_body_is_read() {
    let world = World::build(|_| {}, Some(Arc::new(ByName)), Arc::new(Steady)).await;
    let client = world.client();
    let start = json!({"procedure_id": "routine-one", "assets": {"main": "asset-a"}});
    let body = call("start_workflow", start).to_string();
    let refused = client.post(&[], body.as_bytes()).await;
    assert_eq!((refused.status, refused.json()), (401, json!({"error": "unauthorized"})));
    assert_eq!(refused.header("www-authenticate"), None);
    assert_eq!(client.post(&[], b"not json").await.status, 401);
    assert_eq!(client.ask("GET", "/healthz", &[]).await.status, 200);
    let started = client.post(&[("authorization", "Bearer ann")], body.as_bytes()).await;
    let started = started.result()["structuredContent"].clone();
    assert_eq!(started["workflow"]["owner"]["id"], "ann", "{started}");
}

#[tokio::test]
async fn a_bug_outside_a_call_is_a_500_and_the_server_lives() {
    let world = World::build(|_| {}, Some(Arc::new(ByName)), Arc::new(Steady)).await;
    let body = call("find_work", json!({})).to_string();
    let answer = world.client().post(&[("authorization", "Bearer panics")], body.as_bytes()).await;
    assert_eq!((answer.status, &answer.json()["error"]), (500, &json!("internal")));
    assert!(!String::from_utf8_lossy(&answer.body).contains("planted"));
    let answer = world.client().post(&[("authorization", "Bearer ann")], body.as_bytes()).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_shutdown_answers_what_is_in_flight_and_takes_nothing_new() {
    let mut world = World::with(|c| c.admin_listen = Some(([127, 0, 0, 1], 0).into())).await;
    let workflow = world.start("asset-a").await;
    world.store.hold();
    let mut busy = send(&world, &submit(&workflow, "k-1")).await;
    world.store.waiting(1).await;
    let idle = world.client().connect().await;
    let admin = crate::client::Client::new(world.admin.expect("an address"));
    world.begin_stop();
    // Readiness turns false while the last call is still being worked on.
    let refused = async { while admin.ask("GET", "/readyz", &[]).await.status != 503 {} };
    within(refused).await;
    let gone = async { while tokio::net::TcpStream::connect(world.address).await.is_ok() {} };
    within(gone).await;
    world.store.release();
    let answer = receive(&mut busy).await.expect("an answer");
    assert_eq!(answer.result()["structuredContent"]["outcome"], "recorded");
    drop(idle);
    assert_eq!(world.stopped().await, Drained { in_flight_abandoned: 0 });
}

#[tokio::test]
async fn a_shutdown_waits_for_calls_whose_client_is_gone() {
    let mut world = World::new().await;
    let workflow = world.start("asset-a").await;
    world.store.hold();
    let stream = send(&world, &submit(&workflow, "k-1")).await;
    world.store.waiting(1).await;
    drop(stream);
    world.begin_stop();
    let store = Arc::clone(&world.store);
    let stopped = tokio::spawn(world.stopped());
    assert_eq!(store.events().await, 2);
    assert!(!stopped.is_finished());
    store.release();
    assert_eq!(within(stopped).await.expect("no panic"), Drained { in_flight_abandoned: 0 });
    assert_eq!(store.events().await, 3);
}

#[tokio::test]
async fn a_shutdown_ends_when_its_grace_is_over() {
    let mut world = World::with(|c| c.shutdown_grace = Duration::from_millis(50)).await;
    let workflow = world.start("asset-a").await;
    world.store.hold();
    let mut stream = send(&world, &submit(&workflow, "k-1")).await;
    world.store.waiting(1).await;
    world.begin_stop();
    assert_eq!(world.stopped().await, Drained { in_flight_abandoned: 1 });
    assert!(receive(&mut stream).await.is_none());
}

/// A connection that the operating system has accepted, with a request in it, must not be reset because the server never
/// had a turn: its caller would not know what became of the call.
#[tokio::test]
async fn a_shutdown_answers_what_waits_to_be_accepted() {
    use std::io::Write as _;

    let mut world = World::new().await;
    let client = world.client();
    let mut waiting = Vec::new();
    // The server runs on this thread too: it has no turn between here and the shutdown.
    for n in 0..16 {
        let start =
            json!({"procedure_id": "routine-one", "assets": {"main": format!("asset-{n}")}});
        let message = call("start_workflow", start).to_string();
        let mut stream = std::net::TcpStream::connect(world.address).expect("connects");
        stream.write_all(&client.request(&[], message.as_bytes())).expect("sends");
        stream.set_nonblocking(true).expect("a setting");
        waiting.push(stream);
    }
    world.begin_stop();
    for stream in waiting {
        let mut stream = tokio::net::TcpStream::from_std(stream).expect("a stream");
        let answer = receive(&mut stream).await.expect("an answer");
        // Whether it also says `Connection: close` depends on how soon it was read.
        assert_eq!(answer.result()["structuredContent"]["outcome"], "started");
    }
    assert_eq!(world.stopped().await, Drained { in_flight_abandoned: 0 });
}
