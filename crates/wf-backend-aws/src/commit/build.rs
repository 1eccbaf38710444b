//! The actions of a commit. Conditions stand first, in the order in which they are told: ledger, locks, head.

use std::collections::BTreeMap;

use wf_core::limits::{
    ASSETS_MAX, DEADLINES_MAX, EVENT_BYTES_MAX, EVENTS_MAX, OUTBOX_ROWS_MAX, START_DEADLINES_MAX,
    STATE_BYTES_MAX,
};
use wf_core::locks::LockChange;
use wf_core::models::{Actor, Person, TenantId, Timestamp, WorkflowId};
use wf_core::ports::{Commit, CommitError, DeadlineChange, Message};

use crate::action::{Action, Expression, absent};
use crate::codec::head::{Held, Known};
use crate::codec::{self, ledger, lock, outbox};
use crate::execution;
use crate::fault::Fail;
use crate::item::{Attributes, Value, json};
use crate::keys::{self, Key, by_state};

/// Actions of one transaction (TransactWriteItems, API reference).
pub(crate) const ACTIONS_MAX: usize = 100;
/// A message and its stream: two actions where every recipient is another.
const OUTBOX_ACTIONS: usize = 2 * OUTBOX_ROWS_MAX;
// The commit with most events is a correction: ledger, head, blocked index (two), person, attention row. What the workflow
// holds needs no action.
const _: () = assert!(6 + EVENTS_MAX + DEADLINES_MAX + OUTBOX_ACTIONS <= ACTIONS_MAX);
// The commit with most locks is an end: ledger, head, open, offer and blocked index, count, done, sweep, list, person,
// attention row; each asset is freed, is done with, and has an event.
const _: () = assert!(11 + 3 * ASSETS_MAX + 1 + DEADLINES_MAX + OUTBOX_ACTIONS <= ACTIONS_MAX);

// A start: ledger, head, open index, count, list, person, binding, attention row; each asset is taken. It has two events,
// and one for each wait that begins.
const _: () = assert!(8 + ASSETS_MAX + 2 + 2 * START_DEADLINES_MAX + OUTBOX_ACTIONS <= ACTIONS_MAX);

/// What a condition is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum About {
    Ledger,
    Lock(LockChange),
    Head,
}

/// A commit as a transaction.
#[derive(Debug)]
pub(super) struct Built {
    /// Actions whose condition says something about the commit.
    pub(super) judged: Vec<(About, Action)>,
    /// All others.
    rest: Vec<Action>,
    /// A condition on a lock was left out, because the head answers for it.
    pub(super) trusts_head: bool,
    /// What is known of the workflow once it is applied.
    pub(super) next: Known,
}

impl Built {
    /// In the order of the request.
    pub(super) fn actions(&self) -> Vec<Action> {
        let judged = self.judged.iter().map(|(_, action)| action);
        judged.chain(&self.rest).cloned().collect()
    }
}

/// `fence_base` is the fence of an asset that has no lock row. With `binds`, workflows are bound to executions.
pub(super) fn build(
    commit: &Commit,
    known: &Known,
    fence_base: u64,
    binds: bool,
) -> Result<Built, CommitError> {
    let corrupt = Fail::into_commit_error;
    let next = &commit.next;
    let key = keys::ledger(&commit.ledger.key);
    let partition = key.pk.clone();
    let row = ledger::write(&commit.ledger).map_err(corrupt)?;
    let condition = ledger::condition(commit.replaces.as_ref()).map_err(corrupt)?;
    let mut judged = vec![(About::Ledger, Action::put(key, row).when(condition))];

    let mut held = known.held.clone();
    let mut trusts_head = false;
    for change in &commit.locks {
        match change_lock(commit, known, change, fence_base, &mut held).map_err(corrupt)? {
            Some(action) => judged.push((About::Lock(change.clone()), action)),
            None => trusts_head |= matches!(change, LockChange::Assert { .. }),
        }
    }
    let mut rest = Vec::new();
    write_events(commit, &partition, &mut rest)?;
    let due = write_deadlines(commit, known, &mut rest);
    let now = Known::of(next, held, due);
    let head = write_head(commit, &now)?;
    judged.push((About::Head, head));
    write_index(commit, known, &now, &mut rest);
    rest.extend(commit.seen.as_ref().map(|person| seen(commit, person)));
    write_messages(commit, &mut rest)?;
    if binds {
        write_binding(commit, known, &now, &mut rest);
    }
    Ok(Built { judged, rest, trusts_head, next: now })
}

