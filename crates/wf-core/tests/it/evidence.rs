//! Evidence: a document that was made is whole; one that was changed, in whichever place, is refused, and says where.

use proptest::prelude::*;
use serde_json::{Value, json};
use wf_core::evidence::{Damage, Evidence, FORMAT, Part, verify};
use wf_core::idempotency::{canonical_bytes, canonical_string};
use wf_core::models::{Digest, Severity, Timestamp};
use wf_core::policy::DomainPolicyPort as _;

use crate::drive::{Desk, correct, finish, owner, report, resolve, start, submit, supervisor};

fn of(desk: &Desk) -> Evidence {
    Evidence {
        format: FORMAT.to_owned(),
        made_at: Timestamp::from_ms(1_767_225_700_000),
        store_id: "00ff".to_owned(),
        workflow: desk.workflow().clone(),
        definition: desk.policy.definition().clone().into(),
        events: desk.events.clone(),
    }
}

/// A history with sensitive values, a correction, a block and an end.
fn evidence() -> Evidence {
    let mut desk = Desk { acknowledge_at_start: true, ..Desk::new() };
    desk.must(&owner(), start("U-7", json!({"order": "A-1", "hush": "secret input"})));
    desk.must(&owner(), submit("ready", "yes"));
    desk.must(&owner(), submit("amount", "25"));
    desk.must(&owner(), submit("shape", "flat"));
    desk.must(&owner(), submit("whisper", "secret \u{fc}"));
    desk.must(&owner(), correct("amount", "26"));
    desk.must(&owner(), report(Severity::High, None));
    let block = desk.workflow().blocks[0].id.to_string();
    desk.must(&supervisor(), resolve(&block, "go_on"));
    desk.must(&owner(), finish("abandoned"));
    of(&desk)
}

fn text(evidence: &Evidence) -> String {
    evidence.to_text().expect("canonical")
}

fn refused(text: &str) -> Vec<Damage> {
    verify(text.as_bytes()).expect_err("refused")
}

#[test]
fn what_was_made_is_whole_and_reads_back_as_it_was() {
    let made = evidence();
    assert!(made.is_sensitive());
    assert_eq!(verify(text(&made).as_bytes()).as_ref(), Ok(&made));
    let indented = format!("{:#}", serde_json::from_str::<Value>(&text(&made)).expect("JSON"));
    assert_eq!(verify(indented.as_bytes()).as_ref(), Ok(&made), "whitespace does not count");

    let mut erased = made.clone();
    erased.events.iter_mut().for_each(|event| event.sensitive.clear());
    assert_eq!(verify(text(&erased).as_bytes()).as_ref(), Ok(&erased), "the chain holds without");
    assert!(erased.is_sensitive(), "fingerprints are of the values all the same");

    let mut plain = Desk::running();
    plain.must(&owner(), submit("ready", "yes"));
    assert!(!of(&plain).is_sensitive());
}

#[test]
fn one_changed_byte_is_refused_wherever_it_is() {
    let mut desk = Desk { acknowledge_at_start: true, ..Desk::new() };
    desk.must(&owner(), start("U-7", json!({"order": "A-1", "hush": "secret \u{fc}"})));
    let whole = text(&of(&desk));
    let meant: Value = serde_json::from_str(&whole).expect("JSON");
    let mut refusals = 0;
    for at in 0..whole.len() {
        let mut bytes = whole.clone().into_bytes();
        bytes[at] = match bytes[at] {
            b'0'..=b'8' | b'a'..=b'y' | b'A'..=b'Y' => bytes[at] + 1,
            other => other ^ 1,
        };
        let same = serde_json::from_slice::<Value>(&bytes).is_ok_and(|value| value == meant);
        assert!(same || verify(&bytes).is_err(), "byte {at} of {}", whole.len());
        refusals += usize::from(!same);
    }
    assert_eq!(refusals, whole.len(), "no byte of it means nothing");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_other_byte_and_any_lost_part_is_refused(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
    ) {
        static WHOLE: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| text(&evidence()));
        let mut bytes = WHOLE.clone().into_bytes();
        let at = at.index(bytes.len());
        prop_assert_eq!(verify(&bytes[..cut.index(bytes.len())]).is_err(), true);
        if bytes[at] != byte {
            bytes[at] = byte;
            prop_assert!(verify(&bytes).is_err(), "byte {} is {}", at, byte);
        }
    }
}

/// A document with its digest made right again: only what holds the rest can tell that it was changed.
fn sealed(mut document: Value) -> String {
    let members = document.as_object_mut().expect("an object");
    members.remove("digest");
    let digest = Digest::of(&canonical_bytes(&document).expect("canonical"));
    document["digest"] = json!(digest);
    canonical_string(&document).expect("canonical")
}

