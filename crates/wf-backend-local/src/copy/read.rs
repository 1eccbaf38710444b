//! Rows as records, page by page. A page holds rows of one table; the cursor names the table and the last row's key.

use rusqlite::Connection;
use rusqlite::types::Value as Sql;
use serde::{Deserialize, Serialize};
use wf_core::limits::EVENTS_MAX;
use wf_core::locks::{LockHolder, LockRow};
use wf_core::models::{Actor, AssetId, Person, TenantId, Timestamp, WorkflowId};
use wf_core::ports::copy::{LockRecord, Record, WorkflowRecord};
use wf_core::ports::{Cursor, Deadline, LedgerKey, OutboxState, Page};
use wf_core::state_machine::Event;

use crate::codec::actor;
use crate::codec::decode::{self, Columns, Read};
use crate::connection::rows;
use crate::fault::unreadable;

/// What is read, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Table {
    Definitions,
    Versions,
    Workflows,
    Events,
    Ledger,
    Locks,
    Streams,
    Messages,
    People,
    Tombstones,
    Owners,
}

/// A part of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Part {
    Number(i64),
    Text(String),
}

/// Where to go on: the rows of a table after this key; of all when there is none.
#[derive(Debug, Serialize, Deserialize)]
struct Place(Table, #[serde(default)] Option<[Part; 2]>);

impl Table {
    const FIRST: Self = Self::Definitions;

    const fn next(self) -> Option<Self> {
        Some(match self {
            Self::Definitions => Self::Versions,
            Self::Versions => Self::Workflows,
            Self::Workflows => Self::Events,
            Self::Events => Self::Ledger,
            Self::Ledger => Self::Locks,
            Self::Locks => Self::Streams,
            Self::Streams => Self::Messages,
            Self::Messages => Self::People,
            Self::People => Self::Tombstones,
            Self::Tombstones => Self::Owners,
            Self::Owners => return None,
        })
    }

    /// Both parts of the key after which to read, and a limit. The columns start with the key; a key of one part has 0
    /// for the second.
    const fn sql(self) -> &'static str {
        match self {
            Self::Definitions => {
                "SELECT digest, 0, digest, procedure_id, version, title, document FROM definitions
                  WHERE digest > ?1 AND ?2 = 0 ORDER BY digest LIMIT ?3"
            }
            Self::Versions => {
                "SELECT procedure_id, version, digest FROM procedure_versions
                  WHERE (procedure_id, version) > (?1, ?2) ORDER BY procedure_id, version LIMIT ?3"
            }
            Self::Workflows => {
                "SELECT w.wid, 0, w.swept, w.state,
                        (SELECT json_group_object(d.id, d.fire_at) FROM deadlines d WHERE d.wid = w.wid),
                        (SELECT json_group_array(json_array(k.asset_id, k.fence, k.floor, k.owner, k.owner_name,
                                                            k.acquired_at) ORDER BY k.asset_id)
                           FROM workflow_assets a CROSS JOIN locks k ON k.tenant = a.tenant AND k.asset_id = a.asset_id
                          WHERE a.wid = w.wid AND k.holder = w.id)
                   FROM workflows w WHERE w.wid > ?1 AND ?2 = 0 ORDER BY w.wid LIMIT ?3"
            }
            Self::Events => {
                "SELECT e.wid, e.seq, w.tenant, e.body, s.body
                   FROM events e CROSS JOIN workflows w ON w.wid = e.wid
                   LEFT JOIN sensitive_values s ON s.wid = e.wid AND s.seq = e.seq
                  WHERE (e.wid, e.seq) > (?1, ?2) ORDER BY e.wid, e.seq LIMIT ?3"
            }
            Self::Ledger => {
                "SELECT l.lid, 0, l.tenant, l.actor, l.key, l.operation, l.fingerprint, l.result_version, l.created_at,
                        l.expires_at, l.seq, l.mark, l.fields, l.result, w.id
                   FROM ledger l CROSS JOIN workflows w ON w.wid = l.wid
                  WHERE l.lid > ?1 AND ?2 = 0 ORDER BY l.lid LIMIT ?3"
            }
            Self::Locks => {
                "SELECT tenant, asset_id, floor, fence, holder, owner, owner_name, acquired_at FROM locks
                  WHERE (tenant, asset_id) > (?1, ?2) ORDER BY tenant, asset_id LIMIT ?3"
            }
            Self::Streams => {
                "SELECT sid, 0, tenant, workflow_id, recipient, due_at FROM streams
                  WHERE sid > ?1 AND ?2 = 0 ORDER BY sid LIMIT ?3"
            }
            Self::Messages => {
                "SELECT oid, 0, delivered_at, message, state, attempts, next_attempt_at, last_error FROM outbox
                  WHERE oid > ?1 AND ?2 = 0 ORDER BY oid LIMIT ?3"
            }
            Self::People => {
                "SELECT tenant, actor, seen_at, actor, name FROM people
                  WHERE (tenant, actor) > (?1, ?2) ORDER BY tenant, actor LIMIT ?3"
            }
            Self::Tombstones => {
                "SELECT tenant, id, body FROM purged
                  WHERE (tenant, id) > (?1, ?2) ORDER BY tenant, id LIMIT ?3"
            }
            Self::Owners => {
                "SELECT tenant, owner, count(*) FROM workflows
                  WHERE completed_at IS NULL AND (tenant, owner) > (?1, ?2) GROUP BY tenant, owner
                  ORDER BY tenant, owner LIMIT ?3"
            }
        }
    }

    /// A key before every other.
    fn start(self) -> [Part; 2] {
        let text = || Part::Text(String::new());
        match self {
            Self::Definitions => [text(), Part::Number(0)],
            Self::Versions => [text(), Part::Number(-1)],
            Self::Workflows | Self::Events | Self::Ledger | Self::Streams | Self::Messages => {
                [Part::Number(0), Part::Number(0)]
            }
            Self::Locks | Self::People | Self::Tombstones | Self::Owners => [text(), text()],
        }
    }

    fn decode(self, columns: &mut Columns<'_>) -> Read<Row> {
        let key = [columns.next::<Sql>()?, columns.next::<Sql>()?];
        let [Some(first), Some(second)] = key.clone().map(part) else {
            return Err(unreadable("a key", "neither a text nor a number"));
        };
        let text = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Number(number) => number.to_string(),
        };
        let named = (text(&first), text(&second));
        let record = match self {
            Self::Definitions => Record::Definition(Box::new(decode::definition(columns)?)),
            Self::Versions => Record::Version {
                id: decode::parsed("a procedure id", &named.0)?,
                version: decode::parsed("a version", &named.1)?,
                digest: columns.parsed("a digest")?,
            },
            Self::Workflows => Record::Workflow(Box::new(workflow(columns)?)),
            Self::Events => {
                let tenant: TenantId = columns.parsed("a tenant")?;
                let event = decode::event(columns.text()?, columns.optional_text()?)?;
                let last = event.seq;
                Record::Event { tenant, event: Box::new(event), last }
            }
            Self::Ledger => {
                let key = LedgerKey {
                    tenant: columns.parsed("a tenant")?,
                    actor: actor(columns.text()?)?,
                    key: columns.parsed("a key")?,
                };
                Record::Ledger(Box::new(decode::ledger(key, columns)?))
            }
            Self::Locks => {
                let tenant = decode::parsed("a tenant", &named.0)?;
                let asset = decode::parsed("an asset id", &named.1)?;
                let floor = columns.unsigned("a fence")?;
                Record::Lock(LockRecord { row: decode::lock(tenant, asset, columns)?, floor })
            }
            Self::Streams => Record::Stream {
                tenant: columns.parsed("a tenant")?,
                workflow_id: columns.parsed("a workflow id")?,
                recipient: columns.text()?.to_owned(),
                due_at: columns.next::<Option<i64>>()?.map(Timestamp::from_ms),
            },
            Self::Messages => {
                let delivered_at = columns.next::<Option<i64>>()?.map(Timestamp::from_ms);
                let row = Box::new(decode::outbox(columns)?);
                let delivered_at =
                    delivered_at.filter(|_| row.status.state == OutboxState::Delivered);
                Record::Message { row, delivered_at }
            }
            Self::People => {
                let seen_at = Timestamp::from_ms(columns.next()?);
                let tenant = decode::parsed("a tenant", &named.0)?;
                Record::Person { tenant, person: decode::person(columns)?, seen_at }
            }
            Self::Tombstones => {
                Record::Tombstone(Box::new(decode::json("a tombstone", columns.text()?)?))
            }
            Self::Owners => Record::Owner {
                tenant: decode::parsed("a tenant", &named.0)?,
                actor: actor(&named.1)?,
                open: u32::try_from(columns.next::<i64>()?).unwrap_or(u32::MAX),
            },
        };
        Ok(Row { key: [first, second], record })
    }
}

