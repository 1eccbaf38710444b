//! Texts that would like to be markup, in every field of every page: nothing of them is.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use wf_core::engine::{BlockQuestion, Portrait, Watched};
use wf_core::locks::LockRow;
use wf_core::models::{Principal, StepId, Timestamp, Workflow};
use wf_core::policy::Effect;
use wf_core::ports::{Message, OutboxRow, OutboxState, OutboxStatus};
use wf_core::state_machine::{Event, EventBody};

use super::{Frame, Place, assets, framed, messages, overview, sign_in, workflow};
use crate::console::Visitor;
use crate::notices::Notice;
use crate::times::Times;

const AT: &str = "2026-11-30T10:00:00.000Z";
const HASH: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

const MADE: &str = "v1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// What somebody may write: markup, ends of attributes, another direction, controls, ten thousand characters.
fn texts() -> [String; 5] {
    [
        "<script>alert(1)</script><img src=x onerror=alert(1)>".to_owned(),
        "\" onmouseover=\"alert(1)\" x=\"".to_owned(),
        "' autofocus onfocus='alert(1)".to_owned(),
        "\u{202e}txet\u{2066}\u{0}\u{1b}[31m</title></textarea><h1>".to_owned(),
        "ẞ<b>".repeat(2_500),
    ]
}

fn bodies(text: &str) -> Vec<Value> {
    let person = json!({"id": format!("user:{text}"), "name": text});
    let asset = json!({"role": "thing", "id": "T-1", "say": text, "fence": 1});
    let reading =
        json!({"given": text, "given_unit": text, "value": format!("{text}!"), "unit": text});
    let recording = json!({"step_id": "one", "attempt": 2, "reading": reading, "out_of_range": true,
        "deviation": "CODE", "warnings": [text], "note": text, "confirmed_by": "token",
        "signed": {"seq": 1, "digest": HASH}});
    let mut corrected = recording.clone();
    corrected["reason_code"] = json!("WHY");
    let told = json!([{"to": text, "respond_within_ms": 60_000}]);
    [
        ("workflow_started", json!({"tenant": "t", "procedure": {"id": "p", "version": 1, "digest": HASH},
            "label": text, "assets": [asset], "inputs": {text: text}, "owner": person})),
        ("orchestration_acknowledged", json!({"fence": 1})),
        ("step_recorded", recording),
        ("step_corrected", corrected),
        ("recheck_required", json!({"step_id": "one", "because_of": "two"})),
        ("step_not_needed", json!({"step_id": "one", "because_of": "two"})),
        ("wait_started", json!({"step_id": "one", "until": AT})),
        ("step_skipped", json!({"step_id": "one", "reason_code": "WHY", "note": text})),
        ("workflow_blocked", json!({"block_id": "block-1", "code": "WHY", "step_id": "one", "reported": true,
            "summary": text, "severity": "high", "escalated_to": text, "respond_within_ms": 60_000, "then": told})),
        ("problem_noted", json!({"step_id": "one", "summary": text})),
        ("block_resolved", json!({"block_id": "block-1", "decision": "go", "effect": "redo", "comment": text})),
        ("block_acknowledged", json!({"block_id": "block-1", "by": person})),
        ("ownership_offered", json!({"to": person})),
        ("offer_withdrawn", json!({"declined": true})),
        ("ownership_transferred", json!({"to": person, "taken_over": true, "reason_code": "WHY", "assets": []})),
        ("lock_released", json!({"asset_id": "T-1", "reason": text})),
        ("workflow_completed", json!({"result": "passed", "note": text, "confirmed_by": "elicitation"})),
        ("deadline_passed", json!({"deadline_id": text, "name": text, "block_id": "block-1"})),
        ("escalated", json!({"block_id": "block-1", "to": text, "respond_within_ms": 60_000, "then": told})),
    ]
    .map(|(kind, data)| json!({"kind": kind, "data": data}))
    .into()
}

