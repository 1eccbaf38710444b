//! What an answer means: taken, later, or never.

use std::time::SystemTime;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

/// What to make of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The receiver has it.
    Taken,
    /// Not now.
    Later,
    /// Sending the same again cannot help.
    Never,
}

/// 2xx is taken. 410 says that the receiver is gone, and other 4xx that it does not want this message. Except those that
/// speak about the moment or about how the receiver is set up (401, 403, 404, 408, 409, 421, 423, 425, 429), which an
/// operator or time can change; like 3xx, which is not followed, and 5xx.
pub(crate) fn meaning(status: StatusCode) -> Meaning {
    match status.as_u16() {
        200..=299 => Meaning::Taken,
        401 | 403 | 404 | 408 | 409 | 421 | 423 | 425 | 429 => Meaning::Later,
        400..=499 => Meaning::Never,
        _ => Meaning::Later,
    }
}

/// How long `Retry-After` asks to wait, in milliseconds: seconds, or a date (RFC 9110 section 10.2.3).
pub(crate) fn retry_after_ms(headers: &HeaderMap, now: SystemTime) -> Option<i64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
        // More digits than fit are a very long time.
        let seconds = text.parse::<i64>().unwrap_or(i64::MAX);
        return Some(seconds.saturating_mul(1_000));
    }
    let left = httpdate::parse_http_date(text).ok()?.duration_since(now).ok()?;
    i64::try_from(left.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn statuses_mean_taken_later_or_never() {
        let of = |status: u16| meaning(StatusCode::from_u16(status).expect("a status"));
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(of(status), Meaning::Taken, "{status}");
        }
        for status in [301, 302, 307, 401, 403, 404, 408, 409, 425, 429, 500, 502, 503, 504, 599] {
            assert_eq!(of(status), Meaning::Later, "{status}");
        }
        for status in [400, 402, 405, 406, 410, 411, 413, 414, 415, 422, 451] {
            assert_eq!(of(status), Meaning::Never, "{status}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let asked = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().expect("a value"));
            retry_after_ms(&headers, now)
        };
        assert_eq!(asked("120"), Some(120_000));
        assert_eq!(asked("0"), Some(0));
        assert_eq!(asked("99999999999999999999999"), Some(i64::MAX));
        assert_eq!(asked("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60_000));
        for nothing in ["Sun, 06 Nov 1994 08:49:00 GMT", "-1", "1.5", "soon", ""] {
            assert_eq!(asked(nothing), None, "{nothing:?}");
        }
        assert_eq!(retry_after_ms(&HeaderMap::new(), now), None);
    }
}
