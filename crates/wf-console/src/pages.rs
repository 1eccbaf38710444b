//! The pages, one file each, and what they share: the frame around them, and how text of people is shown.
//!
//! Everything that people or procedures wrote goes through [`said`]: escaped by the template, isolated in its direction, without
//! control characters, and cut where a list would burst.

pub(crate) mod assets;
#[cfg(test)]
mod hostile;
mod layout;
pub(crate) mod messages;
pub(crate) mod overview;
pub(crate) mod sign_in;
mod timeline;
pub(crate) mod workflow;

use bytes::Bytes;
use http::{Response, StatusCode};
use maud::{Markup, html};
use wf_core::models::{Actor, Locale, Person, Phase, Text};
use wf_core::state_machine::Rejection;

use crate::answer;
use crate::console::{Console, Visitor};
use crate::notices::Notice;
use crate::request::ROOT;
use crate::times::Times;

pub(crate) use layout::{Place, bare, framed};

/// Rows of one page.
pub(crate) const ROWS: u32 = 50;
/// How often a page asks again that was asked to, in seconds.
pub(crate) const REFRESH_S: &str = "30";
/// Longest text in a row of a list, in characters.
const SHORT_CHARS_MAX: usize = 200;

/// What is around a page.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) visitor: &'a Visitor,
    pub(crate) times: Times,
    pub(crate) notice: Option<Notice>,
}

/// What stands in the way of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    /// There is none at this address.
    NoPage,
    /// Who asks cannot be told now.
    Unavailable,
    /// The form was sent after its session was over.
    SignedOut,
    /// The form did not come from a page of this console, or from one before a restart.
    Foreign,
    /// The form lacks what every form has.
    NoForm,
}

/// The page that says so; nothing was done.
pub(crate) fn problem(times: &Times, problem: Problem) -> Response<Bytes> {
    let (status, title, text) = match problem {
        Problem::NoPage => {
            (StatusCode::NOT_FOUND, "There is no such page", "The address may be incomplete.")
        }
        Problem::Unavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Not available now",
            "Tokens cannot be checked at the moment, because the issuer's keys are not known. Please try again in a moment.",
        ),
        Problem::SignedOut => (
            StatusCode::UNAUTHORIZED,
            "You are signed out",
            "Nothing was changed. Sign in and open the page again.",
        ),
        Problem::Foreign => (
            StatusCode::FORBIDDEN,
            "This form is not from this console",
            "Nothing was changed. The page may be from before a restart: open it again and repeat what you did.",
        ),
        Problem::NoForm => (
            StatusCode::BAD_REQUEST,
            "This form is incomplete",
            "Nothing was changed. Open the page again and repeat what you did.",
        ),
    };
    let body = html! {
        h1 { (title) }
        p { (text) }
        p { a href=(ROOT) { "To the overview" } }
    };
    let mut response = answer::page(status, bare(times, title, &body));
    if problem == Problem::Unavailable {
        answer::retry_after(&mut response, 5);
    }
    response
}

/// The page for what the engine refuses to show.
pub(crate) fn refused(frame: &Frame<'_>, rejection: &Rejection) -> Markup {
    let code = rejection.code.as_str();
    let body = html! {
        h1 { "This cannot be shown" }
        p { (said(&rejection.message)) }
        p.quiet { "Code: " code { (code) } }
        p { a href=(ROOT) { "To the overview" } }
    };
    framed(frame, Place::Elsewhere, "This cannot be shown", &body)
}

/// Text of somebody, whole.
pub(crate) fn said(text: &str) -> Markup {
    html! { bdi { (clean(text)) } }
}

/// The same in a list: cut where it is long.
pub(crate) fn short(text: &str) -> Markup {
    match text.char_indices().nth(SHORT_CHARS_MAX) {
        Some((end, _)) => said(&format!("{}…", text.get(..end).unwrap_or_default())),
        None => said(text),
    }
}

/// A text of a procedure in the language of the pages.
pub(crate) fn worded(text: &Text) -> &str {
    text.get(&Locale::default())
}

/// What is asked next, where a heading says already that it is next.
pub(crate) fn asked(next: &str) -> &str {
    next.strip_prefix("Next: ").unwrap_or(next)
}

/// Control characters, and those that turn the direction of what follows, are shown as what they are: something odd.
pub(crate) fn clean(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
    text.chars()
        .map(|c| if (c.is_control() && c != '\n') || turns(c) { '\u{fffd}' } else { c })
        .collect()
}

/// Somebody by the name that they have, and by their id where that says more.
pub(crate) fn person(person: &Person) -> Markup {
    html! {
        (short(person.spoken()))
        @if person.name.is_some() { " " span.quiet.id { (short(person.id.subject())) } }
    }
}

/// Who caused an event.
pub(crate) fn actor(id: &Actor, name: Option<&str>) -> Markup {
    match id {
        Actor::System(part) => html! { "the system (" (short(part)) ")" },
        Actor::Cli(user) => html! { (short(user)) " at the command line" },
        Actor::User(_) => person(&Person { id: id.clone(), name: name.map(str::to_owned) }),
    }
}

/// A phase for people: a sign and a word, so that the colour is not all there is.
pub(crate) fn phase(phase: Phase) -> Markup {
    let (class, sign) = match phase {
        Phase::Created => ("phase created", "○"),
        Phase::Running => ("phase running", "▶"),
        Phase::Blocked => ("phase blocked", "■"),
        Phase::Completed => ("phase completed", "✓"),
    };
    html! { span class=(class) { span aria-hidden="true" { (sign) } " " (phase_word(phase)) } }
}

/// The same as a word.
pub(crate) const fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Created => "Not begun",
        Phase::Running => "In progress",
        Phase::Blocked => "Stopped",
        Phase::Completed => "Finished",
    }
}

/// A code of a procedure, readable.
pub(crate) fn code(code: &str) -> Markup {
    html! { code { (short(code)) } }
}

/// What was asked of the engine, in the language of the server.
pub(crate) fn meta() -> wf_core::engine::CallMeta {
    Console::meta()
}

/// The address of a workflow's page.
pub(crate) fn workflow_path(id: &wf_core::models::WorkflowId) -> String {
    format!("{ROOT}/workflows/{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_people_is_escaped_isolated_and_without_tricks() {
        let shown = said("<script>alert('1')</script> \"q\" \u{202e}abc\0").into_string();
        assert!(!shown.contains("<script") && !shown.contains('\u{202e}') && !shown.contains('\0'));
        assert!(shown.starts_with("<bdi>&lt;script&gt;") && shown.ends_with("</bdi>"), "{shown}");
        let long = short(&"ü".repeat(10_000)).into_string();
        assert_eq!(long.matches('ü').count(), SHORT_CHARS_MAX);
        assert!(long.contains('…'));
        assert_eq!(said(&"x".repeat(10_000)).into_string().matches('x').count(), 10_000);
    }
}
