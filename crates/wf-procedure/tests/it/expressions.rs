//! CEL, exactly: what a double would get wrong comes out right.

use serde_json::json;
use wf_core::policy::DomainPolicyPort;

use crate::fixture::{hold, inputs, plan_line, procedure, record, skip, workflow};

/// Whether the condition holds with a = 0.1, b = 0.2, c skipped, seal = dry, inputs and an asset.
fn holds(condition: &str) -> bool {
    let source = format!(
        "schema: checkpoint/procedure/v1\nid: t\nversion: 1\ntitle: T\nreasons: [{{ code: X }}]\nassets: [{{ role: pump, id: {{ prefix: P-, digits: {{ max: 3 }} }} }}]\ninputs: {{ type: object, properties: {{ nominal: {{ type: number }}, count: {{ type: integer }}, site: {{ type: string }}, night: {{ type: boolean }}, absent: {{ type: number }} }} }}\nsteps:\n  - {{ id: a, kind: number, prompt: x, unit: bar, accept_units: [psi], range: {{ accept: [0, 0.5] }} }}\n  - {{ id: b, kind: number, prompt: x, range: {{ accept: [0.3, 1] }} }}\n  - {{ id: c, kind: number, prompt: x, skip: reason }}\n  - {{ id: my-seal, kind: choice, prompt: x, choices: [dry, leaking] }}\n  - {{ id: ok, kind: confirm, prompt: x }}\n  - id: asked\n    kind: confirm\n    prompt: x\n    when: |-\n      {condition}\n"
    );
    let policy = procedure(&source);
    let mut state = workflow(&policy);
    inputs(
        &mut state,
        json!({"nominal": 0.3, "count": 9_007_199_254_740_991_i64, "site": "north", "night": true}),
    );
    hold(&mut state, "pump", "P-7");
    record(&policy, &mut state, "a", "0.1");
    record(&policy, &mut state, "b", "0.2");
    skip(&mut state, "c");
    record(&policy, &mut state, "my-seal", "dry");
    record(&policy, &mut state, "ok", "done");
    let plan = plan_line(&policy.plan(&state));
    assert!(!plan.contains('!'), "{condition}: {plan}");
    plan.contains(">asked")
}

#[test]
fn arithmetic_and_comparison_are_exact() {
    for (condition, expected) in [
        ("steps.a.value + steps.b.value == 0.3", true),
        ("0.1 + 0.2 == 0.3", true),
        ("steps.a.value + steps.b.value == inputs.nominal", true),
        ("steps.a.value * 3.0 == 0.3", true),
        ("1.1 * 1.1 == 1.21", true),
        ("0.3 - 0.1 == 0.2", true),
        ("-0.1 + steps.a.value == 0.0", true),
        ("-(0.1 - 0.3) == 0.2", true),
        ("9007199254740993 > 9007199254740992", true),
        ("9007199254740992.5 > 9007199254740992.25", true),
        ("0.1234567890123456789012345 < 0.1234567890123456789012346", true),
        ("inputs.count + 2 == 9007199254740993", true),
        ("steps.a.value < 0.1", false),
        ("steps.a.value <= 0.1", true),
        ("steps.a.value >= 0.10", true),
        ("1 == 1.0", true),
        ("steps.a.value != steps.b.value", true),
    ] {
        assert_eq!(holds(condition), expected, "{condition}");
    }
}

