//! What the reconciler is to look at: rows that commits put, and bindings whose time in the index has come.
//!
//! A row says which revision an execution must know. It goes when that is so, in one transaction with the condition on the
//! binding that says so; a commit that asks for more in the meantime keeps it.

use std::collections::BTreeMap;

use wf_core::models::{TenantId, Timestamp, Workflow, WorkflowId};
use wf_core::ports::{Attention, Epoch, Written};

use super::binding::{self, Bound};
use super::lease::number;
use crate::action::{Action, Expression, absent};
use crate::fault::Fail;
use crate::item::{Attributes, Item, Value};
use crate::keys::{self, BY_STATE, Key, by_state};
use crate::link::{Changed, Link, Range, Unsent};
use crate::place::{self, Place};

/// Rows of one page.
const PAGE: u32 = 250;

/// The row by which a commit asks for a look: `workflow` is as it is after the commit.
pub(crate) fn wanted(workflow: &Workflow) -> (Key, Attributes) {
    let (tenant, id) = (&workflow.tenant, &workflow.id);
    let item = Attributes::from([
        ("tenant", Value::s(tenant.as_str())),
        ("workflow", Value::s(id.as_str())),
        ("wanted_revision", Value::n(workflow.revision)),
        ("not_before", Value::n(workflow.updated_at.as_ms())),
    ]);
    (keys::attention(tenant, id), item)
}

fn read(item: &Item) -> Result<Attention, Fail> {
    Ok(Attention {
        tenant: item.parsed("tenant")?,
        workflow_id: item.parsed("workflow")?,
        wanted_revision: Some(item.number("wanted_revision")?),
        not_before: Timestamp::from_ms(item.number("not_before")?),
        looks: item.opt_number("looks")?.unwrap_or(0),
    })
}

