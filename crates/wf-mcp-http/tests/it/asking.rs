//! Asking back over the wire: a client of 2026-07-28 that can ask its user is given the question, and the call goes on
//! with the answer. What is refused is in `refused`.

mod refused;
mod room;

use serde_json::{Value, json};

use crate::client::{Answer, call};
use room::{ASKS, Room, Visit, accepted, modern};

const ANN: &str = "t/ann/app";

/// The value that the policy reads back first.
fn twice(work: &str) -> Value {
    json!({"workflow_id": work, "step_id": "step-1", "value": "twice"})
}

fn body(answer: &Answer) -> Value {
    answer.result()["structuredContent"].clone()
}

/// The state of a question; it is one.
fn state(answer: &Answer) -> String {
    let result = answer.result();
    assert_eq!(result["resultType"], "input_required", "{result}");
    result["requestState"].as_str().expect("a state").to_owned()
}

#[tokio::test]
async fn a_read_back_is_put_to_the_user_and_recorded_after_a_yes() {
    let room = Room::new();
    let server = room.server().await;
    let ann = Visit::new(&server, ANN);
    let work = ann.start("asset-a").await;
    let before = room.store.events().await;

    let asked = ann.tool("submit_step", twice(&work), ASKS, json!({})).await;
    let result = asked.result();
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(result.get("structuredContent"), None, "the question is no answer yet");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "checkpoint");
    let request = &result["inputRequests"]["confirm"];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], "Did you say twice?");
    assert_eq!(room.store.events().await, before, "asking records nothing");

    let told = ann.tool("submit_step", twice(&work), ASKS, accepted(&state(&asked), true)).await;
    let told = body(&told);
    assert_eq!((&told["outcome"], &told["duplicate"]), (&json!("recorded"), &json!(false)));
    assert_eq!(room.store.events().await, before + 1);
    assert_eq!(room.confirmed_by(&work).await, ["elicitation"]);
}

#[tokio::test]
async fn an_abandoned_workflow_says_how_that_was_confirmed() {
    let room = Room::new();
    let server = room.server().await;
    let ann = Visit::new(&server, ANN);
    let work = ann.start("asset-a").await;
    let end = json!({"workflow_id": work, "result": "abandoned", "idempotency_key": "k-1"});
    let asked = ann.tool("finish_workflow", end.clone(), ASKS, json!({})).await;
    let told = ann.tool("finish_workflow", end, ASKS, accepted(&state(&asked), true)).await;
    assert_eq!(body(&told)["outcome"], "finished");
    assert_eq!(room.confirmed_by(&work).await, ["elicitation"]);
}

#[tokio::test]
async fn everybody_else_gets_the_tool_answer() {
    let room = Room::new();
    let server = room.server().await;
    let ann = Visit::new(&server, ANN);
    let work = ann.start("asset-a").await;
    for capabilities in [json!({}), json!({"sampling": {}}), json!({"elicitation": {"url": {}}})] {
        let request = modern("submit_step", twice(&work), &capabilities, json!({}));
        let told = ann.post("submit_step", &request).await.result();
        assert_eq!(told["resultType"], "complete", "{capabilities}");
        let told = &told["structuredContent"];
        assert_eq!(told["outcome"], "needs_confirmation");
        assert!(told["confirm"]["token"].is_string());
    }
    // A client of an earlier revision that says the same, and answers what it was never asked.
    let mut request = call("submit_step", twice(&work));
    request["params"]["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": ASKS()});
    request["params"]["requestState"] = "rs1.made.up".into();
    request["params"]["inputResponses"] = json!({"confirm": {"action": "accept"}});
    let told = ann.post("", &request).await.result();
    assert_eq!(told.get("resultType"), None);
    assert_eq!(told["structuredContent"]["outcome"], "needs_confirmation");
    // With the token that the answer has, and without asking: as ever.
    let mut confirmed = twice(&work);
    confirmed["confirm_token"] = told["structuredContent"]["confirm"]["token"].clone();
    let told = ann.tool("submit_step", confirmed, || json!({}), json!({})).await;
    assert_eq!(body(&told)["outcome"], "recorded");
    assert_eq!(room.confirmed_by(&work).await, ["token"]);
}

#[tokio::test]
async fn a_no_records_nothing_and_says_where_the_work_stands() {
    let room = Room::new();
    let server = room.server().await;
    let ann = Visit::new(&server, ANN);
    let work = ann.start("asset-a").await;
    let before = room.store.events().await;
    for response in [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "accept", "content": {"confirm": false}}),
    ] {
        let asked = ann.tool("submit_step", twice(&work), ASKS, json!({})).await;
        let state = state(&asked);
        let brought =
            json!({"requestState": &state, "inputResponses": {"confirm": response.clone()}});
        let told = body(&ann.tool("submit_step", twice(&work), ASKS, brought).await);
        assert_eq!((&told["outcome"], &told["ok"]), (&json!("not_recorded"), &json!(true)));
        assert_eq!(told["workflow"]["id"], work.as_str());
        assert_eq!(told["step"]["id"], "step-1");
        assert_eq!(room.store.events().await, before, "{response}");
        // A no that was said is not taken back with the same state.
        let again = ann.tool("submit_step", twice(&work), ASKS, accepted(&state, true)).await;
        assert_eq!(refused::reason(&again), "used");
    }
    assert_eq!(room.store.events().await, before);
}

