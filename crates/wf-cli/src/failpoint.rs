//! Places where a build for tests can be made to fail, with the feature `failpoints`; a release build has nothing here.
//!
//! The same as those of the store, and asked in the same way: `FAILPOINTS="outbox.send=7*off->1*return(abort)"`.

use wf_core::ports::DeliveryError;
use wf_mcp_http::auth::KeyTimes;

/// Before a message is handed to its sink.
pub(crate) const OUTBOX_SEND: &str = "outbox.send";
/// After its sink took or refused it, before that is written down.
pub(crate) const OUTBOX_SEND_AFTER: &str = "outbox.send_after";

/// Deadlines are claimed and none of them is fired yet. An error has no meaning here.
pub(crate) const DEADLINE_CLAIMED: &str = "deadline.claimed";

/// Fails here if it was asked for.
#[cfg(feature = "failpoints")]
pub(crate) fn hit(place: &'static str) -> Result<(), DeliveryError> {
    fail::fail_point!(place, |how: Option<String>| {
        match how.as_deref() {
            Some("abort") => std::process::abort(),
            Some("stop") => {
                use rustix::process::{Signal, getpid, kill_process};
                if kill_process(getpid(), Signal::STOP).is_ok() {
                    // Whichever thread takes the signal stops them all, and this one is not to be past the place by then.
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    return Ok(());
                }
            }
            Some(_) | None => {}
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

/// When the issuer's keys are fetched. `keys.faster=return(50)` makes them grow old so many times faster, so that a bench
/// sees hours of them.
#[cfg(feature = "failpoints")]
pub(crate) fn key_times() -> KeyTimes {
    let faster = || {
        fail::fail_point!("keys.faster", |by: Option<String>| by?.parse().ok());
        None
    };
    let (times, by) = (KeyTimes::default(), faster().unwrap_or(1_u32).max(1));
    KeyTimes {
        refresh: times.refresh / by,
        pause: times.pause / by,
        retry: times.retry / by,
        keep: times.keep / by,
    }
}

/// As documented, in a build without the feature.
#[cfg(not(feature = "failpoints"))]
pub(crate) fn key_times() -> KeyTimes {
    KeyTimes::default()
}
