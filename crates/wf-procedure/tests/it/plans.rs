//! Which steps apply, are open, are broken.

use serde_json::json;
use wf_core::models::{DecisionId, Recipient};
use wf_core::policy::{BlockSource, DomainPolicyPort, Effect, SkipRule};

use crate::fixture::{
    id, inputs, plan_line, pump, recheck, record, reopen, skip, with_steps, workflow,
};

#[test]
fn the_pump_in_sequence() {
    let policy = pump();
    let mut state = workflow(&policy);
    let plan = |state: &_| plan_line(&policy.plan(state));
    // What depends on the pressure does not apply before it is known.
    assert_eq!(plan(&state), ">isolate suction_pressure bearing_temperature seal remarks?");
    assert_eq!(policy.plan(&state).progress(), (0, 4));
    record(&policy, &mut state, "isolate", "yes");
    record(&policy, &mut state, "suction_pressure", "3.0");
    assert_eq!(plan(&state), "*isolate *suction_pressure >bearing_temperature seal remarks?");
    // 3.01 is above 3.0: vibration applies. So is what was given in another unit.
    for above in ["3.01", "301 kPa", "43.52 psi"] {
        record(&policy, &mut state, "suction_pressure", above);
        assert_eq!(
            plan(&state),
            "*isolate *suction_pressure >vibration bearing_temperature seal remarks?",
            "{above}"
        );
    }
    record(&policy, &mut state, "suction_pressure", "43.51 psi");
    assert_eq!(plan(&state), "*isolate *suction_pressure >bearing_temperature seal remarks?");
    record(&policy, &mut state, "suction_pressure", "4");
    record(&policy, &mut state, "vibration", "2");
    skip(&mut state, "bearing_temperature");
    record(&policy, &mut state, "seal", "dry");
    assert_eq!(policy.plan(&state).progress(), (5, 5));
    assert_eq!(policy.plan(&state).unsettled().count(), 0);
    assert_eq!(
        plan(&state),
        "*isolate *suction_pressure *vibration *bearing_temperature *seal >remarks?"
    );
    skip(&mut state, "remarks");
    assert!(policy.plan(&state).next().is_none());
    // A correction that takes the reason for a step away.
    record(&policy, &mut state, "suction_pressure", "2.5");
    assert_eq!(policy.plan(&state).progress(), (4, 4));
}

#[test]
fn what_is_sent_back_comes_first() {
    let policy = pump();
    let mut state = workflow(&policy);
    record(&policy, &mut state, "isolate", "yes");
    record(&policy, &mut state, "suction_pressure", "4");
    record(&policy, &mut state, "vibration", "2");
    record(&policy, &mut state, "bearing_temperature", "40");
    recheck(&mut state, "vibration");
    reopen(&mut state, "bearing_temperature");
    assert_eq!(
        plan_line(&policy.plan(&state)),
        "*isolate *suction_pressure >vibration bearing_temperature seal remarks?"
    );
    record(&policy, &mut state, "vibration", "2");
    assert_eq!(policy.plan(&state).next().unwrap().id, id("bearing_temperature"));
    // The step that is sent back has no value: what depends on it waits again.
    reopen(&mut state, "suction_pressure");
    assert_eq!(
        plan_line(&policy.plan(&state)),
        "*isolate >suction_pressure *vibration(gone) bearing_temperature seal remarks?"
    );
}

#[test]
fn any_order_opens_everything_that_is_known() {
    let policy = crate::fixture::procedure(
        "schema: checkpoint/procedure/v1\nid: test\nversion: 1\ntitle: T\norder: any\nsteps:\n  - { id: a, kind: number, prompt: x }\n  - { id: b, kind: number, prompt: x, range: { accept: [steps.a.value, 10] } }\n  - { id: c, kind: confirm, prompt: x, when: steps.a.value > 1 }\n  - { id: d, kind: confirm, prompt: x, when: '!steps.a.recorded || steps.c.recorded' }\n  - { id: e, kind: text, prompt: x, required: false }\n",
    );
    let mut state = workflow(&policy);
    assert_eq!(plan_line(&policy.plan(&state)), ">a b >d >e?");
    record(&policy, &mut state, "a", "2");
    assert_eq!(plan_line(&policy.plan(&state)), "*a >b >c >e?");
    record(&policy, &mut state, "c", "yes");
    assert_eq!(plan_line(&policy.plan(&state)), "*a >b *c >d >e?");
    // Limits that turned out empty are the procedure's mistake, not the person's.
    record(&policy, &mut state, "a", "11");
    assert_eq!(plan_line(&policy.plan(&state)), "*a >!b *c >d >e?");
}

#[test]
fn a_value_that_will_never_come_breaks_the_step_unless_it_is_asked_for() {
    let policy = with_steps(
        "  - { id: a, kind: number, prompt: x, skip: reason }\n  - { id: guarded, kind: confirm, prompt: x, when: has(steps.a.value) && steps.a.value > 1 }\n  - { id: either, kind: confirm, prompt: x, when: steps.a.skipped || steps.a.value > 1 }\n  - { id: b, kind: confirm, prompt: x, when: steps.a.value > 1 }\n  - { id: c, kind: confirm, prompt: x }\n",
    );
    let mut state = workflow(&policy);
    skip(&mut state, "a");
    record(&policy, &mut state, "either", "yes");
    let plan = policy.plan(&state);
    assert_eq!(plan_line(&plan), "*a *either >!b c");
    let broken = plan.step(&id("b")).unwrap();
    assert_eq!(broken.broken.as_ref().unwrap().as_str(), "EXPRESSION_FAILED");
    // An optional input that was not given breaks in the same way.
    let policy = crate::fixture::procedure(
        "schema: checkpoint/procedure/v1\nid: test\nversion: 1\ntitle: T\ninputs: { type: object, properties: { limit: { type: number } } }\nsteps:\n  - { id: a, kind: number, prompt: x, range: { accept: [0, inputs.limit] } }\n  - { id: b, kind: confirm, prompt: x, when: has(inputs.limit) }\n",
    );
    let mut state = workflow(&policy);
    assert_eq!(plan_line(&policy.plan(&state)), ">!a");
    inputs(&mut state, json!({"limit": 2}));
    assert_eq!(plan_line(&policy.plan(&state)), ">a b");
}

