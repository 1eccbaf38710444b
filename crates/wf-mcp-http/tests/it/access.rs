//! Who is let in: refusals in all three challenge modes, the documents that clients find, tiers and scopes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use wf_core::models::{Actor, Principal, Scopes, TenantId};
use wf_mcp_http::{
    Authenticator, Caller, Challenge, HttpConfig, Mirror, Protection, Refusal, ServiceCaller,
    ServiceLists,
};

use crate::client::{Answer, call, receive};
use crate::world::{Steady, World, within};

const ISSUER: &str = "https://auth.example.com";
const ORIGIN: &str = "https://wf.example.com";
const ROOT: &str = "/.well-known/oauth-protected-resource";

/// `Bearer <scopes>` is a person with these scopes, `Bearer service` a service; anything else is nobody.
#[derive(Debug)]
struct ByWord;

#[async_trait]
impl Authenticator for ByWord {
    async fn authenticate(&self, head: &http::request::Parts) -> Result<Caller, Refusal> {
        let sent = head.headers.get("authorization").and_then(|v| v.to_str().ok());
        let word = sent.and_then(|v| v.strip_prefix("Bearer ")).ok_or(Refusal::Unauthenticated)?;
        match word {
            "service" => Ok(Caller::Service(ServiceCaller {
                tenant: TenantId::default_tenant(),
                client_id: "alexa".into(),
            })),
            "twice" => Err(Refusal::BadRequest("send one Authorization header")),
            "early" => Err(Refusal::Unavailable { after: Duration::from_secs(7) }),
            "none" | "read" | "read+write" | "all" => Ok(Caller::User(Arc::new(Principal {
                actor: Actor::User("ann".to_owned()),
                name: Some("Ann Miller".to_owned()),
                scopes: Scopes {
                    read: word != "none",
                    write: word == "read+write" || word == "all",
                    supervise: word == "all",
                },
                ..Principal::local()
            }))),
            _ => Err(Refusal::Unauthenticated),
        }
    }
}

async fn world_with(change: impl FnOnce(&mut HttpConfig, &mut Protection)) -> World {
    let configure = |config: &mut HttpConfig| {
        let mut protection = Protection::new(Some(ORIGIN.to_owned()), vec![ISSUER.to_owned()]);
        change(config, &mut protection);
        config.protection = Some(protection);
    };
    World::build(configure, Some(Arc::new(ByWord)), Arc::new(Steady)).await
}

async fn world(challenge: Challenge) -> World {
    world_with(|_, protection| protection.challenge = challenge).await
}

