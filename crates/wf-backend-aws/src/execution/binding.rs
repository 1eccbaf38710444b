//! The binding: which execution may write on behalf of a workflow, and what is known of it. The only place that knows how
//! it is written.
//!
//! The item is in the partition of the workflow, with the sort key `ORCH`. Times are milliseconds since the epoch, unless a
//! row says another form.
//!
//! | attribute | | who writes it | what it says |
//! |---|---|---|---|
//! | `tenant`, `workflow` | S | the start | whose it is |
//! | `fence` | N | the start (1), `replace` | only the execution with this one may write |
//! | `recon_epoch`, `op` | N, S | each write of the reconciler | its epoch, and an id by which it knows a write again |
//! | `started_at` | N? | `record` | when the execution of this fence was seen to run |
//! | `task_token` | S? | the execution (`Await`); dropped by the reconciler | the token that it waits with |
//! | `registered_at` | S? | the execution (`Await`): `$$.State.EnteredTime`, RFC 3339 | since when it waits |
//! | `told_revision` | N | the execution (`Await`): `$.told.revision` | what it knew when it registered |
//! | `registrations` | N | the execution (`Await`): `ADD` 1 | how often it registered |
//! | `due_revision` | N? | the execution (`SignalDue`): `$.told.revision` | it woke up by itself, knowing this revision |
//! | `idle_since` | N | the reconciler | since when it does not wait, while there is no `task_token` |
//! | `evicts` | N? | `replace`, `evicted` | the fence of an execution that is to be stopped |
//! | `successors`, `window_at`, `not_before` | N | `replace` | how often, since when, and not before when it is replaced |
//! | `closed` | N? | `close` | when it was closed: nothing may write any more |
//! | `state_pk` | S? | the start, `replace`; removed by `close` | `ORCH#<shard>`, in the index `by_state` |
//! | `state_sk` | S? | the same, `settle`, and the execution (`SignalDue`): [`MARKED`] | when it is looked at next, 15 digits |
//!
//! What the execution writes is conditional on `fence = :f AND attribute_not_exists(closed)`; what the reconciler writes on
//! `fence = :f AND recon_epoch <= :e`. `SignalDue` makes the reconciler look by one text in an index, since an
//! execution knows neither the shard nor the time in digits.

use wf_core::limits::{REGISTRATION_MS, WAKE_MAX_S};
use wf_core::models::{Phase, Timestamp, Workflow};
use wf_core::ports::{Attention, BoundRows, Epoch, Message, Written};
use wf_core::reconcile::{Binding, Head, Replacement};

use super::lease::number;
use crate::action::{Action, Expression};
use crate::codec::indexed;
use crate::commit::messages;
use crate::fault::{Cause, Fail, Trouble};
use crate::item::{Attributes, Item, Value};
use crate::keys::{self, Key, by_state};
use crate::link::{Changed, Link, Unsent};

/// The place in the index of a binding that is to be looked at now.
pub(crate) const MARKED: &str = "000000000000000";

/// How long a binding that nothing happens to is not looked at: an execution wakes up and registers within this.
const LOOK_MS: i64 = WAKE_MAX_S as i64 * 1_000 + 2 * REGISTRATION_MS;

/// A workflow, its binding and its attention row, as they are together.
#[derive(Debug, Clone)]
pub struct Bound {
    /// Whose, and how often it was looked at.
    pub attention: Attention,
    /// What storage says of the workflow; none when there is no such workflow.
    pub head: Option<Head>,
    /// Its phase, which an execution is told; none when there is no such workflow.
    pub phase: Option<Phase>,
    /// What is known of its executions.
    pub binding: Binding,
    /// The token that the execution waits with.
    pub token: Option<String>,
    /// The workflow's revision; 0 when there is no such workflow.
    pub revision: u64,
    /// The execution woke up by itself, knowing this revision.
    pub due_revision: Option<u64>,
    /// The binding is an item.
    pub(super) stored: bool,
    /// There is an attention row, and what it wants.
    pub(super) wanted: Option<u64>,
    /// When it is looked at next, as the index has it.
    pub(super) look: Option<String>,
}

impl BoundRows for Bound {
    fn attention(&self) -> &Attention {
        &self.attention
    }

    fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    fn phase(&self) -> Option<Phase> {
        self.phase
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn binding(&self) -> &Binding {
        &self.binding
    }

    fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }
}

impl Bound {
    pub(super) fn key(&self) -> Key {
        keys::binding(&self.attention.tenant, &self.attention.workflow_id)
    }

    /// It is looked at because the index says so.
    pub(super) fn look_is_due(&self, now: Timestamp) -> bool {
        self.look.as_deref().is_some_and(|look| look <= keys::time(now.as_ms()).as_str())
    }

