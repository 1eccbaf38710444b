//! A guest's handler beside our tools and alone: what the layers promise holds for it, and it takes nothing of ours.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, ListPromptsResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, Prompt, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ServerCapabilities,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use wf_core::models::{Principal, Scopes, TenantId};
use wf_mcp_http::{
    Authenticator, Caller, Challenge, Guest, Needs, Protection, Refusal, ServiceCaller, caller,
};

use crate::client::{Client, call};
use crate::world::World;

type Context = RequestContext<RoleServer>;

/// A handler with a tool of each kind. `taken` is the name of one more.
#[derive(Clone)]
struct Shop {
    taken: &'static str,
}

impl Shop {
    fn tools(&self) -> Vec<Tool> {
        let named = |name: &'static str| Tool::new(name, name, Arc::default());
        let reads = ToolAnnotations::from_raw(None, Some(true), None, None, None);
        vec![
            named("shop_look").with_annotations(reads),
            named("shop_buy"),
            named("shop_refund"),
            named("shop_panic"),
            named("shop_sleep"),
            named(self.taken),
        ]
    }
}

impl ServerHandler for Shop {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts();
        ServerConfig::new(can.build()).with_instructions("Shop politely.")
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = self.tools();
        tools.push(Tool::new("shop_unknown", "get_tool does not know it", Arc::default()));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*request.name {
            "shop_panic" => unreachable!("asked for"),
            "shop_sleep" => context.ct.cancelled().await,
            _ => {}
        }
        let Some(Caller::User(who)) = caller(&context) else {
            return Err(ErrorData::new(ErrorCode::INTERNAL_ERROR, "nobody asks", None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let text = format!("{} {} {arguments}", request.name, who.actor);
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new("shop://shelf", "shelf")]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(ReadResourceResult::new(vec![ResourceContents::text("empty", request.uri)]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new("haggle", None::<String>, None)]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        Err(ErrorData::invalid_params(format!("asked the shop for {}", request.name), None))
    }
}

/// Everybody is this one.
#[derive(Debug)]
struct Always(Caller);

impl Always {
    fn person(scopes: Scopes) -> Arc<Self> {
        Arc::new(Self(Caller::User(Arc::new(Principal { scopes, ..Principal::local() }))))
    }

    fn service() -> Arc<Self> {
        let (tenant, client_id) = (TenantId::default_tenant(), "a client".into());
        Arc::new(Self(Caller::Service(ServiceCaller { tenant, client_id })))
    }
}

#[async_trait]
impl Authenticator for Always {
    async fn authenticate(&self, _: &http::request::Parts) -> Result<Caller, Refusal> {
        Ok(self.0.clone())
    }
}

fn shop() -> Guest {
    Guest::new(Shop { taken: "shop_extra" }).needs("shop_refund", Needs::Supervise)
}

async fn ask(client: &Client, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    client.post(&[], body.to_string().as_bytes()).await.json()
}

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().expect("tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}

fn said(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn a_guest_is_served_beside_our_tools() {
    let world = World::hosting(shop(), true, |_| {}).await;
    let client = world.client();
    let listed = ask(&client, "tools/list", json!({})).await;
    let all = names(&listed);
    assert_eq!(all[0], "find_work");
    assert_eq!(
        &all[11..],
        ["shop_look", "shop_buy", "shop_refund", "shop_panic", "shop_sleep", "shop_extra"]
    );
    // Both kinds of calls in one server.
    assert_eq!(world.call("get_status", json!({})).await["outcome"], "none");
    let answer = client.post(&[], call("shop_buy", json!({"n": 1})).to_string().as_bytes()).await;
    assert_eq!(said(&answer.json()), "shop_buy user:local {\"n\":1}");
    let unknown = client.post(&[], call("shop_unknown", json!({})).to_string().as_bytes()).await;
    assert_eq!(unknown.rpc(), (200, -32602));

    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                       "clientInfo": {"name": "t", "version": "1"}});
    let info = ask(&client, "initialize", hello).await["result"].clone();
    assert_eq!(info["serverInfo"]["name"], "checkpoint");
    let rules = info["instructions"].as_str().expect("rules");
    assert!(rules.starts_with("Checkpoint") && rules.ends_with("Shop politely."), "{rules}");
    assert!(info["capabilities"]["resources"].is_object(), "{info}");

    let resources = ask(&client, "resources/list", json!({})).await;
    let uris = resources["result"]["resources"].as_array().expect("resources");
    assert!(uris.iter().any(|r| r["uri"] == "shop://shelf"), "{resources}");
    let read = ask(&client, "resources/read", json!({"uri": "shop://shelf"})).await;
    assert_eq!(read["result"]["contents"][0]["text"], "empty");
    let prompt = ask(&client, "prompts/get", json!({"name": "haggle"})).await;
    assert_eq!(prompt["error"]["message"], "asked the shop for haggle");
}

#[tokio::test]
async fn a_guest_is_served_alone() {
    let world = World::hosting(shop(), false, |_| {}).await;
    let client = world.client();
    let listed = ask(&client, "tools/list", json!({})).await;
    assert_eq!(names(&listed).len(), 6, "{listed}");
    // A tool of ours is none here.
    let absent = client.post(&[], call("get_status", json!({})).to_string().as_bytes()).await;
    assert_eq!(absent.rpc(), (200, -32602));
    let info = ask(&client, "tools/call", json!({"name": "shop_look"})).await;
    assert_eq!(said(&info), "shop_look user:local {}");
    assert_eq!(world.client().ask("GET", "/ack/x", &[]).await.status, 404);
}

#[tokio::test]
async fn what_is_ours_cannot_be_taken_over() {
    let taken = World::refused_guest(Guest::new(Shop { taken: "submit_step" })).await;
    assert_eq!(taken, "the guest's tool submit_step is called like one of this server's own");
    let misnamed = World::refused_guest(shop().needs("shop_bye", Needs::Read)).await;
    assert!(misnamed.contains("shop_bye"), "{misnamed}");
    // Alone it may be called anything.
    let world = World::hosting(Guest::new(Shop { taken: "submit_step" }), false, |_| {}).await;
    let answer = ask(&world.client(), "tools/call", json!({"name": "submit_step"})).await;
    assert_eq!(said(&answer), "submit_step user:local {}");
    // Our addresses are ours, whatever the guest would say.
    let world = World::hosting(shop(), true, |_| {}).await;
    let read = json!({"uri": "workflow://workflows/none"});
    let read = ask(&world.client(), "resources/read", read).await;
    assert!(read["error"].is_object(), "{read}");
}

#[tokio::test]
async fn scopes_hold_for_a_guest() {
    let reader = Scopes { read: true, write: false, supervise: false };
    let writer = Scopes { write: true, ..reader };
    let cases = [
        (Scopes { read: false, ..reader }, "", "shop_look"),
        (reader, "shop_look", "shop_buy"),
        (writer, "shop_look shop_buy shop_panic shop_sleep shop_extra", "shop_refund"),
    ];
    for (scopes, listed, refused) in cases {
        let tokens = Always::person(scopes);
        let world = World::hosting_for(shop(), tokens.clone(), |_| {}).await;
        let all = ask(&world.client(), "tools/list", json!({})).await;
        assert_eq!(names(&all).join(" "), listed);
        let answer = ask(&world.client(), "tools/call", json!({"name": refused})).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        // Where clients can ask for more, they are told of what.
        let world = World::hosting_for(shop(), tokens, |config| {
            let issuer = vec!["https://auth.example.com".to_owned()];
            config.protection =
                Some(Protection { challenge: Challenge::Rfc9728, ..Protection::new(None, issuer) });
        })
        .await;
        let body = call(refused, json!({})).to_string();
        let answer = world.client().post(&[], body.as_bytes()).await;
        assert_eq!(answer.status, 403);
        assert!(
            answer.header("www-authenticate").is_some_and(|c| c.contains("insufficient_scope"))
        );
    }
    let nobody = Scopes { read: false, write: false, supervise: false };
    let world = World::hosting_for(shop(), Always::person(nobody), |_| {}).await;
    for (method, params) in [
        ("resources/read", json!({"uri": "shop://shelf"})),
        ("resources/list", json!({})),
        ("prompts/get", json!({"name": "haggle"})),
    ] {
        let answer = ask(&world.client(), method, params).await;
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
    }
}

#[tokio::test]
async fn a_service_sees_a_guests_tools_and_calls_none() {
    let world = World::hosting_for(shop(), Always::service(), |_| {}).await;
    let all = ask(&world.client(), "tools/list", json!({})).await;
    assert_eq!(names(&all).len(), 6, "no protection is configured, so all are listed: {all}");
    let body = call("shop_look", json!({})).to_string();
    assert_eq!(world.client().post(&[], body.as_bytes()).await.status, 401);
}

#[tokio::test]
async fn a_guests_arguments_are_read_strictly() {
    let world = World::hosting(shop(), true, |_| {}).await;
    let head =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shop_buy","arguments":"#;
    for (arguments, problem) in [
        (r#"{"n":1,"n":2}"#, "must appear only once"),
        (r#"{"n":9007199254740993}"#, "must be a number between"),
        ("[1]", "must be an object, not an array"),
    ] {
        let body = format!("{head}{arguments}}}}}");
        let answer = world.client().post(&[], body.as_bytes()).await.json();
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(said(&answer).contains(problem), "{answer}");
    }
}

#[tokio::test]
async fn a_guests_tool_may_fail_or_hang() {
    let world = World::hosting(shop(), true, |config| {
        config.request_timeout = Duration::from_millis(200);
    })
    .await;
    let answer = ask(&world.client(), "tools/call", json!({"name": "shop_panic"})).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    let answer = ask(&world.client(), "tools/call", json!({"name": "shop_sleep"})).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(said(&answer).contains("outcome is unknown"), "{answer}");
}

#[tokio::test]
async fn nothing_to_serve_is_no_server() {
    let refused = World::refused_nothing().await;
    assert!(refused.contains("nothing to serve"), "{refused}");
}
