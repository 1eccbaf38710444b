//! No statement of the hot path looks at more rows than it answers: its cost does not grow with workflows, with those
//! that are finished, or with events.

use rusqlite::Connection;
use tempfile::TempDir;

use super::open;
use crate::writer::{apply, statements, tasks};
use crate::{connection, queries};

/// What may be scanned: things that are as large as the request.
const SMALL: &[&str] = &[
    "SCAN q",
    "SCAN v",
    "SCAN json_each VIRTUAL TABLE INDEX 1:",
    "SCAN CONSTANT ROW",
    "SCAN 3-ROW VALUES CLAUSE",
];

/// Statements that sort: only as many rows as somebody has open, or as one claim answers.
const SORTS: &[&str] = &["open_of", "offered_to", "rows of streams", "list open"];

fn plan(conn: &Connection, sql: &str) -> Vec<String> {
    let sql = format!("EXPLAIN QUERY PLAN {sql}");
    let mut statement = conn.prepare(&sql).unwrap_or_else(|e| panic!("{e}: {sql}"));
    // Nothing is bound: the plan does not depend on it.
    statement.raw_query().mapped(|row| row.get("detail")).collect::<Result<_, _>>().unwrap()
}

fn fault(name: &str, step: &str) -> bool {
    let scans = step.starts_with("SCAN") && !SMALL.iter().any(|small| step.starts_with(small));
    let sorts = step.contains("TEMP B-TREE FOR ORDER BY") && !SORTS.contains(&name);
    scans || sorts || step.contains("AUTOMATIC")
}

fn check(conn: &Connection, name: &str, sql: &str) {
    let plan = plan(conn, sql);
    let faults: Vec<_> = plan.iter().filter(|step| fault(name, step)).collect();
    assert!(faults.is_empty(), "{name}: {faults:?} in {plan:#?}");
}

#[tokio::test]
async fn no_hot_statement_scans() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let conn = connection::open_writing(store.config()).unwrap();
    for (name, sql) in queries::HOT.iter().chain(apply::HOT).chain(tasks::HOT) {
        check(&conn, name, sql);
    }
    for bulk in statements::ALL {
        for rows in [1, 3] {
            check(&conn, bulk.name, &bulk.sql(rows));
        }
    }
}

/// Few are blocked, and they are counted every minute: however many are finished, those are not looked at.
#[tokio::test]
async fn open_workflows_of_a_phase_are_found_by_their_own_index() {
    use queries::workflows::{LIST, LIST_OPEN, LIST_OPEN_IN_TENANT};

    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let conn = connection::open_writing(store.config()).unwrap();
    let by_its_own = |sql| plan(&conn, sql).iter().any(|step| step.contains("workflows_open "));
    assert!(by_its_own(LIST_OPEN) && by_its_own(LIST_OPEN_IN_TENANT));
    assert!(!by_its_own(LIST), "the list of all phases goes by their ids");
}

/// The test can fail.
#[tokio::test]
async fn a_statement_without_an_index_is_found_out() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let conn = connection::open_writing(store.config()).unwrap();
    for sql in [
        "SELECT state FROM workflows WHERE owner = 'x'",
        "SELECT * FROM events WHERE seq = 1",
        "SELECT state FROM workflows WHERE tenant = 'x' ORDER BY updated_at",
    ] {
        let plan = plan(&conn, sql);
        assert!(plan.iter().any(|step| fault("", step)), "{plan:?}");
    }
}