/// A row that was read.
struct Row {
    key: [Part; 2],
    record: Record,
}

fn part(value: Sql) -> Option<Part> {
    match value {
        Sql::Integer(number) => Some(Part::Number(number)),
        Sql::Text(text) => Some(Part::Text(text)),
        Sql::Null | Sql::Real(_) | Sql::Blob(_) => None,
    }
}

impl From<Part> for Sql {
    fn from(part: Part) -> Self {
        match part {
            Part::Number(number) => Self::Integer(number),
            Part::Text(text) => Self::Text(text),
        }
    }
}

/// Columns `swept, state, deadlines, held`.
fn workflow(columns: &mut Columns<'_>) -> Read<WorkflowRecord> {
    /// Asset, fence, floor, owner, their name, since when.
    type Held = (AssetId, u64, u64, Actor, Option<String>, i64);
    let swept = columns.next::<i64>()? == 1;
    let state = decode::workflow(columns.text()?)?;
    let due: std::collections::BTreeMap<String, i64> = decode::json("deadlines", columns.text()?)?;
    let deadline = |(id, at)| Deadline { id, fire_at: Timestamp::from_ms(at) };
    let held: Vec<Held> = decode::json("held assets", columns.text()?)?;
    let (tenant, id) = (state.tenant.clone(), state.id.clone());
    let held = held.into_iter().map(|(asset_id, fence, floor, owner, name, at)| {
        let holder = LockHolder {
            workflow_id: WorkflowId::clone(&id),
            owner: Person { id: owner, name },
            acquired_at: Timestamp::from_ms(at),
        };
        let row = LockRow { tenant: tenant.clone(), asset_id, fence, holder: Some(holder) };
        LockRecord { row, floor }
    });
    let (deadlines, held) = (due.into_iter().map(deadline).collect(), held.collect());
    Ok(WorkflowRecord { state, swept, deadlines, held })
}

