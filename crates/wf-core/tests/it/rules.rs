//! Single rules of the design that the grid cannot show: tokens, corrections and re-checks, sensitive values, broken
//! conditions, locks, time.

use serde_json::{Value, json};
use wf_core::errors::ErrorCode;
use wf_core::limits::CONFIRM_TOKEN_MS;
use wf_core::locks::LockChange;
use wf_core::models::{Locale, Phase, Principal, Severity, StepStatus};
use wf_core::policy::{DomainPolicyPort as _, Effect};
use wf_core::state_machine::chain::event_hash;
use wf_core::state_machine::command::SubmittedValue;
use wf_core::state_machine::event::ConfirmedBy;
use wf_core::state_machine::{
    CommandKind, EventBody, Outcome, Recording, Secret, Unrecorded, Verdict, evolve,
};
use wf_core::view::{Frame, Outlook, Words, shape};

use crate::drive::{
    Desk, correct, finish, operator, owner, release, report, resolve, skip, start, stranger,
    submit, supervisor, value,
};
use crate::plain_policy::{PlainPolicy, id};

fn token(desk: &Desk, by: &Principal, kind: CommandKind) -> String {
    match desk.ask(by, kind) {
        Ok(Verdict::Unrecorded(Unrecorded::NeedsConfirmation(question))) => question.token,
        other => panic!("a read-back was expected: {other:?}"),
    }
}

fn amount_with(text: &str, token: &str) -> CommandKind {
    let value = SubmittedValue { confirm_token: Some(token.to_owned()), ..value(text) };
    CommandKind::SubmitStep { step_id: id("amount"), value }
}

fn commits(desk: &Desk, by: &Principal, kind: CommandKind) -> bool {
    matches!(desk.ask(by, kind), Ok(Verdict::Commit(_)))
}

/// The first step is recorded.
fn ready() -> Desk {
    let mut desk = Desk::running();
    desk.must(&owner(), submit("ready", "yes"));
    desk
}

#[test]
fn a_token_confirms_one_value_of_one_person_for_five_minutes() {
    let desk = ready();
    let asked = token(&desk, &owner(), submit("amount", "70"));
    assert!(commits(&desk, &owner(), amount_with("70", &asked)));
    assert!(!commits(&desk, &owner(), amount_with("71", &asked)), "another value");
    assert!(!commits(&desk, &supervisor(), amount_with("70", &asked)), "another person");
    let dashes = SubmittedValue { unit: Some("dash".to_owned()), ..value("700") };
    let dashes = SubmittedValue { confirm_token: Some(asked.clone()), ..dashes };
    let dashes = CommandKind::SubmitStep { step_id: id("amount"), value: dashes };
    assert!(!commits(&desk, &owner(), dashes), "the same amount in another unit");

    let late = Desk { now: desk.now.plus_ms(CONFIRM_TOKEN_MS - 1), ..desk.clone() };
    assert!(commits(&late, &owner(), amount_with("70", &asked)));
    let too_late = Desk { now: desk.now.plus_ms(CONFIRM_TOKEN_MS), ..desk.clone() };
    assert!(!commits(&too_late, &owner(), amount_with("70", &asked)), "expired");

    let turned =
        Desk { secrets: vec![Secret::new(vec![9; 32]), Secret::new(vec![7; 32])], ..desk.clone() };
    assert!(commits(&turned, &owner(), amount_with("70", &asked)), "the older key still counts");
    let foreign = Desk { secrets: vec![Secret::new(vec![9; 32])], ..desk.clone() };
    assert!(!commits(&foreign, &owner(), amount_with("70", &asked)), "another store's key");
    let other = Desk { policy: PlainPolicy::version(2), ..desk };
    assert!(commits(&other, &owner(), amount_with("70", &asked)), "bound to the pinned definition");
}

#[test]
fn a_token_outlives_other_events_but_not_its_attempt() {
    let mut desk = ready();
    let first = token(&desk, &owner(), submit("amount", "70"));
    desk.now = desk.now.plus_ms(1_000);
    let second = token(&desk, &owner(), submit("amount", "70"));
    assert_ne!(first, second);
    desk.must(&stranger(), report(Severity::Note, None));
    assert!(commits(&desk, &owner(), amount_with("70", &first)), "not voided by other events");
    desk.must(&owner(), amount_with("70", &second));
    let block = desk.workflow().blocks[0].id.to_string();
    desk.must(&supervisor(), resolve(&block, "again"));
    assert!(!commits(&desk, &owner(), amount_with("70", &first)), "of the attempt before");
}

