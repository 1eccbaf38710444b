//! A table that is read whole and made anew elsewhere, and one that is damaged: what the look at all of it finds.

use wf_backend_aws::{AwsConfig, AwsCopy, AwsStore};
use wf_core::engine::copy::{Pace, copy};
use wf_core::ports::copy::{CopyError, CopySourcePort as _, CopyTargetPort as _, RecordKind};
use wf_core::ports::{OpenError, StorageBackendPort as _};
use wf_testkit::build::{self, CommitBuilder, at};
use wf_testkit::contract::Violation;
use wf_testkit::copying::{carry, hold_the_same};
use wf_testkit::model::ModelStore;
use wf_testkit::random::{for_each_list, run_against};

use crate::fixture::{foreign, meddle, store, table};
use crate::wire;

/// Lines apart about what random commands do and no decision ever does: work runs by a definition that nobody stored, and
/// deadlines are removed that its state has.
pub(crate) async fn strays(store: &AwsStore) -> Vec<String> {
    let mut lines = store.strays().await.expect("a look");
    let apart = ["the definition that it runs by", "its deadlines are not those"];
    lines.retain(|line| !apart.iter().any(|text| line.contains(text)));
    lines
}

#[test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
fn a_copy_of_any_store_holds_the_same() -> Result<(), Violation> {
    for_each_list(6, 60, async |list| {
        let (filled, _wire, from) = store().await;
        let ran = run_against(&ModelStore::new(), &filled, &list).await;
        ran.map_err(|d| Violation::new(d.to_string()))?;
        assert_eq!(strays(&filled).await, Vec::<String>::new());
        let to = table().await;
        let source = AwsCopy::source(from).await?;
        let target = AwsCopy::target(to.clone()).await?;
        carry(&source, &target).await?;
        hold_the_same(&source, &target).await?;
        let copied = AwsStore::open_existing(to).await?;
        assert_eq!(strays(&copied).await, Vec::<String>::new());
        Ok(())
    })
}

