//! The schemas that results must fit: the envelope that clients see, and the whole shape.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

static ENVELOPE: LazyLock<[Validator; 2]> =
    LazyLock::new(|| both(&wf_mcp_http::tool_list()["tools"][0]["outputSchema"]));
static WHOLE: LazyLock<[Validator; 2]> = LazyLock::new(|| both(&wf_mcp_http::result_schema()));

/// The schema by the rules of both drafts that clients use.
fn both(schema: &Value) -> [Validator; 2] {
    [
        jsonschema::draft7::new(schema).expect("a draft-07 schema"),
        jsonschema::draft202012::new(schema).expect("a 2020-12 schema"),
    ]
}

/// Panics with the first problem.
pub(crate) fn check(body: &Value) {
    for validator in ENVELOPE.iter().chain(WHOLE.iter()) {
        if let Err(problem) = validator.validate(body) {
            panic!("{problem} at {}: {body}", problem.instance_path());
        }
    }
}

#[test]
fn a_result_that_does_not_fit_is_noticed() {
    let good = serde_json::json!({
        "ok": true, "outcome": "none", "duplicate": false, "speech": "Nothing is open.",
    });
    check(&good);
    for (key, value) in [("speech", Value::from("")), ("outcome", "odd".into()), ("ok", 1.into())] {
        let mut bad = good.clone();
        bad[key] = value;
        assert!(std::panic::catch_unwind(|| check(&bad)).is_err(), "{key}");
    }
}
