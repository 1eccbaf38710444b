//! Stored events and documents of evidence. An input is a JSON text (an event, or a whole document), or else edits of a genuine
//! document: see [`edited`].
//!
//! What is read as an event or a state is written as it was and read again as the same; the hash of an event is the one that
//! `serde_jcs` leads to; folding never panics. Of a document that verifies nothing was ignored, and a second look at its
//! chain, its digests and its order finds them whole. The genuine one verifies.

#![no_main]

use std::sync::LazyLock;

use checkpoint_fuzz::json::Choices;
use checkpoint_fuzz::planted;
use libfuzzer_sys::fuzz_target;
use serde::Deserialize as _;
use serde_json::{Map, Value};
use wf_core::evidence::{Damage, Evidence, Part, verify};
use wf_core::models::Workflow;
use wf_core::state_machine::chain::event_hash;
use wf_core::state_machine::{EVENT_VERSION, Event, evolve};
use wf_idempotency::{StrictLimits, canonical_string, parse_strict, sha256_hex};

/// What a released server exported: starts, values, corrections, a sensitive value, an erasure.
const GENUINE: &str = include_str!("../../crates/wf-cli/tests/fixtures/v0.1.0/evidence.json");

/// Edits of one input, and places of a document that is edited on: a copy of a part in itself doubles it.
const EDITS_MAX: usize = 24;
const PLACES_MAX: usize = 2_000;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let document = serde_json::from_str(GENUINE).expect("JSON");
    assert!(verify(GENUINE.as_bytes()).is_ok(), "the genuine document verifies");
    document
});

fuzz_target!(|data: &[u8]| {
    match data.first() {
        Some(b'{') => any(data),
        Some(_) => {
            let document = edited(&mut Choices(data));
            let text = serde_json::to_string(&document).expect("written");
            any(text.as_bytes());
            let same = canonical_string(&document).ok() == canonical_string(&DOCUMENT).ok();
            assert!(!same || verify(text.as_bytes()).is_ok(), "the genuine document verifies");
        }
        None => {}
    }
});

/// Looks at a text as an event, and as a document.
fn any(text: &[u8]) {
    let limits = StrictLimits { max_bytes: 1 << 24, max_depth: 100 };
    document(text);
    let Ok(value) = parse_strict(text, limits) else { return };
    let event = read(&value);
    if let Some(event) = &event {
        // From the text, as a store reads it, it is the same.
        assert_eq!(serde_json::from_slice::<Event>(text).ok().as_ref(), Some(event));
        let _ = evolve(None, event);
    }
    if let Ok(workflow) = Workflow::deserialize(&value) {
        state(&value, &workflow);
    }
    let Some(events) = value.get("events").and_then(Value::as_array) else { return };
    let mut folded = None;
    for event in events.iter().take(64).filter_map(read) {
        folded = evolve(folded, &event);
        if let Some(workflow) = &folded {
            let written = serde_json::to_value(workflow).expect("written");
            assert_eq!(Workflow::deserialize(&written).ok().as_ref(), Some(workflow), "a state");
        }
    }
    if let Some(Ok(workflow)) = value.get("workflow").map(Workflow::deserialize) {
        state(&value["workflow"], &workflow);
    }
}

/// An event, if it is one: written and read again it is the same, with the same hash.
fn read(value: &Value) -> Option<Event> {
    let event = Event::deserialize(value).ok()?;
    assert!((1..=EVENT_VERSION).contains(&event.v), "an event of a version that nobody knows");
    let written = serde_json::to_string(&event).expect("written");
    let again: Event = serde_json::from_str(&written).expect("an event that was written");
    assert_eq!(again, event);
    assert_eq!(serde_json::to_string(&again).expect("written"), written);
    // The hash is of all that is known of it but `hash` and `sensitive`.
    let mut members = serde_json::to_value(&event).expect("written");
    drop(without(&mut members, &["hash", "sensitive"]));
    if let Ok(hash) = event_hash(&event) {
        assert_eq!(hash.as_str(), digest(&members), "{written}");
        // What stands beside the chain is not in it.
        let beside = Event { sensitive: Vec::new(), ..event.clone() };
        assert_eq!(event_hash(&beside).ok(), Some(hash.clone()));
        let other = Event { seq: event.seq ^ 1, ..event.clone() };
        assert_ne!(event_hash(&other).ok(), Some(hash));
    }
    Some(event)
}

