//! Each tool's arguments: read, or refused with the field, the rule and what is valid.

#![expect(clippy::needless_pass_by_value, reason = "JSON literals are handed over")]

use serde_json::json;
use wf_core::limits::{FREE_TEXT_CHARS_MAX, INPUTS_BYTES_MAX, QUERY_CHARS_MAX, VALUE_CHARS_MAX};

use super::*;
use crate::tools::{self, TOOLS};

fn asked(tool: &str, arguments: Value) -> Result<Asked, Rejection> {
    let spec = tools::spec(tool).unwrap();
    let Value::Object(map) = arguments else { panic!("no object") };
    read(spec, &map, &CallMeta::default())
}

/// Field, rule and `valid` of the refusal.
fn refused(tool: &str, arguments: Value) -> (String, String, Value) {
    let rejection =
        asked(tool, arguments.clone()).map(|a| panic!("{a:?}: {arguments}")).unwrap_err();
    let detail = |name: &str| rejection.details.get(name).cloned().unwrap_or_default();
    let text = |name: &str| detail(name).as_str().unwrap_or_default().to_owned();
    assert_eq!(rejection.code.as_str(), "VALIDATION_ERROR");
    assert_eq!(rejection.message, format!("{}: {}", text("field"), text("rule")));
    (text("field"), text("rule"), detail("valid"))
}

fn request(tool: &str, arguments: Value) -> Request {
    let Ok(Asked::Change(call)) = asked(tool, arguments) else { panic!("{tool}") };
    call.request
}

fn submit(extra: Value) -> Value {
    let mut arguments = json!({"workflow_id": "wf-1", "step_id": "step-1"});
    let fields = arguments.as_object_mut().unwrap();
    fields.extend(extra.as_object().unwrap().clone());
    arguments
}

#[test]
fn a_change_carries_key_operation_and_arguments_as_sent() {
    let sent = submit(json!({"value": "4.20", "idempotency_key": "k-1"}));
    let Ok(Asked::Change(call)) = asked("submit_step", sent.clone()) else { panic!() };
    assert_eq!(call.operation, "submit_step");
    assert_eq!(Some(&call.arguments), sent.as_object());
    assert_eq!(call.key.unwrap().as_str(), "k-1");
    let Request::SubmitStep { value, .. } = call.request else { panic!() };
    assert_eq!(value.value.as_deref(), Some("4.20"));
    assert_eq!((value.unit, value.note, value.confirm_token), (None, None, None));
}

#[test]
fn a_transfer_is_one_of_five_actions() {
    let transfer = |action: &str| {
        let arguments = json!({
            "workflow_id": "wf-1", "action": action, "to": "Bob", "reason_code": "WHY",
        });
        let asked = request("transfer_workflow", arguments);
        let Request::Transfer { transfer, .. } = asked else { panic!("{asked:?}") };
        transfer
    };
    assert_eq!(transfer("offer"), Transfer::Offer { to: Some("Bob".to_owned()) });
    assert_eq!(transfer("withdraw"), Transfer::Withdraw);
    assert_eq!(transfer("decline"), Transfer::Decline);
    assert_eq!(transfer("accept"), Transfer::Accept);
    let reason_code = ReasonCode::parse("WHY").ok();
    assert_eq!(transfer("take_over"), Transfer::TakeOver { reason_code });
    let valid = json!(["offer", "withdraw", "decline", "accept", "take_over"]);
    let refusal = refused("transfer_workflow", json!({"workflow_id": "w", "action": "give"}));
    assert_eq!((refusal.0.as_str(), refusal.2), ("action", valid));
    assert_eq!(refused("transfer_workflow", json!({"workflow_id": "w"})).0, "action");
}

#[test]
fn null_and_empty_are_not_taken_for_absent() {
    let null = json!({"workflow_id": null});
    assert_eq!(refused("get_status", null).1, "must be a string, not null");
    assert_eq!(refused("get_status", json!({"workflow_id": ""})).0, "workflow_id");
    assert_eq!(refused("submit_step", submit(json!({"idempotency_key": ""}))).0, "idempotency_key");
    let start = json!({"procedure_id": "p", "assets": null});
    assert_eq!(refused("start_workflow", start).1, "must be an object, not null");
    let empty = json!({"workflow_id": "w", "step_id": "s", "value": ""});
    assert_eq!(refused("check_value", empty).1, "must not be empty");
}

#[test]
fn required_arguments_are_missed_by_name() {
    for spec in TOOLS {
        for missing in spec.params.iter().filter(|p| p.required) {
            // The engine asks for the reason of a correction, with the reasons there are.
            if missing.name == "reason_code" {
                continue;
            }
            let mut arguments = Map::new();
            for param in spec.params.iter().filter(|p| p.required && p.name != missing.name) {
                arguments.insert(param.name.to_owned(), "x".into());
            }
            let (field, rule, _) = refused(spec.name, Value::Object(arguments));
            assert_eq!(
                (field.as_str(), rule.as_str()),
                (missing.name, "is required"),
                "{}",
                spec.name
            );
        }
    }
}

#[test]
fn unknown_arguments_are_named_with_a_suggestion() {
    let (field, rule, valid) = refused("check_value", json!({"workflowId": "w"}));
    assert_eq!(field, "workflowId");
    assert_eq!(rule, "is no argument of check_value; did you mean workflow_id?");
    assert_eq!(valid, json!(["workflow_id", "step_id", "value", "unit"]));
    let (_, rule, _) = refused("find_work", json!({"colour": "red"}));
    assert_eq!(rule, "is no argument of find_work");
    let long = "x".repeat(5_000);
    assert_eq!(refused("find_work", json!({ long: 1 })).0.len(), 64);
}

