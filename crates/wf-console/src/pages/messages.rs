//! Messages that are to be delivered, and those that were given up. For supervisors.

use maud::{Markup, html};
use wf_core::engine::Engine;
use wf_core::ports::{Cursor, OutboxQuery, OutboxRow, OutboxState};
use wf_core::state_machine::Rejection;

use super::{Frame, Place, ROWS, framed, said, short, workflow_path};
use crate::request::{Fields, ROOT, link};

const CHOICES: [(&str, &str, OutboxState); 3] = [
    ("dead", "Given up", OutboxState::Dead),
    ("pending", "To be delivered", OutboxState::Pending),
    ("delivered", "Delivered", OutboxState::Delivered),
];

/// The page.
pub(crate) async fn page(
    engine: &Engine,
    frame: &Frame<'_>,
    query: &Fields,
) -> Result<Markup, Rejection> {
    let path = format!("{ROOT}/messages");
    let chosen = query.get("show").and_then(|show| CHOICES.iter().find(|(name, ..)| *name == show));
    let (show, title, state) = *chosen.unwrap_or(&CHOICES[0]);
    let after = query.get("after").map(|after| Cursor(after.to_owned()));
    let asked = OutboxQuery { state: Some(state), after: after.clone(), limit: ROWS };
    let page = engine.messages(&frame.visitor.principal, &asked).await?;
    let next = page.next.as_ref().map_or("", |next| next.0.as_str());
    let body = html! {
        h1 { "Messages" }
        nav.tabs aria-label="Which messages" {
            ul {
                @for (name, text, _) in CHOICES {
                    li {
                        a href=(link(&path, &[("show", name)]))
                            aria-current=[(name == show).then_some("page")] { (text) }
                    }
                }
            }
        }
        h2 { (title) }
        @if state == OutboxState::Dead {
            p.quiet { "Send one again with " code { "wf-cli outbox retry ID" } "." }
        }
        @if page.items.is_empty() {
            p.empty { @if next.is_empty() { "There is none." } @else { "None on this page." } }
        } @else {
            (table(frame, &page.items))
        }
        div.below {
            nav aria-label="More of the list" {
                @if after.is_some() { a href=(link(&path, &[("show", show)])) { "First page" } " " }
                @if !next.is_empty() {
                    a href=(link(&path, &[("show", show), ("after", next)])) { "Next page" }
                }
            }
        }
    };
    Ok(framed(frame, Place::Messages, "Messages", &body))
}

pub(super) fn table(frame: &Frame<'_>, rows: &[OutboxRow]) -> Markup {
    html! {
        table role="table" {
            caption.hidden { "Messages" }
            thead role="rowgroup" {
                tr role="row" {
                    @for heading in ["Message", "To", "Of", "Tries", "Last failure"] {
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

fn line(frame: &Frame<'_>, row: &OutboxRow) -> Markup {
    let (message, status) = (&row.message, &row.status);
    html! {
        tr role="row" {
            th scope="row" role="rowheader" data-label="Message" {
                (short(&message.kind.replace('_', " ")))
                " "
                a href=(workflow_path(&message.workflow_id)) { "event " (message.seq) }
                " " span.quiet.id { (said(&message.id)) }
            }
            td role="cell" data-label="To" { (short(&message.recipient)) }
            td role="cell" data-label="Of" { (frame.times.ago(message.time)) }
            td role="cell" data-label="Tries" {
                (status.attempts) " failed"
                @match status.state {
                    OutboxState::Pending => { ", next " (frame.times.at(status.next_attempt_at)) }
                    OutboxState::Dead => { ", given up " (frame.times.at(status.next_attempt_at)) }
                    OutboxState::Delivered => {}
                }
            }
            td role="cell" data-label="Last failure" {
                @match &status.last_error { Some(error) => (short(error)), None => "–" }
            }
        }
    }
}
