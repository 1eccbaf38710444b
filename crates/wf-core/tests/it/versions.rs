//! What another version of this program wrote: what is newer is refused with the reason, never read as far as it goes. And
//! the form of today, pinned: docs/upgrading.md says what a change of it needs.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wf_core::models::{Severity, Workflow};
use wf_core::state_machine::{EVENT_VERSION, Event};

use crate::any_event::{body, event};
use crate::drive::{Desk, owner, report, start, submit};
use crate::plain_policy::PlainPolicy;

fn written() -> Value {
    serde_json::to_value(event(1, body(7, 1), false)).expect("an event is JSON")
}

fn read(event: Value) -> Result<Event, String> {
    serde_json::from_value(event).map_err(|error| error.to_string())
}

#[test]
fn an_event_of_a_newer_version_is_refused_with_the_reason() {
    assert_eq!(read(written()).expect("as it was written"), event(1, body(7, 1), false));
    for (version, word) in
        [(json!(2), "version 2"), (json!(0), "version 0"), (json!(9_999), "9999")]
    {
        let mut newer = written();
        newer["v"] = version;
        // Whatever else is new in it, the version is what is told.
        newer["kind"] = json!("colour_changed");
        let said = read(newer).expect_err("a newer event");
        assert!(said.contains(word) && said.contains("knows up to 1"), "{said}");
    }
    let mut kind = written();
    kind["kind"] = json!("colour_changed");
    let said = read(kind).expect_err("an unknown kind");
    assert!(said.contains("unknown variant `colour_changed`"), "{said}");
}

#[test]
fn a_state_with_something_unknown_in_it_is_refused_rather_than_written_back_without_it() {
    let mut desk = Desk { policy: PlainPolicy::timed(), acknowledge_at_start: true, ..Desk::new() };
    desk.must(&owner(), start("U-7", json!({"order": "A-1"})));
    desk.must(&owner(), submit("ready", "yes"));
    desk.must_offer(Some("user:bob"));
    desk.must(&owner(), report(Severity::High, Some("ready")));
    let state = serde_json::to_value(desk.workflow()).expect("a state is JSON");
    let read = |state: &Value| serde_json::from_value::<Workflow>(state.clone());
    assert!(read(&state).is_ok());
    let mut places = Vec::new();
    parts(&state, String::new(), &mut places);
    for wanted in
        ["", "/owner", "/offer", "/procedure", "/assets/0", "/blocks/0/by", "/deadlines/w-1~11~11"]
    {
        assert!(places.iter().any(|place| place == wanted), "no {wanted} in {state:#}");
    }
    for place in places {
        let mut newer = state.clone();
        let part = newer.pointer_mut(&place).and_then(Value::as_object_mut).expect("a part of it");
        part.insert("colour".to_owned(), json!("red"));
        let said = read(&newer).expect_err(&place).to_string();
        assert!(said.contains("unknown field `colour`"), "{place}: {said}");
    }
}

/// Every object of a state but those whose keys are data.
fn parts(of: &Value, place: String, places: &mut Vec<String>) {
    const DATA: [&str; 7] = ["deadlines", "inputs", "steps", "waits", "performers", "label", "say"];
    let below = |key: &str| format!("{place}/{}", key.replace('/', "~1"));
    match of {
        Value::Object(map) => {
            let name = place.rsplit('/').next().unwrap_or_default();
            for (key, value) in map {
                parts(value, below(key), places);
            }
            if !DATA.contains(&name) {
                places.push(place);
            }
        }
        Value::Array(all) => {
            for (n, value) in all.iter().enumerate() {
                parts(value, below(&n.to_string()), places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Another kind of event, or another field of a state, cannot be read by the release before: raise the schema version of
/// both backends, keep a fixture of this release, and say so in docs/upgrading.md. Then change these lists.
#[test]
fn the_form_that_the_release_before_can_read_is_pinned() {
    assert_eq!(EVENT_VERSION, 1);
    let kinds: BTreeSet<&str> = (0..19).map(|n| body(n, 1).kind()).collect();
    let pinned = BTreeSet::from([
        "block_acknowledged",
        "block_resolved",
        "deadline_passed",
        "escalated",
        "lock_released",
        "offer_withdrawn",
        "orchestration_acknowledged",
        "ownership_offered",
        "ownership_transferred",
        "problem_noted",
        "recheck_required",
        "step_corrected",
        "step_not_needed",
        "step_recorded",
        "step_skipped",
        "wait_started",
        "workflow_blocked",
        "workflow_completed",
        "workflow_started",
    ]);
    assert_eq!(kinds, pinned);
    // Every field that a state may have: what is unknown is refused with the list of what is known.
    let said = serde_json::from_value::<Workflow>(json!({ "colour": "red" }));
    let said = said.expect_err("no such field").to_string();
    let fields: Vec<&str> = said.split('`').skip(3).step_by(2).collect();
    assert_eq!(
        fields,
        [
            "tenant",
            "id",
            "procedure",
            "label",
            "phase",
            "result",
            "revision",
            "last_hash",
            "owner",
            "offer",
            "assets",
            "inputs",
            "withheld_inputs",
            "steps",
            "waits",
            "performers",
            "blocks",
            "closed_blocks",
            "last_note",
            "start_touch",
            "ownership_touch",
            "outcome_touch",
            "last_recorded",
            "started_at",
            "updated_at",
            "last_activity",
            "completed_at",
            "fence",
            "deadlines",
        ],
        "{said}"
    );
}