#[test]
fn the_history_says_how_a_value_was_confirmed() {
    let confirmed = |desk: &Desk| {
        desk.events.iter().rev().find_map(|event| match &event.body {
            EventBody::StepRecorded(recording) => Some(recording.confirmed_by),
            _ => None,
        })
    };
    let mut desk = ready();
    assert_eq!(confirmed(&desk), Some(None), "nothing was read back");
    desk.must(&owner(), submit("amount", "70"));
    assert_eq!(confirmed(&desk), Some(Some(ConfirmedBy::Token)));
    let mut desk = ready();
    let asked = SubmittedValue { confirmed_by: Some(ConfirmedBy::Elicitation), ..value("70") };
    let asked = CommandKind::SubmitStep { step_id: id("amount"), value: asked };
    assert!(!commits(&desk, &owner(), asked.clone()), "saying so does not confirm");
    desk.must(&owner(), asked);
    assert_eq!(confirmed(&desk), Some(Some(ConfirmedBy::Elicitation)));
    let abandon = |confirmed_by| CommandKind::Finish {
        result: id("abandoned"),
        note: None,
        confirm_token: None,
        confirmed_by,
    };
    for (said, recorded) in
        [(None, ConfirmedBy::Token), (Some(ConfirmedBy::Elicitation), ConfirmedBy::Elicitation)]
    {
        let mut desk = ready();
        assert!(!commits(&desk, &owner(), abandon(said)), "saying so does not confirm");
        desk.must(&owner(), abandon(said));
        let last = desk.events.last().expect("ended");
        let body = serde_json::to_value(&last.body).expect("written");
        assert!(
            body.to_string().contains(&format!("\"confirmed_by\":{}", serde_json::json!(recorded))),
            "{body}"
        );
    }
}

#[test]
fn a_correction_keeps_the_original_and_ends_the_block_it_caused() {
    let mut desk = ready();
    desk.must(&owner(), submit("amount", "70"));
    desk.must(&owner(), report(Severity::Low, None));
    let decision = desk.must(&owner(), correct("amount", "26"));
    assert_eq!(decision.outcome, Outcome::Corrected);
    assert_eq!(desk.workflow().phase, Phase::Blocked, "the report still stands");
    assert_eq!(desk.workflow().blocks.len(), 1);
    let given: Vec<&str> = desk
        .events
        .iter()
        .filter_map(|event| event.body.recording())
        .filter(|recording| recording.step_id.as_str() == "amount")
        .map(|recording| recording.reading.given.as_str())
        .collect();
    assert_eq!(given, ["70", "26"]);
    let ended = desk.events.iter().find_map(|event| match &event.body {
        EventBody::BlockResolved { decision, effect, .. } => Some((decision.as_str(), *effect)),
        _ => None,
    });
    assert_eq!(ended, Some(("corrected", Effect::Continue)));
    assert_eq!(desk.workflow().steps["amount"].attempt, 2);
}

/// The amount is 40, and `share` was recorded with it.
fn shared() -> Desk {
    let mut desk = ready();
    desk.must(&owner(), submit("amount", "40"));
    desk.must(&owner(), submit("share", "5"));
    desk
}

#[test]
fn a_step_that_used_a_corrected_value_is_open_until_it_is_submitted_again() {
    let status = |desk: &Desk| desk.workflow().steps["share"].status;
    let mut desk = shared();
    desk.must(&owner(), correct("amount", "40"));
    assert_eq!(status(&desk), StepStatus::Recorded, "the same value changes nothing");
    desk.must(&owner(), correct("amount", "45"));
    assert_eq!(status(&desk), StepStatus::Recheck);
    let workflow = desk.workflow();
    assert_eq!(desk.policy.plan(workflow).next().map(|s| s.id.as_str()), Some("share"));
    let kept = workflow.reading(&id("share")).map(|r| r.given.as_str());
    assert_eq!(kept, Some("5"), "the value before is told with the question");
    // Once more while it waits: it is not flagged twice.
    let decision = desk.must(&owner(), correct("amount", "46"));
    assert_eq!(decision.drafts.len(), 1);
    desk.must(&owner(), submit("share", "5"));
    assert_eq!(status(&desk), StepStatus::Recorded, "the same value is fine");
    assert_eq!(desk.workflow().steps["share"].attempt, 2);
}

#[test]
fn a_step_that_no_longer_applies_does_not_hold_the_work_up() {
    let mut desk = shared();
    desk.must(&owner(), submit("shape", "flat"));
    desk.must(&owner(), submit("whisper", "hush"));
    desk.must(&owner(), correct("amount", "45"));
    assert_eq!(
        desk.ask(&owner(), finish("good")).map_err(|r| r.code),
        Err(ErrorCode::InvalidTransition)
    );
    desk.must(&owner(), correct("amount", "25"));
    desk.must(&owner(), finish("good"));
}

