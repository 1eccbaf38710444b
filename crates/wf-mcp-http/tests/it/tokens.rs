//! Tokens on the wire: who is let in, what everybody else is told, and that a token is shown nowhere.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use wf_core::models::Timestamp;
use wf_core::ports::ClockPort as _;
use wf_mcp_http::Authenticator;
use wf_mcp_http::auth::{DevKey, DevToken, JwtAuthenticator, JwtConfig, Masked};
use wf_testkit::clock::ManualClock;

use crate::client::{Answer, call};
use crate::records::LINES;
use crate::world::{Steady, World};

const ISSUER: &str = "http://127.0.0.1:8080";
const RESOURCE: &str = "http://127.0.0.1:8080/mcp";

/// A server that takes the tokens of one key, and that key.
struct Guarded {
    world: World,
    key: DevKey,
    config: JwtConfig,
    clock: ManualClock,
}

impl Guarded {
    async fn new() -> Self {
        let clock = ManualClock::new(Timestamp::from_ms(1_796_000_000_000));
        let key = DevKey::generate().expect("a key");
        let config = JwtConfig::new(ISSUER, RESOURCE);
        let tokens = JwtAuthenticator::local(config.clone(), &key, Arc::new(clock.clone()));
        let world = world(Arc::new(tokens.expect("settings that can be"))).await;
        Self { world, key, config, clock }
    }

    fn token(&self, subject: &str) -> Masked<String> {
        self.sign(&self.key, DevToken::new(subject))
    }

    fn sign(&self, key: &DevKey, wish: DevToken) -> Masked<String> {
        key.sign(&wish, &self.config, self.clock.now()).expect("signed")
    }

    async fn post(&self, headers: &[(&str, &str)]) -> Answer {
        post(&self.world, headers).await
    }

    async fn bearer(&self, token: &str) -> Answer {
        self.post(&[("authorization", &format!("Bearer {token}"))]).await
    }
}

async fn world(authenticator: Arc<dyn Authenticator>) -> World {
    World::build(|_| {}, Some(authenticator), Arc::new(Steady)).await
}

async fn post(world: &World, headers: &[(&str, &str)]) -> Answer {
    let body = call("find_work", json!({})).to_string();
    world.client().post(headers, body.as_bytes()).await
}

#[tokio::test]
async fn a_good_token_acts_and_every_other_is_answered_alike() {
    let guarded = Guarded::new().await;
    let good = guarded.token("ann");
    let found = guarded.bearer(good.expose()).await;
    assert_eq!(found.result()["structuredContent"]["outcome"], "list");

    let nobody = guarded.post(&[]).await;
    assert_eq!((nobody.status, nobody.json()), (401, json!({ "error": "unauthorized" })));
    let other_key = DevKey::generate().expect("a key");
    let forged = guarded.sign(&other_key, DevToken::new("ann"));
    let short = DevToken { life: Duration::from_secs(1), ..DevToken::new("ann") };
    let expired = guarded.sign(&guarded.key, short);
    guarded.clock.advance(61_001);
    let foreign = JwtConfig::new(ISSUER, "http://127.0.0.1:8080/other");
    let foreign = guarded.key.sign(&DevToken::new("ann"), &foreign, guarded.clock.now());
    let foreign = foreign.expect("signed");
    for (what, token) in [
        ("forged", forged.expose().as_str()),
        ("expired", expired.expose()),
        ("foreign", foreign.expose()),
        ("cut off", good.expose().rsplit_once('.').expect("three parts").0),
        ("opaque", "2YotnFZFEjr1zCsicMWpAA"),
        ("empty", ""),
    ] {
        let refused = guarded.bearer(token).await;
        assert_eq!(refused.comparable(), nobody.comparable(), "{what}");
    }
    assert_eq!(guarded.bearer(good.expose()).await.status, 200, "it has not been too long");
}

