//! Deadlines under lease. They lie in a few partitions in the order in which they are due; all of one workflow are in
//! one partition, so that one look sees which of them hides which.

use std::collections::BTreeMap;

use wf_core::models::{TenantId, Timestamp, WorkflowId};
use wf_core::ports::{Claim, ClaimedDeadline, Deadline, NextDeadline, SettleError};

use crate::action::Expression;
use crate::fault::Fail;
use crate::item::{Item, Value};
use crate::keys::{self, Key};
use crate::leases;
use crate::link::{Link, Range};

/// Deadlines of one page.
const PAGE: u32 = 100;

type Workflow = (TenantId, WorkflowId);

/// A deadline as it was read.
struct Due {
    key: Key,
    workflow: Workflow,
    deadline: Deadline,
    /// When the live lease is over that hides it: its own, or that of an earlier one of its workflow.
    hidden_until: Option<i64>,
}

/// Reads deadlines of a partition in order and tells which of them are hidden.
struct Shard {
    range: Option<Range>,
    now: Timestamp,
    lease_ms: i64,
    hidden: BTreeMap<Workflow, i64>,
}

impl Shard {
    fn new(shard: u8, to: &str, now: Timestamp, lease_ms: i64) -> Self {
        let range = Range::between(keys::due(shard), " ", to).limit(PAGE);
        Self { range: Some(range), now, lease_ms, hidden: BTreeMap::new() }
    }

    /// The next page; none after the last.
    async fn page(&mut self, link: &Link) -> Result<Option<Vec<Due>>, Fail> {
        let Some(mut range) = self.range.take() else { return Ok(None) };
        let (items, next) = link.query(&range).await?;
        if next.is_some() {
            range.start = next;
            self.range = Some(range);
        }
        let mut page = Vec::with_capacity(items.len());
        for item in &items {
            match self.read(item) {
                Ok(due) => page.push(due),
                // It keeps no other waiting.
                Err(Fail::Unreadable(why)) => {
                    tracing::error!(why, "a deadline is damaged and is left alone");
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(Some(page))
    }

    fn read(&mut self, item: &Item) -> Result<Due, Fail> {
        let workflow: Workflow = (item.parsed("tenant")?, item.parsed("workflow")?);
        let fire_at = Timestamp::from_ms(item.number("fire_at")?);
        let deadline = Deadline { id: item.text("deadline")?.to_owned(), fire_at };
        let own = leases::live_until(item, self.now, self.lease_ms)?;
        let hidden_until = self.hidden.get(&workflow).copied().into_iter().chain(own).max();
        if let Some(until) = hidden_until {
            self.hidden.insert(workflow.clone(), until);
        }
        Ok(Due { key: item.key()?, workflow, deadline, hidden_until })
    }
}

/// Takes the lease of deadlines that are due, earliest first, none before an earlier one of its workflow.
pub(crate) async fn claim(link: &Link, claim: &Claim) -> Result<Vec<ClaimedDeadline>, Fail> {
    let most = usize::try_from(claim.limit).unwrap_or(usize::MAX);
    let mut due = Vec::new();
    for shard in 0..keys::SHARDS {
        due.extend(free(link, shard, claim, most).await?);
    }
    due.sort_by(|a, b| {
        let place = |d: &Due| (d.deadline.fire_at, d.workflow.clone(), d.deadline.id.clone());
        place(a).cmp(&place(b))
    });
    let mut claimed = Vec::new();
    let mut lost: Vec<Workflow> = Vec::new();
    for one in due {
        if claimed.len() == most {
            break;
        }
        // Where somebody was faster with one, those behind it are hidden.
        if lost.contains(&one.workflow) {
            continue;
        }
        if !leases::take(link, &one.key, "fire_at", claim).await? {
            lost.push(one.workflow);
            continue;
        }
        let (tenant, workflow_id) = one.workflow;
        let (deadline, token) = (one.deadline, claim.token.clone());
        claimed.push(ClaimedDeadline { tenant, workflow_id, deadline, token });
    }
    Ok(claimed)
}

/// The first deadlines of a partition that are due and that nothing hides.
async fn free(link: &Link, shard: u8, claim: &Claim, most: usize) -> Result<Vec<Due>, Fail> {
    let until = format!("{}{}", keys::time(claim.now.as_ms()), keys::LAST);
    let mut shard = Shard::new(shard, &until, claim.now, claim.lease_ms);
    let mut found = Vec::new();
    while found.len() < most
        && let Some(page) = shard.page(link).await?
    {
        found.extend(page.into_iter().filter(|due| due.hidden_until.is_none()));
    }
    Ok(found)
}

/// When a claim can bring something.
pub(crate) async fn next(link: &Link, now: Timestamp, lease_ms: i64) -> Result<NextDeadline, Fail> {
    let mut at: Option<Timestamp> = None;
    for shard in 0..keys::SHARDS {
        let earliest = next_of(link, shard, now, lease_ms).await?;
        at = at.into_iter().chain(earliest).min();
    }
    Ok(NextDeadline { at, shared: true })
}

async fn next_of(
    link: &Link,
    shard: u8,
    now: Timestamp,
    lease_ms: i64,
) -> Result<Option<Timestamp>, Fail> {
    let end = keys::LAST.to_string();
    let mut shard = Shard::new(shard, &end, now, lease_ms);
    let mut hidden: Option<Timestamp> = None;
    // Mostly the first of all tells.
    if let Some(range) = &mut shard.range {
        range.limit = Some(1);
    }
    while let Some(page) = shard.page(link).await? {
        if let Some(range) = &mut shard.range {
            range.limit = Some(PAGE);
        }
        for due in page {
            let fire_at = due.deadline.fire_at;
            match due.hidden_until.filter(|_| fire_at <= now) {
                None => return Ok(hidden.into_iter().chain([fire_at]).min()),
                Some(until) => {
                    hidden = hidden.into_iter().chain([Timestamp::from_ms(until)]).min();
                }
            }
        }
    }
    Ok(hidden)
}

/// Removes a claimed deadline that a decision refused. An answer that was lost does no harm: the repeat meets nothing.
pub(crate) async fn settle(link: &Link, claimed: &ClaimedDeadline) -> Result<(), SettleError> {
    let deadline = &claimed.deadline;
    let fire_at = deadline.fire_at.as_ms();
    let key = keys::deadline(&claimed.tenant, &claimed.workflow_id, &deadline.id, fire_at);
    let mine = Expression::new("lease_token = :token", [(":token", Value::s(&claimed.token.0))]);
    let deleted = link.delete(&key, &mine).await.map_err(SettleError::from)?;
    if deleted.is_gone() { Ok(()) } else { Err(SettleError::LeaseLost) }
}
