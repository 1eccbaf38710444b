//! `subscriptions/listen` over real sockets: who is told of what, until when.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use wf_core::access::Visibility;

use crate::readers::{self, MODERN, ask, modern, start, tool};
use crate::world::{World, within};

const ANN: &str = "t1/ann/rw";
const BOB: &str = "t1/bob/rw";
const EVE: &str = "t2/eve/rws";

/// An answer of events that is being read.
struct Events {
    stream: TcpStream,
    text: String,
    read: usize,
}

impl Events {
    async fn open(world: &World, who: &str, about: &[&str]) -> Self {
        let params = json!({"notifications": {"resourceSubscriptions": about}});
        let (headers, body) = modern("subscriptions/listen", params);
        let token = format!("Bearer {who}");
        let mut headers: Vec<(&str, &str)> =
            headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        headers.push(("authorization", &token));
        let client = world.client();
        let mut stream = client.connect().await;
        let request = client.request(&headers, body.to_string().as_bytes());
        within(stream.write_all(&request)).await.expect("sends");
        Self { stream, text: String::new(), read: 0 }
    }

    /// The next message; `None` at the end. Signs of life in between are no message.
    async fn next(&mut self) -> Option<Value> {
        within(self.message()).await
    }

    async fn message(&mut self) -> Option<Value> {
        loop {
            while let Some(length) = self.text[self.read..].find('\n') {
                let line = self.text[self.read..self.read + length].trim().to_owned();
                self.read += length + 1;
                let data = line.strip_prefix("data:").map(str::trim);
                if let Some(message) = data.filter(|data| !data.is_empty()) {
                    return Some(serde_json::from_str(message).expect("JSON"));
                }
            }
            if self.text.ends_with("\r\n0\r\n\r\n") {
                return None;
            }
            let mut more = [0; 4096];
            match self.stream.read(&mut more).await.expect("reads") {
                0 => return None,
                length => self.text.push_str(std::str::from_utf8(&more[..length]).expect("text")),
            }
        }
    }

    /// The first message, of whichever kind of answer.
    async fn first(&mut self) -> Value {
        loop {
            let body = self.text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            let json = body.find('{').and_then(|at| {
                let text = body[at..].split(['\r', '\n']).next()?;
                serde_json::from_str(text).ok()
            });
            if let Some(message) = json {
                return message;
            }
            let mut more = [0; 4096];
            let length = self.stream.read(&mut more).await.expect("reads");
            assert!(length > 0, "{}", self.text);
            self.text.push_str(std::str::from_utf8(&more[..length]).expect("text"));
        }
    }

    async fn acknowledged(&mut self) -> Value {
        let first = self.next().await.expect("an acknowledgement");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        assert!(self.text.starts_with("HTTP/1.1 200"), "{}", self.text);
        assert!(self.text.to_ascii_lowercase().contains("content-type: text/event-stream"));
        first["params"]["notifications"].clone()
    }

    async fn told(&mut self) -> String {
        let message = self.next().await.expect("a notification");
        assert_eq!(message["method"], "notifications/resources/updated", "{message}");
        message["params"]["uri"].as_str().expect("an address").to_owned()
    }

    /// It ends as it should: with a result.
    async fn ended(&mut self) {
        let last = self.next().await.expect("a result");
        assert!(last.get("result").is_some() && last["id"] == 1, "{last}");
        assert_eq!(self.next().await, None);
    }
}

async fn note(world: &World, who: &str, id: &str, text: &str) {
    let note = json!({"workflow_id": id, "summary": text, "severity": "note"});
    assert_eq!(tool(world, who, "report_problem", note).await["outcome"], "noted");
}

fn address(id: &str) -> String {
    format!("workflow://workflows/{id}")
}

#[tokio::test]
async fn whoever_listens_is_told_of_changes_and_of_nothing_else() {
    let (world, _) = readers::world(Visibility::Tenant).await;
    let one = start(&world, ANN, "asset-a", json!({})).await;
    let other = start(&world, ANN, "asset-b", json!({})).await;
    let history = format!("{}/history", address(&one));
    let mut events = Events::open(
        &world,
        BOB,
        &[
            &address(&one),
            &history,
            "workflow://schemas/result",
            "shop://shelf",
            "workflow://workflows/x y",
        ],
    )
    .await;
    let accepted = events.acknowledged().await;
    assert_eq!(accepted, json!({"resourceSubscriptions": [address(&one), history]}));
    for n in 0..3 {
        note(&world, ANN, &other, &format!("{n}")).await;
        note(&world, ANN, &one, &format!("{n}")).await;
        assert_eq!(events.told().await, address(&one));
        assert_eq!(events.told().await, history);
    }
}