/// The action of a lock change, if it needs one. What the head says it holds, it holds: only its own commits can free it,
/// and each of those moves the head on. So a condition on that is the condition on the revision.
fn change_lock(
    commit: &Commit,
    known: &Known,
    change: &LockChange,
    base: u64,
    held: &mut BTreeMap<wf_core::models::AssetId, Held>,
) -> Result<Option<Action>, Fail> {
    let next = &commit.next;
    let id = change.asset_id();
    let key = keys::lock(&next.tenant, id);
    let holds = |fence: u64| known.held.get(id).is_some_and(|held| held.fence == fence);
    Ok(match change {
        LockChange::Acquire { fence, .. } | LockChange::Take { fence, .. } => {
            let (owner, at) = (next.owner.clone(), next.updated_at);
            // What is free has a fence above its floor already.
            let floor = held.get(id).map_or(0, |held| held.floor);
            held.insert(id.clone(), Held { fence: *fence, owner, at, floor });
            let item = lock::held(next, id, *fence, floor)?;
            Some(Action::put(key, item).when(lock::condition(change, &next.id, base)))
        }
        LockChange::Assert { fence, .. } => {
            (!holds(*fence)).then(|| Action::check(key, lock::condition(change, &next.id, base)))
        }
        LockChange::Release { fence, .. } => holds(*fence).then(|| {
            let floor = held.remove(id).map_or(0, |held| held.floor);
            let free = if floor > *fence {
                let text = "SET fence = :floor REMOVE holder, held_by, held_since";
                Expression::new(text, [(":floor", Value::n(floor))])
            } else {
                Expression::new("REMOVE holder, held_by, held_since", [])
            };
            Action::update(key, free).when(lock::condition(change, &next.id, base))
        }),
    })
}

fn write_head(commit: &Commit, now: &Known) -> Result<Action, CommitError> {
    let next = &commit.next;
    let state = json(next, "the state").map_err(Fail::into_commit_error)?;
    if state.len() > STATE_BYTES_MAX {
        return Err(CommitError::TooLarge { what: "the state" });
    }
    let item = codec::head::write(next, state, now).map_err(Fail::into_commit_error)?;
    let condition = match commit.expected {
        0 => absent(),
        expected => Expression::new("rev = :rev", [(":rev", Value::n(expected))]),
    };
    Ok(Action::put(keys::head(&next.tenant, &next.id), item).when(condition))
}

fn write_events(commit: &Commit, ledger: &str, rest: &mut Vec<Action>) -> Result<(), CommitError> {
    let next = &commit.next;
    let pk = keys::workflow(&next.tenant, &next.id);
    for event in &commit.events {
        let key = Key::new(pk.clone(), keys::event(event.seq));
        let (item, size) =
            codec::event(event.clone(), next.revision, ledger).map_err(Fail::into_commit_error)?;
        if size > EVENT_BYTES_MAX {
            return Err(CommitError::TooLarge { what: "an event" });
        }
        rest.push(Action::put(key, item).when(absent()));
    }
    Ok(())
}

/// Moves deadlines, and says which there are afterwards. One that nothing knows of needs no clearing.
fn write_deadlines(
    commit: &Commit,
    known: &Known,
    rest: &mut Vec<Action>,
) -> BTreeMap<String, i64> {
    let next = &commit.next;
    let key = |id: &str, at: i64| keys::deadline(&next.tenant, &next.id, id, at);
    let mut due = known.due.clone();
    let mut changes: BTreeMap<Key, Option<Attributes>> = BTreeMap::new();
    for change in &commit.deadlines {
        let id = match change {
            DeadlineChange::Set(deadline) => &deadline.id,
            DeadlineChange::Clear(id) => id,
        };
        if let Some(at) = due.remove(id) {
            changes.insert(key(id, at), None);
        }
        if let DeadlineChange::Set(deadline) = change {
            due.insert(id.clone(), deadline.fire_at.as_ms());
            let (key, item) = codec::deadline(&next.tenant, &next.id, deadline);
            changes.insert(key, Some(item));
        }
    }
    rest.extend(changes.into_iter().map(|(key, item)| match item {
        Some(item) => Action::put(key, item),
        None => Action::delete(key),
    }));
    due
}

