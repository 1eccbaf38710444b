//! `inputs:` → a compiled JSON Schema and what is known of each input.

use serde_json::Value;
use wf_core::models::Text;
use wf_core::policy::NeededInput;

use crate::expr::{InputType, Type};
use crate::format::{InputsSchema, Located, fields};
use crate::problem::Problems;
use crate::rules::{InputRule, InputRules};
use crate::tree::{Content, Node};
use crate::words;

/// Compiles the schema; `None`, with a problem, when it is none.
pub(super) fn compile(
    schema: &Located<InputsSchema>,
    problems: &mut Problems,
) -> Option<InputRules> {
    let node = &schema.value.0;
    let json = schema.value.json();
    if json.get("type") != Some(&Value::from("object")) {
        let hint = "start with type: object, then properties:";
        problems.add(node.at, "inputs is not a JSON Schema of type object", hint);
        return None;
    }
    let mut inputs = properties(node, &json, problems);
    order(&mut inputs, &json, node, problems);
    let before = problems.len();
    no_outside_references(node, problems);
    if problems.len() > before {
        return None;
    }
    let validator = match jsonschema::draft202012::options().offline().build(&json) {
        Ok(validator) => validator,
        Err(error) => {
            let path = error.instance_path();
            let path = path.as_str().trim_start_matches('/').to_owned();
            let segments: Vec<String> =
                path.split('/').map(|s| s.replace("~1", "/").replace("~0", "~")).collect();
            let at = node.deepest(segments.iter().map(String::as_str)).at;
            let hint = if segments.last().is_some_and(|s| s == "type") {
                "a type is string, number, integer, boolean, array, object or null"
            } else {
                "see https://json-schema.org/understanding-json-schema"
            };
            problems.add(at, format!("not a JSON Schema: {error}"), hint);
            return None;
        }
    };
    Some(InputRules { validator, inputs })
}

/// References that leave the document are refused where they stand.
fn no_outside_references(node: &Node, problems: &mut Problems) {
    match &node.content {
        Content::Map(entries) => {
            for entry in entries {
                if let ("$ref" | "$dynamicRef" | "$id" | "$schema", Content::Text(target)) =
                    (entry.key.as_str(), &entry.value.content)
                {
                    let inside = match entry.key.as_str() {
                        "$schema" => target == "https://json-schema.org/draft/2020-12/schema",
                        "$id" => false,
                        _ => target.starts_with('#'),
                    };
                    if !inside {
                        let message = format!("{} leads outside this file", entry.key);
                        let hint = "use #/$defs/…, and JSON Schema 2020-12";
                        problems.add(entry.value.at, message, hint);
                    }
                }
                no_outside_references(&entry.value, problems);
            }
        }
        Content::List(items) => {
            for item in items {
                no_outside_references(item, problems);
            }
        }
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => {}
    }
}

fn properties(node: &Node, json: &Value, problems: &mut Problems) -> Vec<InputRule> {
    let Some(Content::Map(entries)) = node.get("properties").map(|n| &n.content) else {
        return Vec::new();
    };
    let required = required_names(json);
    entries
        .iter()
        .map(|entry| {
            let property = &entry.value;
            let kind = property.get("type").and_then(|t| match &t.content {
                Content::Text(kind) => Some(kind.as_str()),
                Content::Null
                | Content::Bool(_)
                | Content::Number(_)
                | Content::List(_)
                | Content::Map(_) => None,
            });
            let say = property
                .get("say")
                .or_else(|| property.get("title"))
                .and_then(|n| fields::say(n, problems))
                .map_or_else(|| Text::from(words::of_id(&entry.key)), |s| s.value.0);
            let sensitive = property
                .get("sensitive")
                .and_then(|n| fields::flag(n, problems))
                .is_some_and(|f| f.value);
            InputRule {
                needed: NeededInput {
                    name: entry.key.clone(),
                    kind: kind.unwrap_or("any").to_owned(),
                    required: required.contains(&entry.key.as_str()),
                    say,
                    example: example_of(json, &entry.key),
                },
                kind: InputType {
                    value: match kind {
                        Some("number" | "integer") => Some(Type::Number),
                        Some("string") => Some(Type::Text),
                        Some("boolean") => Some(Type::Bool),
                        Some(_) | None => None,
                    },
                    sensitive,
                },
            }
        })
        .collect()
}

/// The first of the property's `examples`.
fn example_of(json: &Value, name: &str) -> Option<Value> {
    json.get("properties")?.get(name)?.get("examples")?.get(0).cloned()
}

fn required_names(json: &Value) -> Vec<&str> {
    json.get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// Required inputs as `required` lists them, then the others by name: an order that a stored document keeps, whose
/// maps have none.
fn order(inputs: &mut [InputRule], json: &Value, node: &Node, problems: &mut Problems) {
    let required = required_names(json);
    for name in &required {
        if !inputs.iter().any(|i| i.needed.name == *name) {
            let at = node.get("required").map_or(node.at, |n| n.at);
            let message = format!("the required input \"{name}\" is not described");
            problems.add(at, message, format!("add {name}: under properties"));
        }
    }
    inputs.sort_by_key(|input| {
        let place =
            required.iter().position(|name| *name == input.needed.name).unwrap_or(usize::MAX);
        (place, input.needed.name.clone())
    });
}
