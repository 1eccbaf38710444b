//! What is asked, and what counts as an answer; whole rounds are in `tests/it/asking*`.

use super::*;

fn meta(capabilities: &Value) -> RequestMetaObject {
    serde_json::from_value(json!({"io.modelcontextprotocol/clientCapabilities": capabilities}))
        .expect("metadata")
}

#[test]
fn only_a_client_that_fills_in_forms_is_asked() {
    for (capabilities, expected) in [
        (json!({"elicitation": {}}), true),
        (json!({"elicitation": {"form": {}}}), true),
        (json!({"elicitation": {"form": {}, "url": {}}}), true),
        (json!({"elicitation": {"url": {}}}), false),
        (json!({"sampling": {}}), false),
        (json!({}), false),
        (json!("all"), false),
    ] {
        assert_eq!(asks(&meta(&capabilities)), expected, "{capabilities}");
    }
    assert!(!asks(&RequestMetaObject::default()));
}

#[test]
fn what_rmcp_would_take_for_another_method_is_refused_before() {
    let check = |params: Value| check_params(params.as_object().expect("parameters"));
    assert_eq!(check(json!({})), None);
    assert_eq!(check(json!({"requestState": null, "inputResponses": null})), None);
    assert_eq!(check(json!({"requestState": "rs1", "inputResponses": {}})), None);
    for state in [json!(1), json!({}), json!([]), json!(true)] {
        assert!(check(json!({"requestState": state})).is_some_and(|p| p.contains("requestState")));
    }
    for responses in [json!(1), json!("x"), json!([]), json!(true)] {
        let problem = check(json!({"inputResponses": responses}));
        assert!(problem.is_some_and(|p| p.contains("inputResponses")));
    }
}

fn question(options: Vec<Choice>) -> Value {
    let question = Question { text: "Well?".to_owned(), options, state: "rs1.x.y".to_owned() };
    serde_json::to_value(form(&question)).expect("written")
}

#[test]
fn a_read_back_is_a_yes_or_no() {
    let asked = question(Vec::new());
    assert_eq!(asked["resultType"], "input_required");
    assert_eq!(asked["requestState"], "rs1.x.y");
    let request = &asked["inputRequests"]["confirm"];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["mode"], "form");
    assert_eq!(request["params"]["message"], "Well?");
    let schema = &request["params"]["requestedSchema"];
    assert_eq!(schema["properties"]["confirm"]["type"], "boolean");
    assert_eq!(schema["properties"]["confirm"].get("default"), None, "nobody agrees by accident");
    assert_eq!(schema["required"], json!(["confirm"]));
}

#[test]
fn a_choice_is_one_of_those_that_may_be_meant() {
    let option = |id: &str, label: &str| Choice { id: id.to_owned(), label: label.to_owned() };
    let asked = question(vec![option("w-1", "One"), option("w-2", "Two")]);
    let schema = &asked["inputRequests"]["choice"]["params"]["requestedSchema"];
    let offered = json!([{"const": "w-1", "title": "One"}, {"const": "w-2", "title": "Two"}]);
    assert_eq!(schema["properties"]["choice"]["oneOf"], offered);
    assert_eq!(schema["properties"]["choice"]["type"], "string");
    assert_eq!(schema["required"], json!(["choice"]));
}
