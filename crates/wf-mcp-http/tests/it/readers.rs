//! People of several tenants and rights who read, and requests of theirs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use wf_core::access::Visibility;
use wf_core::engine::{Engine, EngineParts, Settings};
use wf_core::models::{Actor, Principal, Scopes, TenantId};
use wf_mcp_http::{Authenticator, Caller, Refusal, Server, ServiceCaller};

use crate::client::Answer;
use crate::world::{Shelf, Steady, World, configured, parts};

pub(crate) const MODERN: &str = "2026-07-28";

/// `Bearer <tenant>/<name>/<rights>` is that person, rights being letters of `rws`; `Bearer service` is a service. Whoever
/// is in the set counts no more.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    pub(crate) gone: Mutex<BTreeSet<String>>,
}

#[async_trait]
impl Authenticator for Readers {
    async fn authenticate(&self, head: &http::request::Parts) -> Result<Caller, Refusal> {
        let sent = head.headers.get("authorization").and_then(|v| v.to_str().ok());
        let word = sent.and_then(|v| v.strip_prefix("Bearer ")).ok_or(Refusal::Unauthenticated)?;
        if self.gone.lock().expect("a lock").contains(word) {
            return Err(Refusal::Unauthenticated);
        }
        if word == "service" {
            let tenant = TenantId::default_tenant();
            return Ok(Caller::Service(ServiceCaller { tenant, client_id: "a client".into() }));
        }
        let [tenant, name, rights] = *word.split('/').collect::<Vec<_>>() else {
            return Err(Refusal::Unauthenticated);
        };
        Ok(Caller::User(Arc::new(Principal {
            tenant: TenantId::parse(tenant).map_err(|_| Refusal::Unauthenticated)?,
            actor: Actor::User(name.to_owned()),
            name: Some(name.to_owned()),
            scopes: Scopes {
                read: rights.contains('r'),
                write: rights.contains('w'),
                supervise: rights.contains('s'),
            },
            ..Principal::local()
        })))
    }
}

/// A server for them.
pub(crate) async fn world(visibility: Visibility) -> (World, Arc<Readers>) {
    let store = Arc::new(Shelf::default());
    let parts = parts(store.port());
    let settings = Settings { visibility, ..parts.settings.clone() };
    let engine = Engine::open(EngineParts { settings, ..parts }).await.expect("opens");
    let readers = Arc::new(Readers::default());
    let authenticator: Arc<dyn Authenticator> = Arc::clone(&readers) as _;
    let builder = Server::builder(configured(|_| {})).engine(Arc::new(engine));
    let builder = builder.probes(Arc::new(Steady)).authenticator(authenticator);
    (World::of(store, builder).await, readers)
}

/// A request of 2026-07-28: its headers and its body.
pub(crate) fn modern(method: &str, mut params: Value) -> (Vec<(&'static str, String)>, Value) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "a client", "version": "1"},
    });
    let mut headers =
        vec![("mcp-protocol-version", MODERN.to_owned()), ("mcp-method", method.to_owned())];
    if let Some(name) = params.get("uri").or_else(|| params.get("name")).and_then(Value::as_str) {
        headers.push(("mcp-name", name.to_owned()));
    }
    (headers, json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
}

/// Sends a request of 2026-07-28 as `who`; nobody in particular when empty.
pub(crate) async fn ask(world: &World, who: &str, method: &str, params: Value) -> Answer {
    let (headers, body) = modern(method, params);
    let token = format!("Bearer {who}");
    let mut headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
    if !who.is_empty() {
        headers.push(("authorization", &token));
    }
    world.client().post(&headers, body.to_string().as_bytes()).await
}

/// Calls a tool as `who`, in the oldest revision; its structured content.
pub(crate) async fn tool(world: &World, who: &str, name: &str, arguments: Value) -> Value {
    let token = format!("Bearer {who}");
    let body = crate::client::call(name, arguments).to_string();
    let answer = world.client().post(&[("authorization", &token)], body.as_bytes()).await;
    answer.result()["structuredContent"].clone()
}

/// Starts the procedure as `who`; the id of the workflow.
pub(crate) async fn start(world: &World, who: &str, asset: &str, inputs: Value) -> String {
    let arguments =
        json!({"procedure_id": "routine-one", "assets": {"main": asset}, "inputs": inputs});
    let started = tool(world, who, "start_workflow", arguments).await;
    assert_eq!(started["outcome"], "started", "{started}");
    started["workflow"]["id"].as_str().expect("an id").to_owned()
}

/// Reads a resource as `who`; its text.
pub(crate) async fn read(world: &World, who: &str, uri: &str) -> String {
    let result = ask(world, who, "resources/read", json!({"uri": uri})).await.result();
    assert_eq!(result["contents"][0]["uri"], uri, "{result}");
    assert_eq!(result["contents"].as_array().map(Vec::len), Some(1), "{result}");
    result["contents"][0]["text"].as_str().expect("text").to_owned()
}