fn events(text: &str) -> Vec<Event> {
    let event = |(index, mut body): (usize, Value)| {
        let envelope = json!({"v": 1, "workflow_id": "w-1", "seq": index + 1, "at": AT,
            "actor": format!("user:{text}"), "actor_name": text,
            "cause": {"key": "k", "fingerprint": MADE, "natural": MADE}, "prev_hash": HASH, "hash": HASH,
            "sensitive": [{"name": "value", "salt": "ab", "value": "THE-SECRET"}]});
        let more = envelope.as_object().cloned().unwrap();
        body.as_object_mut().unwrap().extend(more);
        // A subject has at most 255 bytes; the long text is none.
        if text.len() > 200 {
            body["actor"] = json!("user:somebody");
            let shorter = body.to_string().replace(&format!("user:{text}"), "user:somebody");
            body = serde_json::from_str(&shorter).unwrap();
        }
        serde_json::from_value(body.clone()).unwrap_or_else(|error| unreachable!("{error}: {body}"))
    };
    bodies(text).into_iter().enumerate().map(event).collect()
}

fn state(text: &str) -> Workflow {
    let subject = if text.len() > 200 { "somebody" } else { text };
    let person = json!({"id": format!("user:{subject}"), "name": text});
    let touch = json!({"seq": 1, "actor": "user:x", "cause": {"key": "k", "fingerprint": MADE, "natural": MADE}});
    serde_json::from_value(json!({
        "tenant": "t", "id": "w-1", "procedure": {"id": "p", "version": 1, "digest": HASH},
        "label": {"en": text}, "phase": "BLOCKED", "result": "passed", "revision": 250, "last_hash": HASH,
        "owner": person, "offer": {"to": person, "at": AT},
        "assets": [{"role": "thing", "id": "T-1", "say": text, "fence": 1}],
        "inputs": {text: text, "list": [text]}, "withheld_inputs": [text], "steps": {},
        "blocks": [{"id": "block-1", "code": "WHY", "step_id": "one", "reported": true, "summary": text,
            "severity": "high", "escalated_to": text, "escalated_at": AT, "unanswered_since": AT,
            "acknowledged_by": person, "acknowledged_at": AT, "at": AT, "by": person, "touch": touch}],
        "start_touch": touch, "started_at": AT, "updated_at": AT, "last_activity": AT, "fence": 0,
        "deadlines": {"d": {"fire_at": AT, "about": "workflow", "name": text, "notify": text}},
    }))
    .unwrap()
}

fn portrait(text: &str) -> Portrait {
    let row = lock(text);
    let step = |id: &str| (StepId::parse(id).unwrap(), text.to_owned());
    let workflow = state(text);
    let decisions = vec![("go".to_owned(), text.to_owned(), Effect::Continue)];
    let question = BlockQuestion { question: text.to_owned(), decisions };
    Portrait {
        locks: vec![row],
        steps: BTreeMap::from([step("one"), step("two")]),
        next: Some(text.to_owned()),
        progress: Some((1, 2)),
        questions: workflow.blocks.iter().map(|b| (b.id.clone(), question.clone())).collect(),
        page: 2,
        pages: 3,
        events: events(text),
        workflow,
    }
}

fn lock(text: &str) -> LockRow {
    let subject = if text.len() > 200 { "somebody" } else { text };
    serde_json::from_value(json!({"tenant": "t", "asset_id": "T-1", "fence": 1, "holder": {
        "workflow_id": "w-1", "owner": {"id": format!("user:{subject}"), "name": text}, "acquired_at": AT}}))
    .unwrap()
}

fn message(text: &str) -> OutboxRow {
    let message: Message =
        serde_json::from_value(json!({"id": text, "type": text, "time": AT, "tenant": "t",
        "workflow_id": "w-1", "seq": 3, "recipient": text, "data": {"say": text}}))
        .unwrap();
    let (now, last_error) = (Timestamp::parse(AT).unwrap(), Some(text.to_owned()));
    let status =
        OutboxStatus { state: OutboxState::Dead, attempts: 3, next_attempt_at: now, last_error };
    OutboxRow { message, status }
}