fn request(path: &str, token: Option<&str>, message: &Value) -> Vec<u8> {
    let body = message.to_string();
    let authorization = token.map_or(String::new(), |t| format!("authorization: Bearer {t}\r\n"));
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n\
         {authorization}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

async fn ask(world: &World, path: &str, token: &str, message: &Value) -> Answer {
    world.client().raw(&request(path, Some(token), message)).await
}

fn find() -> Value {
    call("find_work", json!({}))
}

fn method(name: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": "a", "method": name, "params": {}})
}

fn challenge_of(answer: &Answer) -> Option<&str> {
    answer.header("www-authenticate")
}

#[tokio::test]
async fn a_headerless_refusal_says_nothing_and_is_always_the_same() {
    let world = world(Challenge::Headerless).await;
    let mut seen = Vec::new();
    for token in [None, Some(""), Some("forged"), Some("a.b.c"), Some("Basic dTpw")] {
        let answer = world.client().raw(&request("/mcp", token, &find())).await;
        assert_eq!((answer.status, challenge_of(&answer)), (401, None));
        assert_eq!(answer.body, b"{\"error\":\"unauthorized\"}");
        seen.push(answer.comparable());
    }
    // A service that acts gets the very same answer.
    seen.push(ask(&world, "/mcp", "service", &find()).await.comparable());
    assert!(seen.iter().all(|answer| *answer == seen[0]), "{seen:#?}");
    assert_eq!(world.client().raw(&request("/mcp-std", None, &find())).await.status, 404);
    assert_eq!(world.store.events().await, 0);
}

#[tokio::test]
async fn nobody_is_refused_before_a_byte_of_the_body_is_there() {
    for challenge in [Challenge::Headerless, Challenge::Rfc9728] {
        let world = world(challenge).await;
        let mut stream = world.client().connect().await;
        let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                    expect: 100-continue\r\ncontent-length: 500000\r\n\r\n";
        within(stream.write_all(head.as_bytes())).await.expect("sends");
        // The next thing that comes is the refusal, not an invitation to send the body.
        assert_eq!(receive(&mut stream).await.expect("an answer").status, 401);
        // What is no JSON, or of another type, is not looked at either.
        let odd = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/html\r\ncontent-length: 3\r\n\r\n<p>";
        assert_eq!(world.client().raw(odd.as_bytes()).await.status, 401);
    }
}

#[tokio::test]
async fn a_challenge_names_the_document_and_the_scopes() {
    let expected = |path: &str| {
        format!(
            "Bearer resource_metadata=\"{ORIGIN}{ROOT}{path}\", scope=\"workflow:read workflow:write\""
        )
    };
    let one = world(Challenge::Rfc9728).await;
    let refused = one.client().raw(&request("/mcp", None, &find())).await;
    assert_eq!(refused.status, 401);
    assert_eq!(challenge_of(&refused), Some(expected("/mcp").as_str()));
    assert_eq!(one.client().raw(&request("/mcp-std", None, &find())).await.status, 404);

    let both = world(Challenge::ByPath).await;
    let plain = both.client().raw(&request("/mcp", None, &find())).await;
    assert_eq!((plain.status, challenge_of(&plain)), (401, None));
    let standard = both.client().raw(&request("/mcp-std", Some("forged"), &find())).await;
    assert_eq!(standard.status, 401);
    assert_eq!(challenge_of(&standard), Some(expected("/mcp-std").as_str()));
    for path in ["/mcp", "/mcp-std"] {
        assert_eq!(ask(&both, path, "read+write", &find()).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn the_documents_are_public_cacheable_and_of_their_own_path() {
    let world = world_with(|config, protection| {
        protection.challenge = Challenge::ByPath;
        protection.documentation_url = Some("https://docs.example.com/checkpoint".to_owned());
        config.allowed_hosts = vec!["wf.example.com".to_owned()];
    })
    .await;
    let page = [("origin", "https://anywhere.example")];
    for (path, resource) in [("", "/mcp"), ("/mcp", "/mcp"), ("/mcp-std", "/mcp-std")] {
        let answer = world.client().ask("GET", &format!("{ROOT}{path}"), &page).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(
            answer.json(),
            json!({
                "resource": format!("{ORIGIN}{resource}"),
                "authorization_servers": [ISSUER],
                "scopes_supported": ["workflow:read", "workflow:write"],
                "bearer_methods_supported": ["header"],
                "resource_name": "Checkpoint",
                "resource_documentation": "https://docs.example.com/checkpoint",
            })
        );
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let head = world.client().ask("OPTIONS", &format!("{ROOT}{path}"), &page).await;
        assert_eq!((head.status, head.header("access-control-allow-origin")), (204, Some("*")));
        let posted = world.client().ask("POST", &format!("{ROOT}{path}"), &[]).await;
        assert_eq!(posted.status, 405);
    }
    // Nothing else is open to every page, and nothing else may be kept.
    let mcp = world.client().ask("OPTIONS", "/mcp", &page).await;
    assert_eq!(mcp.status, 403);
    let health = world.client().ask("GET", "/healthz", &[]).await;
    assert_eq!(health.header("cache-control"), Some("no-store"));
    assert_eq!(world.client().ask("GET", &format!("{ROOT}/other"), &[]).await.status, 404);
}

#[tokio::test]
async fn documents_are_there_only_where_there_is_something_to_tell() {
    let open = World::new().await;
    for path in ["", "/mcp", "/mcp-std"] {
        assert_eq!(open.client().ask("GET", &format!("{ROOT}{path}"), &[]).await.status, 404);
    }
    let plain = world(Challenge::Headerless).await;
    assert_eq!(plain.client().ask("GET", &format!("{ROOT}/mcp-std"), &[]).await.status, 404);
    let server = "/.well-known/oauth-authorization-server";
    assert_eq!(plain.client().ask("GET", server, &[]).await.status, 404);
    let mirrored = world_with(|_, protection| protection.mirror = Some(Arc::new(Copied))).await;
    let answer = mirrored.client().ask("GET", server, &[("origin", "https://any.example")]).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"issuer": ISSUER})));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
}

#[derive(Debug)]
struct Copied;

impl Mirror for Copied {
    fn document(&self) -> Option<bytes::Bytes> {
        Some(json!({"issuer": ISSUER}).to_string().into())
    }
}