/// Index items that go, index items that come, and who owns how many open workflows.
fn write_index(commit: &Commit, known: &Known, now: &Known, rest: &mut Vec<Action>) {
    let next = &commit.next;
    let gone = known.index.difference(&now.index);
    rest.extend(gone.cloned().map(Action::delete));
    let items = codec::head::index(next);
    let new = items.into_iter().filter(|(key, _)| !known.index.contains(key));
    rest.extend(new.map(|(key, item)| Action::put(key, item)));
    if known.open_of != now.open_of {
        let counts = [(known.open_of.as_ref(), -1), (now.open_of.as_ref(), 1)];
        let count = |(actor, by): (Option<&Actor>, i32)| {
            let key = keys::open_count(&next.tenant, actor?);
            let add = Expression::new("ADD open_count :by", [(":by", Value::n(by))]);
            Some(Action::update(key, add))
        };
        rest.extend(counts.into_iter().filter_map(count));
    }
    if !next.phase.is_open() {
        let (key, item) = codec::head::to_sweep(next);
        rest.push(Action::put(key, item));
    }
}

/// The binding of a workflow that starts, and a row where its execution must learn something: of the start, of the end, of
/// another next deadline.
fn write_binding(commit: &Commit, known: &Known, now: &Known, rest: &mut Vec<Action>) {
    let next = &commit.next;
    let starts = commit.expected == 0;
    if starts {
        let (key, item) = execution::binding::new(next, next.fence.max(1), next.updated_at);
        rest.push(Action::put(key, item).when(absent()));
    }
    if starts || !next.phase.is_open() || known.next_due() != now.next_due() {
        let (key, item) = execution::wanted(next);
        rest.push(Action::put(key, item));
    }
}

fn seen(commit: &Commit, person: &Person) -> Action {
    let next = &commit.next;
    let (key, item) = codec::person(&next.tenant, person, next.updated_at);
    Action::put(key, item)
}

fn write_messages(commit: &Commit, rest: &mut Vec<Action>) -> Result<(), CommitError> {
    let next = &commit.next;
    rest.extend(due_messages(&next.tenant, &next.id, &commit.outbox, commit.due_at())?);
    Ok(())
}

/// Messages about one workflow, and the streams that they join. A stream that waits for an earlier message goes on waiting
/// for it; `joined` tells whoever settles the stream at the same time that there is more in it than was read, and
/// `joined_last` which.
pub(crate) fn messages(
    tenant: &TenantId,
    id: &WorkflowId,
    messages: &[Message],
) -> Result<Vec<Action>, CommitError> {
    due_messages(tenant, id, messages, Timestamp::from_ms(i64::MAX))
}

/// The same, each due at this time at the latest.
fn due_messages(
    tenant: &TenantId,
    id: &WorkflowId,
    messages: &[Message],
    due_at: Timestamp,
) -> Result<Vec<Action>, CommitError> {
    let mut actions = Vec::new();
    let mut joined: BTreeMap<&str, (i64, Vec<String>)> = BTreeMap::new();
    for message in messages {
        let due_at = message.time.min(due_at);
        let (item, size) = outbox::write(message, due_at).map_err(Fail::into_commit_error)?;
        if size > EVENT_BYTES_MAX {
            return Err(CommitError::TooLarge { what: "a message" });
        }
        let key = outbox::key(message);
        let (_, places) = joined
            .entry(message.recipient.as_str())
            .or_insert_with(|| (due_at.as_ms(), Vec::new()));
        places.push(key.sk.clone());
        actions.push(Action::put(key, item));
    }
    for (recipient, (due, places)) in joined {
        let key = keys::stream_head(tenant, id, recipient);
        let text = "SET due_at = if_not_exists(due_at, :due), \
                    state_pk = :streams, state_sk = if_not_exists(state_sk, :place), \
                    tenant = :tenant, workflow = :workflow, recipient = :recipient, \
                    joined_last = :last ADD joined :one";
        let places = json(&places, "places of messages").map_err(Fail::into_commit_error)?;
        let values = [
            (":due", Value::n(due)),
            (":streams", Value::s(by_state::STREAMS)),
            (":place", Value::S(stream_place(due, &key))),
            (":tenant", Value::s(tenant.as_str())),
            (":workflow", Value::s(id.as_str())),
            (":recipient", Value::s(recipient)),
            (":last", Value::S(places)),
            (":one", Value::n(1)),
        ];
        actions.push(Action::update(key, Expression::new(text, values)));
    }
    Ok(actions)
}

/// The place of a stream among those that are due.
fn stream_place(due: i64, head: &Key) -> String {
    format!("{}#{}", keys::time(due), head.pk)
}
