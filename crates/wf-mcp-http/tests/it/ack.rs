//! The page of a link in an escalation: whoever has the link may look and press, nobody else; only pressing acts.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use wf_core::ports::OutboxQuery;

use crate::client::Answer;
use crate::world::{World, within};

/// A blocked workflow, and the path of the link that `duty` got.
async fn blocked(world: &World, asset: &str, summary: &str) -> String {
    let work = world.start(asset).await;
    let report = json!({"workflow_id": work, "summary": summary, "severity": "high"});
    let stopped = world.call("report_problem", report).await;
    assert_eq!(stopped["blocks"][0]["escalated_to"], "duty", "{stopped}");
    let all = OutboxQuery { limit: 100, ..OutboxQuery::default() };
    let rows = world.store.port().list_outbox(&all).await.expect("rows").items;
    let to = rows
        .iter()
        .find(|r| r.message.recipient == "duty" && r.message.workflow_id.as_str() == work);
    let link = to.expect("a message").message.data["ack_url"].as_str().expect("a link").to_owned();
    link.strip_prefix("https://wf.example.com").expect("the public URL").to_owned()
}

fn page(answer: &Answer) -> String {
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let policy = answer.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
    String::from_utf8(answer.body.clone()).expect("text")
}

#[tokio::test]
async fn looking_changes_nothing_and_pressing_acknowledges_once() {
    let world = World::new().await;
    let path = blocked(&world, "A-1", "it hums").await;
    let before = world.store.events().await;
    for _ in 0..3 {
        let shown = world.client().ask("GET", &path, &[]).await;
        assert_eq!(shown.status, 200);
        let text = page(&shown);
        assert!(text.contains("<form method=\"post\">") && text.contains("it hums"), "{text}");
        assert!(text.contains("<h1>Routine one on A-1</h1>"), "{text}");
    }
    let prefetch = [("purpose", "prefetch"), ("sec-purpose", "prefetch;prerender")];
    assert_eq!(world.client().ask("GET", &path, &prefetch).await.status, 200);
    let mut stream = world.client().connect().await;
    let head = format!("HEAD {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    within(stream.write_all(head.as_bytes())).await.expect("sends");
    let mut answer = Vec::new();
    within(stream.read_to_end(&mut answer)).await.expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 200") && answer.ends_with(b"\r\n\r\n"), "no body");
    assert_eq!(world.store.events().await, before, "looking changes nothing");

    // As a browser sends the form of a page without a referrer.
    let form = [
        ("origin", "null"),
        ("content-type", "application/x-www-form-urlencoded"),
        ("content-length", "0"),
    ];
    for _ in 0..3 {
        let pressed = world.client().ask("POST", &path, &form).await;
        assert_eq!(pressed.status, 200);
        let text = page(&pressed);
        assert!(text.contains("<strong>duty</strong> acknowledged it at"), "{text}");
        assert!(!text.contains("<form"), "{text}");
    }
    assert_eq!(world.store.events().await, before + 1, "once");
    let status = world.call("get_status", json!({"asset_id": "A-1"})).await;
    assert_eq!(status["blocks"][0]["acknowledged_by"]["name"], "duty", "{status}");
    assert!(status["blocks"][0].get("deadline").is_none(), "{status}");
}

#[tokio::test]
async fn a_link_that_does_not_count_says_nothing() {
    let world = World::new().await;
    let path = blocked(&world, "A-1", "it hums").await;
    let before = world.store.events().await;
    let (whole, cut) = (path.clone(), &path[..path.len() - 1]);
    let changed = whole.replace("/ack/at1.", "/ack/at1.x");
    for path in [cut, changed.as_str(), "/ack/", "/ack/at1..", "/ack/at1.e30.AA", "/ack/%00"] {
        for method in ["GET", "POST"] {
            let answer = world.client().ask(method, path, &[("content-length", "0")]).await;
            assert_eq!(answer.status, 404, "{method} {path}");
            let text = page(&answer);
            assert!(!text.contains("A-1") && !text.contains("<form"), "{text}");
        }
    }
    assert_eq!(world.client().ask("PUT", &whole, &[("content-length", "0")]).await.status, 405);
    assert_eq!(world.client().ask("GET", "/ack", &[]).await.status, 404);
    assert_eq!(world.store.events().await, before);
}

#[tokio::test]
async fn what_people_wrote_is_text_on_the_page() {
    let world = World::new().await;
    let path = blocked(&world, "A-1", "</p><script>alert(1)</script>\"'&").await;
    let text = page(&world.client().ask("GET", &path, &[]).await);
    assert!(!text.contains("<script>"), "{text}");
    assert!(
        text.contains("&lt;/p&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"),
        "{text}"
    );
}