    /// When it is looked at next if nothing happens.
    pub(super) fn next_look(&self, now: Timestamp) -> String {
        let by_itself = now.plus_ms(LOOK_MS);
        let deadline = self.head.as_ref().and_then(|head| head.next_deadline);
        let at = deadline.map_or(by_itself, |at| at.max(now.plus_ms(1)).min(by_itself));
        keys::time(at.as_ms())
    }

    /// The binding is as it was read, and no later reconciler has written.
    pub(super) fn unchanged(&self, epoch: Epoch, and: &str) -> Expression {
        Expression::new(
            format!("fence = :f AND recon_epoch <= :e{and}"),
            [(":f", Value::n(self.binding.fence)), (":e", number(epoch))],
        )
    }
}

/// The item of a binding that nothing happened to. `fence` is above that of every execution before.
pub(crate) fn new(workflow: &Workflow, fence: u64, now: Timestamp) -> (Key, Attributes) {
    let (tenant, id) = (&workflow.tenant, &workflow.id);
    let at = || Value::n(now.as_ms());
    let mut item = Attributes::from([
        ("tenant", Value::s(tenant.as_str())),
        ("workflow", Value::s(id.as_str())),
        ("fence", Value::n(fence)),
        ("recon_epoch", Value::n(0)),
        ("told_revision", Value::n(0)),
        ("registrations", Value::n(0)),
        ("idle_since", at()),
        ("successors", Value::n(0)),
        ("window_at", at()),
        ("not_before", at()),
    ]);
    let look = keys::time(now.plus_ms(LOOK_MS).as_ms());
    indexed(&mut item, keys::BY_STATE, by_state::bindings(keys::shard_of(tenant, id)), look);
    (keys::binding(tenant, id), item)
}

/// What an item says.
pub(crate) fn read(item: &Item) -> Result<Binding, Fail> {
    let time = |name| item.number(name).map(Timestamp::from_ms);
    let waits = item.opt_text("task_token")?.is_some();
    // The execution writes when it registered, we write when we took its token away.
    let waits_since = if waits { item.parsed("registered_at")? } else { time("idle_since")? };
    Ok(Binding {
        fence: item.number("fence")?,
        started_at: item.opt_number("started_at")?.map(Timestamp::from_ms),
        waits,
        waits_since,
        told_revision: item.number("told_revision")?,
        registrations: item.number("registrations")?,
        evicts: item.opt_number("evicts")?,
        successors: item.number("successors")?,
        window_at: time("window_at")?,
        not_before: time("not_before")?,
        closed: item.opt_number::<i64>("closed")?.is_some(),
    })
}

/// A random id, by which a write is known again.
pub(super) fn operation() -> Result<Value, Fail> {
    let number = getrandom::u64().map_err(|error| {
        Fail::from(Trouble::Refused(Cause::said(format!("no randomness: {error}"))))
    })?;
    Ok(Value::S(format!("{number:016x}")))
}

/// A change of a binding.
struct Change<'c> {
    set: &'c [(&'static str, Value)],
    remove: &'c [&'static str],
    /// What else must be so, and its values.
    when: &'c str,
    values: &'c [(&'static str, Value)],
}

/// One conditional write.
async fn write(
    link: &Link,
    bound: &Bound,
    epoch: Epoch,
    change: &Change<'_>,
) -> Result<Written, Fail> {
    let op = operation()?;
    let (update, condition) = expressions(bound, epoch, change, &op);
    match link.update(&bound.key(), &update, &condition).await? {
        Changed::Done => Ok(Written::Done),
        Changed::Not { met: Some(item), after_unknown: true } => {
            let ours = item.opt_text("op")?.map(Value::s) == Some(op);
            Ok(if ours { Written::Done } else { Written::Overtaken })
        }
        Changed::Not { .. } => Ok(Written::Overtaken),
    }
}

/// The same in one transaction with messages: they are there exactly when it is written.
async fn write_and_tell(
    link: &Link,
    bound: &Bound,
    epoch: Epoch,
    change: &Change<'_>,
    told: &[Message],
) -> Result<Written, Fail> {
    let op = operation()?;
    let (update, condition) = expressions(bound, epoch, change, &op);
    let mut actions = vec![Action::update(bound.key(), update).when(condition)];
    let (tenant, id) = (&bound.attention.tenant, &bound.attention.workflow_id);
    let told = messages(tenant, id, told);
    actions.extend(told.map_err(|error| Fail::unreadable("a message", error))?);
    match link.transact(&actions).await {
        Ok(None) => Ok(Written::Done),
        Ok(Some(met)) => {
            let item = met.all.first().and_then(|(_, item)| item.as_ref());
            let wrote = item.map(|item| item.opt_text("op")).transpose()?.flatten().map(Value::s);
            let ours = met.after_unknown && wrote == Some(op);
            Ok(if ours { Written::Done } else { Written::Overtaken })
        }
        Err(Unsent { fail, .. }) => Err(fail),
    }
}

