//! Reads: each is one statement with a limit, run by [`Readers::rows`]. One file per subject.
//!
//! SQL that runs in a call of a tool is listed in `HOT`, whose plans a test looks at.
//!
//! [`Readers::rows`]: crate::readers::Readers::rows

pub(crate) mod catalogue;
pub(crate) mod deadlines;
pub(crate) mod events;
pub(crate) mod load;
pub(crate) mod locks;
pub(crate) mod outbox;
pub(crate) mod people;
pub(crate) mod workflows;

use wf_core::ports::{Cursor, ReadError};

/// Statements of reads whose cost must not grow with the store: name and SQL.
#[cfg(test)]
pub(crate) const HOT: &[(&str, &str)] = &[
    ("load", load::LOAD),
    ("events", events::EVENTS),
    ("open_of", workflows::OPEN_OF),
    ("offered_to", workflows::OFFERED_TO),
    ("blocked", workflows::BLOCKED),
    ("people", people::PEOPLE),
    ("last completed of", workflows::LAST_COMPLETED_OF),
    ("last completed with", workflows::LAST_COMPLETED_WITH),
    ("definition", catalogue::DEFINITION),
    ("list in tenant", workflows::LIST_IN_TENANT),
    ("list", workflows::LIST),
    ("list open in tenant", workflows::LIST_OPEN_IN_TENANT),
    ("list open", workflows::LIST_OPEN),
    ("list locks in tenant", locks::LIST_IN_TENANT),
    ("list locks", locks::LIST),
    ("list outbox by state", outbox::LIST_BY_STATE),
    ("list outbox", outbox::LIST),
    ("any deadline due", deadlines::ANY_DUE),
    ("next deadline", deadlines::NEXT),
];

/// A cursor of two texts without a newline.
pub(crate) fn cursor(first: &str, second: &str) -> Cursor {
    Cursor(format!("{first}\n{second}"))
}

/// The texts of a cursor that [`cursor`] made; the empty texts, before everything, when there is none.
pub(crate) fn after(cursor: Option<&Cursor>) -> Result<(&str, &str), ReadError> {
    let Some(cursor) = cursor else {
        return Ok(("", ""));
    };
    cursor.0.split_once('\n').ok_or(ReadError::BadCursor)
}

/// Splits one row too many off, which says that there is another page.
pub(crate) fn cut<T>(mut rows: Vec<T>, limit: u32) -> (Vec<T>, bool) {
    let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    (rows, more)
}

/// The limit for a page of `limit` rows: one more, to know whether there is another page.
pub(crate) fn probe(limit: u32) -> i64 {
    i64::from(limit.max(1)) + 1
}
