//! One workflow: how it stands, what it waits for, what it holds, and everything that happened.

use maud::{Markup, html};
use wf_core::engine::{BlockQuestion, Engine, Portrait};
use wf_core::limits::FREE_TEXT_CHARS_MAX;
use wf_core::models::{Block, HeldAsset, Phase, Severity, WorkflowId};
use wf_core::policy::Effect;
use wf_core::state_machine::{Rejection, deadlines};

use super::{
    Frame, Place, asked, code, framed, meta, person, phase, said, short, timeline, worded,
    workflow_path,
};
use crate::request::{Fields, link};

/// The page. `key` is for its forms: each form adds what it is about.
pub(crate) async fn page(
    engine: &Engine,
    frame: &Frame<'_>,
    id: &WorkflowId,
    query: &Fields,
    key: &str,
) -> Result<Markup, Rejection> {
    // What is no number is no page either.
    let page = query.get("page").map(|page| page.parse().unwrap_or(0));
    let portrait = engine.portrait(&frame.visitor.principal, id, page, &meta()).await?;
    Ok(shown(frame, &portrait, key))
}

pub(super) fn shown(frame: &Frame<'_>, portrait: &Portrait, key: &str) -> Markup {
    let workflow = &portrait.workflow;
    let id = &workflow.id;
    let title = worded(&workflow.label);
    let body = html! {
        h1 { (said(title)) }
        (facts(frame, portrait))
        @for block in &workflow.blocks {
            (stopped(frame, portrait, block, portrait.questions.get(&block.id), key))
        }
        (assets(frame, portrait, key))
        section aria-labelledby="history" {
            h2 #history { "History" }
            (pages(id, portrait))
            (timeline::list(frame, portrait))
            (pages(id, portrait))
        }
        section aria-labelledby="evidence" {
            h2 #evidence { "Evidence" }
            p {
                "One document with the whole history and the definition, which "
                code { "wf-cli verify-evidence" } " checks without this server. "
                a href={ (workflow_path(id)) "/evidence" } { "Download the evidence" }
            }
        }
    };
    framed(frame, Place::Elsewhere, title, &body)
}

fn facts(frame: &Frame<'_>, portrait: &Portrait) -> Markup {
    let workflow = &portrait.workflow;
    let times = &frame.times;
    html! {
        dl.facts {
            div { dt { "State" } dd { (phase(workflow.phase)) } }
            @if let Some(result) = &workflow.result {
                div { dt { "Result" } dd { (short(result.as_str())) } }
            }
            @if let Some(next) = &portrait.next {
                div { dt { "Next" } dd { (said(asked(next))) } }
            }
            @if let Some((settled, required)) = portrait.progress {
                div { dt { "Required steps" } dd { (settled) " of " (required) " settled" } }
            }
            div { dt { "Driven by" } dd { (person(&workflow.owner)) } }
            @if let Some(offer) = &workflow.offer {
                div {
                    dt { "Offered to" }
                    dd {
                        @match &offer.to { Some(to) => (person(to)), None => "anybody" }
                        " " (times.since(offer.at))
                    }
                }
            }
            div { dt { "Started" } dd { (times.ago(workflow.started_at)) } }
            @if let Some(at) = workflow.completed_at {
                div { dt { "Finished" } dd { (times.at(at)) } }
            } @else {
                div { dt { "Last activity" } dd { (times.ago(workflow.last_activity)) } }
            }
            @for deadline in workflow.deadlines.values() {
                div { dt { "Deadline" } dd { (times.at(deadline.fire_at)) } }
            }
            @for (name, value) in &workflow.inputs {
                div {
                    dt { (short(name)) }
                    dd { @match value.as_str() { Some(text) => (said(text)), None => (said(&value.to_string())) } }
                }
            }
            @for name in &workflow.withheld_inputs {
                div { dt { (short(name)) } dd { em { "withheld: sensitive" } } }
            }
            div {
                dt { "Procedure" }
                dd { (short(workflow.procedure.id.as_str())) ", version " (workflow.procedure.version) }
            }
            div { dt { "Workflow" } dd { code.id { (workflow.id) } " revision " (workflow.revision) } }
        }
    }
}

/// An open block, and the form to decide on it.
fn stopped(
    frame: &Frame<'_>,
    portrait: &Portrait,
    block: &Block,
    question: Option<&BlockQuestion>,
    key: &str,
) -> Markup {
    let heading = format!("stopped-{}", block.id);
    let urgency = match block.severity {
        Severity::Note => "to be noted",
        Severity::Low => "not urgent",
        Severity::High => "urgent",
    };
    html! {
        section.block aria-labelledby=(heading) {
            h2 id=(heading) { span aria-hidden="true" { "■ " } "Stopped (" (urgency) ")" }
            @if let Some(question) = question { p { strong { (said(&question.question)) } } }
            dl.facts {
                div { dt { "Because of" } dd { (code(block.code.as_str())) } }
                @if let Some(step) = &block.step_id {
                    div { dt { "Step" } dd { (timeline::step(portrait, step)) } }
                }
                @if let Some(summary) = &block.summary {
                    div { dt { "Reported" } dd { "“" (said(summary)) "”" } }
                }
                div { dt { "Stopped" } dd { (frame.times.since(block.at)) " by " (person(&block.by)) } }
                (told(frame, portrait, block))
            }
            @match question {
                Some(question) if frame.visitor.principal.scopes.supervise => {
                    (decide(frame, portrait, block, question, key))
                }
                Some(_) => { p.quiet { "A supervisor decides here." } }
                None => {
                    p.quiet { "What may be decided is not known here: this server cannot read the definition." }
                }
            }
        }
    }
}