#[test]
fn a_number_for_a_value_is_asked_for_as_a_string() {
    let (field, rule, _) = refused("submit_step", submit(json!({"value": 4.2})));
    assert_eq!(field, "value");
    assert_eq!(rule, "must be a string: send it as a string, like \"4.2\"");
    let (_, rule, _) = refused("submit_step", submit(json!({"value": true})));
    assert_eq!(rule, "must be a string, not a boolean");
    let (_, rule, _) = refused("submit_step", submit(json!({"note": 4})));
    assert_eq!(rule, "must be a string, not a number");
}

#[test]
fn limits_are_counted_in_characters() {
    let cases = [("value", VALUE_CHARS_MAX), ("note", FREE_TEXT_CHARS_MAX)];
    for (name, max) in cases {
        assert!(asked("submit_step", submit(json!({ name: "é".repeat(max) }))).is_ok());
        let (field, rule, _) = refused("submit_step", submit(json!({ name: "é".repeat(max + 1) })));
        assert_eq!((field, rule), (name.to_owned(), format!("must have at most {max} characters")));
    }
    let query = json!({"query": "q".repeat(QUERY_CHARS_MAX + 1)});
    assert_eq!(refused("find_work", query).0, "query");
    for key in ["k".repeat(129), "a b".to_owned(), "é".to_owned(), "a\n".to_owned()] {
        let (field, ..) = refused("submit_step", submit(json!({"idempotency_key": key})));
        assert_eq!(field, "idempotency_key");
    }
}

#[test]
fn ids_must_have_their_form() {
    for bad in ["../etc/passwd", "a b", "é", "a/b"] {
        let (field, rule, valid) = refused("get_status", json!({"workflow_id": bad}));
        assert_eq!(field, "workflow_id");
        assert_eq!(rule, "must match [A-Za-z0-9._:-]{1,128}");
        assert_eq!(valid, "[A-Za-z0-9._:-]{1,128}");
    }
}

#[test]
fn words_come_from_their_list() {
    let (field, rule, valid) = refused("find_work", json!({"scope": "open"}));
    assert_eq!(
        (field.as_str(), rule.as_str()),
        ("scope", "must be one of mine, available, blocked")
    );
    assert_eq!(valid, json!(["mine", "available", "blocked"]));
    let report = json!({"workflow_id": "w", "summary": "s", "severity": "huge"});
    assert_eq!(refused("report_problem", report).2, json!(["note", "low", "high"]));
    // The schema offers exactly what is read.
    for spec in TOOLS {
        for param in spec.params {
            let tools::Kind::Word(words) = param.kind else { continue };
            for word in words {
                let mut arguments = json!({});
                for required in spec.params.iter().filter(|param| param.required) {
                    arguments[required.name] = "w".into();
                }
                arguments[param.name] = (*word).into();
                assert!(asked(spec.name, arguments).is_ok(), "{} {word}", spec.name);
            }
        }
    }
}

#[test]
fn assets_are_names_to_texts() {
    let start = |assets: Value| json!({"procedure_id": "p", "assets": assets});
    let Request::Start { assets, inputs, .. } =
        request("start_workflow", start(json!({"main": "A 1"})))
    else {
        panic!()
    };
    assert_eq!(assets.get("main").map(String::as_str), Some("A 1"));
    assert!(inputs.is_empty());
    assert_eq!(refused("start_workflow", start(json!(["a"]))).1, "must be an object, not an array");
    let (field, rule, _) = refused("start_workflow", start(json!({"main": 7})));
    assert_eq!((field.as_str(), rule.as_str()), ("assets.main", "must be a string, not a number"));
    assert_eq!(refused("start_workflow", start(json!({"main": ""}))).1, "must not be empty");
    let many: Map<_, _> = (0..17).map(|n| (format!("r{n}"), "a".into())).collect();
    assert_eq!(
        refused("start_workflow", start(Value::Object(many))).1,
        "must have at most 16 members"
    );
}

#[test]
fn inputs_are_bounded_in_bytes() {
    let start = |size: usize| json!({"procedure_id": "p", "inputs": {"a": "x".repeat(size)}});
    assert!(asked("start_workflow", start(INPUTS_BYTES_MAX - 8)).is_ok());
    assert_eq!(refused("start_workflow", start(INPUTS_BYTES_MAX)).0, "inputs");
}

#[test]
fn every_change_reaches_its_command() {
    let ids = json!({"workflow_id": "w", "step_id": "s"});
    let with = |extra: Value| {
        let mut all = ids.clone();
        all.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        all
    };
    let correct = request("correct_step", with(json!({"value": "1", "reason_code": "R"})));
    assert!(matches!(correct, Request::CorrectStep { reason_code: Some(_), .. }));
    let correct = request("correct_step", with(json!({"value": "1"})));
    assert!(matches!(correct, Request::CorrectStep { reason_code: None, .. }));
    let skip = request("skip_step", with(json!({"note": "n"})));
    assert!(matches!(skip, Request::SkipStep { reason_code: None, note: Some(_), .. }));
    let report = request("report_problem", json!({"workflow_id": "w", "summary": "s"}));
    assert!(matches!(report, Request::ReportProblem { severity: None, step_id: None, .. }));
    let finish = json!({"workflow_id": "w", "result": "good", "confirm_token": "t"});
    let finish = request("finish_workflow", finish);
    assert!(matches!(finish, Request::Finish { confirm_token: Some(_), .. }));
    let resolve =
        json!({"workflow_id": "w", "block_id": "block-2", "decision": "d", "comment": "c"});
    assert!(matches!(request("resolve_block", resolve), Request::ResolveBlock { .. }));
}
