//! What a person answers to a step, from nothing but the step as it was told.

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Map, Value};

/// An answer that is all right; for a choice it may be one that blocks.
pub(super) fn good(step: &Value, random: &mut StdRng) -> String {
    match text(step, "kind") {
        "number" => {
            let (low, high) = (number(step, "min"), number(step, "max"));
            // Away from the bounds, so that rounding stays inside them.
            let at = low + (high - low) * random.random_range(0.1..0.9);
            format!("{at:.*}", decimals(step))
        }
        "choice" => {
            let choices = step.get("choices").and_then(Value::as_array);
            choose(choices.map_or(&[], Vec::as_slice), random)
                .map(|choice| text(choice, "id").to_owned())
                .unwrap_or_default()
        }
        "confirm" => "yes".to_owned(),
        "text" => "nothing to add".to_owned(),
        _ => "done".to_owned(),
    }
}

/// The first value above the accepted range of a number.
pub(super) fn too_high(step: &Value) -> String {
    let decimals = decimals(step);
    let smallest = 10_f64.powi(-i32::try_from(decimals).unwrap_or(0));
    format!("{:.decimals$}", number(step, "max") + smallest)
}

/// The same key with something else under it.
pub(super) fn other_payload(tool: &str, arguments: &Map<String, Value>) -> Map<String, Value> {
    let mut other = arguments.clone();
    other.remove("confirm_token");
    let (name, value) = match tool {
        "start_workflow" => ("inputs", serde_json::json!({ "work_order": "another" })),
        "report_problem" => ("summary", Value::from("another")),
        "resolve_block" => ("comment", Value::from("another")),
        _ => ("note", Value::from("another")),
    };
    other.insert(name.to_owned(), value);
    other
}

/// One of them, if there is one.
pub(super) fn choose<'a>(all: &'a [Value], random: &mut StdRng) -> Option<&'a Value> {
    match all.len() {
        0 => None,
        len => all.get(random.random_range(0..len)),
    }
}

/// A member that is text; empty when it is none.
pub(super) fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn decimals(step: &Value) -> usize {
    step.get("decimals").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
}

fn number(step: &Value, name: &str) -> f64 {
    text(step, name).parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;
    use serde_json::json;

    use super::{good, other_payload, too_high};

    #[test]
    fn numbers_keep_to_the_range_or_just_leave_it() {
        let step = json!({ "kind": "number", "min": "1.5", "max": "6.0", "decimals": 2 });
        let mut random = StdRng::seed_from_u64(1);
        for _ in 0..1_000 {
            let value: f64 = good(&step, &mut random).parse().unwrap();
            assert!((1.5..=6.0).contains(&value), "{value}");
        }
        assert_eq!(too_high(&step), "6.01");
    }

    #[test]
    fn another_payload_keeps_the_key() {
        let arguments =
            json!({ "step_id": "a", "value": "1", "confirm_token": "t", "idempotency_key": "k" });
        let arguments = arguments.as_object().unwrap();
        let other = other_payload("submit_step", arguments);
        assert_eq!(other.get("idempotency_key"), arguments.get("idempotency_key"));
        assert!(!other.contains_key("confirm_token"), "the token is for the first payload");
        assert_eq!(other.get("note"), Some(&json!("another")));
    }
}
