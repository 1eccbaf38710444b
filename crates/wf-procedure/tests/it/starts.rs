//! Starting: assets and their ids, inputs and their schema.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wf_core::models::Locale;
use wf_core::policy::{DomainPolicyPort, StartPlan, StartRefusal};
use wf_procedure::Procedure;

use crate::fixture::{procedure, pump};

fn start(
    policy: &Procedure,
    assets: &[(&str, &str)],
    inputs: Value,
) -> Result<StartPlan, StartRefusal> {
    let assets: BTreeMap<String, String> =
        assets.iter().map(|(r, i)| ((*r).to_owned(), (*i).to_owned())).collect();
    policy.plan_start(&assets, inputs.as_object().unwrap())
}

fn invalid(refusal: StartRefusal) -> (String, String) {
    match refusal {
        StartRefusal::Invalid { field, rule, .. } => (field, rule),
        other @ StartRefusal::Missing { .. } => panic!("{other:?}"),
    }
}

#[test]
fn one_pump_has_one_id_however_it_is_said() {
    let policy = pump();
    for said in [
        "PUMP-204",
        "pump-204",
        "pump 204",
        "Pump204",
        "  PUMP 0204 ",
        "204",
        "0204",
        "p u m p 2 0 4",
        "PUMP‑204",
        "pump_204",
        "PUMP--204",
    ] {
        let id = policy.canonical_asset(said).map(|id| id.to_string());
        assert_eq!(id.as_deref(), Some("PUMP-204"), "{said:?}");
    }
    assert_eq!(policy.canonical_asset("000").unwrap().as_str(), "PUMP-0");
    assert_eq!(policy.canonical_asset("0000000123456").unwrap().as_str(), "PUMP-123456");
    for wrong in [
        "",
        "pump",
        "1234567",
        "PUMP-20A",
        "VALVE-204",
        "PUMP-٣",
        "204.5",
        &"9".repeat(300),
        "../204",
    ] {
        assert_eq!(policy.canonical_asset(wrong), None, "{wrong:?}");
    }
    let plan = start(&policy, &[("pump", "pump 0204")], json!({"work_order": "WO-1"})).unwrap();
    assert_eq!(plan.assets[0].id.as_str(), "PUMP-204");
    assert_eq!(plan.assets[0].say.get(&Locale::default()), "pump 204");
    assert_eq!(plan.label.get(&Locale::default()), "pump 204");
}

#[test]
fn kept_zeros_and_patterns() {
    let policy = procedure(
        "schema: checkpoint/procedure/v1\nid: t\nversion: 1\ntitle: T\nassets:\n  - { role: pump, say: { en: pump, de: Pumpe }, id: { prefix: P-, digits: { max: 3, leading_zeros: keep } } }\n  - { role: probe, id: { pattern: '[A-Z]{2}-[0-9]{3}' } }\nsteps: [{ id: a, kind: confirm, prompt: x }]\n",
    );
    let id = |raw: &str| policy.canonical_asset(raw).map(|id| id.to_string());
    assert_eq!(id("Pumpe 007").as_deref(), Some("P-007"));
    assert_eq!(id("pump 7").as_deref(), Some("P-7"));
    assert_eq!(id("tx-100").as_deref(), Some("TX-100"));
    assert_eq!(id("TX-1000"), None);
    assert_eq!(id("xTX-100"), None);
    let plan = start(&policy, &[("pump", "7"), ("probe", "TX-100")], json!({})).unwrap();
    assert_eq!(plan.label.get(&Locale::default()), "pump 7, probe TX 100");
    assert_eq!(plan.label.get(&Locale::parse("de").unwrap()), "Pumpe 7, probe TX 100");
}