/// Who was told of a block, and whether they answered.
fn told(frame: &Frame<'_>, portrait: &Portrait, block: &Block) -> Markup {
    html! {
        @if let Some(to) = &block.escalated_to {
            div {
                dt { "Told" }
                dd {
                    (short(to))
                    @if let Some(at) = block.escalated_at { " " (frame.times.ago(at)) }
                    @if let Some(due) = deadlines::response_due(&portrait.workflow, &block.id) {
                        ", to answer until " (frame.times.at(due))
                    }
                    @if let Some(at) = block.unanswered_since { ", unanswered " (frame.times.since(at)) }
                }
            }
        }
        @if let Some(by) = &block.acknowledged_by {
            div {
                dt { "Acknowledged" }
                dd {
                    (person(by))
                    @if let Some(at) = block.acknowledged_at { " " (frame.times.ago(at)) }
                }
            }
        }
    }
}

fn decide(
    frame: &Frame<'_>,
    portrait: &Portrait,
    block: &Block,
    question: &BlockQuestion,
    key: &str,
) -> Markup {
    let comment = format!("comment-{}", block.id);
    html! {
        form.card method="post" action={ (workflow_path(&portrait.workflow.id)) "/resolve" } {
            input type="hidden" name="form_token" value=(frame.visitor.form_token);
            input type="hidden" name="key" value={ (key) "_" (block.id) };
            input type="hidden" name="block_id" value=(block.id);
            fieldset {
                legend { "Decision" }
                @for (index, (id, say, effect)) in question.decisions.iter().enumerate() {
                    @let choice = format!("decision-{}-{index}", block.id);
                    div.choice {
                        input type="radio" id=(choice) name="decision" value=(id) required;
                        label for=(choice) {
                            (said(say)) " " span.quiet { "(" (leads_to(*effect)) ")" }
                        }
                    }
                }
            }
            label for=(comment) { "Why, in your words" }
            textarea id=(comment) name="comment" required rows="2" maxlength=(FREE_TEXT_CHARS_MAX) {}
            p.hint { "Decision and words go into the history, under your name." }
            button type="submit" { "Decide" }
        }
    }
}

const fn leads_to(effect: Effect) -> &'static str {
    match effect {
        Effect::Continue => "the work goes on with what was recorded",
        Effect::Redo => "the step is done again",
        Effect::Abort => "the work is ended",
    }
}

/// What it holds, and the forms to release it.
fn assets(frame: &Frame<'_>, portrait: &Portrait, key: &str) -> Markup {
    let workflow = &portrait.workflow;
    html! {
        @if !workflow.assets.is_empty() {
            section aria-labelledby="assets" {
                h2 #assets { "Assets" }
                ul.assets {
                    @for (index, asset) in workflow.assets.iter().enumerate() {
                        li { (held(frame, portrait, asset, index, key)) }
                    }
                }
            }
        }
    }
}

fn held(
    frame: &Frame<'_>,
    portrait: &Portrait,
    asset: &HeldAsset,
    index: usize,
    key: &str,
) -> Markup {
    let workflow = &portrait.workflow;
    let row = portrait.locks.iter().find(|row| row.is_of(workflow, asset));
    let holder = row.and_then(|row| row.holder.as_ref());
    let reason = format!("reason-{index}");
    html! {
        strong { (short(worded(&asset.say))) } " " code { (short(asset.id.as_str())) } ": "
        @match holder {
            Some(holder) => { "held " (frame.times.since(holder.acquired_at)) }
            None if workflow.phase == Phase::Completed => { "given back" }
            None => { strong { "not held any more" } }
        }
        @if holder.is_some() && frame.visitor.principal.scopes.supervise {
            details {
                summary { "Release " (short(asset.id.as_str())) " by hand" }
                form.card method="post" action={ (workflow_path(&workflow.id)) "/release" } {
                    input type="hidden" name="form_token" value=(frame.visitor.form_token);
                    input type="hidden" name="key" value={ (key) "_" (index) };
                    input type="hidden" name="asset_id" value=(asset.id);
                    p {
                        "For an asset whose workflow will never give it back. The workflow stays open, and its next "
                        "step is told that it lost the asset."
                    }
                    label for=(reason) { "Reason" }
                    input id=(reason) type="text" name="reason" required maxlength=(FREE_TEXT_CHARS_MAX)
                        autocomplete="off";
                    button type="submit" { "Release " (short(asset.id.as_str())) }
                }
            }
        }
    }
}

fn pages(id: &WorkflowId, portrait: &Portrait) -> Markup {
    let path = workflow_path(id);
    let to = |page: u64| link(&path, &[("page", &page.to_string())]);
    html! {
        @if portrait.pages > 1 {
            p.pages {
                "Page " (portrait.page) " of " (portrait.pages) " "
                @if portrait.page > 1 { a href=(to(portrait.page - 1)) { "Earlier" } " " }
                @if portrait.page < portrait.pages { a href=(to(portrait.page + 1)) { "Later" } }
            }
        }
    }
}
