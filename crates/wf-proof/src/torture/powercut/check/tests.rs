//! The quick check sees what it is there for.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

use super::{Expected, Wrong, quick};

const SCHEMA: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../wf-backend-local/migrations/0001_init.sql"
));

const QUICKLY: &str = "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;";

/// One open workflow with two events, one acknowledged call for both, and one asset that it holds.
const CONTENT: &str = "
    INSERT INTO workflows VALUES (1, 't', 'w', 2, 'RUNNING', 'o', NULL, NULL, NULL, NULL, 0, 0, 'a', 0, '{}');
    INSERT INTO workflow_assets VALUES (1, 'a', 't', 'w', NULL);
    INSERT INTO events VALUES (1, 1, '{}'), (1, 2, '{}');
    INSERT INTO ledger VALUES (1, 't', 'o', 'k', 1, 2, 'start', 'f', 1, 0, NULL, 'm', '{}', 'answer');
    INSERT INTO locks VALUES ('t', 'a', 1, 0, 'w', 'o', NULL, 0);";

fn look(sql: &str, acknowledged: &[(&str, &str)], keys: &[&str]) -> Vec<Wrong> {
    let folder = tempfile::tempdir().unwrap();
    let db = Connection::open(folder.path().join("checkpoint.db")).unwrap();
    db.execute_batch(&format!("{QUICKLY} PRAGMA foreign_keys = OFF; {sql}")).unwrap();
    db.close().unwrap();
    let owned = |(key, text): &(&str, &str)| ((*key).to_owned(), (*text).to_owned());
    let acknowledged: BTreeMap<_, _> = acknowledged.iter().map(owned).collect();
    let keys: BTreeSet<_> = keys.iter().map(|key| (*key).to_owned()).collect();
    quick(folder.path(), &Expected { acknowledged: &acknowledged, keys: &keys })
}

#[test]
fn what_is_whole_passes() {
    let all = format!("{SCHEMA} {CONTENT}");
    assert_eq!(look(&all, &[("k", "answer")], &["k"]), []);
    assert_eq!(look("", &[], &[]), []);
    let nowhere = tempfile::tempdir().unwrap();
    let (acknowledged, keys) = (BTreeMap::new(), BTreeSet::new());
    let expected = Expected { acknowledged: &acknowledged, keys: &keys };
    assert_eq!(quick(nowhere.path(), &expected), []);
}

#[test]
fn what_is_lost_is_seen() {
    let all = format!("{SCHEMA} {CONTENT}");
    let lost =
        |wrong: Vec<Wrong>| wrong.iter().all(|w| matches!(w, Wrong::Lost(_))) && wrong.len() == 1;
    assert!(lost(look(&all, &[("k", "answer"), ("l", "answer")], &["k", "l"])));
    assert!(lost(look(&all, &[("k", "another answer")], &["k"])));
    assert!(lost(look("", &[("k", "answer")], &["k"])));
}

#[test]
fn what_is_there_by_half_is_seen() {
    let events = "DROP TRIGGER events_are_never_deleted; DELETE FROM events WHERE seq =";
    for broken in [
        "UPDATE workflows SET revision = 3",
        &format!("{events} 2"),
        &format!("{events} 1"),
        "DELETE FROM ledger",
        "DELETE FROM locks",
        "UPDATE locks SET holder = 'another'",
    ] {
        let wrong = look(&format!("{SCHEMA} {CONTENT} {broken};"), &[], &["k"]);
        assert!(wrong.iter().any(|wrong| matches!(wrong, Wrong::Half(_))), "{broken}: {wrong:?}");
    }
    let unsent = look(&format!("{SCHEMA} {CONTENT}"), &[("k", "answer")], &[]);
    assert_eq!(unsent, [Wrong::Half("nobody sent k".to_owned())]);
}

#[test]
fn what_is_damaged_is_seen() {
    let all = format!("{SCHEMA} {CONTENT}");
    let is_damaged = |wrong: &[Wrong]| wrong.iter().any(|w| matches!(w, Wrong::Damaged(_)));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.db");
    Connection::open(&path).unwrap().execute_batch(&format!("{QUICKLY} {all}")).unwrap();
    let (acknowledged, keys) = (BTreeMap::new(), BTreeSet::from(["k".to_owned()]));
    let expected = Expected { acknowledged: &acknowledged, keys: &keys };
    assert_eq!(quick(folder.path(), &expected), []);
    let mut bytes = std::fs::read(&path).unwrap();
    // The header of the second page: what kind of page it is.
    bytes[4096] = 0xff;
    std::fs::write(&path, bytes).unwrap();
    assert!(is_damaged(&quick(folder.path(), &expected)));
    let dangling = look(&format!("{all} DELETE FROM workflows;"), &[], &["k"]);
    assert!(is_damaged(&dangling), "{dangling:?}");
}
