//! Whole procedures through the wire.

use serde_json::{Value, json};

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
async fn every_tool_does_its_work_and_every_answer_fits_the_schemas() {
    let world = World::new().await;
    // Each call and the outcome it must have; `$` stands for the workflow.
    let calls = [
        ("find_work", json!({"scope": "available"}), "list"),
        ("find_work", json!({"query": "nothing of the kind"}), "none"),
        ("get_status", json!({}), "none"),
        ("get_status", json!({"workflow_id": "unknown"}), "error"),
        ("start_workflow", json!({"procedure_id": "routine-one"}), "needs_input"),
        ("start_workflow", json!({"procedure_id": "no-such"}), "error"),
        ("start_workflow", json!({"procedure_id": "routine-one", "assets": 7}), "error"),
        (
            "start_workflow",
            json!({"procedure_id": "routine-one", "assets": {"main": "a"}}),
            "started",
        ),
        (
            "start_workflow",
            json!({"procedure_id": "routine-one", "assets": {"main": "a"}}),
            "joined",
        ),
        ("get_status", json!({"detail": "full"}), "view"),
        ("check_value", json!({"workflow_id": "$", "step_id": "step-1", "value": "x"}), "verdict"),
        ("submit_step", json!({"workflow_id": "$", "step_id": "step-2", "value": "x"}), "error"),
        (
            "submit_step",
            json!({"workflow_id": "$", "step_id": "step-1", "value": "twice"}),
            "needs_confirmation",
        ),
        (
            "submit_step",
            json!({"workflow_id": "$", "step_id": "step-1", "value": "one"}),
            "recorded",
        ),
        ("correct_step", json!({"workflow_id": "$", "step_id": "step-1", "value": "two"}), "error"),
        (
            "correct_step",
            json!({"workflow_id": "$", "step_id": "step-1", "value": "two", "reason_code": "REASON_ONE"}),
            "corrected",
        ),
        (
            "report_problem",
            json!({"workflow_id": "$", "summary": "odd", "severity": "note"}),
            "noted",
        ),
        (
            "submit_step",
            json!({"workflow_id": "$", "step_id": "step-2", "value": "outside"}),
            "blocked",
        ),
        ("find_work", json!({"scope": "blocked"}), "list"),
        (
            "resolve_block",
            json!({"workflow_id": "$", "block_id": "block-1", "decision": "redo", "comment": "again"}),
            "error",
        ),
        (
            "resolve_block",
            json!({"workflow_id": "$", "block_id": "@", "decision": "redo", "comment": "again"}),
            "resolved",
        ),
        (
            "skip_step",
            json!({"workflow_id": "$", "step_id": "step-2", "reason_code": "REASON_ONE"}),
            "skipped",
        ),
        ("transfer_workflow", json!({"workflow_id": "$", "action": "withdraw"}), "error"),
        ("transfer_workflow", json!({"workflow_id": "$", "action": "give"}), "error"),
        ("transfer_workflow", json!({"workflow_id": "$", "action": "offer"}), "transferred"),
        ("transfer_workflow", json!({"workflow_id": "$", "action": "withdraw"}), "transferred"),
        ("finish_workflow", json!({"workflow_id": "$", "result": "no-such"}), "error"),
        ("finish_workflow", json!({"workflow_id": "$", "result": "good"}), "finished"),
        ("get_status", json!({"workflow_id": "$", "detail": "full"}), "view"),
    ];
    let (mut workflow, mut block) = (String::new(), String::new());
    for (tool, arguments, outcome) in calls {
        let filled = arguments.to_string().replace('$', &workflow).replace('@', &block);
        let arguments = serde_json::from_str(&filled).expect("JSON");
        let body = world.call(tool, arguments).await;
        assert_eq!(body["outcome"], outcome, "{tool} {filled}: {body}");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if outcome == "started" {
            workflow = text(&body["workflow"]["id"]);
        }
        if body["blocks"].is_array() {
            block = text(&body["blocks"][0]["id"]);
        }
    }
}

#[tokio::test]
async fn a_key_makes_a_repeated_call_one_call() {
    let world = World::new().await;
    let workflow = world.start("asset-a").await;
    let submit = |value: &str| {
        json!({
            "workflow_id": workflow, "step_id": "step-1", "value": value, "idempotency_key": "k-1",
        })
    };
    let before = world.store.events().await;
    let (first, second) = tokio::join!(
        world.call("submit_step", submit("ok")),
        world.call("submit_step", submit("ok"))
    );
    assert_eq!(world.store.events().await, before + 1);
    let duplicates = [&first, &second].map(|body| body["duplicate"] == true);
    assert_eq!(duplicates.iter().filter(|d| **d).count(), 1, "{first} {second}");
    assert_eq!(first["speech"], second["speech"]);
    let other = world.call("submit_step", submit("other")).await;
    assert_eq!(other["error"]["code"], "IDEMPOTENCY_CONFLICT", "{other}");
}

#[tokio::test]
async fn a_refused_start_says_what_a_start_needs() {
    let world = World::new().await;
    let arguments = json!({"procedure_id": "routine-one", "assets": ["a"]});
    let body = world.call("start_workflow", arguments).await;
    assert_eq!(body["error"]["code"], "VALIDATION_ERROR");
    assert_eq!(body["candidates"][0]["needs"]["assets"][0]["role"], "main", "{body}");
}