#[test]
fn what_is_missing_is_asked_for_and_what_is_wrong_is_named() {
    let policy = pump();
    match start(&policy, &[], json!({})).unwrap_err() {
        StartRefusal::Missing { asset: Some(asset), input: None } => {
            assert_eq!(asset.example.as_deref(), Some("PUMP-204"));
        }
        other => panic!("{other:?}"),
    }
    match start(&policy, &[("pump", "204")], json!({})).unwrap_err() {
        StartRefusal::Missing { asset: None, input: Some(input) } => {
            assert_eq!((input.name.as_str(), input.kind.as_str()), ("work_order", "string"));
            assert_eq!(input.say.get(&Locale::default()), "work order number");
        }
        other => panic!("{other:?}"),
    }
    let good = json!({"work_order": "WO-1"});
    let wrong = |assets: &[(&str, &str)], inputs: &Value| {
        invalid(start(&policy, assets, inputs.clone()).unwrap_err())
    };
    let (field, rule) = wrong(&[("pump", "valve 3")], &good);
    assert_eq!(field, "assets.pump");
    assert!(rule.contains("for example PUMP-204"), "{rule}");
    assert_eq!(wrong(&[("pump", "204"), ("pomp", "3")], &good).0, "assets.pomp");
    assert_eq!(wrong(&[("pump", "204")], &json!({"work_order": 7})).0, "inputs.work_order");
    let (field, rule) = wrong(&[("pump", "204")], &json!({"work_order": "x".repeat(41)}));
    assert_eq!(field, "inputs.work_order");
    assert!(rule.contains("40") && !rule.contains("xxx"), "{rule}");
    let (field, _) = wrong(&[("pump", "204")], &json!({"work_order": "a", "extra": 1}));
    assert_eq!(field, "inputs.extra");
}

#[test]
fn one_thing_cannot_play_two_parts() {
    let policy = procedure(
        "schema: checkpoint/procedure/v1\nid: t\nversion: 1\ntitle: T\nassets:\n  - { role: a, id: { prefix: P-, digits: { max: 3 } } }\n  - { role: b, id: { prefix: P-, digits: { max: 3 } } }\nsteps: [{ id: a, kind: confirm, prompt: x }]\n",
    );
    let (field, rule) =
        invalid(start(&policy, &[("a", "7"), ("b", "P-007")], json!({})).unwrap_err());
    assert_eq!((field.as_str(), rule.as_str()), ("assets.b", "P-7 is given in two roles"));
}

#[test]
fn sensitive_inputs_go_their_own_way_and_are_never_repeated() {
    let policy = procedure(
        "schema: checkpoint/procedure/v1\nid: t\nversion: 1\ntitle: T\ninputs:\n  type: object\n  properties: { pin: { type: string, maxLength: 9, sensitive: true, say: PIN }, site: { type: string } }\n  required: [site, pin]\nsteps: [{ id: a, kind: confirm, prompt: x }]\n",
    );
    let plan = start(&policy, &[], json!({"pin": "swordfish", "site": "north"})).unwrap();
    assert_eq!(Value::Object(plan.inputs), json!({"site": "north"}));
    assert_eq!(Value::Object(plan.sensitive_inputs), json!({"pin": "swordfish"}));
    assert_eq!(plan.label.get(&Locale::default()), "T");
    let names: Vec<String> = policy.needs().inputs.into_iter().map(|i| i.name).collect();
    assert_eq!(names, ["site", "pin"], "in the order of required");
    let refused = start(&policy, &[], json!({"pin": "swordfish1", "site": "north"})).unwrap_err();
    assert!(!format!("{refused:?}").contains("swordfish"), "{refused:?}");
}

#[test]
fn a_procedure_without_inputs_takes_none() {
    let policy = crate::fixture::with_steps("  - { id: a, kind: confirm, prompt: x }");
    assert!(start(&policy, &[], json!({})).is_ok());
    assert_eq!(invalid(start(&policy, &[], json!({"a": 1})).unwrap_err()).0, "inputs.a");
    assert_eq!(invalid(start(&policy, &[("pump", "1")], json!({})).unwrap_err()).0, "assets.pump");
}
