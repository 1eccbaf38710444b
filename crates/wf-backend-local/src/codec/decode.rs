//! Rows back to domain values. A row that cannot be read is an error, never skipped.

use rusqlite::Row;
use rusqlite::types::FromSql;
use serde::de::DeserializeOwned;
use wf_core::idempotency::LedgerEntry;
use wf_core::locks::{LockHolder, LockRow};
use wf_core::models::{
    AssetId, Digest, Person, ProcedureId, TenantId, Timestamp, Workflow, WorkflowId,
};
use wf_core::policy::Definition;
use wf_core::ports::{LedgerKey, LedgerRow, OutboxRow, OutboxState, OutboxStatus};
use wf_core::state_machine::Event;

use super::actor;
use crate::fault::{Cause, unreadable};

/// What a column holds.
pub(crate) type Read<T> = Result<T, Cause>;

/// JSON text of a column.
pub(crate) fn json<T: DeserializeOwned>(what: &str, text: &str) -> Read<T> {
    serde_json::from_str(text).map_err(|e| unreadable(what, e))
}

/// A text that must parse.
pub(crate) fn parsed<T>(what: &str, text: &str) -> Read<T>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|e| unreadable(what, e))
}

/// A number that was never negative.
pub(crate) fn unsigned(what: &str, number: i64) -> Read<u64> {
    u64::try_from(number).map_err(|e| unreadable(what, e))
}

/// Reads columns one after the other.
#[derive(Debug)]
pub(crate) struct Columns<'r> {
    row: &'r Row<'r>,
    at: usize,
}

impl<'r> Columns<'r> {
    /// From the first column on.
    pub(crate) fn new(row: &'r Row<'r>) -> Self {
        Self { row, at: 0 }
    }

    fn step(&mut self) -> usize {
        self.at += 1;
        self.at - 1
    }

    /// The next column.
    pub(crate) fn next<T: FromSql>(&mut self) -> Read<T> {
        Ok(self.row.get(self.step())?)
    }

    /// The next column, text.
    pub(crate) fn text(&mut self) -> Read<&'r str> {
        let column = self.row.get_ref(self.step())?;
        column.as_str().map_err(|e| unreadable("a text", e))
    }

    /// The next column, text or NULL.
    pub(crate) fn optional_text(&mut self) -> Read<Option<&'r str>> {
        let column = self.row.get_ref(self.step())?;
        column.as_str_or_null().map_err(|e| unreadable("a text", e))
    }

    /// The next column, a number that was never negative.
    pub(crate) fn unsigned(&mut self, what: &str) -> Read<u64> {
        let number = self.next::<i64>()?;
        unsigned(what, number)
    }

    /// The next column, text that must parse.
    pub(crate) fn parsed<T>(&mut self, what: &str) -> Read<T>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        let text = self.text()?;
        parsed(what, text)
    }
}

/// The only column.
pub(crate) fn one<T: FromSql>(columns: &mut Columns<'_>) -> Read<T> {
    columns.next()
}

/// The state in a column.
pub(crate) fn workflow(text: &str) -> Read<Workflow> {
    json("the state of a workflow", text)
}

/// Columns `operation, fingerprint, result_version, created_at, expires_at, seq, mark, fields, result` and the
/// workflow's id.
pub(crate) fn ledger(key: LedgerKey, columns: &mut Columns<'_>) -> Read<LedgerRow> {
    let operation = columns.text()?.to_owned();
    let fingerprint = columns.parsed("a fingerprint")?;
    let version = columns.next::<i64>()?;
    let created_at_ms = columns.next()?;
    let expires_at_ms = columns.next()?;
    let seq = columns.unsigned("the place of a ledger row")?;
    let mark = columns.text()?.to_owned();
    let fields = json("the fields of a ledger row", columns.text()?)?;
    let result = columns.text()?.to_owned();
    let workflow_id = columns.parsed("a workflow id")?;
    Ok(LedgerRow {
        key,
        entry: LedgerEntry {
            operation,
            fingerprint,
            result_version: u16::try_from(version)
                .map_err(|e| unreadable("a result version", e))?,
            result,
            created_at_ms,
            expires_at_ms,
        },
        workflow_id,
        seq,
        mark,
        fields,
    })
}