#[test]
fn a_step_that_a_decision_sent_back_flags_what_used_it_when_it_is_done_again() {
    let mut desk = shared();
    desk.must(&owner(), correct("amount", "70"));
    let block = desk.workflow().blocks[0].id.to_string();
    desk.must(&supervisor(), resolve(&block, "again"));
    let amount = &desk.workflow().steps["amount"];
    assert_eq!((amount.status, amount.attempt), (StepStatus::Reopened, 2));
    assert_eq!(amount.reading, None);
    desk.must(&owner(), submit("amount", "50"));
    assert_eq!(desk.workflow().steps["share"].status, StepStatus::Recheck);
    assert_eq!(desk.workflow().steps["amount"].attempt, 3);
}

#[test]
fn sensitive_values_stand_beside_the_chain_and_can_be_erased() {
    let mut desk = Desk::new();
    desk.must(&owner(), start("U-7", json!({"order": "A-1", "hush": "secret input"})));
    desk.must(&owner(), submit("ready", "yes"));
    desk.must(&owner(), submit("amount", "25"));
    desk.must(&owner(), submit("shape", "flat"));
    desk.must(&owner(), submit("whisper", "secret value"));
    let beside: Vec<&str> =
        desk.events.iter().flat_map(|e| e.sensitive.iter().map(|s| s.name.as_str())).collect();
    assert_eq!(beside, ["inputs.hush", "value"]);
    assert_eq!(desk.workflow().withheld_inputs, ["hush"]);
    for event in &desk.events {
        let mut erased = event.clone();
        erased.sensitive.clear();
        assert_eq!(event_hash(&erased).expect("canonical"), event.hash, "the chain holds without");
        let mut other_salt = event.sensitive.clone();
        for (value, changed) in event.sensitive.iter().zip(&mut other_salt) {
            changed.salt = "ff".repeat(16);
            assert_ne!(value.digest().ok(), changed.digest().ok(), "the salt counts");
        }
    }
    let last = desk.events.last().expect("events");
    let Some(Recording { sensitive_digest, reading, .. }) = last.body.recording() else {
        panic!("a recorded step: {last:?}");
    };
    assert!(reading.withheld && reading.value.is_empty() && reading.given.is_empty());
    assert_eq!(sensitive_digest.as_ref(), last.sensitive[0].digest().ok().as_ref());
    let mut forged = last.clone();
    forged.actor_name = Some("somebody else".to_owned());
    assert_ne!(event_hash(&forged).expect("canonical"), last.hash, "and nothing else may change");
}

#[test]
fn a_condition_that_cannot_be_evaluated_asks_somebody_to_decide() {
    let mut desk = ready();
    desk.must(&owner(), submit("amount", "33"));
    let locale = Locale::default();
    let frame = Frame { words: Words::new(&locale, "UTC"), store_id: "store" };
    let outlook = Outlook::of(desk.workflow(), &desk.policy);
    let view = Value::Object(shape::workflow(&frame, desk.workflow(), Some(&outlook)));
    assert_eq!(view["step"]["id"], "share", "the step is asked for: {view}");

    let decision = desk.must(&owner(), submit("share", "5"));
    assert_eq!(decision.outcome, Outcome::Blocked);
    let block = desk.workflow().blocks[0].clone();
    assert_eq!(block.code.as_str(), "CONDITION_UNCLEAR");
    assert!(!desk.workflow().steps.contains_key("share"), "nothing was guessed");
    desk.must(&supervisor(), resolve(block.id.as_str(), "go_on"));
    // Either the value that it needs is corrected, or the step is left out with a reason.
    let mut skipped = desk.clone();
    skipped.must(&owner(), skip("share", Some("NOT_THERE")));
    skipped.must(&owner(), submit("shape", "flat"));
    desk.must(&owner(), correct("amount", "34"));
    desk.must(&owner(), submit("share", "5"));
}

#[test]
fn a_lock_that_is_not_held_cannot_be_released() {
    let mut desk = Desk::running();
    desk.must(&operator(), release("U-7"));
    let again = desk.ask(&operator(), release("U-7")).map_err(|r| r.code);
    assert_eq!(again, Err(ErrorCode::LockLost));
    // What is left is to tell and to end.
    let submitted = desk.ask(&owner(), submit("ready", "yes")).map_err(|r| r.code);
    assert_eq!(submitted, Err(ErrorCode::LockLost));
    desk.must(&owner(), report(Severity::Low, None));
    desk.must(&owner(), finish("abandoned"));
}

