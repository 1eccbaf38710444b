//! What is refused for who asks: a part of the one map in `super`.

use std::borrow::Cow;
use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};

/// A caller who is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Denied {
    /// No valid credentials.
    Unauthorized {
        /// For `WWW-Authenticate`, on the paths that have one.
        challenge: Option<HeaderValue>,
    },
    /// Valid credentials that do not reach.
    InsufficientScope {
        /// For `WWW-Authenticate`, on the paths that have one.
        challenge: Option<HeaderValue>,
    },
    /// No credentials can be judged, for want of the issuer's keys.
    KeysUnavailable {
        /// When to ask again.
        after: Duration,
    },
    /// Credentials sent in a way that is refused whatever they are (RFC 6750 section 3.1), with what to do instead.
    Credentials(&'static str),
    /// More requests than this caller may send.
    RateLimited {
        /// When one more may be sent.
        after: Duration,
    },
}

impl Denied {
    /// The status, the word in `error`, and a sentence that says what to do; none where it would say too much.
    pub(super) fn told(&self) -> (StatusCode, &'static str, Cow<'static, str>) {
        use StatusCode as S;
        let (status, word, sentence) = match self {
            Self::Unauthorized { .. } => (S::UNAUTHORIZED, "unauthorized", ""),
            Self::InsufficientScope { .. } => {
                (S::FORBIDDEN, "insufficient_scope", "the token does not allow this")
            }
            Self::KeysUnavailable { .. } => (
                S::SERVICE_UNAVAILABLE,
                "keys_unavailable",
                "tokens cannot be checked at the moment; send the same request again",
            ),
            Self::Credentials(sentence) => (S::BAD_REQUEST, "invalid_request", *sentence),
            Self::RateLimited { .. } => (
                S::TOO_MANY_REQUESTS,
                "rate_limited",
                "nothing was done; send the same request again after the time in Retry-After",
            ),
        };
        (status, word, Cow::Borrowed(sentence))
    }

    /// Adds what the answer's head has to say.
    pub(super) fn mark(self, headers: &mut HeaderMap) {
        match self {
            Self::Unauthorized { challenge } | Self::InsufficientScope { challenge } => {
                if let Some(value) = challenge {
                    headers.insert(WWW_AUTHENTICATE, value);
                }
            }
            Self::KeysUnavailable { after } | Self::RateLimited { after } => {
                // Whole seconds; one that is sent too early is refused again.
                let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
                headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
            }
            Self::Credentials(_) => {}
        }
    }
}
