//! How clauses look at a store: single reads, whole pages walks, and everything there is.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use wf_core::locks::LockRow;
use wf_core::models::{AssetId, Person, Phase, TenantId, Workflow, WorkflowId};
use wf_core::ports::{
    Claim, ClaimedDeadline, Commit, CommitError, Conflict, Cursor, Deadline, LeaseToken, LedgerKey,
    LedgerRow, ListQuery, LoadQuery, OutboxPage, OutboxQuery, OutboxRow, Page, ReadError, Snapshot,
    StorageBackendPort,
};
use wf_core::state_machine::Event;

use super::cast::{other_plant, plant};
use super::{Violation, check, check_eq};
use crate::build::at;

/// A handle on a store.
pub(super) type Store = Arc<dyn StorageBackendPort>;

/// Far more than any clause writes.
pub(super) const MANY: u32 = 1_000;

/// A query for nothing but the tenant; clauses add to it.
pub(super) fn query(tenant: &TenantId) -> LoadQuery {
    LoadQuery {
        tenant: tenant.clone(),
        workflow: None,
        ledger: None,
        assets: Vec::new(),
        answered_as: None,
        count_open_of: None,
    }
}

/// What a decision about `commit` would read: its workflow, its ledger row, its assets.
pub(super) async fn load_of(store: &Store, commit: &Commit) -> Result<Snapshot, Violation> {
    let mut query = query(&commit.next.tenant);
    query.workflow = Some(commit.next.id.clone());
    query.ledger = Some(commit.ledger.key.clone());
    query.assets = commit.locks.iter().map(|l| l.asset_id().clone()).collect();
    let mut snapshot = store.load(&query).await?;
    snapshot.locks.sort_by(|a, b| a.asset_id.cmp(&b.asset_id));
    Ok(snapshot)
}

/// The state of a workflow.
pub(super) async fn workflow(
    store: &Store,
    tenant: &TenantId,
    id: &WorkflowId,
) -> Result<Option<Workflow>, Violation> {
    let mut query = query(tenant);
    query.workflow = Some(id.clone());
    Ok(store.load(&query).await?.workflow)
}

/// The ledger row under a key.
pub(super) async fn ledger(store: &Store, key: &LedgerKey) -> Result<Option<LedgerRow>, Violation> {
    let mut query = query(&key.tenant);
    query.ledger = Some(key.clone());
    Ok(store.load(&query).await?.ledger)
}

/// The row of one asset.
pub(super) async fn lock(
    store: &Store,
    tenant: &TenantId,
    asset: &AssetId,
) -> Result<Option<LockRow>, Violation> {
    let mut query = query(tenant);
    query.assets = vec![asset.clone()];
    let mut rows = store.load(&query).await?.locks;
    check!(rows.len() <= 1, "one asset has several rows: {rows:?}");
    Ok(rows.pop())
}

/// All events of a workflow.
pub(super) async fn events(
    store: &Store,
    tenant: &TenantId,
    id: &WorkflowId,
) -> Result<Vec<Event>, Violation> {
    Ok(store.events(tenant, id, 0, MANY).await?)
}

/// Sends a commit that must be refused, and says why it was.
pub(super) async fn refusal(store: &Store, commit: &Commit) -> Result<Conflict, Violation> {
    match store.commit(commit.clone()).await {
        Ok(()) => {
            Err(Violation::new(format!("a commit that must be refused was taken: {commit:?}")))
        }
        Err(CommitError::Conflict(conflict)) => Ok(conflict),
        Err(error) => Err(error.into()),
    }
}

/// Sends a commit that must be refused as `expected`, and sees that nothing was written.
pub(super) async fn refused(store: &Store, commit: &Commit, expected: Conflict) -> super::Verdict {
    let before = World::of(store, &[&commit.ledger.key]).await?;
    let seen = refusal(store, commit).await?;
    check_eq!(seen, expected, "the conflict");
    let after = World::of(store, &[&commit.ledger.key]).await?;
    check_eq!(after, before, "a refused commit wrote something");
    Ok(())
}

/// A page of a listing, soon.
pub(crate) type Paging<'a, T> =
    Pin<Box<dyn Future<Output = Result<Page<T>, ReadError>> + Send + 'a>>;

/// Walks all pages. A walk that does not end is a violation.
pub(crate) async fn walk<'a, T>(
    limit: u32,
    mut page: impl FnMut(Option<Cursor>) -> Paging<'a, T>,
) -> Result<Vec<T>, Violation> {
    let mut rows = Vec::new();
    let mut after = None;
    for _ in 0..MANY {
        let one = page(after.take()).await?;
        let fits = u32::try_from(one.items.len()).is_ok_and(|n| n <= limit);
        check!(fits, "a page of at most {limit} has {} rows", one.items.len());
        rows.extend(one.items);
        match one.next {
            None => return Ok(rows),
            Some(next) => after = Some(next),
        }
    }
    Err(Violation::new("the pages do not end"))
}

/// All workflows, page by page.
pub(super) async fn all_workflows(
    store: &Store,
    tenant: Option<&TenantId>,
    phase: Option<Phase>,
    limit: u32,
) -> Result<Vec<Workflow>, Violation> {
    walk(limit, |after| {
        let query = ListQuery { tenant: tenant.cloned(), phase, after, limit };
        Box::pin(async move { store.list(&query).await })
    })
    .await
}

