//! What stands beside an event is replaced, and what was there overwritten.
//!
//! An UPDATE leaves the old bytes in the free space of its page unless `secure_delete` is on: then SQLite writes zeros over
//! them. The log keeps the page as it was until it is cut back, which `LocalStore::forget` sees to.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use wf_core::ports::Erasure;
use wf_core::state_machine::SensitiveValue;

use crate::codec::decode::Read;
use crate::config::LocalConfig;
use crate::connection::{close, int, open_writing, rows, run};
use crate::fault::{Cause, unreadable};

/// How long it is tried to cut the log back.
const CUT_PATIENCE: Duration = Duration::from_secs(3);

/// Tenant, workflow, place.
pub(crate) const BESIDE: &str = "
SELECT s.wid, s.body FROM workflows w
 CROSS JOIN sensitive_values s ON s.wid = w.wid AND s.seq = ?3
 WHERE w.tenant = ?1 AND w.id = ?2";

/// Workflow, place, what is left.
pub(crate) const REPLACE: &str =
    "UPDATE sensitive_values SET body = ?3 WHERE wid = ?1 AND seq = ?2";

/// Cuts the log back, after writing the whole file anew if asked to. True when nothing is left in the log.
pub(crate) fn forget(config: &LocalConfig, compact: bool) -> Result<bool, Cause> {
    let conn = open_writing(config)?;
    if compact {
        conn.execute_batch("VACUUM")?;
    }
    // The first of its answers is whether somebody was in the way. Beside another checkpoint SQLite says so at once, whatever
    // the time to wait is.
    let begun = Instant::now();
    let cut = loop {
        if int(&conn, "PRAGMA wal_checkpoint(TRUNCATE)")? == 0 {
            break true;
        }
        if begun.elapsed() > CUT_PATIENCE {
            break false;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    close(conn);
    Ok(cut)
}

/// Erases; false when something else stands there.
pub(crate) fn erase(conn: &Connection, erasure: &Erasure) -> Read<bool> {
    let Ok(seq) = i64::try_from(erasure.seq) else { return Ok(false) };
    let place = (erasure.tenant.as_str(), erasure.workflow_id.as_str(), seq);
    let found = rows(conn, BESIDE, place, |columns| {
        Ok((columns.next::<i64>()?, columns.text()?.to_owned()))
    })?;
    let text = |error: serde_json::Error| unreadable("a sensitive value", error);
    let Some((wid, body)) = found.into_iter().next() else { return Ok(false) };
    let stands: Vec<SensitiveValue> = serde_json::from_str(&body).map_err(text)?;
    if stands != erasure.was {
        return Ok(false);
    }
    let left = serde_json::to_string(&erasure.becomes).map_err(text)?;
    // Answers the setting; it counts from here on, also within a transaction.
    int(conn, "PRAGMA secure_delete = ON")?;
    let done = run(conn, REPLACE, (wid, seq, left));
    int(conn, "PRAGMA secure_delete = OFF")?;
    Ok(done? > 0)
}
