//! The wire: every request to the table goes through here, is counted, and is sent again when that may help.
//!
//! Reads and single conditional writes are in `requests`, transactions in `transact`, the table as a whole in `scan`. This file is what they share: how
//! long to go on, how long to wait in between, and what was consumed.

mod requests;
mod scan;
mod transact;

pub(crate) use requests::{Changed, Range};
pub(crate) use scan::Segment;
pub(crate) use transact::{Met, Unsent};

use std::collections::BTreeMap;
use std::error::Error;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};
use tokio::time::Instant;

use crate::config::AwsConfig;
use crate::fault::{self, Kind, Trouble};
use crate::guard::Guard;

/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_millis(800);
/// About the first pause.
const PAUSE: Duration = Duration::from_millis(25);

/// The table, and how to talk to it.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    client: Client,
    config: Arc<AwsConfig>,
    usage: Arc<Mutex<Usage>>,
    guard: Option<Arc<Guard>>,
}

/// Requests that were sent, and what they consumed as far as it was asked for ([`AwsConfig::measure`]).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// Operation → requests, repeats included.
    pub requests: BTreeMap<&'static str, u64>,
    /// Read capacity units.
    pub read_units: f64,
    /// Write capacity units.
    pub write_units: f64,
}

impl Usage {
    /// All requests.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.requests.values().sum()
    }
}

/// An error of the SDK, sorted.
#[derive(Debug)]
pub(crate) struct Failed<E> {
    pub(crate) kind: Kind,
    pub(crate) error: SdkError<E, HttpResponse>,
    /// An attempt before this one may have been applied.
    pub(crate) after_unknown: bool,
}

impl<E> Failed<E>
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    fn of(error: SdkError<E, HttpResponse>) -> Self {
        Self { kind: Kind::of(&error), error, after_unknown: false }
    }

    fn trouble(self) -> Trouble {
        self.kind.trouble(fault::cause(self.error))
    }
}

/// How long a call goes on, and the pauses in it: they double, are half random, and end when patience does.
#[derive(Debug)]
pub(crate) struct Patience {
    until: Instant,
    attempts_left: u32,
    pause: Duration,
}

impl Patience {
    /// Waits before the next attempt; false when there is none.
    pub(crate) async fn pause(&mut self) -> bool {
        self.attempts_left = self.attempts_left.saturating_sub(1);
        let half = self.pause / 2;
        let wait = half + half.mul_f64(fraction());
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        if self.attempts_left == 0 || Instant::now() + wait >= self.until {
            return false;
        }
        tokio::time::sleep(wait).await;
        true
    }
}

/// A random number from 0 to 1. Without randomness from the system: the middle.
fn fraction() -> f64 {
    let number = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(number) / f64::from(u32::MAX)
}

impl Link {
    pub(crate) fn new(client: Client, config: AwsConfig) -> Self {
        Self { client, config: Arc::new(config), usage: Arc::default(), guard: None }
    }

    /// The same, for whoever opened a store: writes are refused where the table is no longer that store.
    pub(crate) fn guarded(self, guard: Guard) -> Self {
        Self { guard: Some(Arc::new(guard)), ..self }
    }

    pub(crate) fn guard(&self) -> Option<&Guard> {
        self.guard.as_deref()
    }

    pub(crate) fn config(&self) -> &AwsConfig {
        &self.config
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    fn table(&self) -> &str {
        &self.config.table
    }

    fn patience(&self) -> Patience {
        self.looks(self.config.attempts_max.max(1))
    }

    /// Patience for `most` looks at something that somebody else is about to finish.
    pub(crate) fn looks(&self, most: u32) -> Patience {
        let until = Instant::now() + Duration::from_millis(self.config.patience_ms);
        Patience { until, attempts_left: most, pause: PAUSE }
    }

    /// What was sent and consumed so far.
    pub(crate) fn usage(&self) -> Usage {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, operation: &'static str) {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        *usage.requests.entry(operation).or_default() += 1;
    }

    fn measuring(&self) -> Option<ReturnConsumedCapacity> {
        self.config.measure.then_some(ReturnConsumedCapacity::Total)
    }

    fn consumed<'c>(&self, reads: bool, capacity: impl IntoIterator<Item = &'c ConsumedCapacity>) {
        let units: f64 = capacity.into_iter().filter_map(ConsumedCapacity::capacity_units).sum();
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = if reads { &mut usage.read_units } else { &mut usage.write_units };
        *sum += units;
    }

    /// Sends a request whose repeat does no harm until it succeeds, fails for good, or patience ends.
    async fn again<T, E, F>(
        &self,
        operation: &'static str,
        mut send: impl FnMut() -> F,
    ) -> Result<T, Failed<E>>
    where
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>>,
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let (mut patience, mut unknown) = (self.patience(), false);
        loop {
            self.count(operation);
            let failed = match send().await {
                Ok(answer) => return Ok(answer),
                Err(error) => Failed { after_unknown: unknown, ..Failed::of(error) },
            };
            tracing::debug!(operation, kind = ?failed.kind, "a request to DynamoDB failed");
            if !failed.kind.may_pass() || !patience.pause().await {
                return Err(failed);
            }
            unknown |= failed.kind.may_be_applied();
        }
    }
}
