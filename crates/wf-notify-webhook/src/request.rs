//! Headers and body of a message on the wire.
//!
//! The body is the same, byte for byte, whenever a message is sent again; time and signature are those of the attempt.
//! Attributes of CloudEvents 1.0 stand in the headers, written as its HTTP binding says (section 3.1.3.2).

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request};
use http_body_util::Full;
use serde::Serialize;
use serde_json::Value;
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP};
use wf_core::models::{TenantId, Timestamp, WorkflowId};
use wf_core::ports::{Message, Source};

use crate::secret::Secrets;
use crate::target::Target;

/// The body. Its shape is documented in docs/notifications.md and never loses a member.
#[derive(Debug, Serialize)]
struct Body<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    time: Timestamp,
    tenant: &'a TenantId,
    workflow_id: &'a WorkflowId,
    seq: u64,
    data: &'a Value,
}

/// The request of one attempt; `now` in seconds since the epoch, `source` is who sends.
pub(crate) fn of(
    message: &Message,
    target: &Target,
    source: &str,
    secrets: &Secrets,
    now: i64,
) -> Result<Request<Full<Bytes>>, Source> {
    let body = serde_json::to_vec(&Body {
        id: &message.id,
        kind: &message.kind,
        time: message.time,
        tenant: &message.tenant,
        workflow_id: &message.workflow_id,
        seq: message.seq,
        data: &message.data,
    })?;
    let id = encoded(&message.id);
    let signature = secrets.sign(&id, now, &body)?;
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = target.uri().clone();
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    let agent = concat!("checkpoint/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    put(headers, HEADER_WEBHOOK_ID, &id)?;
    put(headers, HEADER_WEBHOOK_TIMESTAMP, &now.to_string())?;
    put(headers, HEADER_WEBHOOK_SIGNATURE, &signature)?;
    put(headers, "ce-specversion", "1.0")?;
    put(headers, "ce-id", &id)?;
    put(headers, "ce-source", &encoded(source))?;
    put(headers, "ce-type", &encoded(&message.kind))?;
    put(headers, "ce-time", &message.time.to_string())?;
    put(headers, "ce-subject", &encoded(message.workflow_id.as_str()))?;
    put(headers, "ce-tenant", &encoded(message.tenant.as_str()))?;
    put(headers, "ce-sequence", &message.seq.to_string())?;
    Ok(request)
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) -> Result<(), Source> {
    headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value)?);
    Ok(())
}

/// A text as the value of a header: what is not visible ASCII, and `"` and `%`, as percent-encoded UTF-8.
fn encoded(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'%') {
            written.push(char::from(byte));
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn header_values_are_written_as_the_binding_of_cloudevents_says() {
        assert_eq!(encoded("0190/7/maintenance-lead"), "0190/7/maintenance-lead");
        assert_eq!(encoded("Euro € \"50%\"\r\n"), "Euro%20%E2%82%AC%20%2250%25%22%0D%0A");
    }
}
