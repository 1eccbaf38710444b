//! What a changed value does to the steps that used it, through the core's own decisions.

use std::fmt::Write as _;

use wf_core::errors::ErrorCode;
use wf_core::limits::DEPENDANTS_MAX;
use wf_core::models::StepStatus;
use wf_core::policy::DomainPolicyPort;
use wf_core::state_machine::CommandKind;

use crate::desk::{Desk, correct, finish, person, report, skip};
use crate::fixture::{id, with_steps};

/// `b` is needed above 3; `c` looks at `b`, `d` at the length; `e` at nothing.
const STEPS: &str = "
  - { id: length, kind: number, prompt: x, unit: mm, accept_units: [mm, cm], decimals: 1, skip: reason }
  - { id: b, kind: number, prompt: x, when: 'has(steps.length.value) && steps.length.value > 30' }
  - { id: c, kind: number, prompt: x, range: { accept: [0, 'has(steps.b.value) ? steps.b.value : 10'] } }
  - { id: d, kind: confirm, prompt: x, when: '!steps.length.recorded || steps.length.value > 10' }
  - { id: e, kind: text, prompt: x }
blocks: { default: { decisions: [redo, abort] } }
";

fn measured(length: &str) -> Desk {
    let mut desk = Desk::start(with_steps(STEPS));
    desk.submit("length", length);
    if desk.plan().contains(">b") {
        desk.submit("b", "5");
    }
    desk.submit("c", "4");
    desk.submit("d", "yes");
    desk.submit("e", "fine");
    desk
}

fn status(desk: &Desk, step: &str) -> StepStatus {
    desk.workflow().steps[&id(step)].status
}

#[test]
fn the_same_value_written_otherwise_changes_nothing() {
    for same in ["30", "30.0", "3 cm", "3.00 cm", "030 mm"] {
        let mut desk = measured("30");
        assert_eq!(desk.correct("length", same), "step_corrected length", "{same}");
        assert_eq!(desk.plan(), "*length *c *d *e", "{same}");
    }
    // Not equal: what used it is to be confirmed.
    let mut desk = measured("30");
    let events = desk.correct("length", "29.9");
    assert_eq!(events, "step_corrected length; recheck_required d because of length");
}

#[test]
fn texts_and_choices_are_compared_as_they_are() {
    let policy = with_steps("  - { id: a, kind: text, prompt: x }\n");
    let of = |value: &str| wf_core::models::Reading {
        value: value.to_owned(),
        ..wf_core::models::Reading::default()
    };
    assert!(policy.same_value(&id("a"), &of("30"), &of("30")));
    assert!(!policy.same_value(&id("a"), &of("30"), &of("30.0")));
}

#[test]
fn what_is_no_longer_needed_is_marked_and_what_used_it_is_confirmed() {
    let mut desk = measured("40");
    assert_eq!(desk.plan(), "*length *b *c *d *e");
    let events = desk.correct("length", "20");
    assert_eq!(
        events,
        "step_corrected length; step_not_needed b because of length; recheck_required c because of length; recheck_required d because of length"
    );
    assert_eq!(desk.plan(), "*length >c d *e");
    let refused = desk.act(finish("done")).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidTransition);
    assert_eq!(refused.details["unsettled"], serde_json::json!(["c", "d"]));
    // The same value is fine.
    desk.submit("c", "4");
    desk.submit("d", "yes");
    desk.must(finish("done"));
}

#[test]
fn what_is_needed_again_is_confirmed_first() {
    let mut desk = measured("40");
    desk.correct("length", "20");
    assert_eq!(status(&desk, "b"), StepStatus::Recheck);
    let events = desk.correct("length", "50");
    assert_eq!(events, "step_corrected length");
    assert_eq!(desk.plan(), "*length >b c d *e");
    assert_eq!(desk.submit("b", "5"), "step_recorded b");
    // Another value now: nothing more is flagged than what already is.
    desk.submit("c", "4");
    assert_eq!(desk.plan(), "*length *b *c >d *e");
}

#[test]
fn what_becomes_needed_opens() {
    let mut desk = measured("20");
    assert_eq!(desk.plan(), "*length *c *d *e");
    let events = desk.correct("length", "40");
    // c was judged without b, which has no value yet: it is confirmed when b has one.
    assert_eq!(events, "step_corrected length; recheck_required d because of length");
    assert_eq!(desk.plan(), "*length >b *c d *e");
    let refused = desk.act(finish("done")).unwrap_err();
    assert_eq!(refused.details["unsettled"], serde_json::json!(["b", "d"]));
    let events = desk.submit("b", "3");
    assert_eq!(events, "step_recorded b; recheck_required c because of b");
    assert_eq!(desk.plan(), "*length *b >c d *e");
}

