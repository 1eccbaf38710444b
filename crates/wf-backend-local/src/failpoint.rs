//! Places where a build for tests can be made to fail, with the feature `failpoints`; a release build has nothing here.
//!
//! A whole process is asked through the environment, `FAILPOINTS="commit.after=7*off->1*return(abort)"`, as the crate
//! `fail` reads it: `panic`, `sleep(MS)`, `return(abort)` (the process ends at once), `return(stop)` (it stands still until
//! somebody continues it, and goes on as if nothing had been) and `return` (the place reports an error). What unit tests ask
//! of one store is another thing: `writer::sabotage`.

use crate::fault::Cause;

/// Every place: before and after BEGIN, with the conditions judged and nothing written, before and after COMMIT, before
/// the log is carried over, and in a migration between its statements and its version.
pub(crate) const BEGIN_BEFORE: &str = "begin.before";
pub(crate) const BEGIN_AFTER: &str = "begin.after";
pub(crate) const WRITE: &str = "write";
pub(crate) const COMMIT_BEFORE: &str = "commit.before";
pub(crate) const COMMIT_AFTER: &str = "commit.after";
pub(crate) const CHECKPOINT: &str = "checkpoint";
pub(crate) const MIGRATION: &str = "migration";
/// Before a database is copied that is about to be migrated.
pub(crate) const MIGRATION_COPY: &str = "migration.copy";
/// In the transaction that takes leases of messages, and in the one that writes down what became of them.
pub(crate) const OUTBOX_CLAIM: &str = "outbox.claim";
pub(crate) const OUTBOX_MARK: &str = "outbox.mark";
/// In the transaction that takes leases of deadlines; before and after the COMMIT of a batch in which one is fired.
pub(crate) const DEADLINE_CLAIM: &str = "deadline.claim";
pub(crate) const DEADLINE_FIRE: &str = "deadline.fire";
pub(crate) const DEADLINE_FIRED: &str = "deadline.fired";

/// Not a fault to survive but a lie to be found out, for the negative control of a bench: the batch is answered as if
/// it were committed, and rolled back.
#[cfg(feature = "failpoints")]
pub(crate) const COMMIT_NEVER: &str = "commit.never";

/// Another lie: a connection for writing gets `synchronous=NORMAL` and nobody notices, so that a power cut loses what was
/// acknowledged.
pub(crate) const OPEN_SYNCHRONOUS: &str = "open.synchronous";

/// Another one: the connection is kept after a failure, and inside a transaction, as a driver leaves it that does not
/// notice that SQLite has rolled back.
pub(crate) const CONNECTION_KEPT: &str = "connection.kept";

/// Another one: pages that could not be written back are kept, and believed to be on the disk when they are written again.
pub(crate) const PAGES_KEPT: &str = "pages.kept";

/// Another one: whoever settles messages is believed, also one whose lease somebody else has.
pub(crate) const SETTLE_UNFENCED: &str = "settle.unfenced";

/// Another one: a lease counts until its expiry, however far away a wrong clock has put that.
pub(crate) const LEASE_TRUSTED: &str = "lease.trusted";

/// Fails here if it was asked for.
#[cfg(feature = "failpoints")]
pub(crate) fn hit(place: &'static str) -> Result<(), Cause> {
    if is_asked(place) {
        return Err(std::io::Error::other(format!("asked for at {place}")).into());
    }
    Ok(())
}

/// True if the place is to report an error; panics, waits, ends or stops the process if that was asked for.
#[cfg(feature = "failpoints")]
pub(crate) fn is_asked(place: &'static str) -> bool {
    fail::fail_point!(place, |how: Option<String>| match how.as_deref() {
        Some("abort") => std::process::abort(),
        Some("stop") => {
            use rustix::process::{Signal, getpid, kill_process};
            let stopped = kill_process(getpid(), Signal::STOP).is_ok();
            // Whichever thread takes the signal stops them all, and this one is not to be past the place by then.
            std::thread::sleep(std::time::Duration::from_millis(100));
            !stopped
        }
        Some(_) | None => true,
    });
    false
}

/// Never, in a build without the feature.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn is_asked(_place: &'static str) -> bool {
    false
}

/// Nothing, in a build without the feature.
#[cfg(not(feature = "failpoints"))]
#[expect(clippy::unnecessary_wraps, reason = "it fails in a build for tests")]
pub(crate) const fn hit(_place: &'static str) -> Result<(), Cause> {
    Ok(())
}
