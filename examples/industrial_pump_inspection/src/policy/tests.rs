//! The policy alone: no engine, no store. What it answers is all there is to test.

use serde_json::json;
use wf_core::errors::ErrorCode;

use super::*;

fn assets(pump: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("pump".to_owned(), pump.to_owned())])
}

fn inputs(work_order: &Value) -> Map<String, Value> {
    Map::from_iter([("work_order".to_owned(), work_order.clone())])
}

#[test]
fn one_pump_has_one_id_however_it_is_said() {
    let policy = PumpInspection::new().unwrap();
    for said in ["PUMP-204", "pump 204", "Pump-0204", " pump204 "] {
        let id = policy.canonical_asset(said).unwrap();
        assert_eq!(id.as_str(), "PUMP-204", "{said}");
    }
    for other in ["", "204", "VALVE-204", "PUMP-", "PUMP-0", "PUMP-2O4", "PUMP-1234567", "PUMP-²"]
    {
        assert_eq!(policy.canonical_asset(other), None, "{other}");
    }
}

#[test]
fn a_start_names_what_is_missing_or_wrong() {
    let policy = PumpInspection::new().unwrap();
    let order = inputs(&json!("WO-7"));
    let plan = policy.plan_start(&assets("pump 204"), &order).unwrap();
    assert_eq!(plan.label, "Industrial pump inspection of pump 204".into());
    assert_eq!(plan.inputs, order);

    let missing = |refusal| match refusal {
        Err(StartRefusal::Missing { asset, input }) => (asset.is_some(), input.is_some()),
        other => panic!("{other:?}"),
    };
    assert_eq!(missing(policy.plan_start(&BTreeMap::new(), &order)), (true, false));
    assert_eq!(missing(policy.plan_start(&assets("pump 204"), &Map::new())), (false, true));

    let wrong = |refusal| match refusal {
        Err(StartRefusal::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(wrong(policy.plan_start(&assets("the big one"), &order)), "assets.pump");
    let motor = BTreeMap::from([("motor".to_owned(), "M-1".to_owned())]);
    assert_eq!(wrong(policy.plan_start(&motor, &order)), "assets.motor");
    let long = inputs(&json!("x".repeat(41)));
    for bad in [inputs(&json!("")), inputs(&json!(7)), long] {
        assert_eq!(wrong(policy.plan_start(&assets("pump 204"), &bad)), "inputs.work_order");
    }
}

/// What the policy says to a value: accept, warn, block, decline, or the code of a refusal.
fn verdict(step: &str, value: &str, unit: Option<&str>) -> String {
    let policy = PumpInspection::new().unwrap();
    let step_id = StepId::parse(step).unwrap();
    let step = policy.step(&step_id).unwrap();
    let at = wf_core::models::Timestamp::from_ms(0);
    let offered = Offered { step_id: &step_id, value, unit, at };
    match judge::judge(step, &offered) {
        Judgement::Accept(accepted) if accepted.warnings.is_empty() => "accept".to_owned(),
        Judgement::Accept(_) => "warn".to_owned(),
        Judgement::Block(accepted, cause) => {
            assert_eq!(accepted.out_of_range, accepted.read_back.is_some());
            format!("block {}", cause.code)
        }
        Judgement::Decline => "decline".to_owned(),
        Judgement::Reject(refusal) => refusal.code.as_str().to_owned(),
    }
}

#[test]
fn limits_are_exact_and_inclusive() {
    let pressure = |value| verdict("suction_pressure", value, None);
    for (value, says) in [
        ("4.2", "accept"),
        ("2", "accept"),
        ("5.5", "accept"),
        ("5.51", "warn"),
        ("1.99", "warn"),
        ("1.50", "warn"),
        ("6.00", "warn"),
        ("6.01", "block PRESSURE_OUT_OF_RANGE"),
        ("1.49", "block PRESSURE_OUT_OF_RANGE"),
        ("25", "block PRESSURE_OUT_OF_RANGE"),
        ("25.01", "IMPLAUSIBLE_VALUE"),
        ("-0.01", "IMPLAUSIBLE_VALUE"),
        ("4.201", "VALIDATION_ERROR"),
        ("four", "VALIDATION_ERROR"),
        ("", "VALIDATION_ERROR"),
    ] {
        assert_eq!(pressure(value), says, "{value}");
    }
    assert_eq!(verdict("suction_pressure", "4.2", Some("bar")), "accept");
    assert_eq!(verdict("suction_pressure", "4.2", Some("psi")), "UNIT_MISMATCH");
}

#[test]
fn words_are_taken_as_people_say_them() {
    for (step, value, says) in [
        ("isolate", "Yes", "accept"),
        ("isolate", "no", "decline"),
        ("isolate", "maybe", "VALIDATION_ERROR"),
        ("seal", "Weeping", "accept"),
        ("seal", "leaking", "block SEAL_LEAKING"),
        ("seal", "fine", "VALIDATION_ERROR"),
        ("remarks", "paint is flaking", "accept"),
        ("remarks", "  ", "VALIDATION_ERROR"),
    ] {
        assert_eq!(verdict(step, value, None), says, "{step} {value}");
    }
    let Judgement::Reject(refusal) = judge::unknown_step() else { panic!("not refused") };
    assert_eq!(refusal.code, ErrorCode::ValidationError);
}

#[test]
fn every_value_the_table_can_hold_has_words() {
    let policy = PumpInspection::new().unwrap();
    let spoken = |step: &str, value: &str| {
        let reading = Reading { value: value.to_owned(), ..Reading::default() };
        policy.spoken(&StepId::parse(step).unwrap(), &reading, &Locale::default())
    };
    assert_eq!(spoken("vibration", "1"), "1 millimetre per second");
    assert_eq!(spoken("vibration", "3.1"), "3.1 millimetres per second");
    assert_eq!(spoken("seal", "dry"), "dry");
    assert_eq!(spoken("nothing", "1"), "");
}

#[test]
fn texts_keep_to_the_limit_of_speech() {
    let policy = PumpInspection::new().unwrap();
    let table = &policy.procedure;
    let problems = table.steps.iter().filter_map(|s| s.problem.as_ref()).chain([&table.reported]);
    let questions = problems.map(|p| p.question);
    for said in table.steps.iter().map(|s| s.prompt).chain(questions) {
        assert!(said.chars().count() <= wf_core::limits::SPOKEN_TEXT_CHARS_MAX, "{said}");
    }
    assert!(table.steps.len() <= wf_core::limits::STEPS_MAX);
}

/// A workflow pins this digest. When this test turns red, running workflows would no longer find their definition:
/// raise `VERSION`, and keep the old table for as long as workflows run by it.
#[test]
fn the_digest_of_this_version_stays() {
    let definition = PumpInspection::new().unwrap().definition;
    assert_eq!(
        (definition.version, definition.digest.as_str()),
        (1, "650a01b16013a8285291bea9ca4f5576f4421f56560cecc5e91c6a4a22c40daa")
    );
}
