//! Migrations of an older file, with migrations made up for it.

use tempfile::TempDir;
use wf_core::ports::{OpenError, StorageBackendPort as _};

use super::{config, is_there, open, start};
use crate::connection::{self, int};
use crate::open::prepare;
use crate::schema::{MIGRATIONS, Migration};
use crate::{LocalConfig, LocalStore};

/// The schema of this build, and the one after it.
const KNOWN: u64 = MIGRATIONS[MIGRATIONS.len() - 1].version;
const AFTER: u64 = KNOWN + 1;

const NEXT: Migration =
    Migration { version: AFTER, sql: "CREATE TABLE added (n INTEGER PRIMARY KEY) STRICT;" };
const BROKEN: Migration = Migration {
    version: AFTER,
    sql: "CREATE TABLE added (n INTEGER PRIMARY KEY) STRICT; INSERT INTO nowhere VALUES (1);",
};

fn version(config: &LocalConfig) -> u64 {
    let found = int(&connection::looking(config).unwrap(), "PRAGMA user_version").unwrap();
    u64::try_from(found).unwrap()
}

async fn with_one_workflow(dir: &TempDir) -> LocalConfig {
    let store = open(dir).await;
    store.commit(start(1).build()).await.unwrap();
    let config = store.config().clone();
    store.close().await;
    config
}

#[tokio::test]
async fn older_file_is_copied_then_migrated() {
    let dir = TempDir::new().unwrap();
    let config = with_one_workflow(&dir).await;
    let newer = [MIGRATIONS, &[NEXT]].concat();
    let (in_use, created, report) = prepare(&config, &newer).unwrap();
    drop(in_use);
    assert!(!created);
    assert_eq!((report.from, report.to), (KNOWN, AFTER));
    assert_eq!(version(&config), AFTER);

    // The copy is a store of the version before, with everything in it.
    let backup = report.backup.expect("a copy");
    let old = LocalStore::open_existing(LocalConfig::new(&backup)).await.unwrap();
    assert!(is_there(&old, &start(1).build()).await);

    // This build now says that the file is too new for it, and how new.
    let error = LocalStore::open(config.clone()).await.unwrap_err();
    assert!(matches!(error, OpenError::NewerSchema { found: AFTER, known: KNOWN }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("newer build") && said.contains("docs/upgrading.md"), "{said}");
    assert_eq!(version(&config), AFTER, "it stays as it is");
    let again = prepare(&config, &newer).unwrap();
    assert_eq!(again.2.backup, None, "nothing to do, nothing to copy");
}

/// Names of copies beside the database.
fn copies(config: &LocalConfig) -> Vec<String> {
    let entries = std::fs::read_dir(config.path.parent().unwrap()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut copies: Vec<String> = names.filter(|name| name.contains(".schema-")).collect();
    copies.sort_unstable();
    copies
}

#[tokio::test]
async fn copies_are_named_by_version_and_time_and_few_are_kept() {
    let dir = TempDir::new().unwrap();
    let config = with_one_workflow(&dir).await;
    let folder = config.path.parent().unwrap();
    // A copy of another version, what a killed migration leaves behind, and what somebody else put there.
    let others = [
        "store.db.schema-1.20200101T000000.000Z.backup".to_owned(),
        format!("store.db.schema-{KNOWN}.mine"),
    ];
    let left = format!("store.db.schema-{KNOWN}.20200101T000000.000Z.backup.ab.partial");
    for name in others.iter().chain([&left]) {
        std::fs::write(folder.join(name), "x").unwrap();
    }
    let ours = |names: &[String]| -> Vec<String> {
        let prefix = format!("store.db.schema-{KNOWN}.2");
        names.iter().filter(|name| name.starts_with(&prefix)).cloned().collect()
    };
    let broken = [MIGRATIONS, &[BROKEN]].concat();
    prepare(&config, &broken).unwrap_err();
    let first = ours(&copies(&config));
    assert_eq!(first.len(), 1, "{first:?}");
    for _ in 0..4 {
        prepare(&config, &broken).unwrap_err();
    }
    let last = copies(&config);
    let kept = ours(&last);
    assert_eq!(kept.len(), 3, "{last:?}");
    assert!(!kept.contains(&first[0]), "the oldest go: {last:?}");
    assert!(others.iter().all(|name| last.contains(name)), "not ours: {last:?}");
    assert!(!last.contains(&left), "{last:?}");
    for name in kept {
        let copy = LocalStore::open_existing(LocalConfig::new(folder.join(name))).await.unwrap();
        assert!(is_there(&copy, &start(1).build()).await);
        copy.close().await;
    }
}

/// A store of the first schema learns to remember people, and forgets nothing.
#[tokio::test]
async fn store_of_schema_one_learns_of_people() {
    let dir = TempDir::new().unwrap();
    let config = config(&dir);
    drop(prepare(&config, &MIGRATIONS[..1]).unwrap());
    assert_eq!(version(&config), 1);
    let opened = LocalStore::open(config).await.unwrap();
    assert_eq!(opened.migrated_from, Some(1));
    let commit = start(1).build();
    let tenant = commit.next.tenant.clone();
    assert_eq!(opened.store.people(&tenant, 10).await.unwrap(), []);
    let ann = wf_testkit::build::user("ann");
    opened.store.commit(start(1).seen(&ann, Some("Ann")).build()).await.unwrap();
    let people = opened.store.people(&tenant, 10).await.unwrap();
    assert_eq!(people.iter().filter_map(|p| p.name.as_deref()).collect::<Vec<_>>(), ["Ann"]);
}

#[tokio::test]
async fn failed_migration_leaves_the_version_before() {
    let dir = TempDir::new().unwrap();
    let config = with_one_workflow(&dir).await;
    prepare(&config, &[MIGRATIONS, &[BROKEN]].concat()).unwrap_err();
    assert_eq!(version(&config), KNOWN);
    let store = LocalStore::open(config).await.unwrap().store;
    assert!(is_there(&store, &start(1).build()).await);
}

#[tokio::test]
async fn migration_waits_for_nobody_and_disturbs_nobody() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let newer = [MIGRATIONS, &[NEXT]].concat();
    let error = prepare(store.config(), &newer).unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
    assert_eq!(version(store.config()), KNOWN);
    store.commit(start(1).build()).await.unwrap();
}

#[tokio::test]
async fn command_does_not_migrate() {
    let dir = TempDir::new().unwrap();
    let config = with_one_workflow(&dir).await;
    let conn = connection::open_writing(&config).unwrap();
    conn.execute_batch("PRAGMA user_version = 0").unwrap();
    conn.close().unwrap();
    let error = LocalStore::open_existing(config).await.unwrap_err();
    assert!(error.to_string().contains("migrate it first"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_that_create_one_file_make_one_store() {
    // Often, because only some of the moments at which they meet make SQLite refuse without waiting.
    for _ in 0..40 {
        let dir = TempDir::new().unwrap();
        let opening: Vec<_> =
            (0..6).map(|_| tokio::spawn(LocalStore::open(config(&dir)))).collect();
        let mut stores = Vec::new();
        for opened in opening {
            stores.push(opened.await.unwrap().unwrap().store);
        }
        let identity = stores[0].identity().await.unwrap();
        stores[0].commit(start(1).build()).await.unwrap();
        for store in &stores {
            assert_eq!(store.identity().await.unwrap(), identity);
            assert!(is_there(store, &start(1).build()).await);
        }
    }
}
