//! States that are not taken back: of another caller, of another call, changed, expired, used. Nothing is recorded.

use futures_util::future::join_all;
use serde_json::{Value, json};
use wf_core::limits::REQUEST_STATE_MS;

use super::room::{ASKS, Room, Visit, accepted};
use super::{ANN, body, state, twice};
use crate::client::Answer;

/// Why a state was refused.
pub(super) fn reason(answer: &Answer) -> String {
    assert_eq!(answer.rpc(), (200, -32602), "{}", answer.json());
    let error = &answer.json()["error"];
    let text = error["message"].as_str().expect("a message");
    assert!(text.contains("without it"), "says what to do: {text}");
    error["data"]["reason"].as_str().expect("a reason").to_owned()
}

/// A workflow of Ann's with a question about its first step, and the state of that question.
async fn asked(room: &Room, key: Option<&str>) -> (String, Value, String) {
    let server = room.server().await;
    let ann = Visit::new(&server, ANN);
    let work = ann.start("asset-a").await;
    let mut arguments = twice(&work);
    if let Some(key) = key {
        arguments["idempotency_key"] = key.into();
    }
    let answer = ann.tool("submit_step", arguments.clone(), ASKS, json!({})).await;
    (work, arguments, state(&answer))
}

#[tokio::test]
async fn a_state_is_bound_to_who_was_asked() {
    let room = Room::new();
    let (_, arguments, state) = asked(&room, Some("k-1")).await;
    let server = room.server().await;
    let before = room.store.events().await;
    for other in ["u/ann/app", "t/bea/app", "t/ann/other"] {
        let visit = Visit::new(&server, other);
        let brought = accepted(&state, true);
        let answer = visit.tool("submit_step", arguments.clone(), ASKS, brought).await;
        assert_eq!(reason(&answer), "foreign", "{other}");
    }
    assert_eq!(room.store.events().await, before);
    let ann = Visit::new(&server, ANN);
    let told = ann.tool("submit_step", arguments, ASKS, accepted(&state, true)).await;
    assert_eq!(body(&told)["outcome"], "recorded", "the very state, from whom it was made for");
}

#[tokio::test]
async fn a_state_is_bound_to_the_tool_and_to_all_its_arguments() {
    let room = Room::new();
    let (work, arguments, state) = asked(&room, Some("k-1")).await;
    let server = room.server().await;
    let ann = Visit::new(&server, ANN);
    let before = room.store.events().await;
    let with = |name: &str, value: Value| {
        let mut other = arguments.clone();
        other[name] = value;
        other
    };
    for other in [
        with("value", json!("another")),
        with("step_id", json!("step-2")),
        with("note", json!("a note")),
        with("idempotency_key", json!("k-2")),
        with("unit", json!("")),
        twice(&work),
    ] {
        let answer = ann.tool("submit_step", other.clone(), ASKS, accepted(&state, true)).await;
        assert_eq!(reason(&answer), "foreign", "{other}");
    }
    for tool in ["check_value", "correct_step", "finish_workflow", "get_status"] {
        let answer = ann.tool(tool, arguments.clone(), ASKS, accepted(&state, true)).await;
        assert_eq!(reason(&answer), "foreign", "{tool}");
    }
    assert_eq!(room.store.events().await, before);
}

#[tokio::test]
async fn a_changed_state_is_none() {
    let room = Room::new();
    let (_, arguments, state) = asked(&room, None).await;
    let server = room.server().await;
    let ann = Visit::new(&server, ANN);
    let before = room.store.events().await;
    let mut changed: Vec<String> =
        vec![String::new(), "rs1".into(), "rs1..".into(), format!("{state}A")];
    for at in (0..state.len()).step_by(7) {
        let mut bytes = state.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        changed.push(String::from_utf8(bytes).expect("ascii"));
    }
    changed.push("x".repeat(60_000));
    for changed in changed {
        let brought = accepted(&changed, true);
        let answer = ann.tool("submit_step", arguments.clone(), ASKS, brought).await;
        assert_eq!(reason(&answer), "foreign", "{changed}");
    }
    // Nor is a confirm token one, though the same keys made it.
    let told = ann.tool("submit_step", arguments.clone(), || json!({}), json!({})).await;
    let token = body(&told)["confirm"]["token"].as_str().expect("a token").to_owned();
    let answer = ann.tool("submit_step", arguments, ASKS, accepted(&token, true)).await;
    assert_eq!(reason(&answer), "foreign");
    assert_eq!(room.store.events().await, before);
}

#[tokio::test]
async fn a_state_expires() {
    let room = Room::new();
    let (_, arguments, state) = asked(&room, None).await;
    let server = room.server().await;
    let ann = Visit::new(&server, ANN);
    let before = room.store.events().await;
    room.clock.advance(u64::try_from(REQUEST_STATE_MS).expect("positive"));
    let answer = ann.tool("submit_step", arguments, ASKS, accepted(&state, true)).await;
    assert_eq!(reason(&answer), "expired");
    assert_eq!(room.store.events().await, before);
}