#[tokio::test]
async fn without_a_public_name_the_address_is_the_name() {
    let world = world_with(|_, protection| {
        protection.public_url = None;
        protection.authorization_servers = Vec::new();
    })
    .await;
    let document = world.client().ask("GET", ROOT, &[]).await.json();
    let origin = format!("http://{}", world.address);
    assert_eq!(document["resource"], format!("{origin}/mcp"));
    assert_eq!(document["authorization_servers"], json!([origin]));
}

#[tokio::test]
async fn a_public_name_must_be_an_origin() {
    let protection = Protection::new(Some("https://wf.example.com/base".to_owned()), vec![]);
    let config = HttpConfig {
        listen: vec![([127, 0, 0, 1], 0).into()],
        protection: Some(protection),
        ..HttpConfig::default()
    };
    let refused = World::refused(config).await;
    assert!(refused.contains("public_url") && refused.contains("without a path"), "{refused}");
}

#[tokio::test]
async fn refusals_that_are_not_about_the_token_say_so() {
    let world = world(Challenge::Rfc9728).await;
    let twice = ask(&world, "/mcp", "twice", &find()).await;
    assert_eq!((twice.status, &twice.json()["error"]), (400, &json!("invalid_request")));
    let early = ask(&world, "/mcp", "early", &find()).await;
    assert_eq!((early.status, early.header("retry-after")), (503, Some("7")));
    assert_eq!(challenge_of(&early), None);
}

/// Everything that a service may ask, and what is refused.
#[tokio::test]
async fn a_service_may_learn_and_not_act() {
    let handshake = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {"roots": {}},
        "clientInfo": {"name": "x", "version": "1"}}});
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for challenge in [Challenge::Headerless, Challenge::Rfc9728] {
        let world = world(challenge).await;
        for allowed in [&handshake, &method("ping"), &method("tools/list")] {
            let answer = ask(&world, "/mcp", "service", allowed).await;
            assert!(answer.result().is_object(), "{allowed}");
        }
        assert_eq!(ask(&world, "/mcp", "service", &notification).await.status, 202);
        for refused in [
            &find(),
            &call("no_such_tool", json!({})),
            &method("resources/read"),
            &method("prompts/get"),
            &method("completion/complete"),
            &method("no/such/method"),
        ] {
            let answer = ask(&world, "/mcp", "service", refused).await;
            if challenge == Challenge::Headerless {
                assert_eq!((answer.status, challenge_of(&answer)), (401, None), "{refused}");
            } else {
                let header = challenge_of(&answer).expect("a challenge");
                assert_eq!(answer.status, 403, "{refused}");
                assert!(header.contains("error=\"insufficient_scope\""), "{header}");
                assert!(header.contains("scope=\"workflow:read workflow:write\""), "{header}");
            }
        }
        assert_eq!(world.store.events().await, 0);
    }
}

