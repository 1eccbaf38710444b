//! The JSON Schema of the file format, for editors. Generated from the types of `format`.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::format::Document;

/// The schema of a procedure file, JSON Schema 2020-12; committed as `docs/procedure.schema.json`.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema =
        SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Document>();
    schema.insert(
        "description".to_owned(),
        Value::from("A procedure of Checkpoint, format checkpoint/procedure/v1."),
    );
    let mut schema = schema.to_value();
    without_null(&mut schema);
    schema
}

/// Optional keys may be left out; an empty value is a problem, so `null` is not offered. Formats of integers (`uint32`)
/// are no JSON Schema.
fn without_null(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Object(map) => {
            map.remove("format");
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|t| t != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(options)) = map.get_mut("anyOf") {
                options.retain(|o| o.get("type") != Some(&Value::from("null")));
                if let [Value::Object(only)] = options.as_slice() {
                    let only = only.clone();
                    map.remove("anyOf");
                    map.extend(only);
                }
            }
            map.values_mut().for_each(without_null);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
