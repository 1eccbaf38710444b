//! Places where a build for tests can be made to fail, with the feature `failpoints`; a release build has nothing here.
//!
//! The same as those of the store, and asked in the same way: `FAILPOINTS="outbox.send=7*off->1*return(abort)"`.

use wf_core::ports::DeliveryError;

/// Before a message is handed to its sink.
pub(crate) const OUTBOX_SEND: &str = "outbox.send";
/// After its sink took or refused it, before that is written down.
pub(crate) const OUTBOX_SEND_AFTER: &str = "outbox.send_after";

/// Fails here if it was asked for.
#[cfg(feature = "failpoints")]
pub(crate) fn hit(place: &'static str) -> Result<(), DeliveryError> {
    fail::fail_point!(place, |how: Option<String>| {
        if how.as_deref() == Some("abort") {
            std::process::abort();
        }
        let source = std::io::Error::other(format!("asked for at {place}"));
        Err(DeliveryError { permanent: false, retry_after_ms: None, source: Box::new(source) })
    });
    Ok(())
}

/// Nothing, in a build without the feature.
#[cfg(not(feature = "failpoints"))]
#[expect(clippy::unnecessary_wraps, reason = "it fails in a build for tests")]
pub(crate) const fn hit(_place: &'static str) -> Result<(), DeliveryError> {
    Ok(())
}
