//! The procedures that come with the product.

use std::path::Path;

use wf_core::models::{Timestamp, Wait};
use wf_core::policy::DomainPolicyPort;

use crate::fixture::{hold, id, inputs, judge, plan_line, record, refusal, skip, workflow};

#[test]
fn built_in_procedures_load() {
    let procedures = wf_procedure::builtin().unwrap_or_else(|error| panic!("{error}"));
    let ids: Vec<&str> = procedures.iter().map(|p| p.definition().id.as_str()).collect();
    assert_eq!(ids, ["pump-inspection", "analytical-balance-calibration"]);
}

/// The files live inside the crate so that it packages; users look for them under examples/.
#[test]
fn the_examples_are_the_built_in_files() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let inside = crate_dir.join("procedures");
    let outside = crate_dir.join("../../examples/procedures");
    let names = |dir: &Path| {
        let mut names: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|n| n.ends_with(".yaml"))
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&inside), names(&outside));
    assert_eq!(names(&inside).len(), wf_procedure::builtin().unwrap().len());
    for name in names(&inside) {
        let (a, b) = (std::fs::read(inside.join(&name)), std::fs::read(outside.join(&name)));
        assert!(
            a.unwrap() == b.unwrap(),
            "copy crates/wf-procedure/procedures/{name} to examples/procedures"
        );
    }
}

#[test]
fn a_balance_is_calibrated_from_start_to_finish() {
    let balance = wf_procedure::builtin().unwrap().remove(1);
    let assets = [("balance", "balance 12"), ("weights", "WS-3")];
    let assets = assets.map(|(r, i)| (r.to_owned(), i.to_owned())).into();
    let given = serde_json::json!({"certificate": "C-1", "tolerance": 0.0005});
    let plan = balance.plan_start(&assets, given.as_object().unwrap()).unwrap();
    assert_eq!(plan.assets.len(), 2);
    let mut state = workflow(&balance);
    inputs(&mut state, given);
    for asset in &plan.assets {
        hold(&mut state, asset.role.as_str(), asset.id.as_str());
    }
    for (step, value) in [
        ("level", "yes"),
        ("warm_up", "done"),
        ("zero", "0.0001"),
        ("weight_10g", "10.0002"),
        ("weight_50g", "50.0003"),
        ("weight_200g", "200.0009"),
    ] {
        assert_eq!(balance.plan(&state).next().unwrap().id, id(step));
        if step == "warm_up" {
            let until = Timestamp::from_ms(30 * 60_000);
            state.waits.insert(id(step), Wait { since: Timestamp::from_ms(0), until });
            let early = refusal(judge(&balance, &state, step, value, None));
            assert_eq!(early.after_ms, Some(30 * 60_000));
            state.waits.insert(id(step), Wait { since: until, until: Timestamp::from_ms(0) });
        }
        record(&balance, &mut state, step, value);
        assert!(!state.steps[&id(step)].out_of_range, "{step}");
    }
    assert_eq!(balance.plan(&state).progress(), (6, 7));
    let plan = plan_line(&balance.plan(&state));
    assert!(plan.ends_with(">environment? sign_off"), "{plan}");
    skip(&mut state, "environment");
    let sign_off = balance.describe(&state, &id("sign_off")).unwrap();
    assert_eq!((sign_off.role.as_deref(), sign_off.not_performer), (Some("supervisor"), true));
    record(&balance, &mut state, "sign_off", "done");
    assert_eq!(balance.plan(&state).progress(), (7, 7));
    assert!(balance.results(&state).iter().any(|r| r.available && r.id.as_str() == "calibrated"));
}
