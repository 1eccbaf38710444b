//! Traps of SQLite, kept out of wf-backend-local by the shape of its code.
//!
//! A deferred transaction that turns into a writer fails with BUSY at a point where nothing can be retried; one that a
//! plain statement opened is closed by nobody when its code returns early; and rows that are handed on one by one keep a
//! read open, and the write-ahead log with it, for as long as somebody is slow.

use crate::Workspace;
use crate::report::Violation;

const SOURCES: &str = "crates/wf-backend-local/src/";

/// The one file that opens transactions and goes through rows.
const DOOR: &str = "crates/wf-backend-local/src/connection.rs";

/// What opens a transaction that is not immediate, or not at once.
const DEFERRED: [&[&str]; 7] = [
    &[".", "transaction", "("],
    &[".", "unchecked_transaction", "("],
    &[".", "savepoint", "("],
    &[".", "savepoint_with_name", "("],
    &[".", "set_transaction_behavior", "("],
    &["TransactionBehavior", ":", ":", "Deferred"],
    &["TransactionBehavior", ":", ":", "Exclusive"],
];

pub(super) fn write_transactions(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in workspace.tree.sources(SOURCES) {
        for (index, token) in source.product() {
            let mut add = |what: String| {
                let fix =
                    "connection::immediate(), whose transaction rolls back when it is dropped";
                found.push(Violation::new(path, token.line, what, fix));
            };
            if DEFERRED.iter().any(|words| source.reads(index, words)) {
                add("a transaction that is not immediate".to_owned());
            }
            let opens = source.reads(index, &[".", "transaction_with_behavior", "("]);
            if opens && path != DOOR {
                add("a transaction that is not opened by connection::immediate".to_owned());
            }
            let Some(text) = token.string() else { continue };
            if starts_transaction(&text.trim_start().to_ascii_uppercase()) {
                add(format!(
                    "\"{text}\" opens a transaction that nobody closes on an early return"
                ));
            }
        }
    }
    found
}

fn starts_transaction(statement: &str) -> bool {
    let words = |text: &str| {
        statement == text
            || statement.starts_with(&format!("{text} "))
            || statement.starts_with(&format!("{text};"))
    };
    words("BEGIN") || words("SAVEPOINT")
}

/// What goes through rows while the statement is open.
const STEPS: [&str; 5] =
    ["query", "query_map", "query_and_then", "raw_query", "query_row_and_then"];

pub(super) fn bounded_reads(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in workspace.tree.sources(SOURCES).filter(|(path, _)| *path != DOOR) {
        for (index, token) in source.product() {
            if STEPS.iter().any(|name| source.reads(index, &[".", name, "("])) {
                found.push(Violation::new(
                    path,
                    token.line,
                    "rows are handed on while the read is open",
                    "connection::rows with a LIMIT, then answer: a slow consumer of rows pins the WAL",
                ));
            }
        }
    }
    found
}
