//! The table and its statements. A row is `claimed` while its tool runs, then `done`, or `unknown` when it was never
//! recorded. `ledger` brings the time, and the thread.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};
use wf_idempotency::{Fingerprint, LedgerEntry, Verdict, judge};

use crate::ledger::LedgerError;
use crate::policy::Unfinished;

const SCHEMA_VERSION: i64 = 1;
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS calls (
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  operation TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  effect_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('claimed', 'unknown', 'done')),
  leased_until_ms INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  result_version INTEGER NOT NULL,
  result TEXT NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS calls_by_expiry ON calls (expires_at_ms);
PRAGMA user_version = 1;";

/// Shape of a stored result: a `CallToolResult` as canonical JSON.
const RESULT_VERSION: u16 = 1;
/// Expired rows that one claim clears away.
const SWEEP_ROWS: u32 = 20;
/// How long a statement waits for another process.
const BUSY: Duration = Duration::from_secs(5);
/// SQLite's code for `synchronous=FULL`.
const SYNCHRONOUS_FULL: i64 = 2;

/// A call, as the ledger sees it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) scope: String,
    pub(crate) key: String,
    pub(crate) operation: String,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) unfinished: Unfinished,
}

/// A call that is this process's to run, in this attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) scope: String,
    pub(crate) key: String,
    pub(crate) effect_key: String,
    pub(crate) attempt: u32,
}

/// What a claim came to.
#[derive(Debug)]
pub(crate) enum Claimed {
    /// Run it.
    Mine(Claim),
    /// The same call is running; its lease is over in so many milliseconds.
    Running { left_ms: i64 },
    /// The same call was begun and never recorded, and is not to be repeated.
    Unknown { since_ms: i64 },
    /// The same call was done.
    Done(LedgerEntry),
    /// The key is another call's.
    Other { operation: String, created_at_ms: i64 },
}

/// The times that a claim needs, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) now_ms: i64,
    pub(crate) leased_ms: i64,
    pub(crate) expires_ms: i64,
}

/// Opens the file and makes sure that commits will be durable.
pub(crate) fn open(path: &Path) -> Result<Connection, LedgerError> {
    if rusqlite::version_number() < 3_051_003 {
        return Err(LedgerError::OldSqlite(rusqlite::version()));
    }
    let mut conn = Connection::open(path)?;
    conn.busy_timeout(BUSY)?;
    let found: i64 = conn.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    if found > SCHEMA_VERSION {
        return Err(LedgerError::Newer { found, known: SCHEMA_VERSION });
    }
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0))?;
    conn.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA fullfsync = 1; PRAGMA trusted_schema = OFF;",
    )?;
    let full: i64 = conn.query_row("PRAGMA synchronous", (), |row| row.get(0))?;
    if full != SYNCHRONOUS_FULL || !mode.eq_ignore_ascii_case("wal") {
        return Err(LedgerError::NotDurable);
    }
    if found < SCHEMA_VERSION {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute_batch(SCHEMA)?;
        tx.commit()?;
    }
    Ok(conn)
}

/// A row.
struct Found {
    entry: LedgerEntry,
    effect_key: String,
    attempt: u32,
    state: String,
    leased_until_ms: i64,
}

fn read(row: &Row<'_>) -> Result<Result<Found, LedgerError>, rusqlite::Error> {
    let fingerprint: String = row.get(1)?;
    let Ok(fingerprint) = fingerprint.parse() else {
        return Ok(Err(LedgerError::Damaged("its fingerprint is none")));
    };
    let entry = LedgerEntry {
        operation: row.get(0)?,
        fingerprint,
        result_version: row.get(6)?,
        result: row.get(7)?,
        created_at_ms: row.get(5)?,
        expires_at_ms: Some(row.get(8)?),
    };
    Ok(Ok(Found {
        entry,
        effect_key: row.get(2)?,
        attempt: row.get(3)?,
        state: row.get(4)?,
        leased_until_ms: row.get(9)?,
    }))
}

/// Judges the row of a call and claims it where that is allowed, in one transaction.
pub(crate) fn claim(
    conn: &mut Connection,
    asked: &Asked,
    effect_key: String,
    times: Times,
) -> Result<Claimed, LedgerError> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = tx
        .prepare_cached(
            "SELECT operation, fingerprint, effect_key, attempt, state, created_at_ms, result_version, result,
                    expires_at_ms, leased_until_ms FROM calls WHERE scope = ?1 AND key = ?2",
        )?
        .query_row(params![asked.scope, asked.key], read)
        .optional()?
        .transpose()?;
    let entry = found.as_ref().map(|found| &found.entry);
    let claimed = match judge(entry, &asked.operation, &asked.fingerprint, times.now_ms) {
        Verdict::Fresh | Verdict::Expired(_) => {
            Claimed::Mine(begin(&tx, asked, effect_key, times)?)
        }
        Verdict::Conflict(entry) => Claimed::Other {
            operation: entry.operation.clone(),
            created_at_ms: entry.created_at_ms,
        },
        Verdict::Replay(_) => match found {
            Some(found) => known(&tx, asked, found, times)?,
            None => return Err(LedgerError::Damaged("it was judged and is not there")),
        },
    };
    tx.prepare_cached(
        "DELETE FROM calls WHERE (scope, key) IN
           (SELECT scope, key FROM calls WHERE expires_at_ms <= ?1 ORDER BY expires_at_ms LIMIT ?2)",
    )?
    .execute(params![times.now_ms, SWEEP_ROWS])?;
    tx.commit()?;
    Ok(claimed)
}

