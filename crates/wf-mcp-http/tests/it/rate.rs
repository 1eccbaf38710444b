//! How often one caller may ask: 429, and nobody pays for another.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use wf_core::models::{Actor, Principal, TenantId};
use wf_mcp_http::{Authenticator, Caller, Refusal, ServiceCaller};

use crate::client::{Answer, call};
use crate::world::{Steady, World};

/// `Bearer TENANT NAME TOKEN`: any token of a person is that person; the name `service` is a service.
#[derive(Debug)]
struct Named;

#[async_trait]
impl Authenticator for Named {
    async fn authenticate(&self, head: &http::request::Parts) -> Result<Caller, Refusal> {
        let sent = head.headers.get("authorization").and_then(|v| v.to_str().ok());
        let mut words = sent.ok_or(Refusal::Unauthenticated)?.split(' ').skip(1);
        let tenant = words.next().and_then(|word| TenantId::parse(word).ok());
        let (Some(tenant), Some(name)) = (tenant, words.next()) else {
            return Err(Refusal::Unauthenticated);
        };
        Ok(if name == "service" {
            Caller::Service(ServiceCaller { tenant, client_id: name.into() })
        } else {
            let actor = Actor::User(name.to_owned());
            Caller::User(Arc::new(Principal { tenant, actor, ..Principal::local() }))
        })
    }
}

async fn world(limit: &str) -> World {
    let limit = limit.parse().expect("a limit");
    World::build(|c| c.rate_limit = Some(limit), Some(Arc::new(Named)), Arc::new(Steady)).await
}

async fn ask(world: &World, caller: &str, body: &[u8]) -> Answer {
    world.client().post(&[("authorization", &format!("Bearer {caller}"))], body).await
}

#[tokio::test]
async fn a_caller_beyond_the_limit_is_told_when_to_come_again() {
    let world = world("3/h").await;
    let workflow = json!({"procedure_id": "routine-one", "assets": {"main": "asset-a"}});
    let start = call("start_workflow", workflow).to_string();
    for _ in 0..3 {
        let answer = ask(&world, "t1 ann token-1", b"not JSON").await;
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    // Another token of the same person is no other caller; the body is not looked at; nothing is done.
    let refused = ask(&world, "t1 ann token-2", start.as_bytes()).await;
    assert_eq!((refused.status, &refused.json()["error"]), (429, &json!("rate_limited")));
    let after: u64 = refused.header("retry-after").and_then(|v| v.parse().ok()).expect("a number");
    // One is earned back in 20 minutes.
    assert!((1_100..=1_200).contains(&after), "{after}");
    assert_eq!(world.store.events().await, 0);
    assert_eq!(ask(&world, "t1 ann token-1", b"not JSON").await.status, 429);
}

#[tokio::test]
async fn nobody_pays_for_another() {
    let world = world("1/h").await;
    for caller in ["t1 ann", "t1 bob", "t2 ann", "t1 service", "t2 service"] {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        assert_eq!(ask(&world, caller, list.as_bytes()).await.status, 200, "{caller}");
        assert_eq!(ask(&world, caller, list.as_bytes()).await.status, 429, "{caller}");
    }
    // Whoever is nobody has no allowance to spend, and health is for everybody.
    for _ in 0..3 {
        assert_eq!(ask(&world, "", b"").await.status, 401);
        assert_eq!(world.client().ask("GET", "/healthz", &[]).await.status, 200);
    }
}
