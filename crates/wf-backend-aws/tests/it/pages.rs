//! Answers in parts, and reads beside writers: nothing is missing, nothing comes twice, nothing is of somebody else.

use wf_core::locks::LockChange;
use wf_core::models::{TenantId, WorkflowId};
use wf_core::ports::{Commit, CommitError, Conflict, Cursor, ReadError, StorageBackendPort as _};
use wf_testkit::build::{self, CommitBuilder, asset, at, user};

use crate::cast::{start, tenant};
use crate::fixture::{replica, store};
use crate::wire::Fault;

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_history_of_more_than_one_answer_is_read_whole() {
    let (store, wire, _) = store().await;
    let mut last = start(1).build();
    let mut written = last.events.clone();
    store.commit(last.clone()).await.expect("a commit");
    for n in 0..24 {
        let note = format!("{n} {}", "x".repeat(60_000));
        last = CommitBuilder::next(&last.next, at(70_000 + n)).note(&note).build();
        written.extend(last.events.clone());
        store.commit(last.clone()).await.expect("a commit");
    }
    wire.take_log();
    let read = store.events(tenant(), &last.next.id, 0, 1_000).await.expect("a read");
    assert!(read == written, "{} of {} events", read.len(), written.len());
    assert!(wire.take_operations().len() > 1, "an answer has one megabyte");
    let some = store.events(tenant(), &last.next.id, 2, 20).await.expect("a read");
    assert!(some == written[2..22], "{} events", some.len());
    // The sweep walks through all of it too.
    let end = CommitBuilder::next(&last.next, at(90_000)).complete().build();
    store.commit(end).await.expect("a commit");
    let swept = store.sweep(at(100_000), 1_000_000, 100).await.expect("a sweep");
    assert_eq!(swept.expiries_set, 26);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn more_workflows_than_one_answer_has_are_all_listed() {
    let (store, wire, _) = store().await;
    let commits: Vec<Commit> = (1..=130).map(|n| start(n).build()).collect();
    for commit in &commits {
        store.commit(commit.clone()).await.expect("a commit");
    }
    let ids = |mut listed: Vec<WorkflowId>| {
        listed.sort();
        listed
    };
    let all: Vec<_> = commits.iter().map(|commit| commit.next.id.clone()).collect();
    wire.next("BatchGetItem", [Fault::Pass, Fault::Unprocessed]);
    let open = store.open_of(tenant(), &user("ann"), 1_000).await.expect("a list");
    assert_eq!(ids(open.into_iter().map(|w| w.id).collect()), all);
    let due = store.claim_deadlines(&crate::fixture::claim(at(600_000), "a")).await;
    assert_eq!(due.expect("a claim").len(), 100, "as many as asked for");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_history_read_beside_a_commit_is_whole_or_without_it() {
    let (store, wire, _) = store().await;
    let first = start(1).build();
    store.commit(first.clone()).await.expect("a commit");
    let second = CommitBuilder::next(&first.next, at(70_000)).note("a").note("b").note("c").build();
    store.commit(second.clone()).await.expect("a commit");
    let whole = [first.events.clone(), second.events.clone()].concat();
    let read = async || store.events(tenant(), &first.next.id, 0, 100).await.expect("a read");
    // The beginning of the commit is seen and its end is not: it is left out.
    wire.next("Query", [Fault::Without("EVT#00000000000000000004")]);
    assert_eq!(read().await, first.events);
    // Its end is seen and its beginning is not: it is read again.
    let gap = || Fault::Without("EVT#00000000000000000002");
    wire.next("Query", [gap(), gap(), gap(), gap()]);
    assert_eq!(read().await, whole);
    // A gap that stays is damage.
    wire.always("Query", [gap()]);
    let read = store.events(tenant(), &first.next.id, 0, 100).await;
    assert!(matches!(read, Err(ReadError::Corrupt { .. })), "{read:?}");
    wire.always("Query", []);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_sweep_beside_the_end_of_a_workflow_forgets_no_row() {
    let (store, wire, _) = store().await;
    let first = start(1).build();
    let end = CommitBuilder::next(&first.next, at(70_000)).complete().build();
    for commit in [first, end] {
        store.commit(commit).await.expect("a commit");
    }
    // The list names the workflow, and its last event is not seen yet.
    wire.next("Query", [Fault::Pass, Fault::Without("EVT#00000000000000000002")]);
    let swept = store.sweep(at(100_000), 1_000_000, 100).await.expect("a sweep");
    assert_eq!(swept.expiries_set, 1);
    let swept = store.sweep(at(100_000), 1_000_000, 100).await.expect("a sweep");
    assert_eq!(swept.expiries_set, 1, "the row of the end");
    let swept = store.sweep(at(100_000), 1_000_000, 100).await.expect("a sweep");
    assert_eq!(swept.expiries_set, 0);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_cursor_leads_into_no_other_tenant() {
    let (store, _, _) = store().await;
    for (n, name) in (1..).zip(["alpha", "plant", "zulu"]) {
        let whose = build::tenant(name);
        let id = build::workflow_id(&format!("wf-{n}"));
        let commit = CommitBuilder::start(&whose, &id, &user("ann"), at(0));
        store.commit(commit.acquire(&asset("A"), 1).build()).await.expect("a commit");
    }
    let page = async |after: Option<&str>, limit| {
        let after = after.map(|place| Cursor(place.to_owned()));
        let page = store.list_locks(Some(tenant()), after.as_ref(), limit).await.expect("a page");
        page.items.into_iter().map(|row| row.tenant).collect::<Vec<TenantId>>()
    };
    assert_eq!(page(None, 10).await, [tenant().clone()]);
    assert_eq!(page(Some("alpha#A"), 10).await, [tenant().clone()], "from before ours");
    assert_eq!(page(Some(" "), 10).await, [tenant().clone()]);
    assert_eq!(page(Some("zulu#A"), 10).await, Vec::<TenantId>::new(), "from behind ours");
    assert_eq!(page(Some("\u{10ffff}\u{10ffff}"), 1).await, Vec::<TenantId>::new());
}

/// Two workflows of Ann, each with something that lists show.
async fn two(
    store: &wf_backend_aws::AwsStore,
    change: impl Fn(CommitBuilder) -> CommitBuilder,
) -> [Commit; 2] {
    let mut made = Vec::new();
    for n in [1, 2] {
        let first = start(n).build();
        store.commit(first.clone()).await.expect("a commit");
        let next = change(CommitBuilder::next(&first.next, at(70_000 + i64::from(n)))).build();
        store.commit(next.clone()).await.expect("a commit");
        made.push(next);
    }
    made.try_into().expect("two")
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_list_is_not_cut_short_by_what_changes_meanwhile() {
    let (store, wire, _) = store().await;
    let [one, other] = two(&store, CommitBuilder::block).await;
    // The first is found, and is no longer blocked when it is looked at.
    let gate = wire.hold("BatchGetItem");
    let listing = tokio::spawn({
        let store = store.clone();
        async move { store.blocked(tenant(), 1).await }
    });
    gate.reached().await;
    let done = CommitBuilder::next(&one.next, at(80_000)).resolve().build();
    store.commit(done).await.expect("a commit");
    gate.open();
    let listed = listing.await.expect("a task").expect("a list");
    assert_eq!(listed, [other.next], "one was blocked all the time");

    let (store, wire, _) = self::store().await;
    let [one, other] = two(&store, |commit| commit.offer(None)).await;
    let gate = wire.hold("BatchGetItem");
    let listing = tokio::spawn({
        let store = store.clone();
        async move { store.offered_to(tenant(), &user("bob"), 1).await }
    });
    gate.reached().await;
    let done = CommitBuilder::next(&one.next, at(80_000)).withdraw().build();
    store.commit(done).await.expect("a commit");
    gate.open();
    let listed = listing.await.expect("a task").expect("a list");
    assert_eq!(listed, [other.next], "one was offered all the time");
}

/// A step asserts that its workflow holds its asset, and the head answers for the lock row. That is safe only while nothing
/// changes the row but commits of the holder, each of which moves the head on.
#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_holder_that_another_process_parted_from_its_asset_writes_nothing() {
    let (here, _, config) = store().await;
    let there = replica(&config).await;
    let first = start(1).build();
    here.commit(first.clone()).await.expect("a commit");
    let step = CommitBuilder::next(&first.next, at(80_000)).key("late").note("late");
    let step = step.assert_assets().build();
    assert!(matches!(step.locks.as_slice(), [LockChange::Assert { fence: 1, .. }]));

    // Freed by somebody else: this process believes that it holds it, and that the head has not moved.
    let freed = CommitBuilder::next(&first.next, at(70_000)).note("freed").release_assets().build();
    there.commit(freed.clone()).await.expect("a commit");
    let locks = here.list_locks(None, None, 10).await.expect("a list").items;
    assert_eq!(locks[0].holder, None);
    refused(here.commit(step.clone()).await, 1, None);

    // And taken by another workflow: the lock is told before the revision.
    let other = start(2).asset_of(9).build();
    let taking = CommitBuilder::start(tenant(), &other.next.id, &user("bob"), at(75_000));
    let taking = taking.acquire(&asset("ASSET-1"), 2).build();
    there.commit(taking.clone()).await.expect("a commit");
    let older = replica(&config).await;
    refused(older.commit(step.clone()).await, 2, Some(&taking.next.id));
    refused(here.commit(step).await, 2, Some(&taking.next.id));
    let events = here.events(tenant(), &first.next.id, 0, 100).await.expect("a read");
    assert_eq!(events.len(), 2, "{events:?}");
}

fn refused(answer: Result<(), CommitError>, fence: u64, holder: Option<&WorkflowId>) {
    match answer {
        Err(CommitError::Conflict(Conflict::Asset { row: Some(row), .. })) => {
            assert_eq!(row.fence, fence);
            assert_eq!(row.holder.map(|holder| holder.workflow_id).as_ref(), holder);
        }
        other => panic!("{other:?}"),
    }
}
