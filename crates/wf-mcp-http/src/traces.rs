//! Where a caller's trace goes on: W3C Trace Context, from the headers of a request or from the `_meta` of its message
//! (SEP-414). `_meta` wins: it says who called the method, the headers may be those of whatever carried it.
//!
//! This crate makes spans and knows no tracing system. Whoever runs one gives [`Traces`] in
//! [`HttpConfig`](crate::HttpConfig) and is told here where a span belongs. What cannot be read is taken for absent, as
//! Trace Context section 4.3 wants; the call counts all the same. `baggage` is not read: it is text of others that
//! nothing here needs.

use std::fmt;
use std::sync::Arc;

use http::{Extensions, HeaderMap, StatusCode};
use serde_json::{Map, Value};
use tracing::Span;

use crate::exchange::RequestSpan;

/// Names in headers and in `_meta`.
const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
/// Longest `tracestate` that is passed on, in characters: what Trace Context section 3.3.1.5 asks everybody to pass on.
const STATE_CHARS_MAX: usize = 512;

/// Told where the span of a request belongs.
pub trait Traces: fmt::Debug + Send + Sync {
    /// `span` goes on the trace of `parent`. It has no children yet. Said again, the last counts.
    fn join(&self, span: &Span, parent: &TraceParent);
    /// `span` has to do with another trace as well.
    fn link(&self, span: &Span, other: &TraceParent);
    /// The request of `span` was answered.
    fn answered(&self, span: &Span, status: StatusCode);
}

/// A place in a trace of somebody else: a valid `traceparent`, and its `tracestate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace; not zero.
    pub trace_id: u128,
    /// The span in it; not zero.
    pub parent_id: u64,
    /// Flags; bit 0 says that the caller keeps this trace.
    pub flags: u8,
    /// `tracestate` as it came, at most 512 characters; what it says is not checked.
    pub state: Option<String>,
}

impl TraceParent {
    /// Reads a `traceparent` (Trace Context, section 3.2). Versions above 00 may go on after what 00 has.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (version, rest) = text.split_at_checked(2)?;
        let version = hex(version, 2).filter(|version| *version != 0xff)?;
        let mut parts = rest.strip_prefix('-')?.splitn(3, '-');
        let (trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?);
        let flags = match flags.split_at_checked(2)? {
            (flags, "") => flags,
            (flags, more) if version > 0 && more.starts_with('-') => flags,
            _ => return None,
        };
        Some(Self {
            trace_id: hex(trace, 32).filter(|id| *id != 0)?,
            parent_id: u64::try_from(hex(parent, 16)?).ok().filter(|id| *id != 0)?,
            flags: u8::try_from(hex(flags, 2)?).ok()?,
            state: None,
        })
    }

    /// The trace id as everybody writes it: 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id_text(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    fn with_state(self, state: Option<String>) -> Self {
        Self { state: state.filter(|s| !s.is_empty() && s.len() <= STATE_CHARS_MAX), ..self }
    }

    /// What the headers say. More than one `traceparent` is none.
    pub(crate) fn of_headers(headers: &HeaderMap) -> Option<Self> {
        let mut all = headers.get_all(TRACEPARENT).iter();
        let parent = all.next().filter(|_| all.next().is_none())?;
        let parent = Self::parse(parent.to_str().ok()?)?;
        let states: Result<Vec<&str>, _> =
            headers.get_all(TRACESTATE).iter().map(|value| value.to_str()).collect();
        Some(parent.with_state(states.ok().map(|states| states.join(","))))
    }

    /// What the `_meta` of a message says.
    pub(crate) fn of_meta(meta: Option<&Map<String, Value>>) -> Option<Self> {
        let text = |key: &str| meta.and_then(|meta| meta.get(key)).and_then(Value::as_str);
        let parent = Self::parse(text(TRACEPARENT)?)?;
        Some(parent.with_state(text(TRACESTATE).map(str::to_owned)))
    }
}

/// A number in exactly so many lower-case hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let fits = text.len() == digits && text.bytes().all(lower);
    fits.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// Kept in the extensions of a request until its message is read.