/// Columns `fence, holder, owner, owner_name, acquired_at`.
pub(crate) fn lock(
    tenant: TenantId,
    asset_id: AssetId,
    columns: &mut Columns<'_>,
) -> Read<LockRow> {
    let fence = columns.unsigned("a fence")?;
    let holder = columns.optional_text()?;
    let owner = columns.optional_text()?;
    let name = columns.optional_text()?;
    let at: Option<i64> = columns.next()?;
    let holder = match (holder, owner, at) {
        (Some(id), Some(owner), Some(at)) => Some(LockHolder {
            workflow_id: parsed("a workflow id", id)?,
            owner: Person { id: actor(owner)?, name: name.map(str::to_owned) },
            acquired_at: Timestamp::from_ms(at),
        }),
        _ => None,
    };
    Ok(LockRow { tenant, asset_id, fence, holder })
}

/// Columns `actor, name`.
pub(crate) fn person(columns: &mut Columns<'_>) -> Read<Person> {
    let id = actor(columns.text()?)?;
    Ok(Person { id, name: columns.optional_text()?.map(str::to_owned) })
}

/// The body of an event and the sensitive values that stand beside it.
pub(crate) fn event(body: &str, sensitive: Option<&str>) -> Read<Event> {
    let mut event: Event = json("an event", body)?;
    if let Some(text) = sensitive {
        event.sensitive = json("a sensitive value", text)?;
    }
    Ok(event)
}

/// Tells what is stored damaged from a read that failed.
pub(crate) fn readable<T>(read: Read<T>) -> Read<Result<T, String>> {
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(Cause::Unreadable(why)) => Ok(Err(why)),
        Err(other @ (Cause::Sqlite(_) | Cause::System(_) | Cause::Unfit(_))) => Err(other),
    }
}

/// Where a delivery stands.
pub(crate) fn outbox_state(text: &str) -> Read<OutboxState> {
    match text {
        "pending" => Ok(OutboxState::Pending),
        "delivered" => Ok(OutboxState::Delivered),
        "dead" => Ok(OutboxState::Dead),
        other => Err(unreadable("the state of a message", other)),
    }
}

/// Columns `message, state, attempts, next_attempt_at, last_error`.
pub(crate) fn outbox(columns: &mut Columns<'_>) -> Read<OutboxRow> {
    let message = json("a message", columns.text()?)?;
    let state = outbox_state(columns.text()?)?;
    let attempts = columns.next::<i64>()?;
    let next_attempt_at = Timestamp::from_ms(columns.next()?);
    let last_error = columns.next::<Option<String>>()?;
    Ok(OutboxRow {
        message,
        status: OutboxStatus {
            state,
            attempts: u32::try_from(attempts).map_err(|e| unreadable("attempts", e))?,
            next_attempt_at,
            last_error,
        },
    })
}

/// Columns `digest, procedure_id, version, title, document`.
pub(crate) fn definition(columns: &mut Columns<'_>) -> Read<Definition> {
    let digest: Digest = columns.parsed("a digest")?;
    let id: ProcedureId = columns.parsed("a procedure id")?;
    let version = columns.next::<i64>()?;
    Ok(Definition {
        id,
        version: u32::try_from(version).map_err(|e| unreadable("a version", e))?,
        digest,
        title: json("the title of a definition", columns.text()?)?,
        document: json("a definition", columns.text()?)?,
    })
}

/// Columns `tenant, workflow_id`.
pub(crate) fn workflow_name(columns: &mut Columns<'_>) -> Read<(TenantId, WorkflowId)> {
    let tenant = columns.parsed("a tenant")?;
    let id = columns.parsed("a workflow id")?;
    Ok((tenant, id))
}
