//! What happened, event by event, for people: who did what when, with attempts, corrections, read-backs, blocks, handovers and
//! who was told. Sensitive values are not in what the chain holds, so they cannot be shown.

use maud::{Markup, html};
use wf_core::engine::Portrait;
use wf_core::models::{ReasonCode, Recipient, StepId};
use wf_core::policy::Effect;
use wf_core::state_machine::EventBody;
use wf_core::state_machine::event::{ConfirmedBy, Recording};

use super::{Frame, actor, code, person, said, short, worded};
use crate::times::lasting;

/// The events of the page.
pub(crate) fn list(frame: &Frame<'_>, portrait: &Portrait) -> Markup {
    html! {
        ol.timeline start=(portrait.events.first().map_or(1, |event| event.seq)) {
            @for event in &portrait.events {
                li class=(weight(&event.body)) id={ "event-" (event.seq) } {
                    p.what { (happened(portrait, &event.body)) }
                    (details(&event.body))
                    p.quiet {
                        span.seq { "#" (event.seq) } " "
                        (frame.times.exactly(event.at)) " by " (actor(&event.actor, event.actor_name.as_deref()))
                    }
                }
            }
        }
    }
}

/// A step by its name.
pub(crate) fn step(portrait: &Portrait, id: &StepId) -> Markup {
    match portrait.steps.get(id) {
        Some(name) => short(name),
        None => code(id.as_str()),
    }
}

/// What an event weighs for whoever skims.
const fn weight(body: &EventBody) -> &'static str {
    match body {
        EventBody::WorkflowBlocked { .. }
        | EventBody::LockReleased { .. }
        | EventBody::DeadlinePassed { .. }
        | EventBody::Escalated { .. } => "heavy",
        EventBody::WorkflowStarted { .. }
        | EventBody::StepCorrected { .. }
        | EventBody::StepSkipped { .. }
        | EventBody::ProblemNoted { .. }
        | EventBody::BlockResolved { .. }
        | EventBody::OwnershipTransferred { .. }
        | EventBody::WorkflowCompleted { .. } => "marked",
        EventBody::StepRecorded(_)
        | EventBody::OrchestrationAcknowledged { .. }
        | EventBody::RecheckRequired { .. }
        | EventBody::StepNotNeeded { .. }
        | EventBody::WaitStarted { .. }
        | EventBody::BlockAcknowledged { .. }
        | EventBody::OwnershipOffered { .. }
        | EventBody::OfferWithdrawn { .. } => "light",
    }
}

/// One sentence for each kind of event.
fn happened(portrait: &Portrait, body: &EventBody) -> Markup {
    let step = |id: &StepId| step(portrait, id);
    match body {
        EventBody::WorkflowStarted { label, owner, .. } => html! {
            "Started: " (said(worded(label))) ", driven by " (person(owner))
        },
        EventBody::OrchestrationAcknowledged { .. } => html! { "The orchestrator knows of it" },
        EventBody::StepRecorded(recording) => html! {
            (step(&recording.step_id)) ": " (value(recording))
        },
        EventBody::StepCorrected { recording, .. } => html! {
            (step(&recording.step_id)) " corrected: " (value(recording))
        },
        EventBody::RecheckRequired { step_id, because_of } => html! {
            (step(step_id)) " is to be confirmed again, because " (step(because_of)) " was corrected"
        },
        EventBody::StepNotNeeded { step_id, because_of } => html! {
            (step(step_id)) " is no longer needed, because " (step(because_of)) " changed"
        },
        EventBody::WaitStarted { step_id, .. } => html! { "A wait began: " (step(step_id)) },
        EventBody::StepSkipped { step_id, .. } => html! { (step(step_id)) " skipped" },
        EventBody::WorkflowBlocked { code: why, step_id, reported, .. } => html! {
            strong { "Stopped" } ": " (code(why.as_str()))
            @if let Some(id) = step_id { " at " (step(id)) }
            @if *reported { ", reported" }
        },
        EventBody::ProblemNoted { step_id, .. } => html! {
            "A problem was noted" @if let Some(id) = step_id { " at " (step(id)) }
        },
        EventBody::BlockResolved { decision, effect, .. } => html! {
            "Decided: " (code(decision.as_str())) ", " (led_to(*effect))
        },
        EventBody::BlockAcknowledged { by, .. } => html! { (person(by)) " knows of the stop" },
        EventBody::OwnershipOffered { .. }
        | EventBody::OfferWithdrawn { .. }
        | EventBody::OwnershipTransferred { .. } => handover(body),
        EventBody::LockReleased { asset_id, .. } => html! {
            strong { "Released by hand" } ": " (code(asset_id.as_str()))
        },
        EventBody::WorkflowCompleted { result, .. } => html! {
            "Finished: " (code(result.as_str()))
        },
        EventBody::DeadlinePassed { name, block_id, .. } => html! {
            "A deadline passed"
            @if let Some(name) = name { ": " (code(name)) }
            @if block_id.is_some() { ": nobody answered" }
        },
        EventBody::Escalated { to, .. } => html! { "Told next: " (short(to)) },
    }
}

fn handover(body: &EventBody) -> Markup {
    if let EventBody::OwnershipOffered { to } = body {
        html! { "Offered to " @match to { Some(to) => (person(to)), None => "anybody" } }
    } else if let EventBody::OfferWithdrawn { declined } = body {
        html! { @if *declined { "The offer was declined" } @else { "The offer was withdrawn" } }
    } else if let EventBody::OwnershipTransferred { to, taken_over, .. } = body {
        html! {
            @if *taken_over { "Taken over by " } @else { "Handed over to " }
            (person(to))
        }
    } else {
        html! {}
    }
}

