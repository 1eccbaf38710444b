//! Addresses of resources: read from text, and written.
//!
//! Ids are single segments, percent-encoded where an expansion of the templates would encode them (RFC 6570 section 3.2.2:
//! everything but letters, digits and `-._~`).

use std::fmt;

use wf_core::models::{ProcedureId, WorkflowId};

use crate::handler::TTL_MS;

/// What begins every address of ours.
pub(crate) const SCHEME: &str = "workflow://";
/// The schema of results.
pub(crate) const SCHEMA: &str = "workflow://schemas/result";
/// A procedure that may be started.
pub(crate) const PROCEDURE: &str = "workflow://procedures/{id}";
/// A workflow as it stands.
pub(crate) const WORKFLOW: &str = "workflow://workflows/{id}";
/// Everything that happened to it.
pub(crate) const HISTORY: &str = "workflow://workflows/{id}/history{?page}";
/// All of it in one document.
pub(crate) const EVIDENCE: &str = "workflow://workflows/{id}/evidence";

/// Longest address that is looked at, in bytes: an id of 128 characters, all encoded, fits.
const BYTES_MAX: usize = 512;

/// What an address is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// The schema of results.
    Schema,
    /// A procedure.
    Procedure(ProcedureId),
    /// A workflow.
    Workflow(WorkflowId),
    /// A page of the history of one, from 1.
    History(WorkflowId, u64),
    /// The evidence of one.
    Evidence(WorkflowId),
}

impl Address {
    /// Reads an address; `None` for what is none of ours.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        if uri.len() > BYTES_MAX {
            return None;
        }
        let (path, query) = match uri.strip_prefix(SCHEME)?.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (uri.strip_prefix(SCHEME)?, None),
        };
        let segments: Vec<&str> = path.split('/').collect();
        let id = |text: &str| WorkflowId::parse(&decoded(text)?).ok();
        match (segments.as_slice(), query) {
            (["schemas", "result"], None) => Some(Self::Schema),
            (["procedures", name], None) => {
                Some(Self::Procedure(ProcedureId::parse(&decoded(name)?).ok()?))
            }
            (["workflows", name], None) => Some(Self::Workflow(id(name)?)),
            (["workflows", name, "evidence"], None) => Some(Self::Evidence(id(name)?)),
            (["workflows", name, "history"], query) => Some(Self::History(id(name)?, page(query)?)),
            _ => None,
        }
    }

    /// The workflow that it is about.
    pub(crate) fn workflow(&self) -> Option<&WorkflowId> {
        match self {
            Self::Workflow(id) | Self::History(id, _) | Self::Evidence(id) => Some(id),
            Self::Schema | Self::Procedure(_) => None,
        }
    }

    /// The type of its text.
    pub(crate) const fn mime_type(&self) -> &'static str {
        match self {
            Self::Schema => "application/schema+json",
            Self::Procedure(_) | Self::Workflow(_) | Self::History(..) | Self::Evidence(_) => {
                "application/json"
            }
        }
    }

    /// How long a client may take it for current, in milliseconds: work changes at any moment.
    pub(crate) const fn fresh_ms(&self) -> u64 {
        match self {
            Self::Schema | Self::Procedure(_) => TTL_MS,
            Self::Workflow(_) | Self::History(..) | Self::Evidence(_) => 0,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schema => f.write_str(SCHEMA),
            Self::Procedure(id) => write!(f, "{SCHEME}procedures/{}", encoded(id.as_str())),
            Self::Workflow(id) => write!(f, "{SCHEME}workflows/{}", encoded(id.as_str())),
            Self::History(id, page) => {
                write!(f, "{SCHEME}workflows/{}/history?page={page}", encoded(id.as_str()))
            }
            Self::Evidence(id) => {
                write!(f, "{SCHEME}workflows/{}/evidence", encoded(id.as_str()))
            }
        }
    }
}

/// The page of a history that a query names; the first without one.
fn page(query: Option<&str>) -> Option<u64> {
    let Some(query) = query else { return Some(1) };
    let number = query.strip_prefix("page=")?;
    let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| number.parse().ok()).flatten()
}

/// Of the characters of ids only the colon is one that expansions encode.
fn encoded(id: &str) -> String {
    id.replace(':', "%3A")
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
            bytes.push(digit(rest.next()?)? * 16 + digit(rest.next()?)?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> WorkflowId {
        WorkflowId::parse(text).unwrap()
    }

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for address in [
            Address::Schema,
            Address::Procedure(ProcedureId::parse("a-b").unwrap()),
            Address::Workflow(id("w:1")),
            Address::History(id("w-1"), 7),
            Address::Evidence(id("w.1")),
        ] {
            assert_eq!(Address::parse(&address.to_string()), Some(address));
        }
        let read = |uri: &str| Address::parse(uri);
        assert_eq!(read("workflow://workflows/w-1/history"), Some(Address::History(id("w-1"), 1)));
        assert_eq!(read("workflow://workflows/w%3a1"), Some(Address::Workflow(id("w:1"))));
        assert_eq!(read("workflow://workflows/w:1"), Some(Address::Workflow(id("w:1"))));
    }

    #[test]
    fn what_is_no_address_of_ours_is_none() {
        for bad in [
            "",
            "workflow://",
            "workflow:workflows/w-1",
            "WORKFLOW://workflows/w-1",
            "http://workflows/w-1",
            "workflow://workflows/",
            "workflow://workflows/w-1/",
            "workflow://workflows/w-1/other",
            "workflow://workflows/w-1?page=1",
            "workflow://workflows/w-1/evidence?page=1",
            "workflow://workflows/w-1/history?page=",
            "workflow://workflows/w-1/history?page=+1",
            "workflow://workflows/w-1/history?page=-1",
            "workflow://workflows/w-1/history?page=99999999999999999999",
            "workflow://workflows/w-1/history?page=1&page=2",
            "workflow://workflows/w-1/history?limit=1",
            "workflow://workflows/../procedures/a",
            "workflow://workflows/a%2Fb",
            "workflow://workflows/a%",
            "workflow://workflows/a%4",
            "workflow://workflows/a%zz",
            "workflow://workflows/%ff",
            "workflow://schemas/other",
            &format!("workflow://workflows/{}", "x".repeat(600)),
        ] {
            assert_eq!(Address::parse(bad), None, "{bad}");
        }
    }
}
