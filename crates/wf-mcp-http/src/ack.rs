//! The page of a link in an escalation, outside authentication: who has the link was told.
//!
//! `GET` shows what it is about and changes nothing, however many scanners and previews follow the link; only the button's
//! `POST` acknowledges, once however often it is pressed. `wf_core::engine::acknowledge` checks the token and decides;
//! `routes` leads here. Headers: Fetch and CSP Level 3; nothing of the page is loaded from anywhere.

use std::sync::Arc;

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderName, Method, StatusCode};
use wf_core::engine::{AckNotice, AckRefusal, AckStand, Engine};

use crate::exchange::Response;
use crate::fault::{answer, set};

/// What the path begins with; the token follows.
pub(crate) const PREFIX: &str = "/ack/";

const STYLE: &str = "body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem}h1{font-size:1.4rem}button{font:inherit;padding:.8rem 1.6rem}";

/// No script, no picture, no frame, no form to anywhere else; the style above, by its SHA-256.
const POLICY: &str = "default-src 'none'; style-src 'sha256-hgxvqMbmdxLPqBLy+B9lyWBE/E952y0/OG5UeBrnfC4='; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (CACHE_CONTROL, "no-store"),
    // The address is the key: it goes nowhere.
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("x-robots-tag"), "noindex, nofollow"),
];

/// Answers at `path` for a `GET` (or `HEAD`) or a `POST`.
pub(crate) async fn page(engine: Arc<Engine>, method: Method, path: String) -> Response {
    let token = path.strip_prefix(PREFIX).unwrap_or_default();
    let acts = method == Method::POST;
    let shown = if acts { engine.acknowledge(token).await } else { engine.ack_notice(token).await };
    match shown {
        Ok(notice) => {
            let outcome = match &notice.stand {
                AckStand::Waiting => "waiting",
                AckStand::Acknowledged { .. } => "acknowledged",
                AckStand::Over => "over",
            };
            tracing::debug!(acts, outcome, "a link of an escalation was followed");
            html(StatusCode::OK, &notice.label, &about(&notice))
        }
        Err(AckRefusal::Unknown) => html(
            StatusCode::NOT_FOUND,
            "This link does not count",
            "<p>It may have expired, or be incomplete. Please copy the whole link from the message.</p>",
        ),
        Err(AckRefusal::Unavailable) => {
            let text = "<p>Nothing is lost. Please try again in a moment.</p>";
            let mut response = html(StatusCode::SERVICE_UNAVAILABLE, "Not available now", text);
            set(&mut response, RETRY_AFTER, "5");
            response
        }
    }
}

/// What the page says, as HTML.
fn about(notice: &AckNotice) -> String {
    let mut text = String::new();
    let mut say = |line: &str| {
        text.push_str("<p>");
        text.push_str(line);
        text.push_str("</p>\n");
    };
    if notice.stand != AckStand::Over {
        say(&format!("Work is stopped since {}.", escaped(&notice.since)));
    }
    if let Some(summary) = &notice.summary {
        say(&format!("Reported: \u{201c}{}\u{201d}", escaped(summary)));
    }
    if let Some(question) = &notice.question {
        say(&escaped(question));
    }
    match &notice.stand {
        AckStand::Waiting => {
            say(&format!("You were told as <strong>{}</strong>.", escaped(&notice.recipient)));
            text.push_str("<form method=\"post\"><button>I know about it</button></form>\n");
        }
        AckStand::Acknowledged { by, at } => say(&format!(
            "<strong>{}</strong> acknowledged it at {}. There is nothing more to do here.",
            escaped(by),
            escaped(at)
        )),
        AckStand::Over => say("This is settled. There is nothing to acknowledge any more."),
    }
    text
}

fn html(status: StatusCode, title: &str, body: &str) -> Response {
    let title = escaped(title);
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n"
    );
    let mut response = answer(status, "text/html; charset=utf-8", page);
    for (name, value) in HEADERS {
        set(&mut response, name, value);
    }
    response
}

/// As text and as an attribute's value (HTML, 13.1.2.3).
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn the_policy_lets_in_exactly_the_style_of_the_page() {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, STYLE.as_bytes());
        let source = format!("style-src 'sha256-{}';", STANDARD.encode(digest));
        assert!(POLICY.contains(&source), "{source}");
    }

    #[test]
    fn nothing_of_a_notice_is_markup() {
        let hostile = "</p><script>alert('1')</script>&\"".to_owned();
        let notice = AckNotice {
            label: hostile.clone(),
            question: Some(hostile.clone()),
            summary: Some(hostile.clone()),
            recipient: hostile.clone(),
            since: hostile.clone(),
            stand: AckStand::Waiting,
        };
        let acknowledged = AckStand::Acknowledged { by: hostile.clone(), at: hostile };
        for stand in [AckStand::Waiting, acknowledged, AckStand::Over] {
            let text = about(&AckNotice { stand, ..notice.clone() });
            assert!(!text.contains("<script") && !text.contains("alert('"), "{text}");
        }
        assert_eq!(escaped("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
    }
}