#[tokio::test]
async fn a_token_in_the_wrong_place_is_told_where_it_belongs() {
    let guarded = Guarded::new().await;
    let good = guarded.token("ann");
    let bearer = format!("Bearer {}", good.expose());
    let twice = guarded.post(&[("authorization", &bearer), ("Authorization", &bearer)]).await;
    assert_eq!((twice.status, &twice.json()["error"]), (400, &json!("invalid_request")));
    let long = format!("{}.{}", good.expose(), "x".repeat(8192));
    assert_eq!(guarded.bearer(&long).await.status, 400);
    assert_eq!(guarded.bearer(&"x".repeat(100_000)).await.status, 431);

    let query = |headers: &str| {
        let line = format!("POST /mcp?access_token={} HTTP/1.1\r\n", good.expose());
        let host = guarded.world.address;
        format!("{line}host: {host}\r\n{headers}content-length: 0\r\n\r\n")
    };
    let client = guarded.world.client();
    let alone = client.raw(query("").as_bytes()).await;
    assert_eq!(alone.status, 401);
    let both = client.raw(query(&format!("authorization: {bearer}\r\n")).as_bytes()).await;
    assert_eq!(both.status, 400);
}

#[tokio::test]
async fn a_server_without_keys_says_so_until_it_has_them() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("binds");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let clock = ManualClock::new(Timestamp::from_ms(1_796_000_000_000));
    let key = DevKey::generate().expect("a key");
    let issuer = format!("http://127.0.0.1:{port}");
    let mut config = JwtConfig::new(issuer.clone(), RESOURCE);
    config.key_times.retry = Duration::from_millis(1);
    let tokens = JwtAuthenticator::remote(config.clone(), Arc::new(clock.clone())).expect("one");
    let world = world(Arc::new(tokens)).await;
    let token = key.sign(&DevToken::new("ann"), &config, clock.now()).expect("signed");
    let bearer = format!("Bearer {}", token.expose());

    let refused = post(&world, &[("authorization", &bearer)]).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(post(&world, &[]).await.status, 401, "needs no keys");

    let serving = serve(
        port,
        &json!({ "issuer": issuer, "jwks_uri": format!("{issuer}/jwks") }),
        &key.jwks(),
    )
    .await;
    // A pause of a millisecond may be hit once more.
    let mut status = 503;
    for _ in 0..1000 {
        status = post(&world, &[("authorization", &bearer)]).await.status;
        if status != 503 {
            break;
        }
    }
    assert_eq!(status, 200);
    serving.abort();
}

/// An authorization server with two documents.
async fn serve(port: u16, metadata: &Value, jwks: &Value) -> tokio::task::JoinHandle<()> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("binds again");
    let (metadata, jwks) = (metadata.to_string(), jwks.to_string());
    tokio::spawn(async move {
        while let Ok((mut peer, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let read = peer.read(&mut head).await.unwrap_or(0);
            let asked_for_keys = head[..read].starts_with(b"GET /jwks ");
            let body = if asked_for_keys { &jwks } else { &metadata };
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            // A client that is gone is no failure of this server.
            let _ = peer.write_all(answer.as_bytes()).await;
        }
    })
}

/// Every part of a token, good or bad, in every place of the head: in no log line at the finest level, in no answer.
#[tokio::test]
async fn no_part_of_a_token_is_shown() {
    let lines = &*LINES;
    let guarded = Guarded::new().await;
    let good = guarded.token("ann");
    let forged = guarded.sign(&DevKey::generate().expect("a key"), DevToken::new("bob"));
    let mut answers = Vec::new();
    for token in [good.expose(), forged.expose()] {
        let bearer = format!("Bearer {token}");
        answers.push(guarded.bearer(token).await);
        answers.push(guarded.post(&[("authorization", &bearer), ("Authorization", &bearer)]).await);
        let basic = format!("Basic {token}");
        answers.push(guarded.post(&[("authorization", &basic)]).await);
        let url = format!("/mcp?access_token={token}");
        answers.push(guarded.world.client().ask("POST", &url, &[("authorization", &bearer)]).await);
    }
    let log = lines.text();
    assert!(log.contains("a credential was refused") && log.contains("known_key"), "{log}");
    for token in [good.expose(), forged.expose()] {
        for part in token.split('.').skip(1) {
            assert!(!log.contains(part), "in the log");
            for answer in &answers {
                assert!(!String::from_utf8_lossy(&answer.body).contains(part), "in an answer");
                assert!(!format!("{:?}", answer.comparable()).contains(part), "in a header");
            }
        }
    }
}