/// A state that was read: nothing that it said was dropped, since it would be written back without it.
fn state(value: &Value, workflow: &Workflow) {
    let written = serde_json::to_value(workflow).expect("written");
    if let Some(place) = dropped(value, &written) {
        panic!("{place} of a state was dropped: {value}");
    }
    assert_eq!(Workflow::deserialize(&written).ok().as_ref(), Some(workflow));
}

/// The first member that `read` does not have; an empty one may be left out.
fn dropped(said: &Value, read: &Value) -> Option<String> {
    match (said, read) {
        (Value::Object(said), Value::Object(read)) => {
            said.iter().find_map(|(name, said)| match read.get(name) {
                Some(read) => dropped(said, read).map(|place| format!("/{name}{place}")),
                None => (!is_empty(said)).then(|| format!("/{name}")),
            })
        }
        (Value::Array(said), Value::Array(read)) => {
            if said.len() != read.len() {
                return Some("/-".to_owned());
            }
            let pairs = said.iter().zip(read).enumerate();
            pairs.into_iter().find_map(|(at, (said, read))| {
                dropped(said, read).map(|place| format!("/{at}{place}"))
            })
        }
        _ => None,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
    }
}

/// A text as a document of evidence.
fn document(text: &[u8]) {
    match verified(text) {
        Err(damage) => {
            assert!(!damage.is_empty(), "not whole, and nothing is wrong");
            assert!(damage.len() <= 8 + text.len() / 16, "{} findings", damage.len());
            for found in &damage {
                assert!(found.message.len() <= 1_024, "{}", found.message);
            }
        }
        Ok(evidence) => {
            let limits = StrictLimits { max_bytes: 1 << 24, max_depth: 128 };
            let value = parse_strict(text, limits).expect("strict JSON");
            let said = canonical_string(&value).expect("canonical");
            assert_eq!(evidence.to_text().expect("canonical"), said, "something was ignored");
            whole(&value);
        }
    }
}

/// A second look at a document that verifies, at the JSON itself.
fn whole(document: &Value) {
    let workflow = &document["workflow"];
    let (tenant, id) = (text(&workflow["tenant"]), text(&workflow["id"]));
    let mut previous = sha256_hex(format!("checkpoint/v1{tenant}{id}").as_bytes());
    let mut last = i64::MIN;
    let events = document["events"].as_array().expect("events");
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], at + 1, "a gap");
        assert_eq!(event["workflow_id"], *id);
        assert_eq!(event["prev_hash"], *previous, "event {} does not follow", at + 1);
        let mut members = event.clone();
        drop(without(&mut members, &["hash", "sensitive"]));
        previous = digest(&members);
        assert_eq!(event["hash"], *previous, "event {} was changed", at + 1);
        let over = events[..at].iter().any(|before| before["kind"] == "workflow_completed");
        assert!(!over, "an event after the completion");
        let now = serde_json::from_value::<wf_core::models::Timestamp>(event["at"].clone());
        let now = now.expect("a time").as_ms();
        assert!(now >= last, "event {} is earlier than the one before it", at + 1);
        last = now;
    }
    assert_eq!(workflow["revision"], events.len());
    assert_eq!(workflow["last_hash"], *previous);
    let pinned = &document["definition"];
    assert_eq!(pinned["digest"], *digest(&pinned["document"]), "another definition");
    assert_eq!(pinned["digest"], workflow["procedure"]["digest"]);
    let mut members = document.clone();
    let stated = without(&mut members, &["digest"]);
    assert_eq!(stated, Some(Value::from(digest(&members))), "another document");
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// SHA-256 of a canonical form that is not the product's.
fn digest(value: &Value) -> String {
    sha256_hex(&serde_jcs::to_vec(value).expect("canonical"))
}

/// Takes members out; returns the last of them that was there.
fn without(value: &mut Value, names: &[&str]) -> Option<Value> {
    let members = value.as_object_mut()?;
    names.iter().filter_map(|name| members.remove(*name)).last()
}