/// An asset that changed hands and came back is another holding of it (I9).
#[test]
fn a_stale_fence_never_writes() {
    let mut desk = Desk::running();
    let row = desk.locks.get_mut("U-7").expect("a held asset");
    row.fence += 1;
    let refused = |kind| desk.ask(&owner(), kind).map_err(|r| r.code);
    assert_eq!(refused(submit("ready", "yes")), Err(ErrorCode::LockLost));
    assert_eq!(desk.ask(&operator(), release("U-7")).map_err(|r| r.code), Err(ErrorCode::LockLost));
}

#[test]
fn a_workflow_without_assets_asserts_nothing() {
    let mut desk = Desk { policy: PlainPolicy::bare(), ..Desk::new() };
    let decision = desk.must(&owner(), crate::drive::start_with(&[], json!({"order": "A-1"})));
    assert_eq!(decision.locks, Vec::<LockChange>::new());
    assert!(desk.must(&owner(), submit("ready", "yes")).locks.is_empty());
}

#[test]
fn time_follows_the_people_and_never_runs_backwards() {
    let mut desk = Desk::new();
    desk.must(&owner(), start("U-7", json!({"order": "A-1"})));
    let started = desk.workflow().last_activity;
    desk.now = desk.now.plus_ms(60_000);
    desk.must(&owner(), CommandKind::AcknowledgeOrchestration { fence: 1 });
    assert_eq!(desk.workflow().last_activity, started, "the orchestrator is no person");
    assert_eq!(desk.workflow().updated_at, started.plus_ms(60_000));
    let acknowledged = desk.events.last().map(|e| e.actor.to_string());
    assert_eq!(acknowledged.as_deref(), Some("system:orchestrator"));
    desk.now = desk.now.plus_ms(-3_600_000);
    desk.must(&owner(), submit("ready", "yes"));
    assert_eq!(desk.workflow().updated_at, started.plus_ms(60_000), "the clock stepped back");
}

#[test]
fn states_and_events_survive_being_stored() {
    let mut desk = shared();
    desk.must(&owner(), correct("amount", "45"));
    desk.must(&owner(), submit("share", "99"));
    desk.must(&owner(), submit("shape", "torn"));
    desk.must(&owner(), report(Severity::Note, Some("shape")));
    let text = serde_json::to_string(desk.workflow()).expect("json");
    assert_eq!(serde_json::from_str(&text).ok().as_ref(), desk.state.as_ref());
    for event in &desk.events {
        let text = serde_json::to_string(event).expect("json");
        let back = serde_json::from_str(&text).expect("an event");
        assert_eq!(event, &back);
        assert_eq!(event_hash(&back).expect("canonical"), event.hash);
    }
}

#[test]
fn a_history_begins_with_its_start() {
    let desk = shared();
    assert_eq!(evolve(None, &desk.events[2]), None);
    let again = evolve(desk.state.clone(), &desk.events[0]).expect("a state");
    assert_eq!(again.steps, desk.workflow().steps, "a second start begins nothing");
}

#[test]
fn a_definition_that_was_read_back_is_the_same() {
    let policy = PlainPolicy::version(2);
    let again = PlainPolicy::compiled(policy.definition()).expect("a definition");
    assert_eq!(again.definition(), policy.definition());
    assert_ne!(policy.definition().digest, PlainPolicy::new().definition().digest);
}

/// The closed list of domain.md: each code, and whether calling again helps.
#[test]
fn the_error_codes_are_those_of_the_design() {
    let expected = [
        ("VALIDATION_ERROR", "changed_call"),
        ("IDEMPOTENCY_CONFLICT", "changed_call"),
        ("BACKEND_UNAVAILABLE", "same_call"),
        ("VERSION_CONFLICT", "changed_call"),
        ("WORKFLOW_NOT_FOUND", "no"),
        ("PROCEDURE_NOT_FOUND", "changed_call"),
        ("ASSET_LOCKED", "no"),
        ("LOCK_LOST", "no"),
        ("INVALID_TRANSITION", "no"),
        ("STEP_NOT_OPEN", "changed_call"),
        ("STEP_ALREADY_RECORDED", "changed_call"),
        ("IMPLAUSIBLE_VALUE", "changed_call"),
        ("UNIT_MISMATCH", "changed_call"),
        ("TOO_EARLY", "same_call"),
        ("REASON_REQUIRED", "changed_call"),
        ("NOT_ALLOWED", "no"),
        ("DECISION_NOT_ALLOWED", "changed_call"),
        ("LIMIT_EXCEEDED", "changed_call"),
        ("INTERNAL", "same_call"),
    ];
    let codes = ErrorCode::ALL.iter().map(|code| (code.as_str(), code.retry().as_str()));
    assert_eq!(codes.collect::<Vec<_>>(), expected);
}
