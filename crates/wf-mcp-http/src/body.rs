//! Reads the body of a request within its limits.
//!
//! `front` collects; `layers::limits` refuses what says beforehand that it is too large; `guard` gets rid of what nobody
//! wanted, so that its sender comes to hear why.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use crate::fault::Fault;

/// The whole body.
pub(crate) async fn collect(
    mut body: Incoming,
    limit: usize,
    deadline: Instant,
) -> Result<Bytes, Fault> {
    let mut first: Option<Bytes> = None;
    let mut all = BytesMut::new();
    loop {
        let frame = timeout_at(deadline, body.frame()).await;
        let data = match frame.map_err(|_| Fault::BodyTimeout)? {
            None => break,
            Some(Err(_)) => return Err(Fault::BodyBroken),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => data,
                // Trailers say nothing to us.
                Err(_) => continue,
            },
        };
        let before = first.as_ref().map_or(all.len(), Bytes::len);
        if data.remaining() > limit.saturating_sub(before) {
            return Err(Fault::BodyTooLarge { limit });
        }
        match first.take() {
            // Most bodies come in one piece, which need not be copied.
            None if all.is_empty() => first = Some(data),
            None => all.put(data),
            Some(head) => {
                all.put(head);
                all.put(data);
            }
        }
    }
    Ok(first.unwrap_or_else(|| all.freeze()))
}