/// The value that was recorded, as it was given and as it was understood.
fn value(recording: &Recording) -> Markup {
    let reading = &recording.reading;
    if reading.withheld {
        return html! { em { "withheld: sensitive" } };
    }
    let unit = |unit: &Option<String>| html! { @if let Some(unit) = unit { " " (short(unit)) } };
    let same = reading.given == reading.value && reading.given_unit == reading.unit;
    html! {
        strong { (said(&reading.given)) (unit(&reading.given_unit)) }
        @if !same && !reading.value.is_empty() {
            " " span.quiet { "understood as " (said(&reading.value)) (unit(&reading.unit)) }
        }
    }
}

/// What else the event says, as label and value.
fn details(body: &EventBody) -> Markup {
    let rows: Vec<(&str, Markup)> = match body {
        EventBody::StepRecorded(recording) => recorded(recording),
        EventBody::StepCorrected { recording, reason_code } => {
            let mut rows = recorded(recording);
            rows.push(("Reason", code(reason_code.as_str())));
            rows
        }
        EventBody::StepSkipped { reason_code, note, .. } => {
            [reason(reason_code.as_ref()), noted(note.as_deref())].into_iter().flatten().collect()
        }
        EventBody::WorkflowBlocked { summary, escalated_to, respond_within_ms, then, .. } => {
            let mut rows = Vec::new();
            rows.extend(summary.as_ref().map(|text| ("Reported", said(text))));
            rows.extend(escalated_to.as_ref().map(|to| ("Told", sent(to, *respond_within_ms))));
            rows.extend(then_told(then));
            rows
        }
        EventBody::Escalated { to, respond_within_ms, then, .. } => {
            let mut rows = vec![("Told", sent(to, *respond_within_ms))];
            rows.extend(then_told(then));
            rows
        }
        EventBody::ProblemNoted { summary, .. } => vec![("Reported", said(summary))],
        EventBody::BlockResolved { comment, .. } => {
            comment.iter().map(|text| ("Why", said(text))).collect()
        }
        EventBody::OwnershipTransferred { reason_code, .. } => {
            reason(reason_code.as_ref()).into_iter().collect()
        }
        EventBody::LockReleased { reason, .. } => vec![("Reason", said(reason))],
        EventBody::WorkflowCompleted { note, confirmed_by, .. } => {
            noted(note.as_deref()).into_iter().chain(confirmed(*confirmed_by)).collect()
        }
        EventBody::WorkflowStarted { .. }
        | EventBody::OrchestrationAcknowledged { .. }
        | EventBody::RecheckRequired { .. }
        | EventBody::StepNotNeeded { .. }
        | EventBody::WaitStarted { .. }
        | EventBody::BlockAcknowledged { .. }
        | EventBody::OwnershipOffered { .. }
        | EventBody::OfferWithdrawn { .. }
        | EventBody::DeadlinePassed { .. } => Vec::new(),
    };
    html! {
        @if !rows.is_empty() {
            dl.details { @for (label, value) in rows { div { dt { (label) } dd { (value) } } } }
        }
    }
}

fn recorded(recording: &Recording) -> Vec<(&'static str, Markup)> {
    let mut rows = Vec::new();
    if recording.attempt > 1 {
        rows.push(("Attempt", html! { (recording.attempt) }));
    }
    if recording.out_of_range {
        rows.push(("Range", html! { strong { "outside what is accepted" } }));
    }
    rows.extend(recording.deviation.as_ref().map(|why| ("Deviation", code(why.as_str()))));
    rows.extend(recording.warnings.iter().map(|text| ("Warning", said(worded(text)))));
    rows.extend(noted(recording.note.as_deref()));
    rows.extend(confirmed(recording.confirmed_by));
    let signed = recording.signed.as_ref();
    rows.extend(signed.map(|s| ("Signed", html! { "everything up to #" (s.seq) })));
    rows
}

fn confirmed(by: Option<ConfirmedBy>) -> Option<(&'static str, Markup)> {
    let how = match by? {
        ConfirmedBy::Token => "confirmed by the person through the assistant",
        ConfirmedBy::Elicitation => "confirmed by the person in the client",
    };
    Some(("Read back", html! { (how) }))
}

fn noted(note: Option<&str>) -> Option<(&'static str, Markup)> {
    note.map(|note| ("Note", said(note)))
}

fn reason(reason: Option<&ReasonCode>) -> Option<(&'static str, Markup)> {
    reason.map(|reason| ("Reason", code(reason.as_str())))
}

fn sent(to: &str, within_ms: Option<i64>) -> Markup {
    html! { (short(to)) @if let Some(ms) = within_ms { ", to answer within " (lasting(ms)) } }
}

fn then_told(then: &[Recipient]) -> Option<(&'static str, Markup)> {
    let names = || then.iter().map(|next| short(&next.to));
    (!then.is_empty()).then(|| {
        (
            "Then",
            html! { @for (index, name) in names().enumerate() { @if index > 0 { ", " } (name) } },
        )
    })
}

const fn led_to(effect: Effect) -> &'static str {
    match effect {
        Effect::Continue => "the work goes on",
        Effect::Redo => "the step is done again",
        Effect::Abort => "the work is ended",
    }
}
