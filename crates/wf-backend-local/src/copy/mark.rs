//! What a file says of the copy in it: which store it is a copy of, and how far it got.
//!
//! The table is not a part of the schema: it is made by the first page's transaction and goes with the last one.

use rusqlite::{Connection, OptionalExtension as _};
use wf_core::ports::copy::{Begun, StoreFacts};
use wf_core::ports::{Cursor, StoreIdentity};
use wf_core::state_machine::Secret;

use crate::checkpoint;
use crate::codec::decode::{Columns, Read, unsigned};
use crate::connection::{immediate, int, rows, run};
use crate::fault::{Cause, unreadable};
use crate::schema::{APPLICATION_ID, Marks};

/// `application_id` of a file with an unfinished copy: `CHKC` in ASCII.
pub(crate) const UNFINISHED_ID: i64 = 0x4348_4B43;

const TABLE: &str = "
CREATE TABLE unfinished_copy (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    -- Where the source goes on; nothing before the first page.
    next TEXT,
    -- The source has no more.
    whole INTEGER NOT NULL DEFAULT 0 CHECK (whole IN (0, 1)),
    records INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO unfinished_copy (one) VALUES (1);";

/// Something of each table that is empty in a new store.
const ANYTHING: &str = "
SELECT EXISTS (SELECT 1 FROM workflows) + EXISTS (SELECT 1 FROM definitions) + EXISTS (SELECT 1 FROM locks)
     + EXISTS (SELECT 1 FROM people) + EXISTS (SELECT 1 FROM streams)";

/// There is work in a store of whatever schema.
pub(super) fn has_work(conn: &Connection) -> Read<bool> {
    const WORK: &str =
        "SELECT EXISTS (SELECT 1 FROM workflows) + EXISTS (SELECT 1 FROM definitions)";
    Ok(int(conn, WORK)? > 0)
}

/// The marks are those of an unfinished copy.
pub(crate) fn is_unfinished(marks: Marks) -> bool {
    marks.application_id == UNFINISHED_ID
}

/// Id, keys and fence base.
pub(super) fn facts(conn: &Connection) -> Read<StoreFacts> {
    const STORE: &str = "SELECT id, fence_base FROM store WHERE one = 1";
    const SECRETS: &str = "SELECT secret FROM secrets ORDER BY number DESC";
    let store =
        |columns: &mut Columns<'_>| Ok((columns.text()?.to_owned(), columns.unsigned("a fence")?));
    let found = rows(conn, STORE, (), store)?.into_iter().next();
    let (id, fence_base) = found.ok_or_else(|| unreadable("the store", "it has no identity"))?;
    let secrets = rows(conn, SECRETS, (), |columns| Ok(Secret::new(columns.next()?)))?;
    Ok(StoreFacts { identity: StoreIdentity { id, secrets }, fence_base })
}

/// Begins, or finds where a copy stopped; or says why it must not.
pub(super) fn begin(conn: &mut Connection, source: &StoreFacts) -> Read<Result<Begun, String>> {
    let id = facts(conn)?.identity.id;
    let same = id == source.identity.id;
    if int(conn, "PRAGMA application_id")? == UNFINISHED_ID {
        let why = format!(
            "holds an unfinished copy of another store ({id}): delete it, or give another path"
        );
        return if same { Ok(Ok(so_far(conn)?)) } else { Ok(Err(why)) };
    }
    if int(conn, ANYTHING)? > 0 {
        let why = "is not empty: give the path of a file that does not exist yet".to_owned();
        return Ok(if same { Ok(Begun::Finished) } else { Err(why) });
    }
    let tx = immediate(conn)?;
    let base = i64::try_from(source.fence_base).map_err(|e| unreadable("a fence", e))?;
    run(
        &tx,
        "UPDATE store SET id = ?1, fence_base = ?2 WHERE one = 1",
        (&source.identity.id, base),
    )?;
    run(&tx, "DELETE FROM secrets", ())?;
    for secret in source.identity.secrets.iter().rev() {
        run(&tx, "INSERT INTO secrets (secret) VALUES (?1)", [secret.expose()])?;
    }
    tx.execute_batch(TABLE)?;
    tx.execute_batch(&format!("PRAGMA application_id = {UNFINISHED_ID}"))?;
    tx.commit()?;
    Ok(Ok(Begun::Copying { after: None, records: 0 }))
}

fn so_far(conn: &Connection) -> Read<Begun> {
    const MARK: &str = "SELECT next, whole, records FROM unfinished_copy WHERE one = 1";
    let row = conn.prepare_cached(MARK)?.query_row((), |row| {
        Ok((row.get::<_, Option<String>>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    });
    let (next, whole, records) =
        row.optional()?.ok_or_else(|| unreadable("the copy", "no mark"))?;
    let records = unsigned("a number of records", records)?;
    if whole == 1 {
        return Ok(Begun::Copied { records });
    }
    Ok(Begun::Copying { after: next.map(Cursor), records })
}

/// The source goes on at `next`, or has no more.
pub(super) fn remember(conn: &Connection, next: Option<&Cursor>, records: usize) -> Read<()> {
    const MARK: &str = "
UPDATE unfinished_copy SET next = ?1, whole = ?1 IS NULL, records = records + ?2 WHERE one = 1";
    let records = i64::try_from(records).unwrap_or(i64::MAX);
    match run(conn, MARK, (next.map(|cursor| cursor.0.as_str()), records))? {
        1 => Ok(()),
        _ => Err(Cause::Unfit("no copy was begun in this file".to_owned())),
    }
}

/// Makes a store of it, unless something belongs to nothing: what.
pub(super) fn finish(conn: &mut Connection) -> Read<Option<String>> {
    let orphans =
        rows(conn, "PRAGMA foreign_key_check", (), |columns| Ok(columns.text()?.to_owned()))?;
    if let Some(table) = orphans.first() {
        return Ok(Some(format!("{} rows belong to nothing, the first in {table}", orphans.len())));
    }
    let headless = int(conn, "SELECT count(*) FROM workflows WHERE state = ''")?;
    if headless > 0 {
        return Ok(Some(format!("{headless} workflows have no state")));
    }
    let tx = immediate(conn)?;
    tx.execute_batch(&format!(
        "DROP TABLE unfinished_copy; PRAGMA application_id = {APPLICATION_ID};"
    ))?;
    tx.commit()?;
    checkpoint::truncate(conn)?;
    Ok(None)
}
