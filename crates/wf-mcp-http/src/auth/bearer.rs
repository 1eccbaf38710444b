//! The credential in the head of a request (RFC 6750 section 2.1). `jwt` takes it from here.

use http::header::AUTHORIZATION;
use http::request::Parts;

use super::Refusal;
use super::check::{Check, Checks};
use super::masked::Masked;

/// Longest token, in bytes. Those of well-known issuers have 500 to 3000.
pub(super) const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// Takes the token out of the only place where it may be.
///
/// A token in the query alone is no credential at all: it is in logs and histories already (RFC 9700 section 4.3.2).
pub(super) fn bearer(head: &Parts, checks: Checks) -> Result<Masked<&str>, Refusal> {
    let mut values = head.headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Err(checks.refuse(Check::Bearer)) };
    if values.next().is_some() && checks.on(Check::OneHeader) {
        return Err(Refusal::BadRequest("send one Authorization header"));
    }
    if checks.on(Check::OneMethod) && head.uri.query().is_some_and(names_a_token) {
        return Err(Refusal::BadRequest("send the access token in the Authorization header only"));
    }
    let text = value.to_str().map_err(|_| checks.refuse(Check::Bearer))?;
    let (scheme, rest) = text.split_once(' ').ok_or_else(|| checks.refuse(Check::Bearer))?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(checks.refuse(Check::Bearer));
    }
    let token = rest.trim_start_matches(' ');
    if token.len() > TOKEN_BYTES_MAX && checks.on(Check::Length) {
        return Err(Refusal::BadRequest("send an access token of at most 8192 bytes"));
    }
    Ok(Masked::new(token))
}

fn names_a_token(query: &str) -> bool {
    query.split('&').any(|pair| pair.split('=').next() == Some("access_token"))
}
