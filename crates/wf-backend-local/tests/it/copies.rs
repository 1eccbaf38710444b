//! A store that is read whole and made anew elsewhere: the same records, and never half a store.

use std::path::Path;

use tempfile::TempDir;
use wf_backend_local::{LocalConfig, LocalCopy, LocalStore};
use wf_core::engine::copy::{CopyReport, Pace, copy};
use wf_core::ports::copy::{
    Begun, CopyError, CopySourcePort as _, CopyTargetPort as _, RecordKind,
};
use wf_core::ports::{OpenError, StorageBackendPort as _};
use wf_testkit::contract::Violation;
use wf_testkit::copying::{carry, hold_the_same};
use wf_testkit::model::ModelStore;
use wf_testkit::random::{Command, for_each_list, run_against};

use crate::cast::start;
use crate::fixture::{config, meddle};

/// Fills a new store at `path` with what a list of commands makes.
async fn fill(path: &Path, list: &[Command]) -> Result<(), Violation> {
    let store = LocalStore::open(config(path)).await?.store;
    let ran = run_against(&ModelStore::new(), &store, list).await;
    store.close().await;
    ran.map_err(|d| Violation::new(d.to_string()))
}

#[test]
fn a_copy_of_any_store_holds_the_same() -> Result<(), Violation> {
    for_each_list(8, 60, async |list| {
        let dir = TempDir::new().expect("a temporary directory");
        let (from, to) = (dir.path().join("from.db"), dir.path().join("to.db"));
        fill(&from, &list).await?;
        let source = LocalCopy::source(config(&from)).await?;
        let target = LocalCopy::target(config(&to)).await?;
        carry(&source, &target).await?;
        hold_the_same(&source, &target).await?;
        drop((source, target));
        let (store, original) = (
            LocalStore::open_existing(config(&to)).await?,
            LocalStore::open_existing(config(&from)).await?,
        );
        let sorted = |mut lines: Vec<String>| {
            lines.sort_unstable();
            lines
        };
        assert_eq!(sorted(store.strays().await?), sorted(original.strays().await?));
        assert_eq!(store.integrity_check().await?, Vec::<String>::new());
        Ok(())
    })
}

/// A store of `n` workflows, and a configuration for a copy beside it.
async fn bench(n: u32) -> (TempDir, LocalConfig, LocalConfig) {
    let dir = TempDir::new().expect("a temporary directory");
    let from = config(dir.path().join("from.db"));
    let store = LocalStore::open(from.clone()).await.expect("a store").store;
    for n in 0..n {
        store.commit(start(n).build()).await.expect("a commit");
    }
    store.close().await;
    let to = config(dir.path().join("to.db"));
    (dir, from, to)
}

async fn run(from: &LocalConfig, to: &LocalConfig) -> Result<CopyReport, CopyError> {
    let source = LocalCopy::source(from.clone()).await.expect("a source");
    let target = LocalCopy::target(to.clone()).await.expect("a target");
    copy(&source, &target, Pace::default(), &mut |_, _| {}).await
}

#[tokio::test]
async fn a_copy_goes_on_where_it_stopped_and_is_no_store_before() {
    let (_dir, from, to) = bench(12).await;
    let source = LocalCopy::source(from.clone()).await.expect("a source");
    let facts = source.facts().await.expect("facts");
    let target = LocalCopy::target(to.clone()).await.expect("a target");
    target.begin(&facts).await.expect("a begin");
    let page = source.export(None, 20).await.expect("a page");
    target.import(&page.items, page.next.as_ref()).await.expect("an import");
    drop(target);
    for opened in [
        LocalStore::open(to.clone()).await.map(drop),
        LocalStore::open_existing(to.clone()).await.map(drop),
        LocalCopy::source(to.clone()).await.map(drop),
    ] {
        let Err(OpenError::Refused { message }) = opened else {
            unreachable!("half a store was opened: {opened:?}")
        };
        assert!(message.contains("unfinished copy"), "{message}");
    }
    let target = LocalCopy::target(to.clone()).await.expect("a target");
    let records = u64::try_from(page.items.len()).expect("a number");
    let begun = target.begin(&facts).await.expect("a begin");
    assert_eq!(begun, Begun::Copying { after: page.next, records });
    drop((source, target));

    let report = run(&from, &to).await.expect("a copy");
    assert!(report.resumed && !report.already, "{report:?}");
    assert_eq!(report.differences, Vec::<String>::new());
    assert_eq!(report.counts[&RecordKind::Workflow], 12);
    assert_eq!(report.counts[&RecordKind::Event], 12);
    let again = run(&from, &to).await.expect("a copy that is there");
    assert!(again.already, "{again:?}");
    let store = LocalStore::open(to).await.expect("a store");
    assert!(!store.created);
    assert_eq!(store.store.identity().await.expect("an identity"), facts.identity);
}

