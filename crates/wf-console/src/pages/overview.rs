//! Which work is open, stopped or over: by pages, by phase, by words.

use maud::{Markup, html};
use wf_core::engine::{Engine, WatchQuery, Watched};
use wf_core::limits::{QUERY_CHARS_MAX, WATCHED_ROWS_MAX};
use wf_core::models::Phase;
use wf_core::ports::Cursor;
use wf_core::state_machine::Rejection;

use super::{
    Frame, Place, REFRESH_S, ROWS, asked, framed, meta, person, phase, phase_word, short, worded,
    workflow_path,
};
use crate::request::{Fields, ROOT, link};

/// The phases that the filter offers, and how the address calls them.
const CHOICES: [(&str, Option<Phase>); 5] = [
    ("open", None),
    ("blocked", Some(Phase::Blocked)),
    ("running", Some(Phase::Running)),
    ("created", Some(Phase::Created)),
    ("completed", Some(Phase::Completed)),
];

/// The page.
pub(crate) async fn page(
    engine: &Engine,
    frame: &Frame<'_>,
    query: &Fields,
) -> Result<Markup, Rejection> {
    let chosen = query.get("show").and_then(|show| CHOICES.iter().find(|(name, _)| *name == show));
    let (show, only) = *chosen.unwrap_or(&CHOICES[0]);
    let words: String = query.get("q").unwrap_or_default().chars().take(QUERY_CHARS_MAX).collect();
    let after = query.get("after");
    let watch = WatchQuery {
        phase: only,
        words: words.clone(),
        after: after.map(|after| Cursor(after.to_owned())),
        limit: ROWS,
    };
    let page = engine.watched(&frame.visitor.principal, &watch, &meta()).await?;
    let next = page.next.as_ref().map_or("", |next| next.0.as_str());
    let refreshes = query.get("refresh") == Some(REFRESH_S);
    let place = |after: &str, refresh: &str| {
        link(ROOT, &[("show", show), ("q", &words), ("after", after), ("refresh", refresh)])
    };
    let body = html! {
        h1 { "Work" }
        (filter(show, &words))
        @if page.items.is_empty() {
            p.empty { (nothing(!words.is_empty(), next.is_empty())) }
        } @else {
            (table(frame, &page.items))
        }
        div.below {
            nav aria-label="More of the list" {
                @if after.is_some() { a href=(place("", "")) { "First page" } " " }
                @if !next.is_empty() { a href=(place(next, "")) { "Next page" } }
            }
            p {
                @if refreshes {
                    "This page refreshes every " (REFRESH_S) " seconds. "
                    a href=(place(after.unwrap_or_default(), "")) { "Stop refreshing" }
                } @else {
                    a href=(place(after.unwrap_or_default(), REFRESH_S)) {
                        "Refresh every " (REFRESH_S) " seconds"
                    }
                }
            }
        }
    };
    Ok(framed(frame, Place::Overview, "Work", &body))
}

fn nothing(with_words: bool, is_end: bool) -> String {
    match (with_words, is_end) {
        (true, true) => "Nothing here is called so.".to_owned(),
        (true, false) => {
            format!(
                "Of the {WATCHED_ROWS_MAX} workflows looked at, none is called so. The next page goes on."
            )
        }
        (false, _) => "There is nothing here.".to_owned(),
    }
}

pub(super) fn filter(show: &str, words: &str) -> Markup {
    html! {
        form.filter method="get" action=(ROOT) role="search" aria-label="Filter the list" {
            div {
                label for="show" { "Show" }
                select #show name="show" {
                    @for (name, only) in CHOICES {
                        option value=(name) selected[name == show] {
                            (only.map_or("All open, stopped first", phase_word))
                        }
                    }
                }
            }
            div {
                label for="q" { "Called" }
                input #q type="search" name="q" value=(words) maxlength=(QUERY_CHARS_MAX) autocomplete="off";
            }
            button type="submit" { "Filter" }
        }
    }
}

pub(super) fn table(frame: &Frame<'_>, rows: &[Watched]) -> Markup {
    html! {
        table role="table" {
            caption.hidden { "Workflows" }
            thead role="rowgroup" {
                tr role="row" {
                    @for heading in ["Work", "State", "Age", "Driven by", "Next"] {
                        th scope="col" role="columnheader" { (heading) }
                    }
                }
            }
            tbody role="rowgroup" {
                @for row in rows { (line(frame, row)) }
            }
        }
    }
}

fn line(frame: &Frame<'_>, row: &Watched) -> Markup {
    let workflow = &row.workflow;
    html! {
        tr role="row" {
            th scope="row" role="rowheader" data-label="Work" {
                a href=(workflow_path(&workflow.id)) { (short(worded(&workflow.label))) }
            }
            td role="cell" data-label="State" {
                (phase(workflow.phase))
                @if let Some(block) = workflow.blocks.first() {
                    " " (frame.times.since(block.at))
                }
            }
            td role="cell" data-label="Age" {
                @match workflow.completed_at {
                    Some(at) => { "finished " (frame.times.at(at)) }
                    None => { (frame.times.since(workflow.started_at)) }
                }
            }
            td role="cell" data-label="Driven by" {
                (person(&workflow.owner))
                @if let Some(offer) = &workflow.offer {
                    " "
                    span.quiet {
                        "offered to "
                        @match &offer.to { Some(to) => (short(to.spoken())), None => "anybody" }
                    }
                }
            }
            td role="cell" data-label="Next" {
                @match (&row.next, &workflow.result) {
                    (Some(next), _) => (short(asked(next))),
                    (None, Some(result)) => { "result " (short(result.as_str())) }
                    (None, None) => "–",
                }
            }
        }
    }
}
