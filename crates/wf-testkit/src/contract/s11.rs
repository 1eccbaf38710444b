//! S11: events of one workflow are gapless and immutable.

use serde_json::{Map, json};
use wf_core::models::{
    Actor, BlockId, Digest, Reading, ReasonCode, Recipient, Severity, StartDeadline, Text,
};
use wf_core::policy::Effect;
use wf_core::ports::Conflict;
use wf_core::state_machine::event::ConfirmedBy;
use wf_core::state_machine::{EventBody, Recording, SensitiveValue, Signature};

use super::cast::{ann, bob, plant, start, step_after, wf};
use super::look::{self, MANY};
use super::{ContractFixture, Verdict, check_eq};
use crate::build::{CommitBuilder, asset, at, person, step};

/// Events are read in order from any place, at most as many as asked for; none of an unknown workflow.
///
/// # Errors
/// When the store breaks the law.
pub async fn s11_events_are_gapless(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let mut last = start(1).note("one").note("two").build();
    let mut history = last.events.clone();
    store.commit(last.clone()).await?;
    store.commit(start(2).note("of another workflow").build()).await?;
    for round in 0..7 {
        let note = format!("round {round}");
        let next = step_after(&last, 10).note(&note).build();
        store.commit(next.clone()).await?;
        history.extend(next.events.clone());
        last = next;
    }
    check_eq!(history.len(), 17, "events");
    for after in [0_usize, 1, 2, 3, 10, 16, 17, 18] {
        for limit in [0_usize, 1, 3, 16, 17, 100] {
            let place = u64::try_from(after).unwrap_or(u64::MAX);
            let most = u32::try_from(limit).unwrap_or(u32::MAX);
            let seen = store.events(&plant(), &wf(1), place, most).await?;
            let part: Vec<_> = history.iter().skip(after).take(limit).cloned().collect();
            check_eq!(seen, part, "{limit} events after {after}");
        }
    }
    check_eq!(look::events(&store, &plant(), &wf(3)).await?, [], "an unknown workflow");
    let beyond = store.events(&plant(), &wf(1), u64::MAX, MANY).await?;
    check_eq!(beyond, [], "events after the last place there can be");
    Ok(())
}

/// Events come back as they were written, whatever their kind and text, from another handle too.
///
/// # Errors
/// When the store breaks the law.
pub async fn s11_events_come_back_as_written(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).acquire(&asset("PUMP-7"), 1).block().offer(None).build();
    store.commit(first.clone()).await?;
    let value = json!({ "text": "geheim \u{0000} \u{1F512}", "list": [1, -2.5, null, true] });
    let salted = SensitiveValue::new("value", "0123456789abcdef0123456789abcdef", value);
    let mut builder = CommitBuilder::next(&first.next, at(100_000)).by(&bob());
    for body in bodies() {
        builder = builder.event(body);
    }
    let second = builder.event_with(withheld(), vec![salted]).build();
    store.commit(second.clone()).await?;
    let system = Actor::System("orchestrator".to_owned());
    let third = CommitBuilder::next(&second.next, at(200_000)).by(&system);
    let third = third.event(EventBody::OrchestrationAcknowledged { fence: u64::from(u32::MAX) });
    let third = third.build();
    store.commit(third.clone()).await?;

    let history = [first.events, second.events, third.events].concat();
    for handle in [&store, &fixture.reopen().await?] {
        let seen = look::events(handle, &plant(), &wf(1)).await?;
        check_eq!(seen, history, "the history");
    }
    Ok(())
}

fn withheld() -> EventBody {
    EventBody::StepRecorded(Recording {
        step_id: step("secret"),
        attempt: 1,
        reading: Reading::default().withhold(),
        sensitive_digest: Some(Digest::of(b"salted")),
        out_of_range: false,
        deviation: None,
        warnings: Vec::new(),
        note: None,
        confirmed_by: None,
        signed: None,
    })
}

/// Bodies with optional parts present, and text that a store may be tempted to change.
fn bodies() -> Vec<EventBody> {
    let odd = "  'quoted' \"twice\" % _ \\ \n\t é e\u{301} 漢字 \u{1F6E0}  ";
    vec![
        EventBody::StepRecorded(Recording {
            step_id: step("pressure"),
            attempt: 1,
            reading: Reading {
                given: "4.20".to_owned(),
                given_unit: Some("bar".to_owned()),
                value: "420".to_owned(),
                unit: Some("kPa".to_owned()),
                exact: Some("840/2".to_owned()),
                withheld: false,
            },
            sensitive_digest: None,
            out_of_range: true,
            deviation: None,
            warnings: vec![Text::One(odd.to_owned())],
            note: Some(odd.to_owned()),
            confirmed_by: Some(ConfirmedBy::Token),
            signed: Some(Signature { seq: 8, digest: Digest::of(b"signed") }),
        }),
        EventBody::WorkflowBlocked {
            block_id: BlockId::of_seq(9),
            code: reason("leak"),
            step_id: Some(step("pressure")),
            reported: false,
            summary: Some(String::new()),
            severity: Severity::Low,
            escalated_to: Some("maintenance-lead".to_owned()),
            respond_within_ms: Some(900_000),
            then: vec![Recipient::last(odd)],
        },
        EventBody::BlockResolved {
            block_id: BlockId::of_seq(9),
            decision: "go_on".parse().unwrap_or_else(|_| unreachable!("a constant")),
            effect: Effect::Redo,
            step_id: Some(step("pressure")),
            comment: Some(odd.to_owned()),
        },
        EventBody::BlockAcknowledged { block_id: BlockId::of_seq(9), by: person(&ann()) },
        EventBody::StepSkipped {
            step_id: step("optional"),
            reason_code: Some(reason("not.there")),
            note: None,
        },
        EventBody::LockReleased { asset_id: asset("PUMP-7"), reason: odd.to_owned() },
        EventBody::WorkflowStarted {
            tenant: plant(),
            procedure: crate::build::procedure(),
            label: Text::from(odd),
            assets: Vec::new(),
            inputs: Map::from_iter([("b".to_owned(), json!(1)), ("a".to_owned(), json!([{}]))]),
            sensitive_inputs: Map::from_iter([("pin".to_owned(), json!("digest"))]),
            owner: person(&bob()),
            deadlines: vec![StartDeadline {
                id: odd.to_owned(),
                after_ms: 1,
                notify: odd.to_owned(),
            }],
        },
    ]
}

fn reason(text: &str) -> ReasonCode {
    text.parse().unwrap_or_else(|_| unreachable!("a constant"))
}

/// No commit, taken or refused, changes an event that is there.
///
/// # Errors
/// When the store breaks the law.
pub async fn s11_events_are_immutable(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).build();
    store.commit(first.clone()).await?;
    let second = step_after(&first, 10).note("true").build();
    store.commit(second.clone()).await?;
    let history = [first.events.clone(), second.events.clone()].concat();

    // Another story with the same places.
    let forged = step_after(&first, 20).note("false").key("forged").build();
    look::refused(&store, &forged, Conflict::Revision { current: 3 }).await?;
    let seen = look::events(&store, &plant(), &wf(1)).await?;
    check_eq!(seen, history, "the history after a forgery");

    let third = step_after(&second, 30).complete().build();
    store.commit(third.clone()).await?;
    let seen = look::events(&store, &plant(), &wf(1)).await?;
    check_eq!(seen, [history, third.events].concat(), "the history after the end");
    Ok(())
}
