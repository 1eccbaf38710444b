//! The JSON Schema of the format: committed, and agreeing with the reader.

use std::path::{Path, PathBuf};

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/procedure.schema.json")
}

#[test]
fn the_committed_schema_is_up_to_date() {
    let fresh =
        format!("{}\n", serde_json::to_string_pretty(&wf_procedure::json_schema()).unwrap());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(committed(), &fresh).unwrap();
    }
    let known = std::fs::read_to_string(committed()).unwrap_or_default();
    assert!(
        known == fresh,
        "docs/procedure.schema.json is old; run: UPDATE_EXPECT=1 cargo nextest run -p wf-procedure schema"
    );
}