#[test]
fn everything_of_the_subset() {
    for (condition, expected) in [
        ("true", true),
        ("!false && (true || false)", true),
        ("steps[\"my-seal\"].value == \"dry\"", true),
        ("steps[\"my-seal\"].value in [\"leaking\"]", false),
        ("steps.b.value in [0.1, 0.20]", true),
        ("steps.ok.value", true),
        ("has(steps.a.value) && !has(steps.c.value)", true),
        ("steps.c.skipped && !steps.c.recorded && !steps.c.out_of_range", true),
        ("steps.b.out_of_range && !steps.a.out_of_range", true),
        ("steps.exists(id, steps[id].out_of_range)", true),
        ("steps.all(id, steps[id].recorded)", false),
        ("steps.all(id, steps[id].recorded || steps[id].skipped)", true),
        ("steps.exists_one(id, steps[id].skipped)", true),
        ("steps.exists_one(id, steps[id].recorded)", false),
        ("steps.exists(id, id == \"a\" && has(steps[id].value))", true),
        ("steps.exists(id, id == \"asked\")", false),
        ("inputs.site == \"north\" && inputs.night && inputs[\"site\"] != \"south\"", true),
        ("has(inputs.site) && !has(inputs.absent)", true),
        ("assets.pump == \"P-7\"", true),
        ("inputs.night ? steps.a.value == 0.1 : false", true),
        // CEL's || and && let the side that decides win over the side without a value.
        ("steps.c.value > 1 || true", true),
        ("true || steps.c.value > 1", true),
        ("steps.c.value > 1 && false", false),
        ("false && steps.c.value > 1", false),
        ("steps.exists(id, steps.c.value > 1 || id == \"b\")", true),
        ("\"a\\u0041\" == \"aA\"", true),
    ] {
        assert_eq!(holds(condition), expected, "{condition}");
    }
}

#[test]
fn readings_in_other_units_are_not_rounded() {
    let policy = crate::fixture::with_steps(
        "  - { id: p, kind: number, prompt: x, unit: bar, accept_units: [psi], decimals: 2 }\n  - { id: above, kind: confirm, prompt: x, when: steps.p.value > 6.0 }\n  - { id: end, kind: confirm, prompt: x }\n",
    );
    let mut state = workflow(&policy);
    // 6.0005 bar, displayed as 6.00.
    record(&policy, &mut state, "p", "87.03 psi");
    assert_eq!(state.reading(&crate::fixture::id("p")).unwrap().value, "6.00");
    assert_eq!(plan_line(&policy.plan(&state)), "*p >above end");
    record(&policy, &mut state, "p", "87.02 psi");
    assert_eq!(state.reading(&crate::fixture::id("p")).unwrap().value, "6.00");
    assert_eq!(plan_line(&policy.plan(&state)), "*p >end");
}

/// What is wrong with a condition; empty when nothing is.
fn faults(when: &str) -> Vec<String> {
    let source = format!(
        "schema: checkpoint/procedure/v1\nid: t\nversion: 1\ntitle: T\nsteps:\n  - {{ id: a, kind: confirm, prompt: x, when: '{when}' }}\n"
    );
    match wf_procedure::parse(&source, "t.yaml") {
        Ok(_) => Vec::new(),
        Err(problems) => problems.into_iter().map(|p| p.message).collect(),
    }
}

/// The parser of the cel crate needs tens of kilobytes of stack a bracket in a debug build: thirty brackets overflowed a
/// thread of two megabytes, such as the ones that serve requests and reload files.
#[test]
fn no_expression_overflows_a_stack() {
    let nested =
        |n: usize, open: &str, close: &str| format!("{}true{}", open.repeat(n), close.repeat(n));
    for (expression, refused) in [
        (nested(20, "(", ")"), false),
        (nested(30, "(", ")"), true),
        (nested(400, "(", ")"), true),
        (format!("1 in {}{}", "[".repeat(400), "]".repeat(400)), true),
        (format!("{}true", "!".repeat(900)), false),
        (format!("1{} > 0", " + 1".repeat(60)), false),
        (format!("1{} > 0", " + 1".repeat(240)), true),
        (format!("1{}", "==1".repeat(300)), true),
        (format!("steps{}", ".a".repeat(490)), true),
        (format!("true{}", "||true".repeat(160)), false),
        (format!("{}true", "true?true:".repeat(98)), false),
        (format!("true{}", " && true".repeat(130)), true),
    ] {
        let faults = faults(&expression);
        assert_eq!(!faults.is_empty(), refused, "{expression}: {faults:?}");
    }
}
