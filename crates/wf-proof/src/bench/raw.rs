//! The floor of durability: the rows of real steps, written with prepared statements by one connection with the settings
//! of the product, in one process, without any reading, judging or waiting.
//!
//! The rows come from a database that the built server has just written. A statement of the product that writes more
//! (another table, another column) must be added here, or the floor is too low for it: [`Rows::record`] fails when a
//! step changed the number of rows of any other table.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, Row, params_from_iter};
use serde::Serialize;
use wf_backend_local::{LocalConfig, LocalStore};

use super::samples::{Quantiles, Samples};
use super::wire::Connection as Caller;
use super::work::{Names, Round, STEPS, expect};
use crate::fault::Fault;

/// What one step wrote.
#[derive(Debug, Clone)]
struct Step {
    revision: i64,
    state: String,
    event: String,
    ledger: Vec<Value>,
}

/// What the steps of one workflow wrote, in order, and what was there before.
#[derive(Debug, Clone)]
pub struct Rows {
    workflow: Vec<Value>,
    steps: Vec<Step>,
    /// A request and an answer of a step, for the echo.
    pub call: (bytes::Bytes, bytes::Bytes),
}

/// What was measured.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Raw {
    /// Steps in one transaction.
    pub batch: usize,
    /// Steps a second.
    pub rate: f64,
    /// Times of transactions.
    pub times: Quantiles,
}

const WORKFLOW: &str = "tenant, id, revision, phase, owner, offered_to, offered_at, blocked_since, completed_at, \
                        updated_at, last_activity, assets, state";
const LEDGER: &str = "tenant, actor, key, seq, operation, fingerprint, result_version, created_at, expires_at, mark, \
                      fields, result";
/// Of [`LEDGER`].
const LEDGER_KEY: usize = 2;
/// Workflows between two preparations; as many as there are callers in the load with the most of them.
const AT_ONCE: usize = 64;

fn sql(what: &'static str) -> impl FnOnce(rusqlite::Error) -> Fault {
    move |error| Fault::Run(format!("raw SQLite, {what}: {error}"))
}

fn values(row: &Row<'_>) -> rusqlite::Result<Vec<Value>> {
    (0..row.as_ref().column_count()).map(|n| row.get(n)).collect()
}

/// Rows in every table, by name.
fn counts(db: &Connection) -> rusqlite::Result<Vec<(String, i64)>> {
    let mut tables = db.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )?;
    let names: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    names
        .into_iter()
        .map(|name| {
            // The name comes from the schema; it is quoted all the same.
            let count = format!("SELECT count(*) FROM \"{}\"", name.replace('"', "\"\""));
            let count = db.query_row(&count, [], |row| row.get(0))?;
            Ok((name, count))
        })
        .collect()
}

impl Rows {
    /// Runs one workflow on a server and reads from its database what each step wrote.
    ///
    /// # Errors
    /// When a call is not answered as it must be, the database cannot be read, or a step wrote what is not known here.
    pub async fn record(caller: &mut Caller, database: &Path) -> Result<Self, Fault> {
        let mut names = Names::new()?;
        let round = Round::start(caller, 1, &mut names).await?;
        let db = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .map_err(sql("opening"))?;
        let head = format!("SELECT {WORKFLOW} FROM workflows WHERE id = ?1");
        let workflow = db.query_row(&head, [&round.id], values).map_err(sql("reading"))?;
        let mut steps = Vec::with_capacity(STEPS);
        let mut call = None;
        for body in &round.steps {
            let before = counts(&db).map_err(sql("counting"))?;
            let answer = caller.call(body.clone()).await?;
            expect(&answer, "recorded")?;
            let after = counts(&db).map_err(sql("counting"))?;
            only_known(&before, &after)?;
            steps.push(Step::newest(&db, &round.id).map_err(sql("reading"))?);
            call = Some((body.body.clone(), answer));
        }
        round.finish(caller).await?;
        let call = call.ok_or_else(|| Fault::Run("the procedure has no steps".to_owned()))?;
        Ok(Self { workflow, steps, call })
    }
}

/// A step writes one event and one ledger row, and changes the head of its workflow.
fn only_known(before: &[(String, i64)], after: &[(String, i64)]) -> Result<(), Fault> {
    for ((table, before), (_, after)) in before.iter().zip(after) {
        let more = i64::from(table == "events" || table == "ledger");
        if after - before != more {
            return Err(Fault::Run(format!(
                "a step wrote {} rows of {table}, not {more}: the floor has to write them too",
                after - before
            )));
        }
    }
    Ok(())
}

