//! What only this backend can see: rows that belong to nothing, and copies in columns that differ from what they copy.
//! The other half of `wf_core::engine::verify`, which sees only what the port shows.
//!
//! Each question is one statement, so one snapshot; each answers a bounded number of lines. A reader that looks while
//! others write may see a commit between two questions, but never half of one.

use std::collections::BTreeMap;

use rusqlite::Connection;

use crate::codec::decode::{self, Columns, Read};
use crate::codec::{Placement, asset_list};
use crate::config::LocalConfig;
use crate::connection::{self, rows};

/// Lines that one question answers at most.
const LINES_MAX: usize = 20;
/// Workflows looked at in one statement.
const PAGE: i64 = 200;

/// What is wrong, and the statement that answers the places where it is: one text column, at most [`LINES_MAX`] rows.
const QUESTIONS: &[(&str, &str)] = &[
    (
        "the asset rows are not those of its workflow",
        "SELECT w.id || ' of ' || w.tenant FROM workflow_assets a JOIN workflows w ON w.wid = a.wid
          WHERE a.tenant <> w.tenant OR a.workflow_id <> w.id OR a.completed_at IS NOT w.completed_at LIMIT 20",
    ),
    (
        "an event is stored in another place than it says",
        "SELECT w.id || ', event ' || e.seq FROM events e JOIN workflows w ON w.wid = e.wid
          WHERE json_extract(e.body, '$.seq') IS NOT e.seq
             OR json_extract(e.body, '$.workflow_id') IS NOT w.id LIMIT 20",
    ),
    (
        "there is an event after the revision",
        "SELECT w.id || ', event ' || e.seq FROM workflows w JOIN events e ON e.wid = w.wid AND e.seq > w.revision
          LIMIT 20",
    ),
    (
        "a ledger row is of no event",
        "SELECT l.key || ' of ' || l.actor FROM ledger l JOIN workflows w ON w.wid = l.wid
           LEFT JOIN events e ON e.wid = l.wid AND e.seq = l.seq
          WHERE l.tenant <> w.tenant OR e.seq IS NULL OR json_extract(e.body, '$.cause.key') IS NOT l.key
             OR json_extract(e.body, '$.cause.fingerprint') IS NOT l.fingerprint LIMIT 20",
    ),
    (
        "an event is of no ledger row",
        "SELECT w.id || ', event ' || e.seq FROM workflows w JOIN events e ON e.wid = w.wid
          WHERE w.swept = 0 AND NOT EXISTS (SELECT 1 FROM ledger l
                 WHERE l.wid = e.wid AND l.seq >= e.seq AND l.key = json_extract(e.body, '$.cause.key')) LIMIT 20",
    ),
    (
        "a lock is held by no workflow",
        "SELECT k.asset_id || ' of ' || k.tenant FROM locks k WHERE k.holder IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM workflows w WHERE w.tenant = k.tenant AND w.id = k.holder) LIMIT 20",
    ),
    (
        "a stream of messages is of no workflow",
        "SELECT s.workflow_id || ' to ' || s.recipient FROM streams s WHERE NOT EXISTS (SELECT 1 FROM workflows w
          WHERE w.tenant = s.tenant AND w.id = s.workflow_id) LIMIT 20",
    ),
    (
        "a stream is not due when its first message is",
        "SELECT s.workflow_id || ' to ' || s.recipient FROM streams s WHERE s.due_at IS NOT
            (SELECT o.next_attempt_at FROM outbox o WHERE o.sid = s.sid AND o.state = 'pending'
              ORDER BY o.seq, o.id LIMIT 1) LIMIT 20",
    ),
    (
        "a message is not what its stream says",
        "SELECT o.id FROM outbox o JOIN streams s ON s.sid = o.sid
          WHERE json_extract(o.message, '$.id') IS NOT o.id OR json_extract(o.message, '$.seq') IS NOT o.seq
             OR json_extract(o.message, '$.recipient') IS NOT s.recipient
             OR json_extract(o.message, '$.workflow_id') IS NOT s.workflow_id
             OR json_extract(o.message, '$.tenant') IS NOT s.tenant LIMIT 20",
    ),
    (
        "a message is of no event",
        "SELECT o.id FROM outbox o JOIN streams s ON s.sid = o.sid
           LEFT JOIN workflows w ON w.tenant = s.tenant AND w.id = s.workflow_id
           LEFT JOIN events e ON e.wid = w.wid AND e.seq = o.seq WHERE e.seq IS NULL LIMIT 20",
    ),
    (
        "a version is of no definition of its procedure",
        "SELECT v.procedure_id || ' version ' || v.version FROM procedure_versions v
           LEFT JOIN definitions d ON d.digest = v.digest
          WHERE d.procedure_id IS NOT v.procedure_id OR d.version IS NOT v.version LIMIT 20",
    ),
    (
        "the definition that it runs by is not stored",
        "SELECT w.id || ' of ' || w.tenant FROM workflows w LEFT JOIN definitions d
             ON d.digest = json_extract(w.state, '$.procedure.digest') WHERE d.digest IS NULL LIMIT 20",
    ),
];

