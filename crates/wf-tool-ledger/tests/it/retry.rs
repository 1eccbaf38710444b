//! The same call again: while the first one runs, after it, from another server, after the client left.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use wf_tool_ledger::{LedgerConfig, Unfinished};

use crate::world::{Client, End, Sent, is_duplicate, refusal, times, until};

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_same_call_again_gets_the_stored_answer() {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
    let mut client = Client::of(folder.path(), &sent, Unfinished::Refuse, times(LONG)).await;
    let first = client.send("k").await;
    let again = client.send("k").await;
    assert!(!is_duplicate(&first) && is_duplicate(&again));
    assert_eq!(again["result"]["structuredContent"], first["result"]["structuredContent"]);
    assert_eq!(again["result"]["content"], first["result"]["content"]);
    // Another server on the same file, as after a restart.
    let mut other = Client::of(folder.path(), &sent, Unfinished::Repeat, times(LONG)).await;
    assert!(is_duplicate(&other.send("k").await));
    assert_eq!(sent.count(), 1);
    // Another key is another call, and an unguarded tool is what it was.
    assert!(!is_duplicate(&other.send("k2").await));
    client.call("look", json!({})).await;
    client.call("look", json!({})).await;
    assert_eq!(sent.count(), 4);
}

#[tokio::test]
async fn another_call_under_the_key_is_refused() {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
    let mut client = Client::of(folder.path(), &sent, Unfinished::Refuse, times(LONG)).await;
    client.send("k").await;
    let other = client.call("send", json!({ "to": "bob", "idempotency_key": "k" })).await;
    assert_eq!(refusal(&other), "IDEMPOTENCY_CONFLICT");
    assert_eq!(sent.count(), 1);
}

#[tokio::test]
async fn a_key_may_come_in_the_metadata_and_is_needed() {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
    let mut client = Client::of(folder.path(), &sent, Unfinished::Refuse, times(LONG)).await;
    let without = client.call("send", json!({ "to": "ann" })).await;
    assert_eq!(refusal(&without), "VALIDATION_ERROR");
    let meta = json!({ "checkpoint/idempotencyKey": "k" });
    let call = json!({ "name": "send", "arguments": { "to": "ann" }, "_meta": meta });
    assert!(!is_duplicate(&client.ask("tools/call", call).await));
    assert!(is_duplicate(&client.send("k").await), "wherever the key comes from, it is the same");
}

#[tokio::test]
async fn callers_do_not_meet() {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
    let mut client = Client::of(folder.path(), &sent, Unfinished::Refuse, times(LONG)).await;
    let arguments = json!({ "to": "ann", "idempotency_key": "k" });
    let by = |who: &str| json!({ "name": "send", "arguments": arguments, "_meta": { "who": who } });
    for who in ["ann", "bob", &"x".repeat(300), &format!("{}y", "x".repeat(299))] {
        assert!(!is_duplicate(&client.ask("tools/call", by(who)).await), "{who}");
        assert!(is_duplicate(&client.ask("tools/call", by(who)).await), "{who}");
    }
    assert_eq!(sent.count(), 4);
}

#[tokio::test]
async fn a_retry_of_a_running_call_waits_for_it() {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
    let patient = LedgerConfig { patience: Duration::from_secs(15), ..times(LONG) };
    let mut one = Client::of(folder.path(), &sent, Unfinished::Repeat, patient).await;
    let mut two = Client::of(folder.path(), &sent, Unfinished::Repeat, patient).await;
    let mut hasty = Client::of(folder.path(), &sent, Unfinished::Repeat, times(LONG)).await;
    sent.then(End::Held);
    let arguments = json!({ "to": "ann", "idempotency_key": "k" });
    let call = json!({ "name": "send", "arguments": arguments });
    let first = one.write("tools/call", call.clone()).await;
    until("the effect", || sent.count() == 1).await;
    let second = two.write("tools/call", call).await;
    assert_eq!(refusal(&hasty.send("k").await), "IN_PROGRESS");
    sent.let_go.notify_one();
    assert!(!is_duplicate(&one.read(first).await));
    assert!(is_duplicate(&two.read(second).await));
    assert_eq!(sent.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_running_call_keeps_its_claim_beyond_its_lease() {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
    let short = times(Duration::from_millis(300));
    let mut one = Client::of(folder.path(), &sent, Unfinished::Repeat, short).await;
    let mut two = Client::of(folder.path(), &sent, Unfinished::Repeat, short).await;
    sent.then(End::Held);
    let arguments = json!({ "to": "ann", "idempotency_key": "k" });
    let first = one.write("tools/call", json!({ "name": "send", "arguments": arguments })).await;
    until("the effect", || sent.count() == 1).await;
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(900) {
        assert_eq!(refusal(&two.send("k").await), "IN_PROGRESS");
    }
    sent.let_go.notify_one();
    assert!(!is_duplicate(&one.read(first).await));
    assert_eq!(sent.count(), 1);
}

#[tokio::test]
async fn a_client_that_leaves_does_not_stop_its_call() {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
    let patient = LedgerConfig { patience: Duration::from_secs(15), ..times(LONG) };
    let mut one = Client::of(folder.path(), &sent, Unfinished::Refuse, patient).await;
    sent.then(End::Held);
    let arguments = json!({ "to": "ann", "idempotency_key": "k" });
    one.write("tools/call", json!({ "name": "send", "arguments": arguments })).await;
    until("the effect", || sent.count() == 1).await;
    let mut two = Client::of(folder.path(), &sent, Unfinished::Refuse, patient).await;
    let left = tokio::spawn(one.leave());
    sent.let_go.notify_one();
    assert!(is_duplicate(&two.send("k").await));
    assert_eq!(sent.count(), 1);
    drop(left.await);
}

#[tokio::test]
async fn a_key_is_a_new_one_after_the_retention() {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
    let forgetful = LedgerConfig { retention: Duration::ZERO, ..times(LONG) };
    let mut client = Client::of(folder.path(), &sent, Unfinished::Refuse, forgetful).await;
    assert!(!is_duplicate(&client.send("k").await));
    assert!(!is_duplicate(&client.send("k").await));
    assert_eq!(sent.count(), 2);
}

#[tokio::test]
async fn guarded_tools_show_their_key() {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
    let mut client = Client::of(folder.path(), &sent, Unfinished::Refuse, times(LONG)).await;
    let listed = client.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let of = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!(of("send")["inputSchema"]["required"], json!(["idempotency_key"]));
    assert_eq!(of("send")["annotations"]["idempotentHint"], true);
    assert!(of("look")["inputSchema"]["properties"].get("idempotency_key").is_none());
}
