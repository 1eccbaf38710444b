//! Drives the built-in pump inspection with answers that its own results suggest.

use serde_json::{Value, json};

use crate::server::Server;

/// Starts an inspection of `asset`; the answer.
pub(crate) fn start(server: &Server, asset: &str, key: &str) -> Value {
    let view = server.call(
        "start_workflow",
        &json!({
            "procedure_id": "pump-inspection",
            "assets": { "pump": asset },
            "inputs": { "work_order": "WO-1" },
            "idempotency_key": key,
        }),
    );
    assert_eq!(view["ok"], true, "{view:#}");
    view
}

/// The id of the workflow of a view.
pub(crate) fn id(view: &Value) -> String {
    view["workflow"]["id"].as_str().unwrap().to_owned()
}

/// The arguments of a good answer to the step that is open in `view`; `None` when none is.
pub(crate) fn answer(view: &Value) -> Option<Value> {
    let step = view.get("step")?;
    let value = match step["kind"].as_str().unwrap() {
        "confirm" => "yes".to_owned(),
        "number" => number(step),
        "choice" => step["choices"][0]["id"].as_str().unwrap().to_owned(),
        _ => "nothing to add".to_owned(),
    };
    let mut arguments = json!({
        "workflow_id": id(view),
        "step_id": step["id"],
        "value": value,
        "idempotency_key": view["next_idempotency_key"],
    });
    if let Some(unit) = step.get("unit") {
        arguments["unit"] = unit.clone();
    }
    Some(arguments)
}

/// The middle of what is accepted.
fn number(step: &Value) -> String {
    let bound = |name: &str, default: f64| {
        step.get(name).and_then(Value::as_str).map_or(default, |text| text.parse().unwrap())
    };
    let middle = f64::midpoint(bound("min", 0.0), bound("max", 1.0));
    let decimals = step["decimals"].as_u64().unwrap_or(2);
    format!("{middle:.*}", usize::try_from(decimals).unwrap())
}

/// Submits one good answer, confirming it where a read-back is asked for; the answer.
pub(crate) fn submit(server: &Server, view: &Value) -> Value {
    let mut arguments = answer(view).unwrap();
    let mut next = server.call("submit_step", &arguments);
    if next["outcome"] == "needs_confirmation" {
        arguments["confirm_token"] = next["confirm"]["token"].clone();
        next = server.call("submit_step", &arguments);
    }
    assert_eq!(next["ok"], true, "{next:#}");
    next
}
