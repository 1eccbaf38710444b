//! The durable ledger: a SQLite file with one row for each call. `sql` has the statements, `call` their order.
//!
//! Every operation is one short transaction on a thread for blocking work, with an fsync: a claim is on disk before the
//! effect begins.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use tokio::task::spawn_blocking;

use crate::sql::{self, Asked, Claim, Claimed};

/// Times of a [`Ledger`].
#[derive(Debug, Clone, Copy)]
pub struct LedgerConfig {
    /// How long a claim holds without a sign of life. A running tool renews it; after a crash, whoever asks again is told
    /// to wait until it is over. Clocks of processes that share a file may differ by less than this.
    pub lease: Duration,
    /// How long a call waits for the same call that is running, before its caller is told to ask again.
    pub patience: Duration,
    /// How long rows are kept. After that a key is a new one.
    pub retention: Duration,
}

impl Default for LedgerConfig {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            patience: Duration::from_secs(10),
            retention: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}

/// A ledger that does not work.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// SQLite refuses.
    #[error("the ledger cannot be read or written")]
    Sqlite(#[from] rusqlite::Error),
    /// The file was made by a newer build.
    #[error("the ledger has schema version {found}, this build knows {known}")]
    Newer {
        /// What the file says.
        found: i64,
        /// What this build makes.
        known: i64,
    },
    /// The linked SQLite can lose a write (<https://sqlite.org/wal.html#walresetbug>).
    #[error("SQLite {0} is too old: 3.51.3 or newer is needed")]
    OldSqlite(&'static str),
    /// The file is not durable: SQLite did not take its settings.
    #[error("SQLite did not take synchronous=FULL and journal_mode=WAL for this file")]
    NotDurable,
    /// The operating system gives no randomness.
    #[error("the operating system gives no randomness")]
    Randomness(#[from] getrandom::Error),
    /// A row that this build did not write.
    #[error("a row of the ledger is damaged: {0}")]
    Damaged(&'static str),
    /// The runtime is ending.
    #[error("the ledger was stopped")]
    Stopped,
}

/// The ledger. Cheap to clone; processes may share its file.
#[derive(Debug, Clone)]
pub struct Ledger {
    connection: Arc<Mutex<Connection>>,
    pub(crate) config: LedgerConfig,
}

impl Ledger {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn open(path: impl AsRef<Path>, config: LedgerConfig) -> Result<Self, LedgerError> {
        let connection = Arc::new(Mutex::new(sql::open(path.as_ref())?));
        Ok(Self { connection, config })
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let connection = Arc::clone(&self.connection);
        let done = spawn_blocking(move || {
            // A transaction that a panic left is rolled back when it is dropped.
            work(&mut connection.lock().unwrap_or_else(PoisonError::into_inner))
        });
        done.await.map_err(|_| LedgerError::Stopped)?
    }

    fn expires(&self, now_ms: i64) -> i64 {
        now_ms.saturating_add(ms(self.config.retention))
    }

    fn leased(&self, now_ms: i64) -> i64 {
        now_ms.saturating_add(ms(self.config.lease))
    }

    /// Claims a call, or says what is known of it.
    pub(crate) async fn claim(&self, asked: Asked) -> Result<Claimed, LedgerError> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)?;
        let effect_key = random.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let now_ms = now_ms();
        let times =
            sql::Times { now_ms, leased_ms: self.leased(now_ms), expires_ms: self.expires(now_ms) };
        self.run(move |conn| sql::claim(conn, &asked, effect_key, times)).await
    }

    /// Shows that a claim is alive.
    pub(crate) async fn renew(&self, claim: Claim) -> Result<(), LedgerError> {
        let leased_ms = self.leased(now_ms());
        self.run(move |conn| sql::renew(conn, &claim, leased_ms)).await
    }

    /// Keeps the answer. False when the claim is another's by now.
    pub(crate) async fn record(&self, claim: Claim, result: String) -> Result<bool, LedgerError> {
        let now_ms = now_ms();
        let expires_ms = self.expires(now_ms);
        self.run(move |conn| sql::record(conn, &claim, &result, now_ms, expires_ms)).await
    }

    /// Takes a claim back: nothing was done.
    pub(crate) async fn release(&self, claim: Claim) -> Result<(), LedgerError> {
        self.run(move |conn| sql::release(conn, &claim)).await
    }

    /// Notes that nobody knows what was done.
    pub(crate) async fn doubt(&self, claim: Claim) -> Result<(), LedgerError> {
        self.run(move |conn| sql::doubt(conn, &claim)).await
    }
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Milliseconds since the Unix epoch.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, ms)
}
