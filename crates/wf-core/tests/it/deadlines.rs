//! Deadlines and escalation: what sets a deadline, what clears it, what its passing leads to. Pure.

use serde_json::json;
use wf_core::errors::ErrorCode;
use wf_core::limits::{DEADLINES_MAX, START_DEADLINES_MAX};
use wf_core::models::{Actor, Phase, Severity, StartDeadline, Timestamp, Workflow};
use wf_core::ports::{Deadline, DeadlineChange};
use wf_core::state_machine::{Event, EventBody, Unrecorded, Verdict, deadlines};
use wf_core::view::Fault;

use crate::drive::{
    BEGIN_MS, Desk, acknowledge, clock, correct, finish, operator, owner, reached, report, resolve,
    start, stranger, submit, supervisor, told,
};
use crate::plain_policy::{MINUTE_MS, PlainPolicy};

fn minute(n: i64) -> Timestamp {
    Timestamp::from_ms(BEGIN_MS + n * MINUTE_MS)
}

/// Started with the procedure `timed`: events 1 and 2.
fn timed() -> Desk {
    let mut desk = Desk { policy: PlainPolicy::timed(), acknowledge_at_start: true, ..Desk::new() };
    desk.must(&owner(), start("U-7", json!({"order": "A-1"})));
    desk
}

/// Blocked by a value at minute 10: the block is made by event 5.
fn blocked() -> Desk {
    let mut desk = timed();
    desk.now = minute(10);
    desk.must(&owner(), submit("ready", "yes"));
    desk.must(&owner(), submit("amount", "70"));
    assert_eq!(desk.workflow().phase, Phase::Blocked);
    desk
}

/// Id and time of every deadline that is set, by time.
fn set(workflow: &Workflow) -> Vec<(&str, Timestamp)> {
    let mut all: Vec<_> =
        workflow.deadlines.iter().map(|(id, d)| (id.as_str(), d.fire_at)).collect();
    all.sort_by_key(|(id, at)| (*at, *id));
    all
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.body.kind()).collect()
}

const STARTED: [(&str, i64); 2] = [("w-1/1/1", 240), ("w-1/1/2", 360)];

