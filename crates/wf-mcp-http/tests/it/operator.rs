//! Health, readiness, metrics: where they are and what they say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::json;
use wf_mcp_http::Probes;

use crate::client::Client;
use crate::world::World;

#[derive(Debug, Default)]
struct Moody(AtomicBool);

#[async_trait]
impl Probes for Moody {
    async fn ready(&self) -> Result<(), String> {
        if self.0.load(Ordering::Acquire) { Ok(()) } else { Err("the store is away".to_owned()) }
    }

    fn metrics(&self) -> String {
        "up 1\n".to_owned()
    }
}

#[tokio::test]
async fn a_loopback_listener_has_the_operators_routes() {
    let mood = Arc::new(Moody::default());
    let world = World::build(|_| {}, None, Arc::clone(&mood) as Arc<dyn Probes>).await;
    let client = world.client();
    let answer = client.ask("GET", "/readyz", &[]).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert_eq!(answer.json()["message"], "the store is away");
    mood.0.store(true, Ordering::Release);
    assert_eq!(client.ask("GET", "/readyz", &[]).await.json(), json!({"status": "ready"}));
    assert_eq!(client.ask("GET", "/healthz", &[]).await.json(), json!({"status": "ok"}));
    let metrics = client.ask("GET", "/metrics", &[]).await;
    assert_eq!(metrics.body, b"up 1\n");
    assert!(metrics.header("content-type").is_some_and(|t| t.starts_with("text/plain")));
}

#[tokio::test]
async fn the_operators_listener_has_no_mcp() {
    let world = World::with(|config| config.admin_listen = Some(([127, 0, 0, 1], 0).into())).await;
    let admin = Client::new(world.admin.expect("an address"));
    assert_eq!(admin.ask("GET", "/readyz", &[]).await.status, 200);
    assert_eq!(admin.ask("GET", "/metrics", &[]).await.status, 200);
    let body = crate::client::call("find_work", json!({})).to_string();
    assert_eq!(admin.post(&[], body.as_bytes()).await.status, 404);
}

#[tokio::test]
async fn a_public_listener_has_only_health() {
    let world = World::with(|config| config.listen = vec![([0, 0, 0, 0], 0).into()]).await;
    let client = Client::new(([127, 0, 0, 1], world.address.port()).into());
    assert_eq!(client.ask("GET", "/healthz", &[]).await.status, 200);
    for path in ["/readyz", "/metrics"] {
        assert_eq!(client.ask("GET", path, &[]).await.status, 404, "{path}");
    }
}