#[tokio::test]
async fn a_state_is_used_once_whoever_is_asked_next() {
    for key in [Some("k-1"), None] {
        let room = Room::new();
        let (work, arguments, state) = asked(&room, key).await;
        let (first, second) = (room.server().await, room.server().await);
        let ann = Visit::new(&first, ANN);
        let told = ann.tool("submit_step", arguments.clone(), ASKS, accepted(&state, true)).await;
        assert_eq!(body(&told)["outcome"], "recorded");
        let before = room.store.events().await;
        let third = room.server().await;
        for server in [&first, &second, &third] {
            let ann = Visit::new(server, ANN);
            let brought = accepted(&state, true);
            let again = ann.tool("submit_step", arguments.clone(), ASKS, brought).await;
            assert_eq!(reason(&again), "used", "{key:?}");
            // What became of it, the call says without the state.
            let told = ann.tool("submit_step", arguments.clone(), ASKS, json!({})).await;
            let told = body(&told);
            assert_eq!((&told["outcome"], &told["duplicate"]), (&json!("recorded"), &json!(true)));
        }
        assert_eq!(room.store.events().await, before);
        assert_eq!(room.confirmed_by(&work).await, ["elicitation"]);
    }
}

#[tokio::test]
async fn a_used_state_stays_used_when_others_went_on() {
    let room = Room::new();
    let server = room.server().await;
    let ann = Visit::new(&server, ANN);
    let work = ann.start("asset-a").await;
    let submit = json!({"workflow_id": work, "step_id": "step-1", "value": "one"});
    ann.tool("submit_step", submit, ASKS, json!({})).await;
    let correct = |value: &str| {
        let mut arguments = twice(&work);
        arguments["value"] = value.into();
        arguments["reason_code"] = "REASON_ONE".into();
        arguments
    };
    let asked = ann.tool("correct_step", correct("twice"), ASKS, json!({})).await;
    let used = state(&asked);
    let told = ann.tool("correct_step", correct("twice"), ASKS, accepted(&used, true)).await;
    assert_eq!(body(&told)["outcome"], "corrected");
    let told = ann.tool("correct_step", correct("two"), ASKS, json!({})).await;
    assert_eq!(body(&told)["outcome"], "corrected");
    let before = room.store.events().await;
    let other = room.server().await;
    let ann = Visit::new(&other, ANN);
    let again = ann.tool("correct_step", correct("twice"), ASKS, accepted(&used, true)).await;
    assert_eq!(reason(&again), "used");
    assert_eq!(room.store.events().await, before, "the value before is not put back");
}

#[tokio::test]
async fn an_answer_to_a_question_that_was_overtaken_is_asked_again() {
    let room = Room::new();
    let server = room.server().await;
    let ann = Visit::new(&server, ANN);
    let work = ann.start("asset-a").await;
    let submit = json!({"workflow_id": work, "step_id": "step-1", "value": "one"});
    ann.tool("submit_step", submit, ASKS, json!({})).await;
    let mut correct = twice(&work);
    correct["reason_code"] = "REASON_ONE".into();
    let asked = ann.tool("correct_step", correct.clone(), ASKS, json!({})).await;
    let mut between = correct.clone();
    between["value"] = "two".into();
    ann.tool("correct_step", between, ASKS, json!({})).await;
    let before = room.store.events().await;
    // The yes was to a correction of the value before: the person is asked about the one that is there now.
    let again =
        ann.tool("correct_step", correct.clone(), ASKS, accepted(&state(&asked), true)).await;
    let next = state(&again);
    assert_eq!(room.store.events().await, before);
    let told = ann.tool("correct_step", correct, ASKS, accepted(&next, true)).await;
    assert_eq!(body(&told)["outcome"], "corrected");
}

#[tokio::test]
async fn of_many_who_bring_one_state_at_once_one_records() {
    for key in [Some("k-1"), None] {
        let room = Room::new();
        let (work, arguments, state) = asked(&room, key).await;
        let servers = [room.server().await, room.server().await];
        let before = room.store.events().await;
        let all = (0..8).map(|n| {
            let ann = Visit::new(&servers[n % servers.len()], ANN);
            let (arguments, brought) = (arguments.clone(), accepted(&state, true));
            async move { ann.tool("submit_step", arguments, ASKS, brought).await }
        });
        let answers = join_all(all).await;
        let recorded = answers.iter().filter(|a| a.json().get("result").is_some()).count();
        let used = answers.iter().filter(|a| a.json().get("error").is_some());
        assert_eq!(recorded, 1, "{key:?}");
        assert!(used.map(reason).all(|reason| reason == "used"));
        assert_eq!(room.store.events().await, before + 1);
        assert_eq!(room.confirmed_by(&work).await, ["elicitation"]);
    }
}