/// Records after `after`, at most `limit`.
pub(super) fn page(conn: &Connection, after: Option<&Cursor>, limit: u32) -> Read<Page<Record>> {
    let mut place = match after {
        None => Place(Table::FIRST, None),
        Some(Cursor(text)) => decode::json("a cursor", text)?,
    };
    let limit = limit.max(1);
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    loop {
        let Place(table, key) = place;
        let [first, second] = key.unwrap_or_else(|| table.start());
        // The end of a commit may lie behind the page.
        let more = if table == Table::Events { EVENTS_MAX } else { 1 };
        let most = i64::from(limit).saturating_add(i64::try_from(more).unwrap_or(1));
        let arguments = (Sql::from(first), Sql::from(second), most);
        let mut found = rows(conn, table.sql(), arguments, |columns| table.decode(columns))?;
        if table == Table::Events {
            mark_ends(&mut found);
        }
        let whole = found.len() <= wanted;
        found.truncate(wanted);
        let next = match found.last() {
            Some(row) if !whole => Some(Place(table, Some(row.key.clone()))),
            Some(_) | None => table.next().map(|table| Place(table, None)),
        };
        let Some(next) = next else { return Ok(Page { items: records(found), next: None }) };
        if found.is_empty() {
            place = next;
            continue;
        }
        let text = serde_json::to_string(&next).map_err(|e| unreadable("a cursor", e))?;
        return Ok(Page { items: records(found), next: Some(Cursor(text)) });
    }
}

fn records(found: Vec<Row>) -> Vec<Record> {
    found.into_iter().map(|row| row.record).collect()
}

/// Tells each event which is the last of its commit: events of one commit stand together and have one cause.
fn mark_ends(found: &mut [Row]) {
    let mut after: Option<(Part, Event, u64)> = None;
    for row in found.iter_mut().rev() {
        let Record::Event { event, last, .. } = &mut row.record else { continue };
        if let Some((wid, next, end)) = &after
            && *wid == row.key[0]
            && next.cause == event.cause
            && next.actor == event.actor
        {
            *last = *end;
        }
        after = Some((row.key[0].clone(), event.as_ref().clone(), *last));
    }
}
