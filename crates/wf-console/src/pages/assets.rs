//! Who holds which asset, since when; which were held before and are free.

use maud::{Markup, html};
use wf_core::engine::Engine;
use wf_core::locks::LockRow;
use wf_core::ports::Cursor;
use wf_core::state_machine::Rejection;

use super::{Frame, Place, ROWS, framed, person, short, workflow_path};
use crate::request::{Fields, ROOT, link};

/// The page.
pub(crate) async fn page(
    engine: &Engine,
    frame: &Frame<'_>,
    query: &Fields,
) -> Result<Markup, Rejection> {
    let path = format!("{ROOT}/assets");
    let after = query.get("after").map(|after| Cursor(after.to_owned()));
    let page = engine.lock_rows(&frame.visitor.principal, after.as_ref(), ROWS).await?;
    let next = page.next.as_ref().map_or("", |next| next.0.as_str());
    let body = html! {
        h1 { "Assets" }
        p.quiet {
            "An asset is held until its workflow ends, hands it over, or a supervisor releases it on the workflow's page. "
            "No time limit frees it."
        }
        @if page.items.is_empty() {
            p.empty { "No asset was ever held." }
        } @else {
            (table(frame, &page.items))
        }
        div.below {
            nav aria-label="More of the list" {
                @if after.is_some() { a href=(path) { "First page" } " " }
                @if !next.is_empty() { a href=(link(&path, &[("after", next)])) { "Next page" } }
            }
        }
    };
    Ok(framed(frame, Place::Assets, "Assets", &body))
}

pub(super) fn table(frame: &Frame<'_>, rows: &[LockRow]) -> Markup {
    html! {
        table role="table" {
            caption.hidden { "Assets by id" }
            thead role="rowgroup" {
                tr role="row" {
                    @for heading in ["Asset", "Held by", "Since", "For", "Changed hands"] {
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

fn line(frame: &Frame<'_>, row: &LockRow) -> Markup {
    let holder = row.holder.as_ref();
    html! {
        tr role="row" {
            th scope="row" role="rowheader" data-label="Asset" { (short(row.asset_id.as_str())) }
            td role="cell" data-label="Held by" {
                @match holder {
                    Some(holder) => (person(&holder.owner)),
                    None => { span.phase.created { span aria-hidden="true" { "○" } " Free" } }
                }
            }
            td role="cell" data-label="Since" {
                @match holder { Some(holder) => (frame.times.since(holder.acquired_at)), None => "–" }
            }
            td role="cell" data-label="For" {
                @match holder {
                    Some(holder) => {
                        a href=(workflow_path(&holder.workflow_id)) { (short(holder.workflow_id.as_str())) }
                    }
                    None => "–",
                }
            }
            td role="cell" data-label="Changed hands" {
                (row.fence) @if row.fence == 1 { " time" } @else { " times" }
            }
        }
    }
}