#[derive(Debug, Clone)]
pub(crate) struct Joining {
    pub(crate) traces: Option<Arc<dyn Traces>>,
    /// What the headers said.
    pub(crate) header: Option<TraceParent>,
}

impl Joining {
    /// Joins `span` by what the headers say.
    pub(crate) fn begin(
        traces: Option<Arc<dyn Traces>>,
        header: Option<TraceParent>,
        span: &Span,
    ) -> Self {
        if let (Some(traces), Some(header)) = (&traces, &header) {
            traces.join(span, header);
        }
        Self { traces, header }
    }
}

/// Joins the span of a request by what its message says, if that says anything; the headers' trace is linked then.
pub(crate) fn go_on(extensions: &Extensions, meta: Option<&Map<String, Value>>) {
    let (Some(RequestSpan(span)), Some(joining)) =
        (extensions.get::<RequestSpan>(), extensions.get::<Joining>())
    else {
        return;
    };
    let Some(parent) = TraceParent::of_meta(meta) else { return };
    let other = joining.header.as_ref().filter(|header| header.trace_id != parent.trace_id);
    if other.is_some() || joining.header.is_none() {
        span.record("trace_id", parent.trace_id_text());
    }
    let Some(traces) = &joining.traces else { return };
    traces.join(span, &parent);
    if let Some(other) = other {
        traces.link(span, other);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    const ID: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    fn sent() -> String {
        format!("00-{ID}-{SPAN}-01")
    }

    #[test]
    fn a_traceparent_is_read_as_trace_context_says() {
        let read = TraceParent::parse(&sent()).unwrap();
        assert_eq!(read.trace_id_text(), ID);
        assert_eq!((read.parent_id, read.flags), (0xb7ad_6b71_6920_3331, 1));
        assert!(
            TraceParent::parse(&format!("01-{ID}-{SPAN}-01-more")).is_some(),
            "a later version"
        );
        for bad in [
            "nonsense".to_owned(),
            String::new(),
            format!("ff-{ID}-{SPAN}-01"),
            format!("00-{ID}-{SPAN}-01-more"),
            format!("01-{ID}-{SPAN}-01more"),
            format!("00-{ID}-{SPAN}"),
            format!("00-{ID}-{SPAN}-1"),
            format!("00-{}-{SPAN}-01", ID.to_uppercase()),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{ID}-{}-01", "0".repeat(16)),
            format!("00-{ID}a-{SPAN}-01"),
            format!("00-é{}-{SPAN}-01", &ID[2..]),
        ] {
            assert_eq!(TraceParent::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn headers_give_one_parent_and_all_of_its_state() {
        let mut headers = HeaderMap::new();
        assert_eq!(TraceParent::of_headers(&headers), None);
        headers.append("traceparent", HeaderValue::from_str(&sent()).unwrap());
        assert_eq!(TraceParent::of_headers(&headers).unwrap().state, None);
        headers.append("tracestate", HeaderValue::from_static("a=1"));
        headers.append("tracestate", HeaderValue::from_static("b=2"));
        assert_eq!(TraceParent::of_headers(&headers).unwrap().state.as_deref(), Some("a=1,b=2"));
        headers.append("tracestate", HeaderValue::from_str(&"c".repeat(512)).unwrap());
        assert_eq!(TraceParent::of_headers(&headers).unwrap().state, None, "too long to pass on");
        headers.append("traceparent", HeaderValue::from_str(&sent()).unwrap());
        assert_eq!(TraceParent::of_headers(&headers), None, "two of them");
    }

    #[test]
    fn meta_gives_a_parent_only_in_texts() {
        let of = |meta: Value| TraceParent::of_meta(meta.as_object());
        let read = of(json!({"traceparent": sent(), "tracestate": "a=1", "baggage": "x=1"}));
        assert_eq!(read.unwrap().state.as_deref(), Some("a=1"));
        assert_eq!(of(json!({"traceparent": 7})), None);
        assert_eq!(of(json!({"traceparent": "00-x"})), None);
        assert_eq!(of(json!({"tracestate": "a=1"})), None);
        assert_eq!(TraceParent::of_meta(None), None);
    }
}