/// All lock rows, page by page.
pub(super) async fn all_locks(
    store: &Store,
    tenant: Option<&TenantId>,
    limit: u32,
) -> Result<Vec<LockRow>, Violation> {
    walk(limit, |after| {
        Box::pin(async move { store.list_locks(tenant, after.as_ref(), limit).await })
    })
    .await
}

/// All outbox rows, page by page.
pub(super) async fn all_outbox(store: &Store, limit: u32) -> Result<Vec<OutboxRow>, Violation> {
    walk(limit, |after| {
        let query = OutboxQuery { state: None, after, limit };
        Box::pin(async move { outbox_page(store.as_ref(), &query).await })
    })
    .await
}

/// A page of outbox rows. One that cannot be read is an error: nobody damaged it.
pub(crate) async fn outbox_page(
    store: &dyn StorageBackendPort,
    query: &OutboxQuery,
) -> Result<Page<OutboxRow>, ReadError> {
    let OutboxPage { items, damaged, next } = store.list_outbox(query).await?;
    match damaged.into_iter().next() {
        None => Ok(Page { items, next }),
        Some(damaged) => Err(ReadError::Corrupt { what: damaged.error }),
    }
}

/// The outbox row with this id.
pub(super) async fn outbox_row(store: &Store, id: &str) -> Result<Option<OutboxRow>, Violation> {
    let rows = all_outbox(store, MANY).await?;
    Ok(rows.into_iter().find(|row| row.message.id == id))
}

/// A claim at `now` for a minute, of everything.
pub(super) fn claim(ms: i64, token: &str) -> Claim {
    Claim { now: at(ms), lease_ms: 60_000, token: LeaseToken(token.to_owned()), limit: MANY }
}

/// All deadlines, soonest first. Looks by claiming, a hundred years later, for a millisecond.
pub(super) async fn all_deadlines(store: &Store) -> Result<Vec<ClaimedDeadline>, Violation> {
    static LOOKS: AtomicI64 = AtomicI64::new(0);
    const CENTURY_MS: i64 = 100 * 365 * 24 * 3_600_000;
    let look = LOOKS.fetch_add(1, Ordering::Relaxed);
    let looking = Claim {
        now: at(CENTURY_MS + look * 10),
        lease_ms: 1,
        token: LeaseToken(format!("look-{look}")),
        limit: MANY,
    };
    Ok(store.claim_deadlines(&looking).await?)
}

/// A deadline with its workflow, in the order in which [`World`] compares them.
type Due = (TenantId, WorkflowId, String, Deadline);

/// Everything a reader can find in a store.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct World {
    /// States, by tenant and id.
    pub(super) workflows: Vec<Workflow>,
    /// Events of each of these.
    pub(super) events: Vec<Vec<Event>>,
    /// Lock rows, by tenant and asset.
    pub(super) locks: Vec<LockRow>,
    /// Ledger rows under the keys that were asked for.
    pub(super) ledger: Vec<Option<LedgerRow>>,
    /// People of the tenants of the clauses, named last first.
    pub(super) people: Vec<Person>,
    /// Outbox rows, by id.
    pub(super) outbox: Vec<OutboxRow>,
    /// Deadlines, by workflow and id.
    pub(super) deadlines: Vec<Due>,
}

impl World {
    /// Looks everywhere. Not one consistent read: nobody else should write meanwhile.
    pub(super) async fn of(store: &Store, keys: &[&LedgerKey]) -> Result<Self, Violation> {
        let mut workflows = all_workflows(store, None, None, MANY).await?;
        workflows.sort_by(|a, b| (&a.tenant, &a.id).cmp(&(&b.tenant, &b.id)));
        let mut histories = Vec::new();
        for one in &workflows {
            histories.push(events(store, &one.tenant, &one.id).await?);
        }
        let mut rows = Vec::new();
        for key in keys {
            rows.push(ledger(store, key).await?);
        }
        let due = |one: ClaimedDeadline| {
            let id = one.deadline.id.clone();
            (one.tenant, one.workflow_id, id, one.deadline)
        };
        let mut deadlines: Vec<Due> = all_deadlines(store).await?.into_iter().map(due).collect();
        deadlines.sort_by(|a, b| (&a.0, &a.1, &a.2).cmp(&(&b.0, &b.1, &b.2)));
        let mut people = store.people(&plant(), MANY).await?;
        people.extend(store.people(&other_plant(), MANY).await?);
        Ok(Self {
            workflows,
            people,
            events: histories,
            locks: all_locks(store, None, MANY).await?,
            ledger: rows,
            outbox: all_outbox(store, MANY).await?,
            deadlines,
        })
    }
}

/// Sends commits at the same time, each from a task of its own. Answers stand in the order of the commits.
pub(super) async fn at_once(
    stores: &[Store],
    commits: &[Commit],
) -> Result<Vec<Result<(), CommitError>>, Violation> {
    let mut tasks = Vec::new();
    for (commit, store) in commits.iter().zip(stores.iter().cycle()) {
        let (store, commit) = (Arc::clone(store), commit.clone());
        tasks.push(tokio::spawn(async move { store.commit(commit).await }));
    }
    let mut answers = Vec::new();
    for task in tasks {
        let answer = task.await;
        answers.push(answer.map_err(|error| Violation::new(format!("a commit died: {error}")))?);
    }
    Ok(answers)
}