/// Every place in a value.
fn places(value: &Value, here: &str, found: &mut Vec<String>) {
    found.push(here.to_owned());
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                places(
                    value,
                    &format!("{here}/{}", name.replace('~', "~0").replace('/', "~1")),
                    found,
                );
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                places(value, &format!("{here}/{at}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn changed(value: &Value) -> Value {
    match value {
        Value::Null => json!(false),
        Value::Bool(truth) => json!(!truth),
        Value::Number(number) => json!(number.as_i64().unwrap_or_default() + 1),
        Value::String(text) => {
            let mut other = text.clone();
            let last = other.pop();
            other.push(if last == Some('1') { '2' } else { '1' });
            json!(other)
        }
        Value::Array(items) => items.iter().cloned().chain([json!("more")]).collect(),
        Value::Object(members) => {
            let mut more = members.clone();
            more.insert("more".to_owned(), json!(1));
            Value::Object(more)
        }
    }
}

/// Nothing else holds these: the digest alone does.
fn is_only_sealed(place: &str) -> bool {
    ["/made_at", "/store_id", "/digest"].contains(&place)
}

/// Removing it is erasing, which is lawful.
fn is_erasable(place: &str) -> bool {
    place.starts_with("/events/") && place.contains("/sensitive")
}

#[test]
fn a_change_is_refused_although_somebody_made_the_digest_right_again() {
    let whole: Value = serde_json::from_str(&text(&evidence())).expect("JSON");
    let mut all = Vec::new();
    places(&whole, "", &mut all);
    let (mut tried, mut parts) = (0, std::collections::BTreeSet::new());
    for place in all.iter().filter(|place| !place.is_empty() && !is_only_sealed(place)) {
        let mut other = whole.clone();
        let value = other.pointer_mut(place).expect("a place");
        *value = changed(value);
        parts.extend(refused(&sealed(other)).into_iter().map(|damage| damage.part));
        tried += 1;

        let (parent, name) = place.rsplit_once('/').expect("below the root");
        let mut other = whole.clone();
        match other.pointer_mut(parent).expect("a place") {
            Value::Object(members) => drop(members.remove(name)),
            Value::Array(items) => drop(items.remove(name.parse().expect("a number"))),
            other => panic!("{other}"),
        }
        let lost = verify(sealed(other).as_bytes());
        assert!(lost.is_err() || is_erasable(place), "{place} was lost");
    }
    assert!(tried > 300, "{tried}");
    assert_eq!(parts.len(), 4, "each part was seen to be damaged, the digest never: {parts:?}");
}

#[test]
fn damage_says_what_and_where() {
    let whole: Value = serde_json::from_str(&text(&evidence())).expect("JSON");
    let told = |change: &dyn Fn(&mut Value)| {
        let mut other = whole.clone();
        change(&mut other);
        let damage = refused(&sealed(other));
        let first = damage.first().expect("at least one");
        (first.part, first.message.clone())
    };
    let (part, message) = told(&|v| v["events"][2]["data"]["reading"]["given"] = json!("no"));
    assert_eq!((part, message.as_str()), (Part::History, "event 3 was changed: its hash differs"));
    let (part, message) = told(&|v| v["definition"]["document"]["wide"] = json!(1));
    assert_eq!(part, Part::Definition, "{message}");
    let (part, message) = told(&|v| v["workflow"]["fence"] = json!(99));
    assert_eq!(
        (part, message.as_str()),
        (Part::State, "the stored state is not the fold of its events")
    );
    let (part, message) = told(&|v| v["events"][0]["extra"] = json!(1));
    assert_eq!(
        (part, message.as_str()),
        (Part::Document, "/events/0/extra is not written as the format has it")
    );
    let (part, message) = told(&|v| v["format"] = json!("checkpoint/evidence/v2"));
    assert_eq!(part, Part::Document, "{message}");

    let other =
        refused(&text(&evidence()).replacen("\"store_id\":\"00ff\"", "\"store_id\":\"00fe\"", 1));
    assert_eq!(other.len(), 1, "{other:?}");
    assert_eq!(other[0].part, Part::Digest);
    let twice = text(&evidence()).replacen('{', "{\"format\":\"x\",", 1);
    assert_eq!(refused(&twice)[0].part, Part::Document, "a member that is there twice");
    assert_eq!(refused("[]")[0].part, Part::Document);
    assert_eq!(refused("")[0].part, Part::Document);
}

#[test]
fn a_history_of_another_workflow_is_no_evidence_of_this_one() {
    let made = evidence();
    let mut other = made.clone();
    other.workflow.id = "w-2".parse().expect("an id");
    for event in &mut other.events {
        event.workflow_id = other.workflow.id.clone();
    }
    assert!(refused(&text(&other)).iter().all(|damage| damage.part == Part::History));
    let mut other = made;
    other.workflow.tenant = "elsewhere".parse().expect("a tenant");
    assert!(refused(&text(&other)).iter().any(|damage| damage.part == Part::History));
}