async fn listed(world: &World, token: &str) -> Vec<String> {
    let list = ask(world, "/mcp", token, &method("tools/list")).await.result();
    let tools = list["tools"].as_array().expect("tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn the_list_is_what_the_token_may_call() {
    let world = world(Challenge::Headerless).await;
    let all: Vec<String> = {
        let tools = wf_mcp_http::tool_list();
        let tools = tools["tools"].as_array().expect("tools").clone();
        tools.iter().map(|t| t["name"].as_str().expect("a name").to_owned()).collect()
    };
    let technician: Vec<String> =
        all.iter().filter(|name| *name != "resolve_block").cloned().collect();
    assert_eq!(listed(&world, "all").await, all);
    assert_eq!(listed(&world, "read+write").await, technician);
    assert_eq!(listed(&world, "read").await, ["find_work", "get_status", "check_value"]);
    assert_eq!(listed(&world, "none").await, Vec::<String>::new());
    assert_eq!(listed(&world, "service").await, technician);
    let generous = world_with(|_, protection| protection.service_lists = ServiceLists::All).await;
    assert_eq!(listed(&generous, "service").await, all);
}

/// Every tool with every set of scopes, by each kind of path, with arguments that nobody could read: who may not is told
/// that, and nothing about the arguments or about what there is to start.
#[tokio::test]
async fn rights_are_looked_at_before_arguments() {
    let both = world(Challenge::ByPath).await;
    let every = [json!({}), json!({"no_such": 1}), json!([1]), json!({"procedure_id": "nothing"})];
    for spec in wf_mcp_http::tool_list()["tools"].as_array().expect("tools") {
        let tool = spec["name"].as_str().expect("a name");
        let may: &[&str] = match tool {
            "find_work" | "get_status" | "check_value" => &["read", "read+write", "all"],
            "resolve_block" => &["all"],
            _ => &["read+write", "all"],
        };
        for token in ["none", "read", "read+write", "all"] {
            for arguments in &every {
                let message = call(tool, arguments.clone());
                let spoken = ask(&both, "/mcp", token, &message).await;
                let result = spoken.result()["structuredContent"].clone();
                let refused = result["error"]["code"] == "NOT_ALLOWED";
                assert_eq!(refused, !may.contains(&token), "{tool} {token} {arguments}: {result}");
                let named = result.to_string().contains("routine");
                assert!(!refused || !named, "{tool} {token} {arguments}: {result}");
                let status = ask(&both, "/mcp-std", token, &message).await.status;
                assert_eq!(status, if refused { 403 } else { 200 }, "{tool} {token} {arguments}");
            }
            let mut odd = call(tool, json!({}));
            odd["params"]["_meta"] = json!({"checkpoint/expectedRevision": "x"});
            let result =
                ask(&both, "/mcp", token, &odd).await.result()["structuredContent"].clone();
            let code = if may.contains(&token) { "VALIDATION_ERROR" } else { "NOT_ALLOWED" };
            assert_eq!(result["error"]["code"], code, "{tool} {token}: {result}");
        }
    }
    // The control: who may start is told what a start needs.
    let told = ask(&both, "/mcp", "read+write", &call("start_workflow", json!({}))).await;
    assert!(told.result()["structuredContent"].to_string().contains("routine-one"));
}

/// Every tool, with a caller of each kind, by each kind of path.
#[tokio::test]
async fn a_missing_scope_is_a_result_to_speak_or_a_challenge_by_the_path() {
    let both = world(Challenge::ByPath).await;
    let workflow = {
        let start = json!({"procedure_id": "routine-one", "assets": {"main": "A-1"}});
        let started = ask(&both, "/mcp", "read+write", &call("start_workflow", start)).await;
        let result = started.result()["structuredContent"].clone();
        assert_eq!(result["workflow"]["owner"]["name"], "Ann Miller", "{result}");
        result["workflow"]["id"].as_str().expect("an id").to_owned()
    };
    let events = both.store.events().await;
    let cases = [
        ("none", "find_work", json!({}), "workflow:read"),
        ("none", "get_status", json!({}), "workflow:read"),
        (
            "none",
            "check_value",
            json!({"workflow_id": workflow, "step_id": "s", "value": "1"}),
            "workflow:read",
        ),
        (
            "read",
            "start_workflow",
            json!({"procedure_id": "routine-one", "assets": {"main": "A-2"}}),
            "workflow:read workflow:write",
        ),
        (
            "read",
            "submit_step",
            json!({"workflow_id": workflow, "step_id": "s", "value": "yes"}),
            "workflow:read workflow:write",
        ),
        (
            "read",
            "finish_workflow",
            json!({"workflow_id": workflow, "result": "passed"}),
            "workflow:read workflow:write",
        ),
        (
            "read",
            "transfer_workflow",
            json!({"workflow_id": workflow, "action": "accept"}),
            "workflow:read workflow:write",
        ),
        (
            "read+write",
            "resolve_block",
            json!({"workflow_id": workflow, "block_id": "b", "decision": "d", "comment": "c"}),
            "workflow:read workflow:write workflow:supervise",
        ),
    ];
    for (token, tool, arguments, scopes) in cases {
        let spoken = ask(&both, "/mcp", token, &call(tool, arguments.clone())).await;
        let result = spoken.result()["structuredContent"].clone();
        assert_eq!(result["error"]["code"], "NOT_ALLOWED", "{tool}: {result}");
        assert_eq!(challenge_of(&spoken), None);
        let refused = ask(&both, "/mcp-std", token, &call(tool, arguments)).await;
        assert_eq!((refused.status, &refused.json()["error"]), (403, &json!("insufficient_scope")));
        let header = challenge_of(&refused).expect("a challenge");
        assert!(header.contains(&format!("scope=\"{scopes}\"")), "{tool}: {header}");
        assert!(header.contains(&format!("{ORIGIN}{ROOT}/mcp-std")), "{tool}: {header}");
    }
    assert_eq!(both.store.events().await, events, "nothing was written");
}
