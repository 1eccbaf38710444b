//! Bounds of a commit and of a state, met on purpose: what is at the bound fits, what is beyond is refused.

use serde_json::json;
use wf_core::errors::ErrorCode;
use wf_core::limits::{
    BLOCKS_MAX, CLOSED_BLOCKS_MAX, DEPENDANTS_MAX, EVENT_BYTES_MAX, EVENTS_MAX,
    FREE_TEXT_CHARS_MAX, INPUTS_BYTES_MAX, OPEN_WORKFLOWS_MAX, OUTBOX_ROWS_MAX, STATE_BYTES_MAX,
    STATE_RESERVE_BYTES, STEPS_MAX, VALUE_CHARS_MAX,
};
use wf_core::models::{Actor, Block, Principal, Severity, Workflow};
use wf_core::state_machine::notices::SUBSCRIBERS;
use wf_core::state_machine::{CommandKind, EventBody};

use crate::drive::{Desk, correct, finish, owner, report, resolve, start, submit, supervisor};
use crate::plain_policy::{PlainPolicy, STEPS, id};

fn bytes(workflow: &Workflow) -> usize {
    serde_json::to_vec(workflow).expect("json").len()
}

/// `wide` more steps that use the amount, all recorded; the amount is 25.
fn wide(wide: usize) -> Desk {
    let mut desk =
        Desk { policy: PlainPolicy::wide(wide), acknowledge_at_start: true, ..Desk::new() };
    desk.must(&owner(), start("U-7", json!({"order": "A-1"})));
    desk.must(&owner(), submit("ready", "yes"));
    desk.must(&owner(), submit("amount", "25"));
    desk.must(&owner(), submit("shape", "flat"));
    desk.must(&owner(), submit("whisper", "hush"));
    for n in 0..wide {
        desk.must(&owner(), submit(&format!("more-{n}"), "fine"));
    }
    desk
}

#[test]
fn the_largest_correction_fits_one_commit_and_still_escalates() {
    let mut desk = wide(DEPENDANTS_MAX);
    let sent_before = desk.messages.len();
    let decision = desk.must(&owner(), correct("amount", "70"));
    // Itself, every step that used the value, and the block.
    assert_eq!(decision.drafts.len(), 1 + DEPENDANTS_MAX + 1);
    assert!(decision.drafts.len() <= EVENTS_MAX);
    // Everything is told to the subscribers, which is more than a commit may send: who must act is told all the same.
    let sent = &desk.messages[sent_before..];
    assert_eq!(sent.len(), OUTBOX_ROWS_MAX);
    let blocked = desk.workflow().revision;
    assert!(sent.iter().any(|m| m.recipient == "duty" && m.seq == blocked), "{sent:?}");
    assert!(sent.windows(2).all(|pair| pair[0].seq <= pair[1].seq), "in the order of the events");

    // The end of the block goes into the same commit as the next flags.
    desk.must(&owner(), correct("amount", "71"));
    let mut desk = wide(DEPENDANTS_MAX);
    desk.must(&owner(), report(Severity::Note, None));
    let decision = desk.must(&owner(), correct("amount", "26"));
    assert_eq!(decision.drafts.len(), 1 + DEPENDANTS_MAX);
}

#[test]
fn an_escalation_to_the_subscribers_is_one_message() {
    let ids = |desk: &Desk| -> Vec<String> { desk.messages.iter().map(|m| m.id.clone()).collect() };
    let desk = wide(3);
    let mut seen = ids(&desk);
    let to_them = |id: &String| id.rsplit('/').nth(1) == Some(SUBSCRIBERS.trim_start_matches('/'));
    assert!(seen.iter().all(to_them), "{seen:?}");
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), desk.messages.len(), "ids are unique");
    assert_eq!(desk.messages.len(), desk.events.len(), "one of each event");
}

#[test]
fn so_many_blocks_and_no_more() {
    let mut desk = Desk::running();
    for _ in 0..BLOCKS_MAX {
        desk.must(&owner(), report(Severity::Low, None));
    }
    let refused = desk.ask(&owner(), report(Severity::Low, None)).expect_err("one too many");
    assert_eq!(refused.code, ErrorCode::LimitExceeded);
    assert_eq!(refused.details["max"], BLOCKS_MAX);
    // A note blocks nothing, and resolving makes room.
    desk.must(&owner(), report(Severity::Note, None));
    let oldest = desk.workflow().blocks[0].id.to_string();
    desk.must(&supervisor(), resolve(&oldest, "go_on"));
    desk.must(&owner(), report(Severity::Low, None));
}

#[test]
fn inputs_up_to_the_limit_and_no_further() {
    let envelope = "{\"order\":\"\"}".len();
    let fits = "x".repeat(INPUTS_BYTES_MAX - envelope);
    let mut desk = Desk::new();
    desk.must(&owner(), start("U-7", json!({"order": fits.clone()})));
    let event = serde_json::to_vec(&desk.events[0]).expect("json");
    assert!(event.len() <= EVENT_BYTES_MAX, "{} bytes", event.len());
    let refused = Desk::new()
        .ask(&owner(), start("U-7", json!({"order": format!("{fits}x")})))
        .expect_err("one byte too many");
    assert_eq!(refused.code, ErrorCode::LimitExceeded);
    assert_eq!(refused.details["limit"], "inputs_bytes");
}