fn started_and(more: &[(&'static str, i64)]) -> Vec<(&'static str, Timestamp)> {
    let mut all: Vec<_> =
        STARTED.iter().chain(more).map(|(id, minutes)| (*id, minute(*minutes))).collect();
    all.sort_by_key(|(id, at)| (*at, *id));
    all
}

#[test]
fn a_start_sets_the_deadlines_of_the_procedure_by_its_own_event() {
    let desk = timed();
    assert_eq!(set(desk.workflow()), started_and(&[]));
    let rows = deadlines::changes(None, desk.workflow());
    let row = |id: &str, at| DeadlineChange::Set(Deadline { id: id.to_owned(), fire_at: at });
    assert_eq!(rows, [row("w-1/1/1", minute(240)), row("w-1/1/2", minute(360))]);
}

#[test]
fn a_start_with_too_many_deadlines_is_refused() {
    let deadline = |n: usize| StartDeadline { id: n.to_string(), after_ms: 1, notify: "x".into() };
    let desk = |n: usize| Desk {
        policy: PlainPolicy::timed_with((0..n).map(deadline).collect()),
        ..Desk::new()
    };
    let order = || start("U-7", json!({"order": "A-1"}));
    assert!(desk(START_DEADLINES_MAX).ask(&owner(), order()).is_ok());
    let refused = desk(START_DEADLINES_MAX + 1).ask(&owner(), order()).expect_err("too many");
    assert_eq!(refused.code, ErrorCode::LimitExceeded);
}

#[test]
fn a_block_waits_for_the_first_who_is_told_and_then_for_the_next() {
    let mut desk = blocked();
    assert_eq!(set(desk.workflow()), started_and(&[("w-1/5/1", 25)]));
    let block = &desk.workflow().blocks[0];
    assert_eq!(block.escalated_to.as_deref(), Some("duty"));
    assert_eq!(block.escalated_at, Some(minute(10)));

    desk.now = minute(25);
    let before = desk.workflow().clone();
    desk.must(&clock(), reached("w-1/5/1"));
    assert_eq!(kinds(&desk.events[5..]), ["deadline_passed", "escalated"]);
    assert!(desk.events[5..].iter().all(|event| event.actor == Actor::clock()));
    assert_eq!(set(desk.workflow()), started_and(&[("w-1/7/1", 55)]), "from the telling on");
    let block = &desk.workflow().blocks[0];
    assert_eq!(block.escalated_to.as_deref(), Some("chief"));
    assert_eq!(block.escalated_at, Some(minute(25)));
    let set_next = Deadline { id: "w-1/7/1".to_owned(), fire_at: minute(55) };
    let expected = [DeadlineChange::Clear("w-1/5/1".to_owned()), DeadlineChange::Set(set_next)];
    assert_eq!(deadlines::changes(Some(&before), desk.workflow()), expected);

    desk.now = minute(60);
    desk.must(&clock(), reached("w-1/7/1"));
    assert_eq!(desk.workflow().blocks[0].escalated_to.as_deref(), Some("boss"));
    assert_eq!(set(desk.workflow()), started_and(&[]), "the last has as long as they like");
    let told: Vec<_> =
        desk.messages.iter().map(|m| (m.kind.as_str(), m.recipient.as_str())).collect();
    let escalated = [("workflow_blocked", "duty"), ("escalated", "chief"), ("escalated", "boss")];
    assert!(escalated.iter().all(|one| told.contains(one)), "{told:?}");
    assert_eq!(desk.workflow().last_activity, minute(10), "the clock is no person");
}

#[test]
fn a_deadline_of_the_whole_tells_its_recipient_and_changes_nothing_else() {
    let mut desk = timed();
    desk.now = minute(240);
    desk.must(&clock(), reached("w-1/1/1"));
    let told = EventBody::Escalated {
        block_id: None,
        to: "shift-lead".to_owned(),
        respond_within_ms: None,
        then: Vec::new(),
    };
    let passed = EventBody::DeadlinePassed {
        deadline_id: "w-1/1/1".to_owned(),
        name: Some("overdue".to_owned()),
        block_id: None,
    };
    let bodies: Vec<_> = desk.events[2..].iter().map(|event| &event.body).collect();
    assert_eq!(bodies, [&passed, &told]);
    assert_eq!(desk.workflow().phase, Phase::Running);
    assert_eq!(set(desk.workflow()), [("w-1/1/2", minute(360))]);
}

#[test]
fn it_is_too_early_until_the_very_millisecond() {
    let mut desk = timed();
    desk.now = minute(240).plus_ms(-1);
    let refused = desk.ask(&clock(), reached("w-1/1/1")).expect_err("too early");
    assert_eq!((refused.code, refused.after_ms), (ErrorCode::TooEarly, Some(1)));
    // Its own words: the records are there, it is the caller's clock that is wrong.
    assert_eq!(refused.saying, Fault::NotDue { at: minute(240) }.into());
    desk.now = minute(240);
    assert!(desk.ask(&clock(), reached("w-1/1/1")).is_ok());
}

#[test]
fn none_passes_before_one_that_was_due_earlier() {
    let mut desk = blocked();
    // Set when `w-1/1/1` may be claimed already, by a server whose clock is behind.
    let reply = set(desk.workflow())[0];
    assert_eq!(reply, ("w-1/5/1", minute(25)));
    desk.now = minute(500);
    let refused = desk.ask(&clock(), reached("w-1/1/1")).expect_err("out of turn");
    assert_eq!((refused.code, refused.after_ms), (ErrorCode::TooEarly, None));
    assert_eq!(refused.saying, Fault::NotNext { at: minute(25) }.into());
    desk.must(&clock(), reached("w-1/5/1"));
    desk.must(&clock(), reached("w-1/1/1"));
}

#[test]
fn a_deadline_fires_once_and_never_after_the_end() {
    let mut desk = timed();
    desk.now = minute(500);
    desk.must(&clock(), reached("w-1/1/1"));
    let again = desk.ask(&clock(), reached("w-1/1/1")).expect_err("gone");
    assert_eq!(again.code, ErrorCode::ValidationError);
    desk.must(&owner(), finish("abandoned"));
    assert_eq!(set(desk.workflow()), []);
    let over = desk.ask(&clock(), reached("w-1/1/2")).expect_err("over");
    assert_eq!(over.code, ErrorCode::InvalidTransition);
}

#[test]
fn only_the_clock_says_that_a_deadline_is_due() {
    let mut desk = timed();
    desk.now = minute(240);
    for by in [owner(), stranger(), supervisor(), operator(), told()] {
        let refused = desk.ask(&by, reached("w-1/1/1")).expect_err("not the clock");
        assert_eq!(refused.code, ErrorCode::NotAllowed, "{:?}", by.actor);
    }
}

#[test]
fn whoever_was_told_stops_the_escalation_and_the_block_stays() {
    let mut desk = blocked();
    desk.now = minute(12);
    desk.must(&told(), acknowledge("block-5"));
    let block = desk.workflow().blocks[0].clone();
    assert_eq!(desk.workflow().phase, Phase::Blocked);
    assert_eq!(block.acknowledged_by, Some(told().person()));
    assert_eq!(block.acknowledged_at, Some(minute(12)));
    assert_eq!(set(desk.workflow()), started_and(&[]));
    assert_eq!(desk.workflow().last_activity, minute(10), "a page is no person at work");

    desk.now = minute(13);
    let again = desk.ask(&operator(), acknowledge("block-5"));
    assert_eq!(again, Ok(Verdict::Unrecorded(Unrecorded::Unchanged)), "the first counts");
    desk.now = minute(25);
    assert!(desk.ask(&clock(), reached("w-1/5/1")).is_err(), "nobody else is told");
}

#[test]
fn who_may_acknowledge() {
    let desk = blocked();
    for by in [told(), operator(), supervisor()] {
        assert!(desk.ask(&by, acknowledge("block-5")).is_ok(), "{:?}", by.actor);
    }
    for by in [owner(), stranger(), clock()] {
        let refused = desk.ask(&by, acknowledge("block-5")).expect_err("not told");
        assert_eq!(refused.code, ErrorCode::NotAllowed, "{:?}", by.actor);
    }
}

#[test]
fn a_decision_or_a_correction_stops_the_escalation() {
    let mut resolved = blocked();
    resolved.must(&supervisor(), resolve("block-5", "go_on"));
    assert_eq!(set(resolved.workflow()), started_and(&[]));
    let mut corrected = blocked();
    corrected.must(&owner(), correct("amount", "25"));
    assert_eq!(corrected.workflow().phase, Phase::Running);
    assert_eq!(set(corrected.workflow()), started_and(&[]));
    let mut stopped = blocked();
    stopped.must(&supervisor(), resolve("block-5", "stop"));
    assert_eq!(set(stopped.workflow()), []);
}

#[test]
fn blocks_have_deadlines_of_their_own_and_where_none_is_left_all_are_told_at_once() {
    let mut desk = timed();
    let free = DEADLINES_MAX - STARTED.len();
    for _ in 0..free {
        desk.must(&owner(), report(Severity::High, None));
    }
    assert_eq!(desk.workflow().deadlines.len(), DEADLINES_MAX);
    let seq = desk.events.len();
    desk.must(&owner(), report(Severity::High, None));
    assert_eq!(kinds(&desk.events[seq..]), ["workflow_blocked", "escalated", "escalated"]);
    assert_eq!(desk.workflow().deadlines.len(), DEADLINES_MAX, "no deadline more");
    let told = desk.messages.iter().map(|m| m.recipient.as_str()).filter(|to| *to != "subscribers");
    let told: Vec<_> = told.collect();
    assert_eq!(told[told.len() - 3..], ["duty", "chief", "boss"]);
    assert_eq!(desk.workflow().blocks[free].escalated_to.as_deref(), Some("boss"));

    let first = desk.workflow().blocks[0].id.clone();
    desk.must(&operator(), acknowledge(first.as_str()));
    assert_eq!(desk.workflow().deadlines.len(), DEADLINES_MAX - 1, "only its own");
}

#[test]
fn a_clock_that_steps_back_never_shortens_what_somebody_has() {
    let mut desk = timed();
    desk.now = minute(30);
    desk.must(&owner(), submit("ready", "yes"));
    desk.now = minute(10);
    desk.must(&owner(), submit("amount", "70"));
    assert_eq!(set(desk.workflow()), started_and(&[("w-1/5/1", 45)]), "from the event's time");
}
