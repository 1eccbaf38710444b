//! No statement of the hot path looks at more rows than it answers: its cost does not grow with workflows, with those
//! that are finished, or with events.

use rusqlite::{Connection, StatementStatus};
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

/// However many workflows wait to be swept, as after a long stop: the writer has them between two commits.
#[tokio::test]
async fn a_sweep_looks_at_no_more_than_its_limit() {
    use tasks::sweep::{SET_EXPIRY, SWEPT};

    const LIMIT: i64 = 10;
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let conn = connection::open_writing(store.config()).unwrap();
    let instructions = |sql: &str, arguments: &[i64]| {
        let mut statement = conn.prepare(sql).unwrap();
        statement.execute(rusqlite::params_from_iter(arguments)).unwrap();
        statement.get_status(StatementStatus::VmStep)
    };
    let mut taken = Vec::new();
    for (first, last) in [(1, 100), (101, 5_000)] {
        fill(&conn, first, last);
        let expiry = instructions(SET_EXPIRY, &[1, LIMIT]);
        taken.push((expiry, instructions(SWEPT, &[LIMIT])));
    }
    let swept: i64 = connection::int(&conn, "SELECT count(*) FROM workflows WHERE swept").unwrap();
    assert_eq!(swept, LIMIT);
    let [(expiry, ready), (later_expiry, later_ready)] = taken[..] else { unreachable!("two") };
    assert!(later_expiry <= 2 * expiry && later_ready <= 2 * ready, "{taken:?}");
}

/// Workflows of these numbers that were completed one after the other, each with two rows of the ledger, so that a sweep is
/// done with fewer workflows than its limit.
fn fill(conn: &Connection, first: i64, last: i64) {
    let numbers = format!(
        "WITH RECURSIVE n(i) AS (VALUES ({first}) UNION ALL SELECT i + 1 FROM n WHERE i < {last})"
    );
    let workflows = format!(
        "{numbers} INSERT INTO workflows (wid, tenant, id, revision, phase, owner, completed_at, updated_at, \
         last_activity, assets, state) SELECT i, 't', 'w' || i, 1, 'COMPLETED', 'o', i, i, i, '', '{{}}' FROM n"
    );
    let ledger = format!(
        "{numbers} INSERT INTO ledger (tenant, actor, key, wid, seq, operation, fingerprint, result_version, \
         created_at, mark, fields, result) SELECT 't', 'a', k || i, i, 1, 'o', 'f', 1, i, 'm', '{{}}', '{{}}' \
         FROM n, (SELECT 'k' AS k UNION ALL SELECT 'l')"
    );
    conn.execute_batch(&format!("{workflows}; {ledger}")).unwrap();
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