/// Every page with this text wherever somebody can have a say.
fn pages(text: &str) -> Vec<String> {
    let principal = Principal { name: Some(text.to_owned()), ..Principal::local() };
    let visitor =
        Visitor { principal: Arc::new(principal), form_token: text.to_owned(), signed_in: true };
    let times = Times::new("UTC", Timestamp::parse(AT).unwrap());
    let notice = Notice { text: text.to_owned(), refused: None, again: true };
    let frame = Frame { visitor: &visitor, times: times.clone(), notice: Some(notice) };
    let row = Watched { workflow: state(text), next: Some(text.to_owned()) };
    let refused = Notice { text: text.to_owned(), refused: Some("NOT_ALLOWED"), again: false };
    let no = Frame { visitor: &visitor, times: times.clone(), notice: Some(refused) };
    [
        framed(&no, Place::Overview, text, &overview::table(&frame, &[row])),
        overview::filter("open", text),
        framed(&frame, Place::Assets, text, &assets::table(&frame, &[lock(text)])),
        framed(&frame, Place::Messages, text, &messages::table(&frame, &[message(text)])),
        workflow::shown(&frame, &portrait(text), text),
        sign_in::page(&times, Some(sign_in::Say::Unknown), text),
    ]
    .map(maud::PreEscaped::into_string)
    .into()
}

/// The tags of a page with the names of their attributes, as a browser reads them (HTML, 13.2.5), values left out.
fn skeleton(page: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some((_, tag)) = rest.split_once('<') {
        let (mut names, mut quoted, mut end) = (String::new(), false, tag.len());
        for (index, c) in tag.char_indices() {
            match c {
                '"' => quoted = !quoted,
                '>' if !quoted => {
                    end = index;
                    break;
                }
                _ if quoted => {}
                other => names.push(other),
            }
        }
        tags.push(names);
        rest = tag.get(end..).unwrap_or_default();
    }
    tags
}

/// The text of a page, without its tags: a field has what somebody typed, whatever it is.
fn visible(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        let mut quoted = false;
        let end = tag.find(|c| {
            quoted ^= c == '"';
            c == '>' && !quoted
        });
        rest = tag.get(end.unwrap_or(tag.len())..).unwrap_or_default();
    }
    text
}

#[test]
fn nothing_that_anybody_wrote_is_markup() {
    let plain: Vec<_> = pages("plain").iter().map(|page| skeleton(page)).collect();
    assert!(plain.iter().all(|tags| tags.len() > 5));
    for text in texts() {
        let pages = pages(&text);
        for (page, plain) in pages.iter().zip(&plain) {
            // However odd a text is, the page has the same tags with the same attributes.
            assert_eq!(&skeleton(page), plain, "{text}");
            let visible = visible(page);
            for tricky in ['\u{202e}', '\u{2066}', '\u{0}', '\u{1b}'] {
                assert!(!visible.contains(tricky), "{tricky:?}");
            }
        }
        // The whole text is there for whoever reads one workflow.
        if text.starts_with('ẞ') {
            assert!(pages[4].matches('ẞ').count() > 2_500);
        }
    }
}

#[test]
fn a_template_that_does_not_escape_is_seen() {
    let text = texts();
    let careless = format!("<p title=\"plain\">{}</p>", text[0]);
    assert_ne!(skeleton(&careless), skeleton("<p title=\"plain\">plain</p>"));
    let careless = format!("<p title=\"{}\">plain</p>", text[1]);
    assert_ne!(skeleton(&careless), skeleton("<p title=\"plain\">plain</p>"));
}

#[test]
fn sensitive_values_are_on_no_page() {
    let withheld = events("x").into_iter().map(|mut event| {
        if let EventBody::StepRecorded(recording) = &mut event.body {
            recording.reading = recording.reading.withhold();
        }
        event
    });
    let portrait = Portrait { events: withheld.collect(), ..portrait("x") };
    let visitor = Visitor {
        principal: Arc::new(Principal::local()),
        form_token: String::new(),
        signed_in: false,
    };
    let times = Times::new("UTC", Timestamp::parse(AT).unwrap());
    let frame = Frame { visitor: &visitor, times, notice: None };
    let page = workflow::shown(&frame, &portrait, "k").into_string();
    assert!(!page.contains("THE-SECRET") && page.matches("withheld: sensitive").count() == 2);
}

#[test]
fn every_kind_of_event_is_among_the_hostile_ones() {
    let kinds: std::collections::BTreeSet<_> = events("x").iter().map(|e| e.body.kind()).collect();
    // One more in `EventBody` is one more here: `happened` does not compile without it.
    assert_eq!(kinds.len(), 19);
}