/// A page of workflows with everything beside them that copies a part of their states.
const HEADS: &str = "
SELECT w.wid, w.tenant, w.id, w.revision, w.phase, w.owner, w.offered_to, w.offered_at, w.blocked_since,
       w.completed_at, w.updated_at, w.last_activity, w.assets,
       (SELECT group_concat(asset_id, ' ') FROM
           (SELECT a.asset_id FROM workflow_assets a WHERE a.wid = w.wid ORDER BY a.asset_id)),
       (SELECT json_group_object(d.id, d.fire_at) FROM deadlines d WHERE d.wid = w.wid),
       w.state
  FROM workflows w WHERE w.wid > ?1 ORDER BY w.wid LIMIT ?2";

/// Looks at everything, on a connection of its own. One line for each thing that is wrong.
pub(crate) fn look(config: &LocalConfig) -> Read<Vec<String>> {
    let conn = connection::read_only(config)?;
    let mut lines = Vec::new();
    for (what, question) in QUESTIONS {
        let line = |columns: &mut Columns<'_>| Ok(format!("{}: {what}", columns.text()?));
        lines.extend(rows(&conn, question, (), line)?);
    }
    heads(&conn, &mut lines)?;
    Ok(lines)
}

/// The columns of workflows, their assets and deadlines say what the states say.
fn heads(conn: &Connection, lines: &mut Vec<String>) -> Read<()> {
    let (mut last, mut told) = (0_i64, 0);
    loop {
        let page =
            rows(conn, HEADS, (last, PAGE), |columns| Ok((columns.next()?, head(columns)?)))?;
        let Some((newest, _)) = page.last() else { return Ok(()) };
        last = *newest;
        for line in page.into_iter().filter_map(|(_, line)| line) {
            if told == LINES_MAX {
                return Ok(());
            }
            told += 1;
            lines.push(line);
        }
    }
}

fn head(columns: &mut Columns<'_>) -> Read<Option<String>> {
    let (tenant, id) = (columns.text()?.to_owned(), columns.text()?.to_owned());
    let revision = columns.unsigned("a revision")?;
    let placed = Placement {
        phase: columns.text()?.to_owned(),
        owner: columns.text()?.to_owned(),
        offered_to: columns.next()?,
        offered_at: columns.next()?,
        blocked_since: columns.next()?,
        completed_at: columns.next()?,
    };
    let (updated_at, last_activity): (i64, i64) = (columns.next()?, columns.next()?);
    let assets = columns.text()?.to_owned();
    let asset_rows: Option<String> = columns.next()?;
    let deadline_rows: BTreeMap<String, i64> = decode::json("deadlines", columns.text()?)?;
    let state = decode::workflow(columns.text()?)?;
    let deadlines = state.deadlines.iter().map(|(id, d)| (id.clone(), d.fire_at.as_ms())).collect();
    let differs = if (state.tenant.as_str(), state.id.as_str()) != (tenant.as_str(), id.as_str()) {
        "the name"
    } else if state.revision != revision {
        "the revision"
    } else if Placement::of(&state) != placed {
        "a column for lists"
    } else if (state.updated_at.as_ms(), state.last_activity.as_ms()) != (updated_at, last_activity)
    {
        "a time"
    } else if asset_list(&state) != assets || assets != asset_rows.unwrap_or_default() {
        "the list of assets"
    } else if deadline_rows != deadlines {
        "a deadline"
    } else {
        return Ok(None);
    };
    Ok(Some(format!("{id} of {tenant}: {differs} is not what the state says")))
}
