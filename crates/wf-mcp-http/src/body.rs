//! Reads the body of a request within its limits, and gets rid of one that is not wanted.
//!
//! `front` collects; `layers::limits` refuses what says beforehand that it is too large.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout, timeout_at};

use crate::fault::Fault;

/// What is read of an unwanted body so that its sender comes to hear the answer: closing a connection with bytes
/// unread makes the operating system reset it, and the answer is lost.
const DISCARD_BYTES_MAX: usize = 16 * 1024 * 1024;
const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);
/// A sender that is silent for this long waits for the answer.
const DISCARD_PAUSE_MAX: Duration = Duration::from_millis(200);

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
            discard(body).await;
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

/// Reads and forgets, within bounds.
pub(crate) async fn discard(mut body: Incoming) {
    let reading = async {
        let mut read = 0;
        while let Ok(Some(Ok(frame))) = timeout(DISCARD_PAUSE_MAX, body.frame()).await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > DISCARD_BYTES_MAX {
                return;
            }
        }
    };
    // Whether all of it came does not matter: the connection ends either way.
    let _ = timeout(DISCARD_TIME_MAX, reading).await;
}
