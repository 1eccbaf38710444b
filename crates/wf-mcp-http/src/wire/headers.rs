//! The headers of a `POST /mcp`: what is accepted, what is sent, which revision of MCP is spoken.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::Value;

use crate::fault::{Fault, RpcFault, RpcKind};
use crate::tools::SUPPORTED_VERSIONS;

static VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
static LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The first revision in which every request speaks for itself.
pub(crate) const MODERN: &str = "2026-07-28";

/// Checks the labels of the body and of the answer.
pub(crate) fn check_types(headers: &HeaderMap) -> Result<(), Fault> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    if !content_type.is_some_and(|value| is_type(value, "application/json")) {
        return Err(Fault::ContentType);
    }
    let mut accepted = headers.get_all(ACCEPT).iter().peekable();
    let takes_json = accepted.peek().is_none()
        || accepted.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(
            |range| {
                let json = ["application/json", "application/*", "*/*"];
                json.iter().any(|wanted| is_type(range, wanted)) && !is_refused(range)
            },
        );
    if takes_json { Ok(()) } else { Err(Fault::NotAcceptable) }
}

fn is_type(value: &str, wanted: &str) -> bool {
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(wanted)
}

/// A weight of zero (RFC 9110 section 12.4.2).
fn is_refused(range: &str) -> bool {
    range.split(';').skip(1).any(|parameter| {
        let weight = parameter.trim().strip_prefix("q=");
        weight.is_some_and(|w| w.trim().parse::<f32>().is_ok_and(|w| w == 0.0))
    })
}

/// Makes the headers what rmcp wants to see: it insists on both types although it answers in one, and it must not be
/// led to look for sessions or streams.
pub(crate) fn normalise(headers: &mut HeaderMap) {
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(ACCEPT, both);
    headers.remove(&SESSION);
    headers.remove(&LAST_EVENT);
}

/// The revision in the header, checked; `None` when there is no header (then it is 2025-03-26).
///
/// `in_body` is the revision that the request's `_meta` names. rmcp compares the two when both are known; it answers an
/// unknown one with plain text, and it still knows 2024-11-05.
pub(crate) fn version(
    headers: &HeaderMap,
    id: Option<&Value>,
    in_body: Option<&str>,
) -> Result<Option<&'static str>, RpcFault> {
    let mut sent = headers.get_all(&VERSION).iter();
    let Some(value) = sent.next() else {
        return Ok(None);
    };
    let mismatch = |text: String| Err(RpcFault::new(id, RpcKind::HeaderMismatch, text));
    let (Ok(version), None) = (value.to_str(), sent.next()) else {
        return mismatch("send one MCP-Protocol-Version header".to_owned());
    };
    if let Some(known) = SUPPORTED_VERSIONS.iter().find(|known| **known == version) {
        return Ok(Some(known));
    }
    if in_body.is_some_and(|body| body != version) {
        return mismatch("MCP-Protocol-Version and _meta name different revisions".to_owned());
    }
    let kind = RpcKind::UnsupportedVersion { requested: version.to_owned() };
    let supported = SUPPORTED_VERSIONS.join(", ");
    let text = format!("unsupported protocol version; supported: {supported}");
    Err(RpcFault::new(id, kind, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn accept_is_taken_in_every_way_that_takes_json() {
        let verdict = |accept: &[&str]| {
            let mut all = vec![("content-type", "application/json; charset=utf-8")];
            all.extend(accept.iter().map(|value| ("accept", *value)));
            check_types(&headers(&all))
        };
        for good in [
            &[][..],
            &["*/*"],
            &["application/json"],
            &["APPLICATION/JSON;q=0.5"],
            &["application/json, text/event-stream"],
            &["text/html, application/*;q=0.1"],
            &["text/html", "application/json"],
        ] {
            assert_eq!(verdict(good), Ok(()), "{good:?}");
        }
        for bad in ["text/html", "text/event-stream", "application/json;q=0", ""] {
            assert_eq!(verdict(&[bad]), Err(Fault::NotAcceptable), "{bad:?}");
        }
    }

    #[test]
    fn only_json_is_taken_as_a_body() {
        for bad in
            [&[][..], &[("content-type", "text/plain")], &[("content-type", "application/jsonx")]]
        {
            assert_eq!(check_types(&headers(bad)), Err(Fault::ContentType));
        }
    }

    #[test]
    fn versions_are_known_or_refused() {
        let of = |values: &[&str], body: Option<&str>| {
            let pairs: Vec<_> = values.iter().map(|v| ("mcp-protocol-version", *v)).collect();
            version(&headers(&pairs), None, body).map_err(|fault| fault.kind.code())
        };
        assert_eq!(of(&[], None), Ok(None));
        for known in SUPPORTED_VERSIONS {
            assert_eq!(of(&[known], None), Ok(Some(*known)));
        }
        assert_eq!(of(&["2024-11-05"], None), Err(-32022));
        assert_eq!(of(&["2099-01-01"], Some("2099-01-01")), Err(-32022));
        assert_eq!(of(&["2099-01-01"], Some(MODERN)), Err(-32020));
        assert_eq!(of(&["2025-11-25", "2025-11-25"], None), Err(-32020));
    }
}
