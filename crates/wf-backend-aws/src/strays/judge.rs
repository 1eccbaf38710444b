//! What an item must agree with: which other items, and whether it does.

use std::collections::BTreeMap;

use wf_core::models::{TenantId, WorkflowId};
use wf_core::policy::Definition;
use wf_core::ports::{LedgerKey, OutboxState};

use super::Beside;
use crate::codec::head::{self, Known};
use crate::codec::{self, ledger, lock, outbox};
use crate::execution::binding;
use crate::fault::Fail;
use crate::item::Item;
use crate::keys::{self, Key};
use crate::link::{Link, Range};
use crate::place::Place;

type Fault = Option<&'static str>;

fn named(item: &Item) -> Result<Key, Fail> {
    head::named_by(item).map(|(_, head)| head)
}

fn event_of(item: &Item, tenant: &TenantId) -> Result<Key, Fail> {
    let workflow: WorkflowId = item.parsed("workflow")?;
    let seq: u64 = item.number("seq")?;
    Ok(Key::new(keys::workflow(tenant, &workflow), keys::event(seq)))
}

/// Keys of the items that this one must agree with.
pub(super) fn wants(place: &Place, key: &Key, item: &Item) -> Result<Vec<Key>, Fail> {
    Ok(match place {
        Place::Head { .. } => {
            let (state, known) = head::read(item)?;
            let (tenant, id) = (&state.tenant, &state.id);
            let mut wanted = vec![keys::definition(&state.procedure.digest)];
            wanted.extend(known.index.iter().cloned());
            let due = known.due.iter();
            wanted.extend(due.map(|(name, at)| keys::deadline(tenant, id, name, *at)));
            wanted.extend(known.held.keys().map(|asset| keys::lock(tenant, asset)));
            wanted
        }
        Place::Event { tenant, workflow } => vec![keys::head(tenant, workflow)],
        Place::Ledger { tenant } => vec![event_of(item, tenant)?],
        Place::Lock => {
            let row = lock::read(item)?;
            let holder = row.holder.iter();
            holder.map(|holder| keys::head(&row.tenant, &holder.workflow_id)).collect()
        }
        Place::Index if key.sk.starts_with(keys::OPEN) => {
            vec![named(item)?, Key::new(key.pk.clone(), "COUNT")]
        }
        Place::Index
        | Place::Binding { .. }
        | Place::Deadline
        | Place::Attention
        | Place::Sweep
        | Place::Stream => vec![named(item)?],
        Place::Message => {
            let message = outbox::read(item)?.message;
            let pk = keys::workflow(&message.tenant, &message.workflow_id);
            let event = Key::new(pk, keys::event(message.seq));
            vec![event, Key::new(key.pk.clone(), "STREAM")]
        }
        Place::Version => vec![keys::definition(&item.parsed("digest")?)],
        Place::Count { .. }
        | Place::Person { .. }
        | Place::Tombstone { .. }
        | Place::Definition
        | Place::Identity
        | Place::Lease => Vec::new(),
    })
}