#[test]
fn a_step_skipped_after_it_was_sent_back_flags_what_used_it() {
    let mut desk = measured("40");
    desk.must(report("length"));
    let block = desk.workflow().blocks[0].id.clone();
    let redo = wf_core::models::DecisionId::parse("redo").unwrap();
    desk.by = person("sue", &["supervisor"]);
    let comment = "again".to_owned();
    desk.must(CommandKind::ResolveBlock { block_id: block, decision: redo, comment });
    desk.by = person("ann", &[]);
    let events = desk.must(skip("length"));
    assert_eq!(
        events,
        "step_skipped; step_not_needed b because of length; recheck_required c because of length; recheck_required d because of length"
    );
    assert_eq!(desk.plan(), "*length >c d *e");
}

#[test]
fn a_first_value_flags_what_was_recorded_without_it() {
    let steps = "
  - { id: a, kind: number, prompt: x }
  - { id: b, kind: number, prompt: x, range: { accept: [0, 'has(steps.a.value) ? steps.a.value : 10'] } }
  - { id: c, kind: confirm, prompt: x, when: '!steps.a.recorded' }
";
    let source = format!(
        "schema: checkpoint/procedure/v1\nid: test\nversion: 1\ntitle: T\norder: any\nreasons: [{{ code: X }}]\nsteps:{steps}"
    );
    let mut desk = Desk::start(crate::fixture::procedure(&source));
    desk.submit("b", "8");
    desk.submit("c", "yes");
    let events = desk.submit("a", "5");
    assert_eq!(
        events,
        "step_recorded a; recheck_required b because of a; step_not_needed c because of a"
    );
    assert_eq!(desk.plan(), "*a >b");
}

#[test]
fn a_signature_stands_for_everything_before_it() {
    let steps = "
  - { id: a, kind: number, prompt: x }
  - { id: code, kind: text, prompt: x, sensitive: true }
  - { id: release, kind: sign, prompt: x }
  - { id: after, kind: text, prompt: x }
";
    let mut desk = Desk::start(with_steps(steps));
    desk.submit("a", "1");
    desk.submit("code", "1234");
    desk.submit("release", "done");
    desk.submit("after", "x");
    assert_eq!(desk.correct("after", "y"), "step_corrected after");
    assert_eq!(desk.correct("a", "1.0"), "step_corrected a");
    let signed_again = "recheck_required release because of";
    assert_eq!(desk.correct("a", "2"), format!("step_corrected a; {signed_again} a"));
    assert!(desk.act(finish("done")).is_err());
    desk.submit("release", "done");
    // Nobody can see whether a withheld value is the same.
    assert_eq!(desk.correct("code", "1234"), format!("step_corrected code; {signed_again} code"));
    desk.submit("release", "done");
    desk.must(finish("done"));
}

#[test]
fn a_correction_of_nothing_is_refused() {
    let mut desk = Desk::start(with_steps(STEPS));
    let refused = desk.act(correct("length", "1")).unwrap_err();
    assert_eq!(refused.code, ErrorCode::StepNotOpen);
}

/// `direct` steps look at the first one, the first of them by a condition; `further` look at that one.
fn used(direct: usize, further: usize) -> String {
    let mut steps = "  - { id: a, kind: number, prompt: x }\n".to_owned();
    for n in 0..direct {
        let looks = if n == 0 {
            "when: steps.a.value > 1"
        } else {
            "range: { accept: [0, steps.a.value] }"
        };
        let _ = writeln!(steps, "  - {{ id: d{n}, kind: number, prompt: x, {looks} }}");
    }
    for n in 0..further {
        let looks = "range: { accept: [0, 'has(steps.d0.value) ? steps.d0.value : 9'] }";
        let _ = writeln!(steps, "  - {{ id: f{n}, kind: number, prompt: x, {looks} }}");
    }
    format!(
        "schema: checkpoint/procedure/v1\nid: test\nversion: 1\ntitle: T\nreasons: [{{ code: X }}]\nsteps:\n{steps}"
    )
}

#[test]
fn no_more_steps_use_a_value_than_one_correction_can_reach() {
    for (direct, further) in [(DEPENDANTS_MAX, 0), (1, DEPENDANTS_MAX - 1)] {
        let mut desk = Desk::start(crate::fixture::procedure(&used(direct, further)));
        desk.submit("a", "9");
        while let Some(next) = desk.policy.plan(desk.workflow()).next() {
            let step = next.id.to_string();
            desk.submit(&step, "3");
        }
        // All of them are reached.
        let events = desk.correct("a", "0");
        assert_eq!(events.split("; ").count(), 1 + DEPENDANTS_MAX, "{direct} {further}");
    }
    for (direct, further) in [(DEPENDANTS_MAX + 1, 0), (1, DEPENDANTS_MAX)] {
        let refused = wf_procedure::parse(&used(direct, further), "used.yaml").unwrap_err();
        let message = format!("{} later steps look at step \"a\"", DEPENDANTS_MAX + 1);
        assert_eq!(refused[0].message, message, "{direct} {further}");
    }
}
