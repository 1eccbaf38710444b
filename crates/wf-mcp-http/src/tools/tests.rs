//! The list fits where it must fit, and says what mcp.md says.

use super::*;

fn size(value: &Value) -> usize {
    value.to_string().chars().count()
}

fn without_outputs() -> Value {
    let mut list = tool_list();
    for tool in list["tools"].as_array_mut().unwrap() {
        tool.as_object_mut().unwrap().remove("outputSchema").unwrap();
    }
    list
}

#[test]
fn the_list_is_small_enough_for_a_model() {
    let (bare, whole) = (size(&without_outputs()), size(&tool_list()));
    assert!(bare <= 12_000, "{bare} characters without output schemas");
    assert!(whole <= 18_000, "{whole} characters");
    let envelope = size(&Value::Object(schema::envelope()));
    assert!(envelope <= 600, "{envelope} characters of envelope");
}

#[test]
fn the_table_is_the_one_of_the_design() {
    let expected = [
        ("find_work", "query asset_id scope", true, false),
        ("get_status", "workflow_id asset_id detail", true, false),
        ("start_workflow", "procedure_id* assets inputs idempotency_key", false, false),
        (
            "submit_step",
            "workflow_id* step_id* value unit note confirm_token idempotency_key",
            false,
            false,
        ),
        ("check_value", "workflow_id* step_id* value* unit", true, false),
        (
            "correct_step",
            "workflow_id* step_id* value* reason_code* unit note confirm_token idempotency_key",
            false,
            false,
        ),
        ("skip_step", "workflow_id* step_id* reason_code note idempotency_key", false, false),
        ("report_problem", "workflow_id* summary* severity step_id idempotency_key", false, false),
        ("transfer_workflow", "workflow_id* action* to reason_code idempotency_key", false, true),
        ("finish_workflow", "workflow_id* result* note confirm_token idempotency_key", false, true),
        ("resolve_block", "workflow_id* block_id* decision* comment* idempotency_key", false, true),
    ];
    let list = tool_list();
    let tools = list["tools"].as_array().unwrap();
    assert_eq!(tools.len(), expected.len());
    for (tool, (name, params, read_only, destructive)) in tools.iter().zip(expected) {
        assert_eq!(tool["name"], name);
        let schema = &tool["inputSchema"];
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let properties = schema["properties"].as_object().unwrap();
        let mut names: Vec<_> = params.split(' ').collect();
        for name in &mut names {
            let starred = name.strip_suffix('*');
            let plain = starred.unwrap_or(name);
            assert_eq!(starred.is_some(), required.contains(&plain.into()), "{plain}");
            *name = plain;
        }
        assert!(properties.keys().all(|key| names.contains(&key.as_str())), "{name}");
        assert_eq!(properties.len(), names.len(), "{name}");
        assert!(names.len() <= 8, "{name}");
        assert_eq!(schema["additionalProperties"], false, "{name}");
        let hints = json!({
            "readOnlyHint": read_only,
            "destructiveHint": destructive,
            "idempotentHint": true,
            "openWorldHint": false,
        });
        assert_eq!(tool["annotations"], hints, "{name}");
        assert!(tool["title"].as_str().is_some_and(|t| !t.is_empty()));
        assert_eq!(tool["outputSchema"], Value::Object(schema::envelope()));
    }
}

#[test]
fn every_text_is_there_and_short() {
    for spec in TOOLS {
        let length = spec.description.chars().count();
        assert!((40..=420).contains(&length), "{}: {length}", spec.name);
        assert!(!spec.description.contains("  "), "{}", spec.name);
        for param in spec.params {
            let length = param.description.chars().count();
            assert!((10..=160).contains(&length), "{}.{}: {length}", spec.name, param.name);
        }
    }
    assert!(instructions().chars().count() <= 1_200);
    assert!(!instructions().contains("  "));
}

/// Keywords that mean something else, or nothing, in draft-07 or in 2020-12.
const UNSHARED: &[&str] = &[
    "$ref",
    "$defs",
    "$schema",
    "$id",
    "definitions",
    "format",
    "nullable",
    "prefixItems",
    "additionalItems",
    "dependencies",
    "dependentRequired",
    "unevaluatedProperties",
];

fn keywords_are_shared(schema: &Value) {
    let Some(fields) = schema.as_object() else { return };
    for (keyword, value) in fields {
        assert!(!UNSHARED.contains(&keyword.as_str()), "{keyword}");
        match keyword.as_str() {
            "type" => assert!(value.is_string(), "{value}"),
            "items" | "additionalProperties" => keywords_are_shared(value),
            "properties" => {
                value.as_object().unwrap().values().for_each(keywords_are_shared);
            }
            _ => {}
        }
    }
}

#[test]
fn schemas_mean_the_same_in_both_drafts() {
    keywords_are_shared(&Value::Object(schema::envelope()));
    keywords_are_shared(&result_schema());
    for spec in TOOLS {
        keywords_are_shared(&Value::Object(spec.input_schema()));
    }
    for schema in [Value::Object(schema::envelope()), result_schema()] {
        assert!(jsonschema::draft7::new(&schema).is_ok());
        assert!(jsonschema::draft202012::new(&schema).is_ok());
    }
}

#[test]
fn the_envelope_has_the_keys_of_the_whole_shape() {
    let keys = |schema: &Value| -> Vec<String> {
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(&Value::Object(schema::envelope())), keys(&result_schema()));
}

#[test]
fn all_four_revisions_are_known_to_rmcp() {
    let known: Vec<_> = VERSIONS.iter().map(ProtocolVersion::as_str).collect();
    assert_eq!(known, SUPPORTED_VERSIONS);
}
