//! Clock and randomness: the only way in for what a decision must not look up.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use crate::models::Timestamp;

/// Wall-clock time and waiting.
pub trait ClockPort: Debug + Send + Sync {
    /// Now, by the wall clock.
    fn now(&self) -> Timestamp;
    /// A future that is ready after `ms` milliseconds of monotonic time.
    fn sleep(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// Unpredictable identifiers.
pub trait IdPort: Debug + Send + Sync {
    /// A new workflow id: sortable by time, at least 74 random bits (UUIDv7, RFC 9562 section 5.7).
    fn workflow_id(&self) -> String;
    /// 32 lowercase hexadecimal digits from the operating system's randomness.
    fn random_hex(&self) -> String;
}
