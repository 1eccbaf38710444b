//! The files under docs/ that clients validate with are what the code says.

use std::path::PathBuf;

use serde_json::Value;

fn published(name: &str, now: &Value) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", name].iter().collect();
    let text = format!("{now:#}\n");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).expect("docs are writable");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/{name} is out of date: run this test once with UPDATE_DOCS=1");
}

#[test]
fn result_schema_is_published() {
    published("result.schema.json", &wf_mcp_http::result_schema());
}

#[test]
fn tool_list_is_published() {
    published("tools.json", &wf_mcp_http::tool_list());
}