/// The genuine document after some edits: `<mend>`, and for each edit what, where and with what. `mend` says whether chain and
/// digest are made to fit again, as somebody would do who can write all of it.
fn edited(choices: &mut Choices<'_>) -> Value {
    let mut document = DOCUMENT.clone();
    let mend = choices.byte();
    for _ in 0..EDITS_MAX {
        if choices.0.is_empty() || !edit(&mut document, choices) {
            break;
        }
    }
    if mend & 1 == 1 {
        chain(&mut document);
    }
    if mend & 2 == 2 {
        drop(without(&mut document, &["digest"]));
        let digest = serde_jcs::to_vec(&document).map(|bytes| sha256_hex(&bytes));
        if let (Some(members), Ok(digest)) = (document.as_object_mut(), digest) {
            members.insert("digest".to_owned(), digest.into());
        }
    }
    document
}

/// One edit; false when the document has grown enough.
fn edit(document: &mut Value, choices: &mut Choices<'_>) -> bool {
    let what = choices.below(6);
    let mut places = Vec::new();
    collect(document, String::new(), &mut places);
    if places.len() > PLACES_MAX {
        return false;
    }
    let at = usize::from(choices.byte()) * 256 + usize::from(choices.byte());
    let other = places[(at / 7) % places.len()].clone();
    let place = places[at % places.len()].clone();
    let name = choices.text();
    let given = match choices.below(4) {
        0 => Value::from(choices.text()),
        1 => choices.value(2),
        _ => document.pointer(&other).cloned().unwrap_or_default(),
    };
    let Some(value) = document.pointer_mut(&place) else { return true };
    match (what, value) {
        (0, value) => *value = given,
        (1, Value::Object(members)) => drop(members.insert(name, given)),
        (2, Value::Object(members)) => {
            let key = members.keys().nth(at / 11 % members.len().max(1)).cloned();
            drop(key.and_then(|key| members.remove(&key)));
        }
        (1, Value::Array(items)) if items.len() < 64 => items.push(given),
        (2, Value::Array(items)) => drop(items.pop()),
        (3, Value::Array(items)) => items.reverse(),
        (_, Value::Number(number)) => {
            *number = (number.as_i64().unwrap_or_default() ^ i64::from(choices.byte())).into();
        }
        (_, Value::String(text)) => text.push_str(&name),
        (_, value) => *value = given,
    }
    true
}

/// Every place of a value, as JSON Pointers.
fn collect(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            collect(value, format!("{at}/{name}"), places);
        }),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, value)| {
            collect(value, format!("{at}/{index}"), places);
        }),
        _ => {}
    }
    places.push(at);
}

/// Numbers and links the events anew, and lets the state end where they do.
fn chain(document: &mut Value) {
    let workflow = &document["workflow"];
    let named = |name: &str| workflow.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut previous =
        sha256_hex(format!("checkpoint/v1{}{}", named("tenant"), named("id")).as_bytes());
    let Some(Value::Array(events)) = document.get_mut("events") else { return };
    let mut count = 0;
    for (at, event) in events.iter_mut().enumerate() {
        let Some(members) = event.as_object_mut() else { continue };
        members.insert("seq".to_owned(), (at + 1).into());
        members.insert("prev_hash".to_owned(), previous.into());
        let mut bare: Map<String, Value> = members.clone();
        bare.remove("hash");
        bare.remove("sensitive");
        previous = digest(&Value::Object(bare));
        members.insert("hash".to_owned(), previous.clone().into());
        count = at + 1;
    }
    if let Some(workflow) = document.get_mut("workflow").and_then(Value::as_object_mut) {
        workflow.insert("revision".to_owned(), count.into());
        workflow.insert("last_hash".to_owned(), previous.into());
    }
}

/// What a look at a document finds. In a control it does not mind what it does not know.
fn verified(text: &[u8]) -> Result<Evidence, Vec<Damage>> {
    match verify(text) {
        Err(damage) if planted() && damage.iter().all(|found| found.part == Part::Document) => {
            let mut value: Value = serde_json::from_slice(text).unwrap_or_default();
            drop(without(&mut value, &["digest"]));
            Evidence::deserialize(value).map_err(|_| damage)
        }
        other => other,
    }
}
