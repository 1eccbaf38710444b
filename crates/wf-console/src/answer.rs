//! Answers with the headers that every page has: nothing is loaded from elsewhere, run, framed, guessed or kept
//! (CSP Level 3; Fetch standard; RFC 9111).

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue,
    LOCATION, REFERRER_POLICY, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderName, Response, StatusCode};
use maud::Markup;

/// No script at all, the style of this server, the empty icon, forms to this server.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (CACHE_CONTROL, "no-store"),
    // Nothing goes to other sites; not `no-referrer`, with which browsers send forms with the origin `null`.
    (REFERRER_POLICY, "same-origin"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The style of the pages.
const STYLE: &str = include_str!("style.css");

fn of(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A page.
pub(crate) fn page(status: StatusCode, page: Markup) -> Response<Bytes> {
    of(status, "text/html; charset=utf-8", page.into_string())
}

/// The style; it changes with the build only, and its address does too.
pub(crate) fn style() -> Response<Bytes> {
    let mut response = of(StatusCode::OK, "text/css; charset=utf-8", STYLE);
    let kept = HeaderValue::from_static("private, max-age=3600");
    response.headers_mut().insert(CACHE_CONTROL, kept);
    response
}

/// A file to keep.
pub(crate) fn file(name: &str, text: String) -> Response<Bytes> {
    let mut response = of(StatusCode::OK, "application/json", text);
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        response.headers_mut().insert(CONTENT_DISPOSITION, value);
    }
    response
}

/// Go on there, with a GET (RFC 9110 section 15.4.4).
pub(crate) fn see_other(place: &str) -> Response<Bytes> {
    let mut response = of(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    if let Ok(value) = HeaderValue::from_str(place) {
        response.headers_mut().insert(LOCATION, value);
    }
    response
}

/// Not by this method.
pub(crate) fn method_not_allowed(allow: &'static str) -> Response<Bytes> {
    let text = "this address does not answer that method\n";
    let mut response = of(StatusCode::METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", text);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// Come again in so many seconds.
pub(crate) fn retry_after(response: &mut Response<Bytes>, seconds: i64) {
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
}

/// The browser asks again by itself, where whoever looks wants it to.
pub(crate) fn refreshing(response: &mut Response<Bytes>, seconds: &'static str) {
    let name = HeaderName::from_static("refresh");
    response.headers_mut().insert(name, HeaderValue::from_static(seconds));
}
