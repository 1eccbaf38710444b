//! Traps of SQLite through sqlx, kept out of wf-backend-local by the shape of its code.
//!
//! A deferred transaction that turns into a writer fails with BUSY at a point where nothing can be retried, and a
//! transaction opened by a plain statement is invisible to the pool: a connection can go back inside it.

use crate::Workspace;
use crate::report::Violation;
use crate::rust::Source;

const SOURCES: &str = "crates/wf-backend-local/src/";

pub(super) fn write_transactions(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in workspace.tree.sources(SOURCES) {
        for (index, token) in source.product() {
            if source.reads(index, &[".", "begin", "("]) {
                found.push(Violation::new(
                    path,
                    token.line,
                    "`begin()` opens a deferred transaction",
                    "begin_with(\"BEGIN IMMEDIATE\") for a write, begin_with(\"BEGIN DEFERRED\") for a read snapshot",
                ));
            }
            let Some(text) = token.string() else { continue };
            let statement = text.trim_start().to_ascii_uppercase();
            if starts_transaction(&statement) && !is_lawful(source, index, text) {
                found.push(Violation::new(
                    path,
                    token.line,
                    format!("\"{text}\" opens a transaction that the pool does not know or that is not immediate"),
                    "begin_with(\"BEGIN IMMEDIATE\")",
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

/// The literal is the argument of `begin_with` and says when it locks.
fn is_lawful(source: &Source, index: usize, text: &str) -> bool {
    let argument = index >= 2 && source.reads(index - 2, &["begin_with", "("]);
    argument && (text == "BEGIN IMMEDIATE" || text == "BEGIN DEFERRED")
}

pub(super) fn bounded_reads(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in workspace.tree.sources(SOURCES) {
        for (index, token) in source.product() {
            let streams =
                ["fetch", "fetch_many"].iter().any(|name| source.reads(index, &[".", name, "("]));
            if streams {
                let fix =
                    "fetch_all with a LIMIT, then answer: a slow consumer of a stream pins the WAL";
                found.push(Violation::new(
                    path,
                    token.line,
                    "rows are streamed while the read is open",
                    fix,
                ));
            }
        }
    }
    found
}
