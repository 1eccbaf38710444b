//! The real clock and the operating system's randomness: the only implementations of `ClockPort` and `IdPort` that
//! look outside.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use wf_core::models::Timestamp;
use wf_core::ports::{ClockPort, IdPort};

/// The system's wall clock, and tokio's monotonic timer for waiting.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemClock;

impl ClockPort for SystemClock {
    fn now(&self) -> Timestamp {
        let since =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let now = Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        #[cfg(feature = "failpoints")]
        let now = now.plus_ms(moved_ms());
        now
    }

    fn sleep(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
    }
}

/// By how much the failpoint `clock` moves the clock: `clock=return(FILE)` names a file that holds milliseconds, read
/// anew each time, so that a clock may step while a server runs. None when the file is not there or holds no number.
#[cfg(feature = "failpoints")]
fn moved_ms() -> i64 {
    let moved = || {
        fail::fail_point!("clock", |file| {
            let text = std::fs::read_to_string(file?).ok()?;
            text.trim().parse::<i64>().ok()
        });
        None
    };
    moved().unwrap_or(0)
}

/// Ids from the operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OsIds;

impl IdPort for OsIds {
    fn workflow_id(&self) -> String {
        // 10 random bytes leave 74 random bits beside version and variant (RFC 9562 section 5.7).
        let ms = u64::try_from(SystemClock.now().as_ms()).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(ms, &random::<10>()).into_uuid().to_string()
    }

    fn random_hex(&self) -> String {
        format!("{:032x}", u128::from_ne_bytes(random()))
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0_u8; N];
    if let Err(error) = getrandom::fill(&mut bytes) {
        // A guessable id would be worse than a restart, and nothing committed is lost by one.
        tracing::error!(%error, "the operating system gives no randomness");
        std::process::abort();
    }
    bytes
}

/// The operating-system user who runs this process: the name behind the effective user id, or `uid-<number>`.
///
/// Not from `$USER`: what ends up in a history must not depend on a variable that anybody can set.
pub(crate) fn os_user() -> String {
    let uid = rustix::process::geteuid().as_raw();
    std::fs::read_to_string("/etc/passwd")
        .ok()
        .and_then(|accounts| name_of(uid, &accounts))
        .unwrap_or_else(|| format!("uid-{uid}"))
}

/// Looks up a user id in the format of passwd(5).
fn name_of(uid: u32, accounts: &str) -> Option<String> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let id = fields.nth(1)?;
        (id.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workflow_ids_are_version_7_sort_by_time_and_differ() {
        let earlier = OsIds.workflow_id();
        assert_eq!(earlier.len(), 36);
        assert_eq!(earlier.as_bytes()[14], b'7');
        assert!(matches!(earlier.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
        std::thread::sleep(Duration::from_millis(2));
        assert!(OsIds.workflow_id() > earlier);
    }

    #[test]
    fn random_hex_is_32_digits_and_differs() {
        let one = OsIds.random_hex();
        assert_eq!(one.len(), 32);
        assert!(one.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase()));
        assert_ne!(one, OsIds.random_hex());
    }

    #[test]
    fn users_are_found_by_id() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\n\nbroken\ntech:x:1000:1000::/home/tech:\n";
        assert_eq!(name_of(1000, accounts).as_deref(), Some("tech"));
        assert_eq!(name_of(0, accounts).as_deref(), Some("root"));
        assert_eq!(name_of(7, accounts), None);
    }
}