#[tokio::test]
async fn nobody_is_told_of_what_they_do_not_see() {
    let (world, _) = readers::world(Visibility::Own).await;
    let id = start(&world, ANN, "asset-a", json!({})).await;
    let mine = start(&world, BOB, "asset-b", json!({})).await;
    for reader in [BOB, EVE] {
        for uri in [address(&id), address("never-was")] {
            let mut events = Events::open(&world, reader, &[&uri]).await;
            let accepted = events.acknowledged().await;
            assert_eq!(accepted, json!({"resourceSubscriptions": [uri]}), "an address, no more");
            events.ended().await;
        }
    }
    // What one sees is told, what one does not see is not, in one subscription.
    let mut events = Events::open(&world, BOB, &[&address(&id), &address(&mine)]).await;
    events.acknowledged().await;
    note(&world, ANN, &id, "theirs").await;
    note(&world, BOB, &mine, "mine").await;
    assert_eq!(events.told().await, address(&mine));
    // Work that was given away is no longer told.
    let offer = json!({"workflow_id": mine, "action": "offer"});
    assert_eq!(tool(&world, BOB, "transfer_workflow", offer).await["ok"], true);
    assert_eq!(events.told().await, address(&mine));
    let accept = json!({"workflow_id": mine, "action": "accept"});
    assert_eq!(tool(&world, ANN, "transfer_workflow", accept).await["ok"], true);
    let more = start(&world, BOB, "asset-c", json!({})).await;
    let mut witness = Events::open(&world, BOB, &[&address(&more)]).await;
    witness.acknowledged().await;
    note(&world, ANN, &mine, "hers now").await;
    note(&world, BOB, &more, "a sign").await;
    assert_eq!(witness.told().await, address(&more));
    let nothing = tokio::time::timeout(std::time::Duration::from_millis(200), events.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
}

#[tokio::test]
async fn whoever_counts_no_more_is_let_go_before_anything_is_told() {
    let (world, readers) = readers::world(Visibility::Tenant).await;
    let id = start(&world, ANN, "asset-a", json!({})).await;
    let mut events = Events::open(&world, BOB, &[&address(&id)]).await;
    events.acknowledged().await;
    note(&world, ANN, &id, "one").await;
    assert_eq!(events.told().await, address(&id));
    readers.gone.lock().expect("a lock").insert(BOB.to_owned());
    note(&world, ANN, &id, "two").await;
    events.ended().await;
}

#[tokio::test]
async fn subscriptions_end_with_the_server_and_hold_it_up_for_nothing() {
    let (mut world, _) = readers::world(Visibility::Tenant).await;
    let id = start(&world, ANN, "asset-a", json!({})).await;
    let mut events = Events::open(&world, ANN, &[&address(&id)]).await;
    events.acknowledged().await;
    let begun = std::time::Instant::now();
    world.begin_stop();
    events.ended().await;
    assert_eq!(world.stopped().await.in_flight_abandoned, 0);
    assert!(begun.elapsed() < std::time::Duration::from_secs(15), "well within the grace of 25 s");
}

#[tokio::test]
async fn one_person_has_a_bounded_number_of_subscriptions() {
    let (world, _) = readers::world(Visibility::Tenant).await;
    let id = start(&world, ANN, "asset-a", json!({})).await;
    let mut open = Vec::new();
    for _ in 0..16 {
        let mut events = Events::open(&world, ANN, &[&address(&id)]).await;
        events.acknowledged().await;
        // Told of something, it surely listens.
        note(&world, ANN, &id, &format!("note {}", open.len())).await;
        events.told().await;
        open.push(events);
    }
    let wish = json!({"notifications": {"resourceSubscriptions": [address(&id)]}});
    let refused = ask(&world, ANN, "subscriptions/listen", wish.clone()).await;
    assert_eq!(refused.rpc(), (200, -32602), "{refused:?}");
    // Whoever leaves makes room, once the server has seen it.
    open.pop();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let mut again = Events::open(&world, ANN, &[&address(&id)]).await;
        let first = within(again.first()).await;
        if first["method"] == "notifications/subscriptions/acknowledged" {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{first}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn earlier_revisions_are_not_offered_what_needs_a_session() {
    let world = World::new().await;
    let id = world.start("asset-a").await;
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let params = json!({"uri": address(&id)});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        assert_eq!(world.post(&body).await.rpc(), (200, -32601), "{method}");
        assert_eq!(ask(&world, "", method, params).await.rpc(), (404, -32601), "{method}");
    }
    let listen = json!({"notifications": {"resourceSubscriptions": [address(&id)]}});
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen});
    assert_eq!(world.post(&body).await.rpc().1, -32601);
    let discovered = ask(&world, "", "server/discover", json!({})).await.result();
    assert_eq!(discovered["capabilities"]["resources"], json!({"subscribe": true}), "{MODERN}");
}