/// What is wrong with an item, as far as single other items tell.
pub(super) fn judge(place: &Place, key: &Key, item: &Item, beside: &Beside) -> Result<Fault, Fail> {
    match place {
        Place::Head { .. } => head_of(key, item, beside),
        Place::Event { tenant, workflow } => {
            event(key, item, beside.get(&keys::head(tenant, workflow)), workflow)
        }
        Place::Ledger { tenant } => ledger_row(tenant, key, item, beside),
        Place::Lock => lock_row(key, item, beside),
        Place::Index => {
            let Some(head) = beside.get(&named(item)?) else {
                return Ok(Some("it leads to no workflow"));
            };
            let (_, known) = head::read(head)?;
            let counted = !key.sk.starts_with(keys::OPEN)
                || beside.contains_key(&Key::new(key.pk.clone(), "COUNT"));
            Ok(first(&[
                (!known.index.contains(key), "it leads to a workflow that is not like this"),
                (!counted, "an open workflow is not counted"),
            ]))
        }
        Place::Count { .. } => item.number::<u32>("open_count").map(|_| None),
        Place::Person { tenant } => {
            let actor: wf_core::models::Actor = item.parsed("actor")?;
            let here = Key::new(keys::people(tenant), keys::encoded(&actor.to_string()));
            Ok(first(&[(here != *key, "it is in the place of somebody else")]))
        }
        Place::Stream => {
            let head = beside.contains_key(&named(item)?);
            Ok(first(&[(!head, "a stream of messages is of no workflow")]))
        }
        Place::Message => message(key, item, beside),
        Place::Definition => {
            let definition: Definition = item.json("body")?;
            let other = keys::definition(&definition.digest) != *key;
            Ok(first(&[(other, "it is in the place of another definition")]))
        }
        Place::Version => {
            let definition = beside.get(&keys::definition(&item.parsed("digest")?));
            let definition = definition.map(|item| item.json::<Definition>("body")).transpose()?;
            let right = definition.is_some_and(|d| keys::version(&d.id, d.version) == *key);
            Ok(first(&[(!right, "a version is of no definition of its procedure")]))
        }
        Place::Deadline => {
            let known = beside.get(&named(item)?).map(head::read).transpose()?;
            let (id, at) = (item.text("deadline")?, item.number::<i64>("fire_at")?);
            let right = known.is_some_and(|(_, known)| known.due.get(id) == Some(&at));
            Ok(first(&[(!right, "a deadline is of no workflow that has it")]))
        }
        Place::Binding { .. } => binding_of(key, item, beside),
        Place::Attention => attention(key, item, beside),
        Place::Sweep => {
            let state = beside.get(&named(item)?).map(head::read_state).transpose()?;
            let right = state.is_some_and(|state| head::to_sweep(&state).0 == *key);
            Ok(first(&[(!right, "it leads to no workflow that is over")]))
        }
        Place::Tombstone { tenant, workflow } => {
            let left: wf_core::ports::Tombstone = item.json("body")?;
            let here = (&left.tenant, &left.workflow_id) == (tenant, workflow);
            Ok(first(&[(!here, "a tombstone is in the place of another workflow")]))
        }
        Place::Identity | Place::Lease => Ok(None),
    }
}