impl Step {
    fn newest(db: &Connection, workflow: &str) -> rusqlite::Result<Self> {
        let (wid, revision, state): (i64, i64, String) = db.query_row(
            "SELECT wid, revision, state FROM workflows WHERE id = ?1",
            [workflow],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let event = db.query_row(
            "SELECT body FROM events WHERE wid = ?1 AND seq = ?2",
            [wid, revision],
            |row| row.get(0),
        )?;
        let ledger = db.query_row(
            &format!("SELECT {LEDGER} FROM ledger WHERE wid = ?1 AND seq = ?2"),
            [wid, revision],
            values,
        )?;
        Ok(Self { revision, state, event, ledger })
    }
}

/// Writes steps for this long, so many in a transaction: 1, or as many as there are workflows at once.
///
/// # Errors
/// When the database cannot be made or written.
pub async fn measure(
    rows: &Rows,
    folder: &Path,
    grouped: bool,
    time: Duration,
) -> Result<Raw, Fault> {
    let path = folder.join("raw.db");
    let opened = LocalStore::open(LocalConfig::new(&path))
        .await
        .map_err(|error| Fault::Run(format!("the database of the floor: {error}")))?;
    opened.store.close().await;
    let mut floor = Floor::open(&path, rows)?;
    let (mut samples, mut spent, mut steps) = (Samples::default(), Duration::ZERO, 0_usize);
    let mut warm = false;
    while !warm || spent < time {
        floor.prepare().map_err(sql("preparing"))?;
        let phase = if grouped { floor.grouped() } else { floor.one_by_one() };
        let phase = phase.map_err(sql("writing"))?;
        if warm {
            spent += phase.iter().sum::<Duration>();
            steps += phase.len() * if grouped { AT_ONCE } else { 1 };
            phase.into_iter().for_each(|time| samples.push(time));
        }
        warm = true;
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of steps is far below 2^52")]
    let rate = steps as f64 / spent.as_secs_f64().max(1e-9);
    Ok(Raw { batch: if grouped { AT_ONCE } else { 1 }, rate, times: samples.quantiles() })
}

struct Floor<'a> {
    db: Connection,
    rows: &'a Rows,
    /// The workflows that are prepared.
    wids: Vec<i64>,
    keys: u64,
}

impl<'a> Floor<'a> {
    fn open(path: &Path, rows: &'a Rows) -> Result<Self, Fault> {
        let db = Connection::open(path).map_err(sql("opening"))?;
        // The settings of wf-backend-local/src/connection.rs.
        db.execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA busy_timeout=2000;
             PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0;
             PRAGMA journal_size_limit=67108864; PRAGMA wal_autocheckpoint=4000; PRAGMA cache_size=-8192;",
        )
        .map_err(sql("setting up"))?;
        Ok(Self { db, rows, wids: Vec::new(), keys: 0 })
    }

    /// New workflows as they are after their start. Not measured.
    fn prepare(&mut self) -> rusqlite::Result<()> {
        let marks = vec!["?"; self.rows.workflow.len()].join(",");
        let insert = format!("INSERT INTO workflows ({WORKFLOW}) VALUES ({marks})");
        let transaction = self.db.transaction()?;
        self.wids.clear();
        for _ in 0..AT_ONCE {
            self.keys += 1;
            let mut row = self.rows.workflow.clone();
            if let Some(id) = row.get_mut(1) {
                *id = Value::Text(format!("{:08x}-0000-7000-8000-{:012x}", self.keys, self.keys));
            }
            transaction.prepare_cached(&insert)?.execute(params_from_iter(row))?;
            self.wids.push(transaction.last_insert_rowid());
        }
        transaction.commit()
    }

    /// One workflow after the other, a transaction a step.
    fn one_by_one(&mut self) -> rusqlite::Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(AT_ONCE * STEPS);
        for wid in self.wids.clone() {
            for step in &self.rows.steps {
                times.push(transact(&self.db, &mut self.keys, step, &[wid])?);
            }
        }
        Ok(times)
    }

    /// All workflows together, a transaction for the same step of each.
    fn grouped(&mut self) -> rusqlite::Result<Vec<Duration>> {
        let steps = self.rows.steps.iter();
        steps.map(|step| transact(&self.db, &mut self.keys, step, &self.wids)).collect()
    }
}

/// Writes the step for each of the workflows, durably. How long it took.
fn transact(
    db: &Connection,
    keys: &mut u64,
    step: &Step,
    wids: &[i64],
) -> rusqlite::Result<Duration> {
    const HEAD: &str = "UPDATE workflows SET revision = ?2, updated_at = ?3, last_activity = ?3, state = ?4 WHERE wid = ?1";
    const EVENT: &str = "INSERT INTO events (wid, seq, body) VALUES (?,?,?)";
    const ENTRY: &str = "INSERT INTO ledger (wid, tenant, actor, key, seq, operation, fingerprint, result_version, \
                         created_at, expires_at, mark, fields, result) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)";
    let begun = Instant::now();
    db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    for wid in wids {
        *keys += 1;
        // As long as the keys of the load.
        let key = Value::Text(format!("bench-00000000-{keys:08}"));
        let of = Value::Integer(*wid);
        let row = step.ledger.iter().enumerate();
        let row = row.map(|(n, value)| if n == LEDGER_KEY { &key } else { value });
        let entry = std::iter::once(&of).chain(row);
        db.prepare_cached(HEAD)?.execute((
            wid,
            step.revision,
            1_700_000_000_000_i64,
            &step.state,
        ))?;
        db.prepare_cached(EVENT)?.execute((wid, step.revision, &step.event))?;
        db.prepare_cached(ENTRY)?.execute(params_from_iter(entry))?;
    }
    db.prepare_cached("COMMIT")?.execute([])?;
    Ok(begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::only_known;

    #[test]
    fn a_row_that_the_floor_does_not_write_is_noticed() {
        let table = |name: &str, count| (name.to_owned(), count);
        let before = [table("events", 1), table("ledger", 1), table("outbox", 0)];
        let after = |outbox| [table("events", 2), table("ledger", 2), table("outbox", outbox)];
        assert!(only_known(&before, &after(0)).is_ok());
        assert!(only_known(&before, &after(1)).is_err());
        assert!(only_known(&before, &before).is_err());
    }
}