#[test]
fn open_workflows_up_to_the_limit_and_no_further() {
    let one = || start("U-7", json!({"order": "A-1"}));
    let desk = Desk { open_workflows: OPEN_WORKFLOWS_MAX - 1, ..Desk::new() };
    assert!(desk.ask(&owner(), one()).is_ok());
    let desk = Desk { open_workflows: OPEN_WORKFLOWS_MAX, ..Desk::new() };
    let refused = desk.ask(&owner(), one()).expect_err("one too many");
    assert_eq!(refused.code, ErrorCode::LimitExceeded);
    assert_eq!(refused.details["limit"], "open_workflows");
}

/// Who has the longest names there are.
fn longest() -> Principal {
    Principal {
        actor: Actor::User("u".repeat(Actor::SUBJECT_BYTES_MAX)),
        name: Some("ž".repeat(100)),
        ..supervisor()
    }
}

/// Every step of the largest procedure, each with `text`, until there is no more room; then everything else.
fn filled(by: &Principal, text: &str) -> (Desk, Result<(), ErrorCode>) {
    let wide = STEPS_MAX - STEPS.len();
    let policy = PlainPolicy::wide(wide);
    let mut desk = Desk { policy, acknowledge_at_start: true, ..Desk::new() };
    let inputs = json!({"order": "x".repeat(INPUTS_BYTES_MAX - 12)});
    desk.must(by, start("U-7", inputs));
    desk.must(by, submit("ready", "yes"));
    desk.must(by, submit("amount", "25"));
    desk.must(by, submit("shape", "flat"));
    desk.must(by, submit("whisper", text));
    let mut end = Ok(());
    for n in 0..wide {
        if let Err(refused) = desk.act(by, submit(&format!("more-{n}"), text), false) {
            end = Err(refused.code);
            break;
        }
    }
    for _ in 0..BLOCKS_MAX {
        let report = long_report("\u{1d11e}".repeat(FREE_TEXT_CHARS_MAX));
        let _ = desk.act(by, report, false);
    }
    (desk, end)
}

fn fits(desk: &Desk) {
    let size = bytes(desk.workflow());
    assert!(size <= STATE_BYTES_MAX, "{size} bytes");
    for event in &desk.events {
        let size = serde_json::to_vec(event).expect("json").len();
        assert!(size <= EVENT_BYTES_MAX, "{} has {size} bytes", event.body.kind());
    }
}

/// The promise of storage.md that the core's limits guarantee what a backend takes (S12).
#[test]
fn every_step_of_the_largest_procedure_fits() {
    let (desk, end) = filled(&owner(), &"x".repeat(VALUE_CHARS_MAX));
    assert_eq!(end, Ok(()));
    assert_eq!(desk.workflow().blocks.len(), BLOCKS_MAX);
    fits(&desk);
}

/// Four bytes a character, the longest names, all blocks: more than fits. The work says so, and can still be ended.
#[test]
fn a_workflow_that_has_no_more_room_can_still_be_ended() {
    let (mut desk, end) = filled(&longest(), &"\u{1d11e}".repeat(VALUE_CHARS_MAX));
    assert_eq!(end, Err(ErrorCode::LimitExceeded));
    fits(&desk);
    desk.must(&longest(), finish("abandoned"));
    fits(&desk);
}

/// Few steps are never measured: they fit whatever they hold.
#[test]
fn a_small_workflow_fits_whatever_it_holds() {
    let (desk, _) = filled(&longest(), &"\u{1d11e}".repeat(VALUE_CHARS_MAX));
    let mut small = desk.workflow().clone();
    while small.steps.len() > 60 {
        small.steps.pop_last();
    }
    small.blocks = vec![largest_block(); BLOCKS_MAX];
    let size = bytes(&small);
    assert!(size + STATE_RESERVE_BYTES <= STATE_BYTES_MAX, "{size} bytes");
}

fn largest_block() -> Block {
    let mut desk = Desk::running();
    desk.must(&longest(), long_report("\u{1d11e}".repeat(FREE_TEXT_CHARS_MAX)));
    desk.workflow().blocks[0].clone()
}

fn long_report(summary: String) -> CommandKind {
    CommandKind::ReportProblem { summary, severity: Severity::High, step_id: Some(id("amount")) }
}

/// The state follows the limits, never the number of events.
#[test]
fn a_state_does_not_grow_with_its_history() {
    let mut desk = Desk::running();
    desk.must(&owner(), submit("ready", "yes"));
    desk.must(&owner(), submit("amount", "25"));
    let round = |desk: &mut Desk| {
        for amount in ["26", "27"] {
            desk.must(&owner(), correct("amount", amount));
            desk.must(&owner(), report(Severity::Note, None));
            desk.must(&owner(), report(Severity::Low, Some("amount")));
            let block = desk.workflow().blocks[0].id.to_string();
            desk.must(&supervisor(), resolve(&block, "go_on"));
        }
    };
    for _ in 0..100 {
        round(&mut desk);
    }
    let before = bytes(desk.workflow());
    for _ in 0..100 {
        round(&mut desk);
    }
    let after = bytes(desk.workflow());
    assert_eq!(desk.workflow().closed_blocks.len(), CLOSED_BLOCKS_MAX);
    assert!(after <= before + 200, "{before} bytes became {after}");
    let blocks = desk.events.iter().filter(|e| matches!(e.body, EventBody::WorkflowBlocked { .. }));
    assert_eq!(blocks.count(), 400);
}
