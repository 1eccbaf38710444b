//! Set-based statements: rows collected for one kind of statement, written many at a time.
//!
//! A statement takes 1, 2, 4 … 64 rows, so that SQLite's compiled form of each can be kept: any number of rows is a sum
//! of these.

use std::borrow::Cow;
use std::rc::Rc;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use crate::codec::decode::Read;
use crate::connection::run;

/// A kind of statement: `head` `row`, `row`, … `tail`.
#[derive(Debug)]
pub(crate) struct Bulk {
    /// What it is called in tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "named in tests only"))]
    pub(crate) name: &'static str,
    /// Before the rows.
    pub(crate) head: &'static str,
    /// One row of parameters, in parentheses.
    pub(crate) row: &'static str,
    /// After the rows.
    pub(crate) tail: &'static str,
}

impl Bulk {
    /// The statement for this many rows.
    pub(crate) fn sql(&self, rows: usize) -> String {
        let mut sql = String::with_capacity(
            self.head.len() + (self.row.len() + 1) * rows + self.tail.len() + 1,
        );
        sql.push_str(self.head);
        for n in 0..rows {
            if n > 0 {
                sql.push(',');
            }
            sql.push_str(self.row);
        }
        sql.push_str(self.tail);
        sql
    }
}

/// A value to bind.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    /// NULL.
    Null,
    /// An integer.
    Int(i64),
    /// A text.
    Text(Cow<'a, str>),
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Self::Int(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value<'_> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Rows for one kind of statement.
#[derive(Debug)]
pub(crate) struct Sheet<'a> {
    bulk: &'static Bulk,
    rows: usize,
    values: Vec<Value<'a>>,
}

impl<'a> Sheet<'a> {
    /// Without rows.
    pub(crate) fn new(bulk: &'static Bulk) -> Self {
        Self { bulk, rows: 0, values: Vec::new() }
    }

    /// Adds a row; one value per parameter.
    pub(crate) fn push<const N: usize>(&mut self, row: [Value<'a>; N]) {
        self.rows += 1;
        self.values.extend(row);
    }
}

/// The largest number of rows of one statement, as a power of two.
const STEPS: usize = 7;

/// Texts of statements that were built once.
#[derive(Debug, Default)]
pub(crate) struct SqlCache(Vec<(&'static Bulk, [Option<Rc<str>>; STEPS])>);

impl SqlCache {
    fn get(&mut self, bulk: &'static Bulk, step: usize) -> Rc<str> {
        let at = match self.0.iter().position(|(b, _)| std::ptr::eq(*b, bulk)) {
            Some(at) => at,
            None => {
                self.0.push((bulk, Default::default()));
                self.0.len() - 1
            }
        };
        let slot = self.0.get_mut(at).and_then(|(_, texts)| texts.get_mut(step));
        match slot {
            Some(slot) => Rc::clone(slot.get_or_insert_with(|| bulk.sql(1 << step).into())),
            None => bulk.sql(1 << step).into(),
        }
    }
}

/// Statements in the order in which they run.
#[derive(Debug, Default)]
pub(crate) struct Script<'a> {
    parts: Vec<(Rc<str>, Vec<Value<'a>>)>,
}

impl<'a> Script<'a> {
    /// Adds the rows of a sheet.
    pub(crate) fn add(&mut self, sheet: Sheet<'a>, cache: &mut SqlCache) {
        if sheet.rows == 0 {
            return;
        }
        let width = sheet.values.len() / sheet.rows;
        let mut values = sheet.values.into_iter();
        let mut left = sheet.rows;
        while left > 0 {
            let step = (usize::BITS - 1 - left.leading_zeros()).min(6);
            let step = usize::try_from(step).unwrap_or(0);
            let rows = 1 << step;
            let part = values.by_ref().take(rows * width).collect();
            self.parts.push((cache.get(sheet.bulk, step), part));
            left -= rows;
        }
    }

    /// Runs all statements.
    pub(crate) fn run(self, conn: &Connection) -> Read<()> {
        for (sql, values) in self.parts {
            run(conn, &sql, params_from_iter(values))?;
        }
        Ok(())
    }
}