/// The first attempt of a call.
fn begin(
    conn: &Connection,
    asked: &Asked,
    effect_key: String,
    times: Times,
) -> Result<Claim, LedgerError> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO calls (scope, key, operation, fingerprint, effect_key, attempt, state, leased_until_ms,
                                       created_at_ms, result_version, result, expires_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, 1, 'claimed', ?6, ?7, ?8, '', ?9)",
    )?
    .execute(params![
        asked.scope,
        asked.key,
        asked.operation,
        asked.fingerprint.to_string(),
        effect_key,
        times.leased_ms,
        times.now_ms,
        RESULT_VERSION,
        times.expires_ms,
    ])?;
    Ok(Claim { scope: asked.scope.clone(), key: asked.key.clone(), effect_key, attempt: 1 })
}

/// The same call again.
fn known(
    conn: &Connection,
    asked: &Asked,
    found: Found,
    times: Times,
) -> Result<Claimed, LedgerError> {
    let Found { entry, effect_key, attempt, state, leased_until_ms } = found;
    match state.as_str() {
        "done" => return Ok(Claimed::Done(entry)),
        "claimed" if leased_until_ms > times.now_ms => {
            return Ok(Claimed::Running { left_ms: leased_until_ms.saturating_sub(times.now_ms) });
        }
        "claimed" | "unknown" => {}
        _ => return Err(LedgerError::Damaged("its state is none")),
    }
    let mut claim =
        Claim { scope: asked.scope.clone(), key: asked.key.clone(), effect_key, attempt };
    match asked.unfinished {
        Unfinished::Refuse => {
            doubt(conn, &claim)?;
            Ok(Claimed::Unknown { since_ms: entry.created_at_ms })
        }
        Unfinished::Repeat => {
            claim.attempt = attempt.saturating_add(1);
            conn.prepare_cached(
                "UPDATE calls SET attempt = ?3, state = 'claimed', leased_until_ms = ?4, expires_at_ms = ?5
                 WHERE scope = ?1 AND key = ?2",
            )?
            .execute(params![
                claim.scope,
                claim.key,
                claim.attempt,
                times.leased_ms,
                times.expires_ms
            ])?;
            Ok(Claimed::Mine(claim))
        }
    }
}

/// Prolongs a claim, if it still is one.
pub(crate) fn renew(conn: &Connection, claim: &Claim, leased_ms: i64) -> Result<(), LedgerError> {
    conn.prepare_cached(
        "UPDATE calls SET leased_until_ms = ?5
         WHERE scope = ?1 AND key = ?2 AND effect_key = ?3 AND attempt = ?4 AND state = 'claimed'",
    )?
    .execute(params![claim.scope, claim.key, claim.effect_key, claim.attempt, leased_ms])?;
    Ok(())
}

/// Records the answer of this attempt. That others took it for lost meanwhile makes it no less true; that another attempt
/// was begun does: false then.
pub(crate) fn record(
    conn: &Connection,
    claim: &Claim,
    result: &str,
    now_ms: i64,
    expires_ms: i64,
) -> Result<bool, LedgerError> {
    let changed = conn
        .prepare_cached(
            "UPDATE calls SET state = 'done', result = ?5, result_version = ?6, created_at_ms = ?7, expires_at_ms = ?8
             WHERE scope = ?1 AND key = ?2 AND effect_key = ?3 AND attempt = ?4 AND state IN ('claimed', 'unknown')",
        )?
        .execute(params![
            claim.scope,
            claim.key,
            claim.effect_key,
            claim.attempt,
            result,
            RESULT_VERSION,
            now_ms,
            expires_ms
        ])?;
    Ok(changed == 1)
}

/// Takes the claim back. What an earlier attempt did is as unknown as before: then the row stays.
pub(crate) fn release(conn: &Connection, claim: &Claim) -> Result<(), LedgerError> {
    if claim.attempt > 1 {
        return doubt(conn, claim);
    }
    conn.prepare_cached(
        "DELETE FROM calls WHERE scope = ?1 AND key = ?2 AND effect_key = ?3 AND attempt = ?4 AND state <> 'done'",
    )?
    .execute(params![claim.scope, claim.key, claim.effect_key, claim.attempt])?;
    Ok(())
}

/// Notes that the outcome of the claim is unknown.
pub(crate) fn doubt(conn: &Connection, claim: &Claim) -> Result<(), LedgerError> {
    conn.prepare_cached(
        "UPDATE calls SET state = 'unknown'
         WHERE scope = ?1 AND key = ?2 AND effect_key = ?3 AND attempt = ?4 AND state = 'claimed'",
    )?
    .execute(params![claim.scope, claim.key, claim.effect_key, claim.attempt])?;
    Ok(())
}
