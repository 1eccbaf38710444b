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
    schema.to_value()
}
