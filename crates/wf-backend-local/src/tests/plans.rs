//! No statement of the hot path looks at more rows than it answers: its cost does not grow with workflows, with those
//! that are finished, or with events.

use sqlx::{Row as _, SqliteConnection};
use tempfile::TempDir;

use super::open;
use crate::writer::{apply, statements, tasks};
use crate::{connection, queries};

/// What may be scanned: things that are as large as the request.
const SMALL: &[&str] = &[
    "SCAN q",
    "SCAN v",
    "SCAN json_each VIRTUAL TABLE INDEX 1:",
    "SCAN pragma_user_version",
    "SCAN CONSTANT ROW",
    "SCAN 3-ROW VALUES CLAUSE",
];

/// Statements that sort: only as many rows as somebody has open, or as one claim answers.
const SORTS: &[&str] = &["open_of", "offered_to", "rows of streams"];

async fn plan(conn: &mut SqliteConnection, sql: &str) -> Vec<String> {
    sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")))
        .fetch_all(conn)
        .await
        .unwrap_or_else(|e| panic!("{e}: {sql}"))
        .iter()
        .map(|row| row.get::<String, _>("detail"))
        .collect()
}

fn fault(name: &str, step: &str) -> bool {
    let scans = step.starts_with("SCAN") && !SMALL.iter().any(|small| step.starts_with(small));
    let sorts = step.contains("TEMP B-TREE FOR ORDER BY") && !SORTS.contains(&name);
    scans || sorts || step.contains("AUTOMATIC")
}

async fn check(conn: &mut SqliteConnection, name: &str, sql: &str) {
    let plan = plan(conn, sql).await;
    let faults: Vec<_> = plan.iter().filter(|step| fault(name, step)).collect();
    assert!(faults.is_empty(), "{name}: {faults:?} in {plan:#?}");
}

#[tokio::test]
async fn no_hot_statement_scans() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let mut conn = connection::open_writing(store.config()).await.unwrap();
    for (name, sql) in queries::HOT.iter().chain(tasks::HOT) {
        check(&mut conn, name, sql).await;
    }
    for sql in apply::READ.split(';') {
        check(&mut conn, "what a batch reads", sql).await;
    }
    for bulk in statements::ALL {
        for rows in [1, 3] {
            check(&mut conn, bulk.name, &bulk.sql(rows)).await;
        }
    }
}

/// The test can fail.
#[tokio::test]
async fn a_statement_without_an_index_is_found_out() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let mut conn = connection::open_writing(store.config()).await.unwrap();
    for sql in [
        "SELECT state FROM workflows WHERE owner = 'x'",
        "SELECT * FROM events WHERE seq = 1",
        "SELECT state FROM workflows WHERE tenant = 'x' ORDER BY updated_at",
    ] {
        let plan = plan(&mut conn, sql).await;
        assert!(plan.iter().any(|step| fault("", step)), "{plan:?}");
    }
}
