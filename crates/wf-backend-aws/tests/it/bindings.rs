//! The rows that bind workflows to executions: what commits write, what moves them on, and what may not.

use wf_backend_aws::AwsStore;
use wf_backend_aws::execution::{Bindings, Bound, Epoch, Written};
use wf_core::models::{Phase, Timestamp, Workflow};
use wf_core::ports::{BindingPort as _, Commit, StorageBackendPort as _};
use wf_core::reconcile::{Action, Observation, Replacement, reconcile};
use wf_testkit::build::{CommitBuilder, at};

use crate::bound::{bound_store, due, epoch, look, registers, row_keys, signals};
use crate::cast::start;
use crate::fixture::store;
use crate::wire::Fault;

const BINDING: &str = "T#plant#WF#wf-00001 ORCH";
const ASKED: &str = "ATTN plant#wf-00001";
const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

async fn commit(store: &AwsStore, commit: &Commit) {
    store.commit(commit.clone()).await.expect("a commit");
}

/// A workflow that was just started, with its rows.
async fn started(store: &AwsStore) -> Workflow {
    let first = start(1).build();
    commit(store, &first).await;
    first.next
}

/// The end of a workflow.
fn end(workflow: &Workflow, now: Timestamp) -> Commit {
    let mut end = CommitBuilder::next(workflow, now).complete().release_assets();
    for deadline in workflow.deadlines.keys() {
        end = end.clear_deadline(deadline);
    }
    end.build()
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_commit_asks_for_a_look_when_it_starts_ends_or_changes_the_next_deadline() {
    let (store, _, config) = bound_store().await;
    let rows = store.bindings();
    let forget = async |workflow: &Workflow| {
        let told = (workflow.revision, workflow.updated_at);
        assert!(registers(&config, &workflow.id, 1, "t", told).await);
        let bound = look(&rows, workflow, workflow.updated_at).await;
        let held = epoch(&rows, "r", at(DAY)).await;
        let settled = rows.settle(&bound, held, workflow.updated_at).await.expect("an answer");
        assert_eq!(settled, Written::Done);
        assert_eq!(row_keys(&config).await, [BINDING]);
    };
    let first = started(&store).await;
    assert_eq!(row_keys(&config).await, [ASKED, BINDING], "a start");
    forget(&first).await;
    let noted = CommitBuilder::next(&first, at(70_000)).note("on").build();
    commit(&store, &noted).await;
    assert_eq!(row_keys(&config).await, [BINDING], "a step");
    let later = CommitBuilder::next(&noted.next, at(71_000)).note("x").deadline(at(DAY)).build();
    commit(&store, &later).await;
    assert_eq!(row_keys(&config).await, [BINDING], "a deadline after the next");
    let sooner = CommitBuilder::next(&later.next, at(72_000)).note("y").deadline(at(100_000));
    let sooner = sooner.build();
    commit(&store, &sooner).await;
    assert_eq!(row_keys(&config).await, [ASKED, BINDING], "a deadline before the next");
    let bound = look(&rows, &sooner.next, at(72_000)).await;
    let head = bound.head.expect("a head");
    assert_eq!(head.wanted_revision, sooner.next.revision);
    assert_eq!(head.next_deadline, Some(at(100_000)));
    forget(&sooner.next).await;
    let next = sooner.next.deadlines.iter().find(|(_, one)| one.fire_at == at(100_000));
    let (id, _) = next.expect("the next deadline");
    let cleared = CommitBuilder::next(&sooner.next, at(73_000)).note("z").clear_deadline(id);
    let cleared = cleared.build();
    commit(&store, &cleared).await;
    assert_eq!(row_keys(&config).await, [ASKED, BINDING], "the next deadline is gone");
    forget(&cleared.next).await;
    commit(&store, &end(&cleared.next, at(80_000))).await;
    assert_eq!(row_keys(&config).await, [ASKED, BINDING], "an end");
    let bound = look(&rows, &cleared.next, at(80_001)).await;
    assert_eq!(
        (bound.phase, bound.head.and_then(|h| h.completed_at)),
        (Some(Phase::Completed), Some(at(80_000)))
    );
    assert_eq!(store.strays().await.expect("a look").len(), 1, "only the definition is missing");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn without_a_state_machine_nothing_is_written_about_executions() {
    let (store, _, config) = store().await;
    let first = started(&store).await;
    commit(&store, &end(&first, at(80_000))).await;
    assert_eq!(row_keys(&config).await, Vec::<String>::new());
}

/// A write of the reconciler.
type Write = (&'static str, fn(&Bindings, &Bound, Epoch) -> Pending);
type Pending = std::pin::Pin<Box<dyn Future<Output = Written>>>;

fn writes() -> Vec<Write> {
    fn later(
        rows: &Bindings,
        bound: &Bound,
        write: impl AsyncFnOnce(Bindings, Bound) -> Result<Written, wf_core::ports::ReadError> + 'static,
    ) -> Pending {
        let (rows, bound) = (rows.clone(), bound.clone());
        Box::pin(async move { write(rows, bound).await.expect("an answer") })
    }
    vec![
        ("record", |rows, bound, epoch| {
            later(rows, bound, async move |rows: Bindings, bound| {
                rows.record(&bound, epoch, at(MINUTE)).await
            })
        }),
        ("drop_token", |rows, bound, epoch| {
            later(rows, bound, async move |rows: Bindings, bound| {
                rows.drop_token(&bound, epoch, at(MINUTE)).await
            })
        }),
        ("replace", |rows, bound, epoch| {
            later(rows, bound, async move |rows: Bindings, bound: Bound| {
                let by = successor(&bound);
                rows.replace(&bound, epoch, &by, &[], at(MINUTE)).await
            })
        }),
        ("evicted", |rows, bound, epoch| {
            later(rows, bound, async move |rows: Bindings, bound| {
                rows.evicted(&bound, epoch, 1).await
            })
        }),
        ("close", |rows, bound, epoch| {
            later(rows, bound, async move |rows: Bindings, bound| {
                rows.close(&bound, epoch, at(MINUTE)).await
            })
        }),
        ("settle", |rows, bound, epoch| {
            later(rows, bound, async move |rows: Bindings, bound| {
                rows.settle(&bound, epoch, at(MINUTE)).await
            })
        }),
        ("postpone", |rows, bound, epoch| {
            later(rows, bound, async move |rows: Bindings, bound| {
                rows.postpone(&bound, epoch, at(2 * MINUTE)).await
            })
        }),
    ]
}

/// What comes after an execution that may run.
fn successor(bound: &Bound) -> Replacement {
    let fence = bound.binding.fence;
    Replacement {
        fence: fence + 1,
        evicts: Some(fence),
        successors: bound.binding.successors + 1,
        window_at: at(MINUTE),
        not_before: at(2 * MINUTE),
        alert: false,
    }
}

/// A binding to which every write applies: under the fence 2, evicting 1, waiting with a token, knowing enough.
async fn ready(store: &AwsStore, config: &wf_backend_aws::AwsConfig) -> (Workflow, Bound) {
    let rows = store.bindings();
    let workflow = started(store).await;
    let first = epoch(&rows, "first", at(0)).await;
    let bound = look(&rows, &workflow, at(MINUTE)).await;
    let by = successor(&bound);
    rows.replace(&bound, first, &by, &[], at(MINUTE)).await.expect("an answer");
    assert!(!registers(config, &workflow.id, 1, "old", (9, at(MINUTE))).await, "superseded");
    assert!(registers(config, &workflow.id, 2, "t-1", (workflow.revision, at(MINUTE))).await);
    let bound = look(&rows, &workflow, at(MINUTE)).await;
    assert_eq!((bound.binding.fence, bound.binding.evicts), (2, Some(1)));
    assert_eq!((bound.binding.registrations, bound.token.as_deref()), (1, Some("t-1")));
    assert_eq!((bound.binding.waits_since, bound.binding.waits), (at(MINUTE), true));
    (workflow, bound)
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn an_overtaken_reconciler_writes_nothing() {
    for (name, write) in writes() {
        let (store, _, config) = bound_store().await;
        let rows = store.bindings();
        let (workflow, bound) = ready(&store, &config).await;
        let slow = epoch(&rows, "slow", at(DAY)).await;
        // Another took over and wrote something that changes nothing of what the slow one read, in both rows.
        let fast = epoch(&rows, "fast", at(2 * DAY)).await;
        let now = look(&rows, &workflow, at(MINUTE)).await;
        assert_eq!(rows.record(&now, fast, at(MINUTE)).await.expect("an answer"), Written::Done);
        let asked = rows.postpone(&now, fast, at(60_000)).await.expect("an answer");
        assert_eq!(asked, Written::Done);
        let before = crate::fixture::rows(&config).await;
        assert_eq!(write(&rows, &bound, slow).await, Written::Overtaken, "{name}");
        assert_eq!(crate::fixture::rows(&config).await, before, "{name}");
        // The same write on behalf of the later one lands, so that it was the epoch.
        let now = look(&rows, &workflow, at(MINUTE)).await;
        let again = match name {
            "record" => Written::Overtaken,
            _ => Written::Done,
        };
        assert_eq!(write(&rows, &now, fast).await, again, "{name}");
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_write_under_an_old_fence_is_refused() {
    for (name, write) in writes().into_iter().filter(|(name, _)| *name != "postpone") {
        let (store, _, config) = bound_store().await;
        let rows = store.bindings();
        let (_, bound) = ready(&store, &config).await;
        let held = epoch(&rows, "one", at(DAY)).await;
        let by = successor(&bound);
        rows.replace(&bound, held, &by, &[], at(MINUTE)).await.expect("an answer");
        let before = crate::fixture::rows(&config).await;
        assert_eq!(write(&rows, &bound, held).await, Written::Overtaken, "{name}");
        assert_eq!(crate::fixture::rows(&config).await, before, "{name}");
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_write_whose_answer_was_lost_is_known_again() {
    for (name, write) in writes() {
        let (store, wire, config) = bound_store().await;
        let rows = store.bindings();
        let (_, bound) = ready(&store, &config).await;
        let held = epoch(&rows, "one", at(DAY)).await;
        let operation = if name == "settle" { "TransactWriteItems" } else { "UpdateItem" };
        let second = if name == "settle" { Fault::Forgotten } else { Fault::Pass };
        wire.next(operation, [Fault::Lost, second]);
        wire.take_log();
        assert_eq!(write(&rows, &bound, held).await, Written::Done, "{name}");
        assert_eq!(wire.take_operations(), [operation, operation], "{name}");
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_row_goes_when_the_execution_knows_what_it_asks_for_and_not_before() {
    let (store, wire, config) = bound_store().await;
    let rows = store.bindings();
    let workflow = started(&store).await;
    let held = epoch(&rows, "one", at(0)).await;
    let settle = async |bound: &Bound| rows.settle(bound, held, at(MINUTE)).await.expect("answer");
    assert_eq!(settle(&look(&rows, &workflow, at(MINUTE)).await).await, Written::Overtaken);
    assert!(registers(&config, &workflow.id, 1, "t-1", (0, at(MINUTE))).await);
    assert_eq!(settle(&look(&rows, &workflow, at(MINUTE)).await).await, Written::Overtaken);
    assert!(registers(&config, &workflow.id, 1, "t-2", (workflow.revision, at(MINUTE))).await);
    let told = look(&rows, &workflow, at(MINUTE)).await;
    // A commit asks for more in the meantime.
    let more = CommitBuilder::next(&workflow, at(70_000)).note("y").deadline(at(100_000)).build();
    commit(&store, &more).await;
    assert_eq!(settle(&told).await, Written::Overtaken);
    assert_eq!(row_keys(&config).await, [ASKED, BINDING]);
    assert!(registers(&config, &workflow.id, 1, "t-3", (more.next.revision, at(MINUTE))).await);
    assert_eq!(settle(&look(&rows, &workflow, at(MINUTE)).await).await, Written::Done);
    assert_eq!(row_keys(&config).await, [BINDING]);
    assert_eq!(due(&rows, at(DAY / 2)).await, []);
    // Settled again, nothing is sent.
    let settled = look(&rows, &workflow, at(MINUTE)).await;
    wire.take_log();
    assert_eq!(settle(&settled).await, Written::Done);
    assert_eq!(wire.take_operations(), Vec::<String>::new());
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn what_is_put_off_comes_back_in_time_and_a_commit_brings_it_back_at_once() {
    let (store, _, _) = bound_store().await;
    let rows = store.bindings();
    let workflow = started(&store).await;
    let held = epoch(&rows, "one", at(0)).await;
    for looks in 0..3 {
        let now = at(MINUTE * (looks + 1));
        let found = due(&rows, now).await;
        assert_eq!(found.len(), 1);
        assert_eq!(i64::from(found[0].looks), looks);
        let bound = rows.bound(&found[0], now).await.expect("a read");
        let later = now.plus_ms(MINUTE);
        assert_eq!(rows.postpone(&bound, held, later).await.expect("answer"), Written::Done);
        assert_eq!(due(&rows, later.plus_ms(-1)).await, []);
    }
    let stale = look(&rows, &workflow, at(5 * MINUTE)).await;
    let more = CommitBuilder::next(&workflow, at(70_000)).note("y").deadline(at(100_000)).build();
    commit(&store, &more).await;
    let found = due(&rows, at(70_000)).await;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].looks, found[0].wanted_revision), (0, Some(more.next.revision)));
    // Whoever read the row before does not put off what the commit asked for.
    let put_off = rows.postpone(&stale, held, at(DAY)).await.expect("an answer");
    assert_eq!(put_off, Written::Overtaken);
    assert_eq!(due(&rows, at(70_000)).await, found);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn an_execution_that_says_so_is_looked_at_and_so_is_one_that_says_nothing() {
    let (store, _, config) = bound_store().await;
    let rows = store.bindings();
    let first = start(1).build();
    let (owner, id) = (&first.next.owner.id, &first.next.id);
    let first = CommitBuilder::start(&first.next.tenant, id, owner, at(60_000)).build();
    commit(&store, &first).await;
    let workflow = first.next;
    let (id, told) = (workflow.id.clone(), (workflow.revision, at(MINUTE)));
    let held = epoch(&rows, "one", at(0)).await;
    assert!(registers(&config, &id, 1, "t-1", told).await);
    let settle = async |now| {
        let bound = look(&rows, &workflow, now).await;
        rows.settle(&bound, held, now).await.expect("an answer")
    };
    assert_eq!(settle(at(MINUTE)).await, Written::Done);
    assert_eq!(due(&rows, at(2 * MINUTE)).await, []);
    assert!(signals(&config, &id, 1, 1).await);
    let found = due(&rows, at(2 * MINUTE)).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].wanted_revision, None);
    let bound = rows.bound(&found[0], at(2 * MINUTE)).await.expect("a read");
    assert_eq!(bound.due_revision, Some(1));
    assert_eq!(settle(at(2 * MINUTE)).await, Written::Done);
    assert_eq!(due(&rows, at(2 * MINUTE)).await, [], "looked at");
    // After a while it is looked at by itself. A signal that comes between that look and its end is not lost.
    assert_eq!(due(&rows, at(DAY)).await, []);
    assert_eq!(due(&rows, at(2 * DAY)).await.len(), 1);
    let stale = look(&rows, &workflow, at(2 * DAY)).await;
    assert!(signals(&config, &id, 1, 1).await);
    let settled = rows.settle(&stale, held, at(2 * DAY)).await.expect("an answer");
    assert_eq!(settled, Written::Overtaken);
    let postponed = rows.postpone(&stale, held, at(3 * DAY)).await.expect("an answer");
    assert_eq!(postponed, Written::Overtaken);
    assert_eq!(due(&rows, at(2 * DAY)).await.len(), 1);
    assert_eq!(settle(at(2 * DAY)).await, Written::Done);
    assert_eq!(due(&rows, at(2 * DAY)).await, []);
    // With a deadline, it is looked at when that is due.
    let due_at = at(4 * DAY + 5 * MINUTE);
    let more = CommitBuilder::next(&workflow, at(70_000)).note("y").deadline(due_at).build();
    commit(&store, &more).await;
    assert!(registers(&config, &id, 1, "t-2", (more.next.revision, at(4 * DAY))).await);
    assert_eq!(settle(at(4 * DAY)).await, Written::Done);
    assert_eq!(due(&rows, due_at.plus_ms(-1)).await, []);
    assert_eq!(due(&rows, due_at).await.len(), 1);
    // Superseded, it says nothing.
    let bound = look(&rows, &workflow, at(DAY)).await;
    rows.replace(&bound, held, &successor(&bound), &[], at(DAY)).await.expect("an answer");
    assert!(!signals(&config, &id, 1, 1).await);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn of_a_workflow_that_ended_a_closed_binding_stays_and_nothing_else() {
    let (store, wire, config) = bound_store().await;
    let rows = store.bindings();
    let workflow = started(&store).await;
    let held = epoch(&rows, "one", at(0)).await;
    assert!(registers(&config, &workflow.id, 1, "t-1", (1, at(MINUTE))).await);
    commit(&store, &end(&workflow, at(80_000))).await;
    let bound = look(&rows, &workflow, at(90_000)).await;
    let early = rows.settle(&bound, held, at(90_000)).await.expect("an answer");
    assert_eq!(early, Written::Overtaken, "it is not closed, and was not told");
    assert_eq!(rows.close(&bound, held, at(90_000)).await.expect("an answer"), Written::Done);
    let closed = look(&rows, &workflow, at(90_000)).await;
    assert!(closed.binding.closed);
    assert_eq!(closed.token, None);
    let step = reconcile(closed.head.as_ref(), &closed.binding, Observation::Nothing, at(90_000));
    assert_eq!(step.action, Action::Settled);
    assert_eq!(rows.settle(&closed, held, at(90_000)).await.expect("an answer"), Written::Done);
    assert_eq!(row_keys(&config).await, [BINDING]);
    assert_eq!(due(&rows, at(400 * DAY)).await, []);
    assert!(!registers(&config, &workflow.id, 1, "late", (9, at(DAY))).await);
    assert!(!signals(&config, &workflow.id, 1, 9).await);
    wire.take_log();
    let closed = look(&rows, &workflow, at(DAY)).await;
    assert_eq!(rows.settle(&closed, held, at(DAY)).await.expect("an answer"), Written::Done);
    assert_eq!(wire.take_operations(), ["TransactGetItems"], "a look writes nothing");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_workflow_that_was_there_before_the_state_machine_gets_its_binding() {
    let (plain, _, mut config) = store().await;
    let open = started(&plain).await;
    let over = start(2).build();
    commit(&plain, &over).await;
    commit(&plain, &end(&over.next, at(80_000))).await;
    config.state_machine_arn = Some(crate::bound::ARN.to_owned());
    let store = AwsStore::open_existing(config.clone()).await.expect("a store");
    let rows = store.bindings();
    for asks in [false, true, true] {
        let before = row_keys(&config).await.len();
        let page = rows.without_binding(None, asks).await.expect("a page");
        let ids: Vec<_> = page.items.iter().map(|one| one.workflow_id.clone()).collect();
        assert_eq!(ids.as_slice(), std::slice::from_ref(&open.id), "{asks}");
        assert_eq!(page.next, None);
        assert_eq!(row_keys(&config).await.len(), before.max(usize::from(asks)), "{asks}");
    }
    assert_eq!(due(&rows, at(DAY)).await.len(), 1);
    let (found, other) = tokio::join!(look(&rows, &open, at(DAY)), look(&rows, &open, at(DAY)));
    assert_eq!((found.binding.fence, found.binding.closed), (open.fence.max(1), false));
    assert_eq!(other.binding.fence, found.binding.fence, "made once");
    let step = reconcile(found.head.as_ref(), &found.binding, Observation::Nothing, at(DAY));
    assert_eq!(step.action, Action::Start { fence: 1 });
    assert_eq!(row_keys(&config).await, [ASKED, BINDING]);
    assert_eq!(rows.without_binding(None, true).await.expect("a page").items, []);
    let ended = look(&rows, &over.next, at(DAY)).await;
    let step = reconcile(ended.head.as_ref(), &ended.binding, Observation::Nothing, at(DAY));
    assert_eq!(step.action, Action::Settled);
    let nobody = CommitBuilder::next(&over.next, at(1)).note("x").build().next;
    let nobody = Workflow { id: wf_testkit::build::workflow_id("wf-none"), ..nobody };
    let unknown = look(&rows, &nobody, at(DAY)).await;
    assert_eq!((unknown.head, unknown.phase, unknown.token.clone()), (None, None, None));
    let held = epoch(&rows, "one", at(0)).await;
    assert_eq!(rows.settle(&unknown, held, at(DAY)).await.expect("an answer"), Written::Done);
    assert_eq!(row_keys(&config).await, [ASKED, BINDING], "only the open one");
}