#[test]
fn dependants_are_the_steps_that_look_at_a_value() {
    let policy = with_steps(
        "  - { id: a, kind: number, prompt: x }\n  - { id: b, kind: number, prompt: x, range: { accept: [\"0 - steps.a.value\", 1] } }\n  - { id: c, kind: confirm, prompt: x, when: steps.b.value > 1 }\n  - { id: d, kind: confirm, prompt: x, when: 'steps.exists(id, steps[id].out_of_range)' }\n",
    );
    let of = |step: &str| {
        let ids = policy.dependants(&id(step));
        ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of("a"), "b d");
    assert_eq!(of("b"), "c d");
    assert_eq!(of("c"), "d");
    assert_eq!(of("d"), "");
    assert_eq!(of("nowhere"), "");
}

#[test]
fn results_follow_the_current_values() {
    let policy = pump();
    let mut state = workflow(&policy);
    let available = |state: &_| {
        let results = policy.results(state);
        let open: Vec<String> =
            results.iter().filter(|r| r.available).map(|r| r.id.to_string()).collect();
        open.join(" ")
    };
    assert_eq!(available(&state), "passed failed abandoned");
    record(&policy, &mut state, "isolate", "yes");
    record(&policy, &mut state, "suction_pressure", "7");
    assert_eq!(available(&state), "failed abandoned");
    // The current value counts, not the history.
    record(&policy, &mut state, "suction_pressure", "4");
    assert_eq!(available(&state), "passed failed abandoned");
    // An accepted leaking seal is still not a pass.
    record(&policy, &mut state, "seal", "leaking");
    assert_eq!(available(&state), "failed abandoned");
    // A step that no longer applies does not count.
    record(&policy, &mut state, "seal", "dry");
    record(&policy, &mut state, "vibration", "9");
    assert_eq!(available(&state), "failed abandoned");
    record(&policy, &mut state, "suction_pressure", "2.5");
    assert_eq!(available(&state), "passed failed abandoned");
}

#[test]
fn results_when_a_file_names_none() {
    let policy = with_steps("  - { id: a, kind: confirm, prompt: x }");
    let ids: Vec<String> =
        policy.results(&workflow(&policy)).iter().map(|r| r.id.to_string()).collect();
    assert_eq!(ids, ["done", "abandoned"]);
}

#[test]
fn skip_rules_default_to_what_required_says() {
    let policy = with_steps(
        "  - { id: a, kind: confirm, prompt: x }\n  - { id: b, kind: confirm, prompt: x, required: false }\n  - { id: c, kind: confirm, prompt: x, skip: reason }\n  - { id: d, kind: confirm, prompt: x, required: false, skip: supervisor }\n",
    );
    let state = workflow(&policy);
    let rule = |step: &str| policy.describe(&state, &id(step)).unwrap().skip;
    assert_eq!(rule("a"), SkipRule::Never);
    assert_eq!(rule("b"), SkipRule::Free);
    assert_eq!(rule("c"), SkipRule::Reason);
    assert_eq!(rule("d"), SkipRule::Supervisor);
    assert!(policy.describe(&state, &id("nowhere")).is_none());
    let d = policy.describe(&state, &id("d")).unwrap();
    assert_eq!((d.position, d.of), (4, 4));
}

#[test]
fn blocks_are_decided_by_the_step_or_by_the_default() {
    let policy = pump();
    let pressure = id("suction_pressure");
    let seal = id("seal");
    let rule = |step_id, reported| policy.block_rule(BlockSource { step_id, reported });
    let ids = |r: &wf_core::policy::BlockRule| {
        let all: Vec<&str> = r.decisions.iter().map(|d| d.id.as_str()).collect();
        all.join(" ")
    };
    let of_value = rule(Some(&pressure), false);
    assert_eq!(ids(&of_value), "accept_deviation require_redo abort");
    assert_eq!(of_value.decisions[1].effect, Effect::Redo);
    assert_eq!(
        of_value.question.get(&wf_core::models::Locale::default()),
        "Suction pressure is out of range. What is decided?"
    );
    let reported = rule(Some(&pressure), true);
    assert_eq!(reported.code.as_str(), "PROBLEM_REPORTED");
    assert_eq!(ids(&reported), "carry_on abort");
    assert_eq!(reported.escalation, [Recipient::last("maintenance-lead")]);
    assert_eq!(ids(&rule(Some(&seal), false)), "carry_on abort");
    assert_eq!(ids(&rule(None, true)), "carry_on abort");
    assert!(of_value.decisions.iter().all(|d| d.id != DecisionId::corrected()));
}

#[test]
fn notices_reliefs_and_reasons_come_from_the_file() {
    let policy = pump();
    assert!(policy.notifies("workflow_blocked") && !policy.notifies("step_recorded"));
    assert_eq!(policy.stale_after_ms(), Some(8 * 3_600_000));
    assert_eq!(policy.timezone(), None);
    let codes: Vec<String> = policy.reasons().into_iter().map(|r| r.id).collect();
    assert_eq!(codes, ["SENSOR_MISSING", "NOT_ACCESSIBLE", "MISHEARD"]);
}
