//! Pages and names: DNS rebinding, foreign origins, preflights.

use serde_json::json;

use crate::client::call;
use crate::world::World;

fn find() -> String {
    call("find_work", json!({})).to_string()
}

#[tokio::test]
async fn only_known_hosts_are_answered() {
    let world = World::with(|config| {
        config.allowed_hosts = vec!["wf.example.com".to_owned(), "ported.example:8443".to_owned()];
    })
    .await;
    let body = find();
    let status =
        async |host: &str| world.client().post(&[("host", host)], body.as_bytes()).await.status;
    for good in [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1",
        "[::1]:80",
        "wf.example.com",
        "wf.example.com:443",
        "ported.example:8443",
    ] {
        assert_eq!(status(good).await, 200, "{good}");
    }
    for bad in [
        "evil.example",
        "localhost.evil.example",
        "sub.wf.example.com",
        "ported.example",
        "ported.example:1",
        "192.0.2.1",
    ] {
        assert_eq!(status(bad).await, 403, "{bad}");
    }
    assert_eq!(world.store.events().await, 0);
}

#[tokio::test]
async fn health_is_told_to_machines_that_know_only_an_address() {
    let world = World::new().await;
    let head = "GET /healthz HTTP/1.1\r\nhost: 192.0.2.1:8080\r\n\r\n";
    let answer = world.client().raw(head.as_bytes()).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"status": "ok"})));
}

#[tokio::test]
async fn foreign_pages_are_refused_and_allowed_ones_may_read() {
    let world = World::with(|config| {
        config.allowed_hosts = vec!["wf.example.com".to_owned()];
        config.allowed_origins = vec!["https://app.example.com".to_owned()];
    })
    .await;
    let body = find();
    let post = async |host: &str, origin: &str| {
        world.client().post(&[("host", host), ("origin", origin)], body.as_bytes()).await
    };
    for (host, origin) in [
        ("localhost", "http://evil.example"),
        ("localhost", "null"),
        ("localhost", "https://app.example.com.evil.example"),
        ("localhost", "http://app.example.com"),
        ("localhost", "https://app.example.com:8443"),
        // A page on the same machine has no business with a public name.
        ("wf.example.com", "http://localhost:3000"),
    ] {
        let answer = post(host, origin).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]),
            (403, &json!("origin_forbidden")),
            "{origin}"
        );
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    for (host, origin) in [
        ("localhost", "http://localhost:6274"),
        ("127.0.0.1", "http://127.0.0.1:6274"),
        ("localhost", "https://app.example.com"),
        ("wf.example.com", "https://app.example.com"),
    ] {
        let answer = post(host, origin).await;
        assert_eq!(answer.status, 200, "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
        assert_eq!(answer.header("vary"), Some("origin"));
    }
    let twice = [("origin", "http://localhost:1"), ("origin", "http://evil.example")];
    assert_eq!(world.client().post(&twice, body.as_bytes()).await.status, 403);
}

#[tokio::test]
async fn a_preflight_is_answered_for_allowed_pages_only() {
    let world = World::new().await;
    let asks = [("access-control-request-method", "POST")];
    let preflight = async |origin: &str| {
        let headers = [asks.as_slice(), &[("origin", origin)]].concat();
        world.client().ask("OPTIONS", "/mcp", &headers).await
    };
    let answer = preflight("http://localhost:6274").await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_eq!(answer.header("access-control-allow-origin"), Some("http://localhost:6274"));
    let methods = answer.header("access-control-allow-methods").expect("methods");
    assert!(methods.contains("POST"));
    let headers = answer.header("access-control-allow-headers").expect("headers");
    for needed in
        ["content-type", "authorization", "mcp-protocol-version", "mcp-method", "mcp-name"]
    {
        assert!(headers.contains(needed), "{needed}");
    }
    assert_eq!(preflight("http://evil.example").await.status, 403);
}

#[tokio::test]
async fn lists_that_are_wrong_stop_the_start() {
    use wf_mcp_http::HttpConfig;
    for (hosts, origins) in [(vec!["a b"], vec![]), (vec![], vec!["app.example.com"])] {
        let config = HttpConfig {
            listen: vec![([127, 0, 0, 1], 0).into()],
            allowed_hosts: hosts.iter().map(ToString::to_string).collect(),
            allowed_origins: origins.iter().map(ToString::to_string).collect(),
            ..HttpConfig::default()
        };
        let error = World::refused(config).await;
        assert!(error.contains("is not a"), "{error}");
    }
}