/// What is to be looked at in a shard.
pub(super) async fn due(
    link: &Link,
    shard: u8,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Attention>, Fail> {
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut found: BTreeMap<Key, Attention> = BTreeMap::new();
    let mut range = Range::prefix(keys::attentions(shard), "").limit(PAGE);
    while found.len() < most {
        let (page, next) = link.query(&range).await?;
        for item in &page {
            match read(item) {
                Ok(one) if one.not_before <= now && found.len() < most => {
                    found.insert(keys::binding(&one.tenant, &one.workflow_id), one);
                }
                Ok(_) => {}
                // It keeps no other waiting.
                Err(Fail::Unreadable(why)) => {
                    tracing::error!(why, "an attention row is damaged and is left alone");
                }
                Err(trouble) => return Err(trouble),
            }
        }
        range.start = next;
        if range.start.is_none() {
            break;
        }
    }
    let to = format!("{}{}", keys::time(now.as_ms()), keys::LAST);
    let range = Range::between(by_state::bindings(shard), " ", to).of(BY_STATE).limit(limit);
    for item in link.query_all(range, most).await? {
        let key = item.key()?;
        let Ok(Place::Binding { tenant, workflow }) = place::of(&key) else { continue };
        let at: i64 = item.text(BY_STATE.sk)?.parse().unwrap_or(0);
        found.entry(key).or_insert(Attention {
            tenant,
            workflow_id: workflow,
            wanted_revision: None,
            not_before: Timestamp::from_ms(at),
            looks: 0,
        });
    }
    let mut found: Vec<_> = found.into_values().collect();
    found.sort_by_key(|one| one.not_before);
    Ok(found)
}

/// The bindings of a shard that are not closed, and their fences.
pub(super) async fn open(link: &Link, shard: u8) -> Result<Vec<(TenantId, WorkflowId, u64)>, Fail> {
    let range = Range::prefix(by_state::bindings(shard), "").of(BY_STATE).limit(PAGE);
    let listed = link.query_all(range, usize::MAX).await?;
    let keys = listed.iter().map(Item::key).collect::<Result<Vec<_>, Fail>>()?;
    let mut open = Vec::new();
    for (key, item) in keys.iter().zip(link.get_each(&keys).await?) {
        let (Ok(Place::Binding { tenant, workflow }), Some(item)) = (place::of(key), item) else {
            continue;
        };
        open.push((tenant, workflow, item.number("fence")?));
    }
    Ok(open)
}

/// Nothing is left to do.
pub(super) async fn settle(
    link: &Link,
    bound: &Bound,
    epoch: Epoch,
    now: Timestamp,
) -> Result<Written, Fail> {
    let (tenant, id) = (&bound.attention.tenant, &bound.attention.workflow_id);
    let moves = bound.stored && bound.head.is_some() && bound.look_is_due(now);
    let op = binding::operation()?;
    let mut actions = Vec::new();
    if let Some(wanted) = bound.wanted {
        let same = Expression::new("wanted_revision = :wanted", [(":wanted", Value::n(wanted))]);
        actions.push(Action::delete(keys::attention(tenant, id)).when(same));
    } else if !moves {
        return Ok(Written::Done);
    }
    actions.push(match (&bound.head, bound.stored) {
        (None, _) => Action::check(keys::head(tenant, id), absent()),
        (Some(_), false) => Action::check(bound.key(), absent()),
        (Some(_), true) if moves => {
            let text = "SET recon_epoch = :e, op = :op, state_sk = :next";
            let values = [(":op", op.clone()), (":next", Value::S(bound.next_look(now)))];
            Action::update(bound.key(), Expression::new(text, values))
                .when(told(bound, epoch, true))
        }
        (Some(_), true) => Action::check(bound.key(), told(bound, epoch, false)),
    });
    match link.transact(&actions).await {
        Ok(None) => Ok(Written::Done),
        Ok(Some(met)) => {
            // By an attempt whose answer was lost: the row is gone, or the binding has our mark.
            let ours = |(_, item): &(usize, Option<Item>)| match item {
                None => bound.wanted.is_some(),
                Some(item) => item.opt_text("op").ok().flatten().map(Value::s) == Some(op.clone()),
            };
            let ours = met.after_unknown && met.all.first().is_some_and(ours);
            Ok(if ours { Written::Done } else { Written::Overtaken })
        }
        Err(Unsent { fail, .. }) => Err(fail),
    }
}

/// The execution waits and knows what it must, or the binding is closed; and nothing marked it in the meantime, if it moves.
fn told(bound: &Bound, epoch: Epoch, moves: bool) -> Expression {
    if bound.binding.closed {
        return bound.unchanged(epoch, " AND attribute_exists(closed)");
    }
    let knows = if bound.wanted.is_some() { " AND told_revision >= :wanted" } else { "" };
    let seen = if moves { " AND state_sk = :seen" } else { "" };
    let when = format!(" AND attribute_exists(task_token){knows}{seen}");
    let mut condition = bound.unchanged(epoch, &when);
    condition.values.extend(bound.wanted.map(|wanted| (":wanted", Value::n(wanted))));
    if moves {
        condition.values.insert(":seen", Value::S(bound.look.clone().unwrap_or_default()));
    }
    condition
}

/// Look again later.
pub(super) async fn postpone(
    link: &Link,
    bound: &Bound,
    epoch: Epoch,
    not_before: Timestamp,
) -> Result<Written, Fail> {
    let op = binding::operation()?;
    let (key, update, condition) = match bound.wanted {
        Some(wanted) => {
            let (tenant, id) = (&bound.attention.tenant, &bound.attention.workflow_id);
            let text = "SET recon_epoch = :e, op = :op, not_before = :at, looks = :looks";
            let values = [
                (":op", op.clone()),
                (":at", Value::n(not_before.as_ms())),
                (":looks", Value::n(bound.attention.looks.saturating_add(1))),
            ];
            let same = "wanted_revision = :wanted \
                        AND (attribute_not_exists(recon_epoch) OR recon_epoch <= :e)";
            let same =
                Expression::new(same, [(":wanted", Value::n(wanted)), (":e", number(epoch))]);
            (keys::attention(tenant, id), Expression::new(text, values), same)
        }
        None => {
            let Some(seen) = &bound.look else { return Ok(Written::Done) };
            let text = "SET recon_epoch = :e, op = :op, state_sk = :at";
            let at = Value::S(keys::time(not_before.as_ms()));
            let update = Expression::new(text, [(":op", op.clone()), (":at", at)]);
            let mut same = bound.unchanged(epoch, " AND state_sk = :seen");
            same.values.insert(":seen", Value::s(seen));
            (bound.key(), update, same)
        }
    };
    match link.update(&key, &update, &condition).await? {
        Changed::Done => Ok(Written::Done),
        Changed::Not { met: Some(item), after_unknown: true }
            if item.opt_text("op")?.map(Value::s) == Some(op) =>
        {
            Ok(Written::Done)
        }
        Changed::Not { .. } => Ok(Written::Overtaken),
    }
}
