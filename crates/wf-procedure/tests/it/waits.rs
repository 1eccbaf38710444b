//! Waits and signatures: when they open, when they are over, who is asked. Through the core's own decisions.

use wf_core::errors::ErrorCode;
use wf_core::models::{Locale, Timestamp};
use wf_core::policy::DomainPolicyPort;
use wf_core::state_machine::CommandKind;

use crate::desk::{Desk, finish, person, report, skip, submit};
use crate::fixture::{id, procedure, with_steps};

const STEPS: &str = "
  - { id: power, kind: confirm, prompt: Is it on? }
  - { id: note, kind: number, prompt: x, required: false }
  - { id: warm_up, kind: wait, duration: 10m, when: '!has(steps.note.value) || steps.note.value < 100' }
  - { id: zero, kind: number, prompt: x }
blocks: { default: { decisions: [redo, abort] } }
";

/// At its wait, which began at two minutes past the epoch.
fn warming() -> Desk {
    let mut desk = Desk::start(with_steps(STEPS));
    desk.now = 90_000;
    desk.submit("power", "yes");
    desk.now = 120_000;
    assert_eq!(desk.submit("note", "1"), "step_recorded note; wait_started warm_up until 720");
    desk
}

#[test]
fn a_wait_is_over_when_its_time_is() {
    let mut desk = warming();
    let described = desk.policy.describe(desk.workflow(), &id("warm_up")).unwrap();
    assert_eq!(described.wait_seconds, Some(600));
    assert_eq!(described.due_at, Some(Timestamp::from_ms(720_000)));
    assert_eq!(described.prompt.get(&Locale::default()), "Wait for 10 minutes.");
    for (now, left) in [(120_000, 600_000), (480_000, 240_000), (719_999, 1)] {
        desk.now = now;
        let early = desk.act(submit("warm_up", "done")).unwrap_err();
        assert_eq!((early.code, early.after_ms), (ErrorCode::TooEarly, Some(left)));
        assert_eq!(early.details["due_at"], "1970-01-01T00:12:00.000Z");
    }
    desk.now = 720_000;
    assert_eq!(desk.submit("warm_up", "done"), "step_recorded warm_up");
    assert_eq!(desk.workflow().reading(&id("warm_up")).unwrap().value, "done");
    assert_eq!(desk.plan(), "*power *note? *warm_up >zero");
}