/// A table with some workflows in it.
async fn filled(workflows: u32) -> (AwsStore, AwsConfig) {
    let (store, _wire, config) = store().await;
    for n in 0..workflows {
        let id = build::workflow_id(&format!("wf-{n:05}"));
        let commit =
            CommitBuilder::start(&build::tenant("plant"), &id, &build::user("ann"), at(60_000))
                .acquire(&build::asset(&format!("ASSET-{n}")), 1)
                .message("lead")
                .deadline(at(120_000));
        store.commit(commit.build()).await.expect("a commit");
    }
    (store, config)
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_copy_goes_on_where_it_stopped_and_is_no_store_before() {
    let (_store, from) = filled(12).await;
    let to = table().await;
    let source = AwsCopy::source(from).await.expect("a source");
    let target = AwsCopy::target(to.clone()).await.expect("a target");
    let facts = source.facts().await.expect("facts");
    target.begin(&facts).await.expect("a begin");
    let page = source.export(None, 20).await.expect("a page");
    target.import(&page.items, page.next.as_ref()).await.expect("an import");
    for opened in [
        AwsStore::open(to.clone()).await.map(drop),
        AwsStore::open_existing(to.clone()).await.map(drop),
        AwsCopy::source(to.clone()).await.map(drop),
    ] {
        let Err(OpenError::Refused { message }) = opened else {
            unreachable!("half a store was opened: {opened:?}")
        };
        assert!(message.contains("unfinished copy"), "{message}");
    }
    let target = AwsCopy::target(to.clone()).await.expect("a target");
    let report = copy(&source, &target, Pace::default(), &mut |_, _| {}).await.expect("a copy");
    assert!(report.resumed && !report.already, "{report:?}");
    assert_eq!(report.differences, Vec::<String>::new());
    assert_eq!(report.counts[&RecordKind::Workflow], 12);
    let again = copy(&source, &target, Pace::default(), &mut |_, _| {})
        .await
        .expect("a copy that is there");
    assert!(again.already, "{again:?}");
    // Who still believes that the copy goes on writes nothing into the store.
    let late = target.import(&page.items, page.next.as_ref()).await;
    assert!(matches!(late, Err(CopyError::Unavailable { .. })), "{late:?}");
    let opened = AwsStore::open(to).await.expect("a store");
    assert!(!opened.created);
    assert_eq!(opened.store.identity().await.expect("an identity"), facts.identity);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_table_with_something_in_it_is_no_target() {
    let (_store, from) = filled(1).await;
    let (_other, to) = filled(1).await;
    let source = AwsCopy::source(from).await.expect("a source");
    let target = AwsCopy::target(to).await.expect("a target");
    let refused = copy(&source, &target, Pace::default(), &mut |_, _| {}).await;
    let Err(CopyError::Refused { message }) = refused else { unreachable!("{refused:?}") };
    assert!(message.contains("is not empty"), "{message}");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn batches_and_pages_that_are_throttled_are_sent_again() {
    let (_store, from) = filled(20).await;
    let source = AwsCopy::source(from).await.expect("a source");
    let wire = wire::Wire::new();
    let to = crate::fixture::config(&table().await.table, &wire);
    wire.next("BatchWriteItem", [wire::THROTTLED, wire::Fault::Lost, wire::INTERNAL]);
    wire.next("Scan", [wire::THROTTLED, wire::OVER_CAPACITY]);
    let target = AwsCopy::target(to).await.expect("a target");
    let report = copy(&source, &target, Pace::default(), &mut |_, _| {}).await.expect("a copy");
    assert_eq!(report.differences, Vec::<String>::new());
}

/// What a table says after somebody changed one item of it.
async fn after(change: impl AsyncFnOnce(&AwsConfig)) -> String {
    let (store, config) = filled(2).await;
    assert_eq!(strays(&store).await, Vec::<String>::new());
    change(&config).await;
    strays(&store).await.join("\n")
}

const HEAD: &str = "T#plant#WF#wf-00001";

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn copies_that_differ_are_found() {
    let cases = [
        (HEAD, "HEAD", "held", "{}", "a lock is held by no workflow that says so"),
        (HEAD, "HEAD", "due", "{}", "a deadline is of no workflow that has it"),
        (
            "T#plant#ASSET#ASSET-1",
            "LOCK",
            "held_by",
            r#"{"id":"user:eve"}"#,
            "its copy of a lock row",
        ),
        (HEAD, "EVT#00000000000000000001", "body", "{}", "it cannot be read"),
    ];
    for (pk, sk, name, text, said) in cases {
        let found = after(async |config| meddle(config, pk, sk, name, text).await).await;
        assert!(found.contains(said), "{name} of {sk}: {found}");
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn items_that_are_missing_are_found() {
    let cases = [
        ("T#plant#LIST", "wf-00001", "an item that leads to it is missing"),
        ("T#plant#WHO#user:ann", "OPEN#wf-00001", "it counts another number of open workflows"),
        ("T#plant#WHO#user:ann", "COUNT", "an open workflow is not counted"),
        ("T#plant#ASSET#ASSET-1", "LOCK", "its copy of a lock row differs"),
        (HEAD, "HEAD", "an event is of no workflow"),
        (HEAD, "EVT#00000000000000000001", "a ledger row is of no event"),
        ("T#plant#OUT#wf-00001#lead", "STREAM", "a message is in no stream"),
    ];
    for (pk, sk, said) in cases {
        let found = after(async |config| remove(config, pk, sk).await).await;
        assert!(found.contains(said), "{sk}: {found}");
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn items_of_nobody_are_found() {
    let cases = [
        ("T#plant#SOMETHING", "X", "it belongs to nothing"),
        ("T#plant#WHO#user:bob", "OPEN#wf-00001", "it cannot be read"),
        ("T#plant#BLOCKED", "000000000060000#wf-00001", "it cannot be read"),
    ];
    for (pk, sk, said) in cases {
        let found = after(async |config| meddle(config, pk, sk, "note", "x").await).await;
        assert!(found.contains(said), "{sk}: {found}");
    }
}

async fn remove(config: &AwsConfig, pk: &str, sk: &str) {
    let value = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    let delete = foreign().delete_item().table_name(&config.table);
    let delete = delete.key("PK", value(pk)).key("SK", value(sk));
    delete.send().await.expect("a deletion");
}
