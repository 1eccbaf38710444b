//! Whole procedures through the wire.

use serde_json::json;

use crate::client::call;
use crate::world::World;

#[tokio::test]
async fn a_procedure_is_driven_from_start_to_finish() {
    let world = World::new().await;
    let found = world.call("find_work", json!({})).await;
    assert_eq!(found["outcome"], "list", "{found}");
    assert_eq!(found["candidates"][0]["procedure_id"], "routine-one");

    let workflow = world.start("asset-a").await;
    for step in ["step-1", "step-2"] {
        let done = world
            .call("submit_step", json!({"workflow_id": workflow, "step_id": step, "value": "ok"}))
            .await;
        assert_eq!(done["outcome"], "recorded", "{done}");
    }
    let finished =
        world.call("finish_workflow", json!({"workflow_id": workflow, "result": "good"})).await;
    assert_eq!(finished["outcome"], "finished", "{finished}");
}

#[tokio::test]
async fn an_answer_has_speech_text_and_the_same_json_twice() {
    let world = World::new().await;
    let answer = world.post(&call("find_work", json!({}))).await;
    let result = answer.result();
    let structured = &result["structuredContent"];
    assert_eq!(result["content"][0]["text"], structured["speech"]);
    assert_eq!(result["isError"], false);
    let text = result["content"][1]["text"].as_str().expect("text");
    let canonical = wf_core::idempotency::canonical_string(structured).expect("canonical");
    assert_eq!(text, canonical);
}
