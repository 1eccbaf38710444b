//! The page to sign in at: a token is pasted into a form.

use maud::{Markup, html};

use super::bare;
use crate::request::ROOT;
use crate::times::Times;

/// What is to be said first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Say {
    /// A session is over.
    Over,
    /// They signed out.
    Out,
    /// No token was given.
    Nothing,
    /// The token counts for nobody.
    Unknown,
    /// It is a service's.
    Service,
    /// It may not read.
    MayNotRead,
    /// Tokens cannot be checked now.
    Unavailable,
    /// Too many tokens counted for nobody.
    TooOften,
}

impl Say {
    const fn text(self) -> &'static str {
        match self {
            Self::Over => {
                "Your session is over: sign in again. It ends with the token, after 30 minutes without use, and when the server restarts."
            }
            Self::Out => "You are signed out.",
            Self::Nothing => "Paste an access token.",
            Self::Unknown => {
                "This token was not accepted: it may have expired, be incomplete, or be for another server."
            }
            Self::Service => "This token is that of a service. Use one of a person.",
            Self::MayNotRead => {
                "This token does not let you read workflows: it lacks the scope workflow:read or workflow:supervise."
            }
            Self::Unavailable => {
                "Tokens cannot be checked at the moment, because the issuer's keys are not known. Try again in a moment."
            }
            Self::TooOften => {
                "Too many tokens from your address were not accepted. Try again in a minute."
            }
        }
    }

    const fn is_trouble(self) -> bool {
        match self {
            Self::Over | Self::Out => false,
            Self::Nothing
            | Self::Unknown
            | Self::Service
            | Self::MayNotRead
            | Self::Unavailable
            | Self::TooOften => true,
        }
    }
}

/// The page.
pub(crate) fn page(times: &Times, say: Option<Say>, next: &str) -> Markup {
    let trouble = say.filter(|say| say.is_trouble());
    let body = html! {
        h1 { "Sign in" }
        @if let Some(say) = say.filter(|say| !say.is_trouble()) {
            div.notice role="status" { p { (say.text()) } }
        }
        form.card method="post" action={ (ROOT) "/sign-in" } {
            input type="hidden" name="next" value=(next);
            label for="token" { "Access token" }
            p.hint #token-hint {
                "A token of your organisation's authorization server for this server. "
                "On a developer's machine: " code { "wf-cli token issue" } ", with "
                code { "--scope workflow:supervise" } " to decide."
            }
            @if let Some(say) = trouble {
                p.trouble #token-trouble role="alert" { strong { "Not signed in. " } (say.text()) }
            }
            input #token type="password" name="token" required autocomplete="off" spellcheck="false"
                aria-describedby=(if trouble.is_some() { "token-trouble token-hint" } else { "token-hint" })
                aria-invalid=[trouble.map(|_| "true")];
            button type="submit" { "Sign in" }
        }
        p.quiet {
            "The token is kept in the memory of the server for as long as you are signed in, and nowhere else."
        }
    };
    bare(times, "Sign in", &body)
}
