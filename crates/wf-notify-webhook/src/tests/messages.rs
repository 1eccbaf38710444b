//! What is on the wire: the shape of the body, headers, and signatures that a public library verifies.

use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use wf_core::ports::NotificationPort as _;

use super::receiver::{Receiver, Then, status};
use super::{Names, PATIENT, SECRET, config, message, sink, trusting};
use crate::sink::WebhookSink;

fn parts(request: &str) -> (String, HeaderMap, String) {
    let (head, body) = request.split_once("\r\n\r\n").expect("a request");
    let mut lines = head.lines();
    let first = lines.next().expect("a first line").to_owned();
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a header");
        headers
            .insert(name.parse::<HeaderName>().expect("a name"), value.parse().expect("a value"));
    }
    (first, headers, body.to_owned())
}

#[tokio::test]
async fn a_message_is_signed_and_says_what_it_is() {
    let receiver = Receiver::new(Then::Answers(status("204 No Content"))).await;
    sink(&receiver.url(), PATIENT).deliver(&message(7)).await.expect("taken");
    let requests = receiver.requests();
    let (first, headers, body) = parts(requests.first().expect("one"));
    assert_eq!(first, "POST /hook?x=1 HTTP/1.1");
    let webhook = Webhook::new(SECRET).expect("a secret");
    webhook.verify(body.as_bytes(), &headers).expect("the signature is right");
    assert!(webhook.verify(body.replace("204", "205").as_bytes(), &headers).is_err());
    let id = "0197f3a0-1111-7222-8333-444455556666";
    let read: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(
        read,
        json!({
            "id": format!("{id}/7/maintenance-lead"),
            "type": "workflow_blocked",
            "time": "2026-03-01T08:00:00.000Z",
            "tenant": "main",
            "workflow_id": id,
            "seq": 7,
            "data": { "label": "Pump 204", "state": "BLOCKED" },
        })
    );
    for (name, value) in [
        ("content-type", "application/json"),
        ("webhook-id", read["id"].as_str().expect("an id")),
        ("ce-specversion", "1.0"),
        ("ce-id", read["id"].as_str().expect("an id")),
        ("ce-source", "https://wf.example.com"),
        ("ce-type", "workflow_blocked"),
        ("ce-time", "2026-03-01T08:00:00.000Z"),
        ("ce-subject", id),
        ("ce-tenant", "main"),
        ("ce-sequence", "7"),
    ] {
        assert_eq!(headers.get(name).map(|v| v.to_str().expect("text")), Some(value), "{name}");
    }
}

#[tokio::test]
async fn a_message_that_is_sent_again_has_the_same_id_and_body_on_the_same_connection() {
    let receiver = Receiver::new(Then::Answers(status("500 Oops"))).await;
    let sink = sink(&receiver.url(), PATIENT);
    for _ in 0..3 {
        assert!(sink.deliver(&message(7)).await.is_err());
    }
    let requests = receiver.requests();
    let bodies: Vec<String> = requests.iter().map(|request| parts(request).2).collect();
    let ids: Vec<_> = requests.iter().map(|r| parts(r).1.get("webhook-id").cloned()).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]), "{bodies:?}");
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{ids:?}");
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn while_a_secret_is_replaced_receivers_with_either_key_verify() {
    let receiver = Receiver::new(Then::Answers(status("200 OK"))).await;
    let new = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8G";
    let secret = super::secret();
    std::fs::write(secret.path(), format!("{new}\n{SECRET}\n")).expect("written");
    let config = config(&receiver.url(), secret.path(), true);
    let names: Arc<Names> = Names::are(&["127.0.0.1"]);
    let tls = trusting(rustls::RootCertStore::empty());
    let sink = WebhookSink::for_tests(&config, Arc::new(move || Ok(tls.clone())), names, PATIENT)
        .expect("a sink");
    sink.deliver(&message(7)).await.expect("taken");
    let requests = receiver.requests();
    let (_, headers, body) = parts(requests.first().expect("one"));
    for key in [new, SECRET] {
        let webhook = Webhook::new(key).expect("a secret");
        webhook.verify(body.as_bytes(), &headers).expect("one of two signatures is right");
    }
    let other = Webhook::new("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").expect("a secret");
    assert!(other.verify(body.as_bytes(), &headers).is_err());
}

#[tokio::test]
async fn a_delivery_says_in_which_trace_it_is_where_it_is_in_one() {
    let receiver = Receiver::new(Then::Answers(status("204 No Content"))).await;
    let sink = sink(&receiver.url(), PATIENT);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for traceparent in [Some(parent), None, Some("broken\r\nx: y")] {
        sink.deliver_traced(&message(7), traceparent).await.expect("taken");
    }
    let requests = receiver.requests();
    let said: Vec<Option<String>> = requests
        .iter()
        .map(|request| {
            let (_, headers, _) = parts(request);
            headers.get("traceparent").map(|value| value.to_str().expect("text").to_owned())
        })
        .collect();
    assert_eq!(said, [Some(parent.to_owned()), None, None]);
}