/// The first that is so.
fn first(faults: &[(bool, &'static str)]) -> Fault {
    faults.iter().find(|(is, _)| *is).map(|(_, what)| *what)
}

fn binding_of(key: &Key, item: &Item, beside: &Beside) -> Result<Fault, Fail> {
    let bound = binding::read(item)?;
    let state = beside.get(&named(item)?).map(head::read_state).transpose()?;
    let here = state.as_ref().is_some_and(|w| keys::binding(&w.tenant, &w.id) == *key);
    let over = state.is_some_and(|w| !w.phase.is_open());
    let listed = item.opt_text(keys::BY_STATE.pk)?.is_some();
    Ok(first(&[
        (!here, "a binding is of no workflow"),
        (bound.closed && !over, "the binding of an open workflow is closed"),
        (bound.closed == listed, "a binding is in a list, or in none, against its state"),
    ]))
}

fn attention(key: &Key, item: &Item, beside: &Beside) -> Result<Fault, Fail> {
    let state = beside.get(&named(item)?).map(head::read_state).transpose()?;
    let here = state.as_ref().is_some_and(|w| keys::attention(&w.tenant, &w.id) == *key);
    let wanted: u64 = item.number("wanted_revision")?;
    let ahead = state.is_some_and(|w| wanted > w.revision);
    Ok(first(&[
        (!here, "an execution is to be looked at for no workflow"),
        (ahead, "an execution is to know a revision that there is not"),
    ]))
}

fn head_of(key: &Key, item: &Item, beside: &Beside) -> Result<Fault, Fail> {
    let (state, known) = head::read(item)?;
    let (tenant, id) = (&state.tenant, &state.id);
    let there = |key: &Key| beside.contains_key(key);
    let lock_differs = known.held.keys().any(|asset| {
        let row = beside.get(&keys::lock(tenant, asset)).map(lock::read);
        row.and_then(Result::ok) != known.lock(&state, asset)
    });
    let is_set = |(name, at): &(&String, &i64)| there(&keys::deadline(tenant, id, name, **at));
    let set: BTreeMap<&str, i64> =
        known.due.iter().filter(is_set).map(|(name, at)| (name.as_str(), *at)).collect();
    let meant: BTreeMap<&str, i64> =
        state.deadlines.iter().map(|(name, d)| (name.as_str(), d.fire_at.as_ms())).collect();
    let listed = &head::index(&state);
    Ok(first(&[
        (keys::head(tenant, id) != *key, "it is in the place of another workflow"),
        (!listed.keys().all(there), "an item that leads to it is missing"),
        (lock_differs, "its copy of a lock row differs from the row"),
        (set != meant, "its deadlines are not those of its state"),
        (
            !there(&keys::definition(&state.procedure.digest)),
            "the definition that it runs by is not stored",
        ),
    ]))
}

fn event(
    key: &Key,
    item: &Item,
    head: Option<&Item>,
    workflow: &WorkflowId,
) -> Result<Fault, Fail> {
    let (event, last) = codec::read_event(item)?;
    let Some(head) = head else { return Ok(Some("an event is of no workflow")) };
    let revision: u64 = head.number("rev")?;
    let here = event.workflow_id == *workflow && keys::event(event.seq) == key.sk;
    Ok(first(&[
        (!here, "an event is stored in another place than it says"),
        (event.seq > revision, "there is an event after the revision"),
        (last < event.seq || last > revision, "the end of its commit is not where it says"),
    ]))
}

fn ledger_row(tenant: &TenantId, key: &Key, item: &Item, beside: &Beside) -> Result<Fault, Fail> {
    let named = LedgerKey {
        tenant: tenant.clone(),
        actor: item.parsed("actor")?,
        key: item.parsed("key")?,
    };
    let here = keys::ledger(&named) == *key;
    let row = ledger::read(named, item)?;
    let event = beside.get(&event_of(item, tenant)?).map(codec::read_event).transpose()?;
    let caused = event.is_some_and(|(event, _)| {
        event.cause.key == row.key.key && event.cause.fingerprint == row.entry.fingerprint
    });
    Ok(first(&[
        (!here, "a ledger row is in the place of another key"),
        (!ledger::is_whole(&row, item)?, "a ledger row was changed"),
        (!caused, "a ledger row is of no event"),
    ]))
}

fn lock_row(key: &Key, item: &Item, beside: &Beside) -> Result<Fault, Fail> {
    let row = lock::read(item)?;
    let elsewhere = keys::lock(&row.tenant, &row.asset_id) != *key;
    let held = match &row.holder {
        None => true,
        Some(holder) => {
            let head = beside.get(&keys::head(&row.tenant, &holder.workflow_id));
            let holder = head.map(head::read).transpose()?;
            holder.is_some_and(|(state, known): (_, Known)| {
                known.lock(&state, &row.asset_id).as_ref() == Some(&row)
            })
        }
    };
    Ok(first(&[
        (elsewhere, "a lock row is in the place of another asset"),
        (!held, "a lock is held by no workflow that says so"),
    ]))
}

fn message(key: &Key, item: &Item, beside: &Beside) -> Result<Fault, Fail> {
    let row = outbox::read(item)?;
    let message = &row.message;
    let pk = keys::workflow(&message.tenant, &message.workflow_id);
    let event = beside.contains_key(&Key::new(pk, keys::event(message.seq)));
    let stream = beside.contains_key(&Key::new(key.pk.clone(), "STREAM"));
    let list = item.opt_text(keys::BY_STATE.pk)?;
    Ok(first(&[
        (outbox::key(message) != *key, "a message is not what its place says"),
        (!event, "a message is of no event"),
        (!stream, "a message is in no stream"),
        (
            list != Some(outbox::list(row.status.state)),
            "a message is in another list than its state",
        ),
    ]))
}

/// What is wrong with an item that sums up its partition.
pub(super) async fn partition(
    link: &Link,
    place: &Place,
    key: &Key,
    item: &Item,
) -> Result<Fault, Fail> {
    match place {
        Place::Count { .. } => {
            let open =
                link.query_all(Range::prefix(key.pk.clone(), keys::OPEN), usize::MAX).await?;
            let counted: u64 = item.number("open_count")?;
            let wrong = u64::try_from(open.len()).unwrap_or(u64::MAX) != counted;
            Ok(first(&[(wrong, "it counts another number of open workflows than there are")]))
        }
        Place::Stream => {
            let range = Range::prefix(key.pk.clone(), keys::MESSAGE);
            let mut due = None;
            for item in link.query_all(range, usize::MAX).await? {
                // One that cannot be read is told of by itself.
                let Ok(row) = outbox::read(&item) else { continue };
                if row.status.state == OutboxState::Pending {
                    due = Some(row.status.next_attempt_at.as_ms());
                    break;
                }
            }
            let wrong = item.opt_number::<i64>("due_at")? != due;
            Ok(first(&[(wrong, "a stream is not due when its first message is")]))
        }
        Place::Head { .. }
        | Place::Event { .. }
        | Place::Ledger { .. }
        | Place::Lock
        | Place::Person { .. }
        | Place::Tombstone { .. }
        | Place::Message
        | Place::Definition
        | Place::Version
        | Place::Binding { .. }
        | Place::Deadline
        | Place::Attention
        | Place::Sweep
        | Place::Index
        | Place::Identity
        | Place::Lease => Ok(None),
    }
}