#[tokio::test]
async fn what_is_missing_is_asked_again_and_what_is_no_answer_is_refused() {
    let room = Room::new();
    let server = room.server().await;
    let ann = Visit::new(&server, ANN);
    let work = ann.start("asset-a").await;
    let before = room.store.events().await;
    let asked = ann.tool("submit_step", twice(&work), ASKS, json!({})).await;
    let state = state(&asked);
    for missing in [
        json!({"requestState": state}),
        json!({"requestState": state, "inputResponses": {}}),
        json!({"requestState": state, "inputResponses": {"another": {"action": "accept"}}}),
        json!({"requestState": state, "inputResponses": {"confirm": {"action": "accept"}}}),
        json!({"requestState": state, "inputResponses": {"confirm": {"action": "accept", "content": {}}}}),
        // Answers without the state belong to no question.
        json!({"inputResponses": {"confirm": {"action": "accept", "content": {"confirm": true}}}}),
    ] {
        let again = ann.tool("submit_step", twice(&work), ASKS, missing.clone()).await;
        assert_eq!(again.result()["resultType"], "input_required", "{missing}");
    }
    for wrong in [
        json!("yes"),
        json!({}),
        json!({"action": "perhaps"}),
        json!({"action": "accept", "content": {"confirm": "yes"}}),
        json!({"action": "accept", "content": {"confirm": 1}}),
    ] {
        let brought = json!({"requestState": state, "inputResponses": {"confirm": wrong.clone()}});
        let answer = ann.tool("submit_step", twice(&work), ASKS, brought).await;
        assert_eq!(answer.rpc().1, -32602, "{wrong}");
    }
    for wrong in [json!({"requestState": 1}), json!({"inputResponses": []})] {
        let answer = ann.tool("submit_step", twice(&work), ASKS, wrong.clone()).await;
        assert_eq!(answer.rpc().1, -32602, "{wrong}");
    }
    assert_eq!(room.store.events().await, before);
    // None of that used the state up; more than was asked is not looked at.
    let mut brought = accepted(&state, true);
    brought["inputResponses"]["confirm"]["content"]["more"] = json!([1, 2]);
    brought["inputResponses"]["more"] = json!("anything");
    let told = ann.tool("submit_step", twice(&work), ASKS, brought).await;
    assert_eq!(body(&told)["outcome"], "recorded");
}

fn chosen(state: &str, id: &str) -> Value {
    let response = json!({"action": "accept", "content": {"choice": id}});
    json!({"requestState": state, "inputResponses": {"choice": response}})
}

#[tokio::test]
async fn one_of_several_open_workflows_is_chosen_by_the_user() {
    let room = Room::new();
    let server = room.server().await;
    let ann = Visit::new(&server, ANN);
    let (first, second) = (ann.start("asset-a").await, ann.start("asset-b").await);
    let before = room.store.events().await;
    let asked = ann.tool("get_status", json!({"detail": "full"}), ASKS, json!({})).await;
    let field = asked.result()["inputRequests"]["choice"]["params"]["requestedSchema"]["properties"]
        ["choice"]
        .clone();
    let offered: Vec<&str> = field["oneOf"]
        .as_array()
        .expect("options")
        .iter()
        .filter_map(|o| o["const"].as_str())
        .collect();
    assert!(offered.contains(&first.as_str()) && offered.contains(&second.as_str()), "{field}");
    let state = state(&asked);

    let other =
        ann.tool("get_status", json!({"detail": "full"}), ASKS, chosen(&state, "w-9")).await;
    assert_eq!(other.rpc().1, -32602, "never offered");
    let told =
        ann.tool("get_status", json!({"detail": "full"}), ASKS, chosen(&state, &second)).await;
    let told = body(&told);
    assert_eq!((&told["outcome"], &told["workflow"]["id"]), (&json!("view"), &json!(second)));
    assert!(told["history"].is_array(), "the rest of the question counts too");
    let again =
        ann.tool("get_status", json!({"detail": "full"}), ASKS, chosen(&state, &first)).await;
    assert_eq!(refused::reason(&again), "used");

    let asked = ann.tool("get_status", json!({}), ASKS, json!({})).await;
    let brought = json!({
        "requestState": self::state(&asked), "inputResponses": {"choice": {"action": "cancel"}},
    });
    let told = body(&ann.tool("get_status", json!({}), ASKS, brought).await);
    assert_eq!(told["outcome"], "not_recorded");
    assert_eq!(room.store.events().await, before);
}

#[tokio::test]
async fn work_is_offered_to_the_person_whom_the_user_chose() {
    let room = Room::new();
    let server = room.server().await;
    for kim in ["t/kim-a/app", "t/kim-b/app"] {
        Visit::new(&server, kim).start(kim.split('/').nth(1).expect("a name")).await;
    }
    let ann = Visit::new(&server, ANN);
    let work = ann.start("asset-a").await;
    let offer = json!({"workflow_id": work, "action": "offer", "to": "kim"});
    let asked = ann.tool("transfer_workflow", offer.clone(), ASKS, json!({})).await;
    let state = state(&asked);
    let told = ann.tool("transfer_workflow", offer.clone(), ASKS, chosen(&state, "user:ann")).await;
    assert_eq!(told.rpc().1, -32602, "never offered");
    let told =
        ann.tool("transfer_workflow", offer.clone(), ASKS, chosen(&state, "user:kim-b")).await;
    assert_eq!(body(&told)["outcome"], "transferred");
    let offered = Visit::new(&server, "t/kim-b/app");
    let accept = json!({"workflow_id": work, "action": "accept"});
    let told = offered.tool("transfer_workflow", accept, ASKS, json!({})).await;
    assert_eq!(body(&told)["workflow"]["owner"]["id"], "kim-b");
    // The offer was made and taken; its state makes no second one.
    let before = room.store.events().await;
    let again = ann.tool("transfer_workflow", offer, ASKS, chosen(&state, "user:kim-a")).await;
    assert_eq!(refused::reason(&again), "used");
    assert_eq!(room.store.events().await, before);
}