/// What a change writes, and on which condition. The values of what is set are named like the attributes.
fn expressions(
    bound: &Bound,
    epoch: Epoch,
    change: &Change<'_>,
    op: &Value,
) -> (Expression, Expression) {
    let mut text = "SET recon_epoch = :e, op = :op".to_owned();
    let mut values = Attributes::from([(":op", op.clone())]);
    for (name, value) in change.set {
        let (attribute, value) = (name.trim_start_matches(':'), value.clone());
        text.push_str(&format!(", {attribute} = {name}"));
        values.insert(name, value);
    }
    if !change.remove.is_empty() {
        text.push_str(&format!(" REMOVE {}", change.remove.join(", ")));
    }
    let mut condition = bound.unchanged(epoch, change.when);
    condition.values.extend(change.values.iter().cloned());
    (Expression::new(text, values), condition)
}

/// The execution of the fence runs.
pub(super) async fn record(
    link: &Link,
    bound: &Bound,
    epoch: Epoch,
    now: Timestamp,
) -> Result<Written, Fail> {
    let at = Value::n(now.as_ms());
    let set = [(":started_at", at.clone()), (":idle_since", at)];
    let when = " AND attribute_not_exists(started_at)";
    write(link, bound, epoch, &Change { set: &set, remove: &[], when, values: &[] }).await
}

/// The token that was read is used or dead. One that was registered since stays.
pub(super) async fn drop_token(
    link: &Link,
    bound: &Bound,
    epoch: Epoch,
    now: Timestamp,
) -> Result<Written, Fail> {
    let Some(token) = &bound.token else { return Ok(Written::Overtaken) };
    let change = Change {
        set: &[(":idle_since", Value::n(now.as_ms()))],
        remove: &["task_token", "registered_at"],
        when: " AND task_token = :used",
        values: &[(":used", Value::s(token))],
    };
    write(link, bound, epoch, &change).await
}

/// Another execution takes over, under a higher fence; `told` says so to whom it may concern.
pub(super) async fn replace(
    link: &Link,
    bound: &Bound,
    epoch: Epoch,
    by: &Replacement,
    told: &[Message],
    now: Timestamp,
) -> Result<Written, Fail> {
    let next = by.of(&bound.binding, now);
    let (tenant, id) = (&bound.attention.tenant, &bound.attention.workflow_id);
    let index = by_state::bindings(keys::shard_of(tenant, id));
    let mut set = vec![
        (":fence", Value::n(next.fence)),
        (":told_revision", Value::n(next.told_revision)),
        (":registrations", Value::n(next.registrations)),
        (":idle_since", Value::n(next.waits_since.as_ms())),
        (":successors", Value::n(next.successors)),
        (":window_at", Value::n(next.window_at.as_ms())),
        (":not_before", Value::n(next.not_before.as_ms())),
        (":state_pk", Value::S(index)),
        // Whoever replaces it may stop here: the successor is looked at when it may start.
        (":state_sk", Value::S(keys::time(next.not_before.as_ms()))),
    ];
    let mut remove = vec!["started_at", "task_token", "registered_at", "due_revision", "closed"];
    match next.evicts {
        Some(fence) => set.push((":evicts", Value::n(fence))),
        None => remove.push("evicts"),
    }
    let change = Change { set: &set, remove: &remove, when: "", values: &[] };
    if told.is_empty() {
        return write(link, bound, epoch, &change).await;
    }
    write_and_tell(link, bound, epoch, &change, told).await
}

/// The execution of an older fence is stopped.
pub(super) async fn evicted(
    link: &Link,
    bound: &Bound,
    epoch: Epoch,
    fence: u64,
) -> Result<Written, Fail> {
    if bound.binding.evicts != Some(fence) {
        return Ok(Written::Done);
    }
    let change = Change {
        set: &[],
        remove: &["evicts"],
        when: " AND evicts = :evicted",
        values: &[(":evicted", Value::n(fence))],
    };
    write(link, bound, epoch, &change).await
}

/// The workflow ended, and so did its execution.
pub(super) async fn close(
    link: &Link,
    bound: &Bound,
    epoch: Epoch,
    now: Timestamp,
) -> Result<Written, Fail> {
    let at = Value::n(now.as_ms());
    let set = [(":closed", at.clone()), (":idle_since", at)];
    let remove = ["task_token", "registered_at", keys::BY_STATE.pk, keys::BY_STATE.sk];
    let when = " AND attribute_not_exists(closed)";
    write(link, bound, epoch, &Change { set: &set, remove: &remove, when, values: &[] }).await
}
