//! Places where a build for tests can be made to fail, with the feature `failpoints`; a release build has nothing here.
//!
//! The same as those of the store, and asked in the same way: `FAILPOINTS="answer=7*off->1*return(abort)"`.

/// After the work of a call, so after its commit, and before anything of the answer is sent.
pub(crate) const ANSWER: &str = "answer";
/// The server was asked to end, and has told nobody yet. An error has no meaning here.
pub(crate) const DRAIN: &str = "drain";

/// True if the place is to report an error; panics, waits or ends the process if that was asked for.
#[cfg(feature = "failpoints")]
pub(crate) fn is_asked(place: &'static str) -> bool {
    fail::fail_point!(place, |how: Option<String>| {
        if how.as_deref() == Some("abort") {
            std::process::abort();
        }
        true
    });
    false
}

/// Nothing, in a build without the feature.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn is_asked(_place: &'static str) -> bool {
    false
}
