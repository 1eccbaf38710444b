//! Servers that share one store and one clock, as replicas do, and persons who ask them.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use wf_core::engine::{Engine, EngineParts};
use wf_core::models::{Actor, Principal, Scopes, TenantId, WorkflowId};
use wf_mcp_http::{Authenticator, Caller, Refusal, Server};
use wf_testkit::clock::ManualClock;
use wf_testkit::ids::SequentialIds;

use crate::client::{Answer, Client};
use crate::world::{Shelf, World, configured, parts};

const MODERN: &str = "2026-07-28";

/// Capabilities of a client that can ask its user.
pub(super) const ASKS: fn() -> Value = || json!({"elicitation": {}});

/// `Bearer <tenant>/<subject>/<client>` is that person at that client.
#[derive(Debug)]
struct Named;

#[async_trait]
impl Authenticator for Named {
    async fn authenticate(&self, head: &http::request::Parts) -> Result<Caller, Refusal> {
        let sent = head.headers.get("authorization").and_then(|v| v.to_str().ok());
        let word = sent.and_then(|v| v.strip_prefix("Bearer ")).ok_or(Refusal::Unauthenticated)?;
        let [tenant, subject, client] = word.split('/').collect::<Vec<_>>()[..] else {
            return Err(Refusal::Unauthenticated);
        };
        Ok(Caller::User(Arc::new(Principal {
            tenant: TenantId::parse(tenant).map_err(|_| Refusal::Unauthenticated)?,
            actor: Actor::User(subject.to_owned()),
            name: Some(subject.replace('-', " ")),
            client_id: Some(client.to_owned()),
            scopes: Scopes::ALL,
            ..Principal::local()
        })))
    }
}

/// What several servers share.
pub(super) struct Room {
    pub(super) store: Arc<Shelf>,
    pub(super) clock: ManualClock,
    ids: Arc<SequentialIds>,
}

impl Room {
    pub(super) fn new() -> Self {
        let ids = Arc::new(SequentialIds::new());
        Self { store: Arc::new(Shelf::default()), clock: ManualClock::default(), ids }
    }

    /// A server: another replica, or the same one after a restart.
    pub(super) async fn server(&self) -> World {
        let parts = EngineParts {
            clock: Arc::new(self.clock.clone()),
            ids: Arc::clone(&self.ids) as _,
            ..parts(self.store.port())
        };
        let engine = Arc::new(Engine::open(parts).await.expect("opens"));
        let builder = Server::builder(configured(|_| {})).engine(engine);
        World::of(Arc::clone(&self.store), builder.authenticator(Arc::new(Named))).await
    }

    /// How each event of a workflow was confirmed that was.
    pub(super) async fn confirmed_by(&self, work: &str) -> Vec<String> {
        let tenant = TenantId::parse("t").expect("a tenant");
        let work = WorkflowId::parse(work).expect("an id");
        let events = self.store.port().events(&tenant, &work, 0, 100).await.expect("events");
        let bodies = events.iter().map(|e| serde_json::to_value(&e.body).expect("written"));
        bodies.filter_map(|body| found(&body, "confirmed_by")).collect()
    }
}

/// The text under this name, wherever it is.
fn found(value: &Value, name: &str) -> Option<String> {
    let members = value.as_object()?;
    let own = members.get(name).and_then(Value::as_str).map(str::to_owned);
    own.or_else(|| members.values().find_map(|value| found(value, name)))
}

/// A person at a server.
pub(super) struct Visit {
    client: Client,
    token: String,
}

impl Visit {
    pub(super) fn new(server: &World, who: &str) -> Self {
        Self { client: server.client(), token: format!("Bearer {who}") }
    }

    /// Calls a tool as a client of 2026-07-28 that can do `capabilities` and brings `brought` from an earlier round.
    pub(super) async fn tool(
        &self,
        tool: &str,
        arguments: Value,
        capabilities: impl Fn() -> Value,
        brought: Value,
    ) -> Answer {
        self.post(tool, &modern(tool, arguments, &capabilities(), brought)).await
    }

    /// Posts a call of a tool; without a tool, as a client of an earlier revision.
    pub(super) async fn post(&self, tool: &str, request: &Value) -> Answer {
        let mut headers = vec![("authorization", self.token.as_str())];
        if !tool.is_empty() {
            headers.extend([
                ("mcp-protocol-version", MODERN),
                ("mcp-method", "tools/call"),
                ("mcp-name", tool),
            ]);
        }
        self.client.post(&headers, request.to_string().as_bytes()).await
    }

    /// Starts the procedure on an asset; returns the workflow id.
    pub(super) async fn start(&self, asset: &str) -> String {
        let arguments = json!({"procedure_id": "routine-one", "assets": {"main": asset}});
        let started = self.tool("start_workflow", arguments, ASKS, json!({})).await.result();
        let body = &started["structuredContent"];
        assert_eq!(body["outcome"], "started", "{started}");
        body["workflow"]["id"].as_str().expect("an id").to_owned()
    }
}

/// A call of 2026-07-28.
pub(super) fn modern(tool: &str, arguments: Value, can: &Value, brought: Value) -> Value {
    let mut params = json!({"name": tool, "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": can,
    }});
    let (Value::Object(params_of), Value::Object(brought)) = (&mut params, brought) else {
        unreachable!("both are objects")
    };
    params_of.extend(brought);
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

/// The answer to a read-back.
pub(super) fn accepted(state: &str, yes: bool) -> Value {
    let response = json!({"action": "accept", "content": {"confirm": yes}});
    json!({"requestState": state, "inputResponses": {"confirm": response}})
}
