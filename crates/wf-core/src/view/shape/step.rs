//! The `step` part: what is open next.

use serde_json::{Map, Value, json};

use crate::models::StepStatus;
use crate::policy::{Choice, StepDescription};
use crate::view::{Outlook, Words};

use super::put;

/// The step that is asked next.
pub(super) fn step(outlook: &Outlook<'_>, words: &Words<'_>) -> Option<Value> {
    let described = outlook.step.as_ref()?;
    let mut map = described_step(described, words);
    let record = outlook.workflow.steps.get(&described.id);
    map.insert("attempt".to_owned(), Value::from(record.map_or(0, |r| r.attempt) + 1));
    if let Some(record) = record {
        match record.status {
            StepStatus::Recheck => {
                let shown = record.reading.as_ref().filter(|r| !r.withheld);
                let recheck = shown.map_or_else(
                    || json!({"withheld": true}),
                    |r| json!({"value": r.given, "unit": r.given_unit}),
                );
                map.insert("recheck".to_owned(), without_nulls(recheck));
            }
            StepStatus::Reopened | StepStatus::Recorded | StepStatus::Skipped => {}
        }
    }
    Some(Value::Object(map))
}

fn described_step(step: &StepDescription, words: &Words<'_>) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("id".to_owned(), Value::from(step.id.as_str()));
    map.insert("position".to_owned(), Value::from(step.position));
    map.insert("of".to_owned(), Value::from(step.of));
    map.insert("prompt".to_owned(), Value::from(words.text(&step.prompt)));
    map.insert("kind".to_owned(), Value::from(step.kind.as_str()));
    put(&mut map, "unit", step.unit.as_ref().map(|u| u.symbol.as_str()));
    put(&mut map, "decimals", step.decimals);
    put(&mut map, "min", step.min.as_deref());
    put(&mut map, "max", step.max.as_deref());
    if !step.choices.is_empty() {
        map.insert("choices".to_owned(), choices(&step.choices, words));
    }
    put(&mut map, "wait_seconds", step.wait_seconds);
    put(&mut map, "due_at", step.due_at.map(|t| t.to_string()));
    map.insert("skip".to_owned(), Value::from(step.skip.as_str()));
    map.insert("required".to_owned(), Value::from(step.required));
    put(&mut map, "role", step.role.as_deref());
    put(&mut map, "second_person", step.not_performer.then_some(true));
    map
}

/// Choices with the words of the answer's language.
fn choices(choices: &[Choice], words: &Words<'_>) -> Value {
    choices.iter().map(|c| json!({"id": c.id, "say": words.text(&c.say)})).collect()
}

/// Absent keys are omitted.
pub(super) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(members.into_iter().filter(|(_, v)| !v.is_null()).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            value
        }
    }
}