/// Makes a database of the newest schema one of the schema before.
const BACK: &str = "DROP TABLE purged; DROP TRIGGER events_are_never_deleted; CREATE TRIGGER events_are_never_deleted \
     BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'an event is never deleted'); END; PRAGMA user_version = 2;";

#[tokio::test]
async fn who_was_stopped_while_it_made_the_tables_goes_on() {
    let (_dir, from, to) = bench(2).await;
    drop(LocalCopy::target(to.clone()).await.expect("a target"));
    meddle(&to.path, BACK).expect("the schema before");
    let report = run(&from, &to).await.expect("a copy");
    assert_eq!(report.differences, Vec::<String>::new());
}

#[tokio::test]
async fn a_source_in_use_and_a_target_with_something_in_it_are_refused() {
    let (_dir, from, to) = bench(1).await;
    let server = LocalStore::open(from.clone()).await.expect("a store").store;
    let busy = LocalCopy::source(from.clone()).await;
    let Err(OpenError::Refused { message }) = busy else { unreachable!("{busy:?}") };
    assert!(message.contains("in use"), "{message}");
    server.close().await;

    let other = LocalStore::open(to.clone()).await.expect("a store").store;
    other.commit(start(77).build()).await.expect("a commit");
    other.close().await;
    let refused = run(&from, &to).await;
    let Err(CopyError::Refused { message }) = refused else { unreachable!("{refused:?}") };
    assert!(message.contains("is not empty"), "{message}");
}

#[tokio::test]
async fn a_source_that_changed_in_between_is_found_at_the_end() {
    let (_dir, from, to) = bench(5).await;
    let source = LocalCopy::source(from.clone()).await.expect("a source");
    let target = LocalCopy::target(to.clone()).await.expect("a target");
    target.begin(&source.facts().await.expect("facts")).await.expect("a begin");
    let mut after = None;
    loop {
        let page = source.export(after.as_ref(), 9).await.expect("a page");
        target.import(&page.items, page.next.as_ref()).await.expect("an import");
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    drop((source, target));
    let store = LocalStore::open(from.clone()).await.expect("a store").store;
    store.commit(start(9).build()).await.expect("a commit");
    store.close().await;
    let report = run(&from, &to).await.expect("a comparison");
    let said = report.differences.join("\n");
    assert!(said.contains("events: 6 in the source, 5 in the target"), "{said}");
    assert!(said.contains("wf-00009 of plant: is not in the target"), "{said}");
    let opened = LocalStore::open(to).await;
    assert!(matches!(opened, Err(OpenError::Refused { .. })), "{opened:?}");
}

#[tokio::test]
async fn a_broken_chain_in_the_source_makes_no_store() {
    let (_dir, from, to) = bench(3).await;
    let sql = "DROP TRIGGER events_are_never_changed;
               UPDATE events SET body = json_set(body, '$.at', '2020-01-01T00:00:00.000Z') WHERE wid = 2;";
    meddle(&from.path, sql).expect("an update");
    let report = run(&from, &to).await.expect("a comparison");
    let said = report.differences.join("\n");
    assert!(said.contains("wf-00001 of plant: event 1 was changed"), "{said}");

    let (_dir, from, to) = bench(3).await;
    let sql = "UPDATE workflows SET state = json_set(state, '$.last_hash', ?1) WHERE wid = 2";
    let sql = sql.replace("?1", &format!("'{}'", "0".repeat(64)));
    meddle(&from.path, &sql).expect("an update");
    let report = run(&from, &to).await.expect("a comparison");
    let said = report.differences.join("\n");
    assert!(said.contains("wf-00001 of plant: has a broken chain of events"), "{said}");
}