#[test]
fn early_is_said_in_words_and_no_is_no_answer() {
    let mut desk = warming();
    desk.now = 485_000;
    let early = desk.act(submit("warm_up", "yes")).unwrap_err();
    assert_eq!(format!("{:?}", early.saying), r#"Policy(One("Please wait 4 minutes more."))"#);
    assert!(desk.act(submit("warm_up", "no")).unwrap().is_empty());
    let what = desk.act(submit("warm_up", "soon")).unwrap_err();
    assert_eq!(what.code, ErrorCode::ValidationError);
}

#[test]
fn a_clock_that_steps_back_ends_no_wait_early() {
    let mut desk = warming();
    desk.now = 0;
    let early = desk.act(submit("warm_up", "done")).unwrap_err();
    assert_eq!(early.after_ms, Some(720_000));
}

#[test]
fn a_correction_before_it_moves_no_wait() {
    let mut desk = warming();
    desk.now = 600_000;
    assert_eq!(desk.correct("note", "2"), "step_corrected note");
    desk.now = 720_000;
    desk.submit("warm_up", "done");
}

#[test]
fn a_wait_that_opens_again_begins_anew() {
    let mut desk = warming();
    desk.now = 600_000;
    // Its condition no longer holds, then holds again.
    assert_eq!(desk.correct("note", "100"), "step_corrected note");
    desk.now = 700_000;
    assert_eq!(desk.correct("note", "99"), "step_corrected note; wait_started warm_up until 1300");
    // A step before it is sent back: the wait is no longer open.
    desk.must(report("power"));
    let block = desk.workflow().blocks[0].id.clone();
    let redo = CommandKind::ResolveBlock {
        block_id: block,
        decision: wf_core::models::DecisionId::parse("redo").unwrap(),
        comment: "off again".to_owned(),
    };
    desk.by = person("sue", &["supervisor"]);
    assert_eq!(desk.must(redo), "block_resolved");
    desk.by = person("ann", &[]);
    desk.now = 800_000;
    assert_eq!(desk.submit("power", "yes"), "step_recorded power; wait_started warm_up until 1400");
}

#[test]
fn a_wait_that_is_over_and_sent_back_begins_anew() {
    let mut desk = warming();
    desk.now = 720_000;
    desk.submit("warm_up", "done");
    // The note decides whether there is a wait at all, so it is asked again: from now on.
    desk.now = 730_000;
    assert_eq!(
        desk.correct("note", "3"),
        "step_corrected note; recheck_required warm_up because of note; wait_started warm_up until 1330"
    );
    assert_eq!(desk.act(submit("warm_up", "done")).unwrap_err().code, ErrorCode::TooEarly);
}

#[test]
fn skipping_what_is_before_it_begins_a_wait_and_a_start_may() {
    let mut desk = Desk::start(with_steps(STEPS));
    desk.submit("power", "yes");
    assert_eq!(desk.must(skip("note")), "step_skipped; wait_started warm_up until 660");
    let desk = Desk::start(with_steps("  - { id: w, kind: wait, duration: 90s }\n"));
    assert_eq!(desk.workflow().waits[&id("w")].until, Timestamp::from_ms(150_000));
    assert_eq!(desk.workflow().waits[&id("w")].since, Timestamp::from_ms(60_000));
}

#[test]
fn a_second_wait_begins_when_the_first_is_over() {
    let mut desk = Desk::start(with_steps(
        "  - { id: w, kind: wait, duration: 1m }\n  - { id: v, kind: wait, duration: 1m }\n",
    ));
    assert!(!desk.workflow().waits.contains_key(&id("v")));
    desk.now = 500_000;
    assert_eq!(desk.submit("w", "done"), "step_recorded w; wait_started v until 560");
}

#[test]
fn a_signature_comes_last_of_what_it_signs_in_any_order() {
    let policy = procedure(
        "schema: checkpoint/procedure/v1\nid: test\nversion: 1\ntitle: T\norder: any\nsteps:\n  - { id: a, kind: confirm, prompt: x }\n  - { id: extra, kind: text, prompt: x, required: false }\n  - { id: release, kind: sign, prompt: x }\n  - { id: b, kind: confirm, prompt: x }\n",
    );
    let mut desk = Desk::start(policy);
    assert_eq!(desk.plan(), ">a >extra? release >b");
    desk.submit("a", "yes");
    assert_eq!(desk.plan(), "*a >extra? >release >b");
    desk.submit("release", "done");
    assert_eq!(
        desk.submit("extra", "x"),
        "step_recorded extra; recheck_required release because of extra"
    );
}

#[test]
fn a_signature_is_asked_again_when_anything_changes_that_was_signed_and_only_then() {
    // Whatever stands after it in the file may have been recorded before it.
    let policy = procedure(
        "schema: checkpoint/procedure/v1\nid: test\nversion: 1\ntitle: T\norder: any\nreasons: [{ code: X }]\nsteps:\n  - { id: a, kind: confirm, prompt: x }\n  - { id: release, kind: sign, prompt: x }\n  - { id: b, kind: text, prompt: x }\n  - { id: c, kind: text, prompt: x }\n  - { id: second, kind: sign, prompt: x }\n",
    );
    let mut desk = Desk::start(policy);
    desk.submit("a", "yes");
    desk.submit("b", "dry");
    desk.submit("release", "done");
    desk.submit("c", "wet");
    // Recorded after the signature, and so no part of it.
    assert_eq!(desk.correct("c", "damp"), "step_corrected c");
    let again = "recheck_required release because of b";
    assert_eq!(desk.correct("b", "wet"), format!("step_corrected b; {again}"));
    // A signature that is asked for again is nothing that a later one could stand for.
    assert_eq!(desk.plan(), "*a >release *b *c second");
    desk.submit("release", "done");
    desk.submit("second", "done");
    let both = format!("{again}; recheck_required second because of b");
    assert_eq!(desk.correct("b", "dry"), format!("step_corrected b; {both}"));
    assert!(desk.act(finish("done")).is_err());
    desk.submit("release", "done");
    // The first signature was one of the things that the second one signed, and is the same.
    desk.submit("second", "done");
    assert_eq!(desk.correct("b", "dry"), "step_corrected b", "the same value changes nothing");
    desk.must(finish("done"));
}

#[test]
fn a_signature_says_what_it_asks_for() {
    let policy = with_steps(
        "  - { id: release, kind: sign, prompt: Release?, role: supervisor, not_performer: true, confirm: always }\n",
    );
    let desk = Desk::start(policy);
    let described = desk.policy.describe(desk.workflow(), &id("release")).unwrap();
    assert_eq!((described.signs, described.not_performer), (true, true));
    assert_eq!(described.role.as_deref(), Some("supervisor"));
    assert_eq!(described.kind, "sign");
    let words = |value: &str| {
        let offered = wf_core::policy::Offered {
            step_id: &id("release"),
            value,
            unit: None,
            at: Timestamp::from_ms(0),
        };
        crate::fixture::line(&desk.policy.judge(desk.workflow(), &offered))
    };
    assert_eq!(words("done"), "done ASK[Release: done. Is that right?]");
    assert_eq!(words("Yes"), "Yes = done ASK[Release: done. Is that right?]");
    assert_eq!(words("no"), "declined");
    assert_eq!(words("maybe"), "VALIDATION_ERROR");
}

#[test]
fn deadlines_and_chains_are_said_as_written() {
    let policy = procedure(
        "schema: checkpoint/procedure/v1\nid: test\nversion: 1\ntitle: T\nstale_after: 2h\ndeadlines:\n  - { id: overdue, after: 4h, from: start, notify: shift-lead }\n  - { id: late, after: 90s, notify: manager }\nsteps:\n  - { id: a, kind: number, prompt: x, range: { accept: [0, 1] }, out_of_range: { escalate: { to: lead, severity: low, respond_within: 15m, then: { to: manager, respond_within: 1h, then: director } } } }\n  - { id: b, kind: choice, prompt: x, choices: [good, bad], block_on: [bad] }\nblocks: { default: { escalate: { to: desk, respond_within: 1m, then: lead } } }\n",
    );
    let plan = policy.plan_start(&std::collections::BTreeMap::new(), &serde_json::Map::new());
    let deadlines: Vec<String> = plan
        .unwrap()
        .deadlines
        .iter()
        .map(|d| format!("{} {} {}", d.id, d.after_ms, d.notify))
        .collect();
    assert_eq!(deadlines, ["overdue 14400000 shift-lead", "late 90000 manager"]);
    assert_eq!(policy.stale_after_ms(), Some(7_200_000));
    let chain = |escalation: &[wf_core::models::Recipient]| {
        let links = escalation.iter().map(|r| match r.respond_within_ms {
            Some(ms) => format!("{} within {ms}", r.to),
            None => r.to.clone(),
        });
        links.collect::<Vec<_>>().join(", ")
    };
    let desk = Desk::start(policy);
    let of = |step: &str, value: &str| {
        let at = Timestamp::from_ms(0);
        let offered = wf_core::policy::Offered { step_id: &id(step), value, unit: None, at };
        match desk.policy.judge(desk.workflow(), &offered) {
            wf_core::policy::Judgement::Block(_, cause) => chain(&cause.escalation),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(of("a", "2"), "lead within 900000, manager within 3600000, director");
    assert_eq!(of("b", "bad"), "desk within 60000, lead");
}
