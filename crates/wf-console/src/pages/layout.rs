//! The frame of every page: head, skip link, navigation, what became of an action, foot.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Frame, clean, said, short};
use crate::notices::Notice;
use crate::request::{self, ROOT};
use crate::times::Times;

/// Which of the pages in the navigation this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Overview,
    Assets,
    Messages,
    Elsewhere,
}

/// A page for a visitor.
pub(crate) fn framed(frame: &Frame<'_>, place: Place, title: &str, body: &Markup) -> Markup {
    let visitor = frame.visitor;
    let navigation = html! {
        nav aria-label="Pages" {
            ul {
                (link(ROOT, "Work", place == Place::Overview))
                (link(&format!("{ROOT}/assets"), "Assets", place == Place::Assets))
                @if visitor.principal.scopes.supervise {
                    (link(&format!("{ROOT}/messages"), "Messages", place == Place::Messages))
                }
            }
        }
        div.who {
            span { "Tenant " (short(visitor.principal.tenant.as_str())) }
            span {
                @let name = visitor.principal.name.as_deref();
                (short(name.unwrap_or_else(|| visitor.principal.actor.subject())))
                @if visitor.principal.scopes.supervise { " (supervisor)" }
            }
            @if visitor.signed_in {
                form method="post" action={ (ROOT) "/sign-out" } {
                    input type="hidden" name="form_token" value=(visitor.form_token);
                    button.plain type="submit" { "Sign out" }
                }
            } @else {
                span.quiet { "no sign-in on this server" }
            }
        }
    };
    let body = html! {
        @if let Some(notice) = &frame.notice { (became(notice)) }
        (body)
    };
    document(&frame.times, title, &navigation, &body)
}

/// A page for whoever is not known.
pub(crate) fn bare(times: &Times, title: &str, body: &Markup) -> Markup {
    document(times, title, &PreEscaped(String::new()), body)
}

fn link(path: &str, text: &str, here: bool) -> Markup {
    html! { li { a href=(path) aria-current=[here.then_some("page")] { (text) } } }
}

/// What became of an action.
fn became(notice: &Notice) -> Markup {
    match notice.refused {
        Some(code) => html! {
            div.notice.refused role="alert" {
                p { strong { "Not done. " } (said(&notice.text)) }
                p.quiet { "Nothing was changed. Code: " code { (code) } }
            }
        },
        None => html! {
            div.notice.done role="status" {
                p { strong { "Done. " } (said(&notice.text)) }
                @if notice.again {
                    p { "This form had been sent before: it was done once, and this is the first answer." }
                }
            }
        },
    }
}

fn document(times: &Times, title: &str, navigation: &Markup, body: &Markup) -> Markup {
    let style = request::link(&format!("{ROOT}/style.css"), &[("v", env!("CARGO_PKG_VERSION"))]);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (clean(title)) " · Checkpoint console" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href=(style);
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    a.brand href=(ROOT) { "Checkpoint" span.quiet { " console" } }
                    (navigation)
                }
                main #main tabindex="-1" { (body) }
                footer {
                    p.quiet {
                        "As of " (times.exactly(times.now)) ". Checkpoint " (env!("CARGO_PKG_VERSION"))
                    }
                }
            }
        }
    }
}
