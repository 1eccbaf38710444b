//! The history of a workflow.
//!
//! A query beside a writer may see a part of a commit. Every event says which is the last of its commit, so that a tail
//! that is not whole yet is left out, and a gap before it is read again.

use wf_core::models::{TenantId, WorkflowId};
use wf_core::state_machine::Event;

use crate::codec;
use crate::fault::Fail;
use crate::keys;
use crate::link::{Link, Range};

/// How often a history with a gap is read, with pauses that come to half a second, before the store counts as damaged.
const LOOKS_MAX: u32 = 6;

/// Events after `after`, at most `limit`, whole commits unless the limit cuts one.
pub(crate) async fn events(
    link: &Link,
    tenant: &TenantId,
    workflow: &WorkflowId,
    after: u64,
    limit: u32,
) -> Result<Vec<Event>, Fail> {
    let Some(first) = after.checked_add(1).filter(|_| limit > 0) else { return Ok(Vec::new()) };
    let mut patience = link.looks(LOOKS_MAX);
    loop {
        let range = Range::between(
            keys::workflow(tenant, workflow),
            keys::event(first),
            keys::event(u64::MAX),
        );
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let items = link.query_all(range.limit(limit), most).await?;
        let read: Result<Vec<_>, Fail> = items.iter().map(codec::read_event).collect();
        let mut read = read?;
        if read.len() < most {
            drop_half_commit(&mut read);
        }
        if (first..).zip(&read).all(|(seq, (event, _))| event.seq == seq) {
            return Ok(read.into_iter().map(|(event, _)| event).collect());
        }
        if !patience.pause().await {
            return Err(Fail::unreadable("a history", "an event is missing"));
        }
    }
}

/// Leaves out the events at the end whose commit is not there as a whole.
fn drop_half_commit(read: &mut Vec<(Event, u64)>) {
    let Some((newest, last)) = read.last().map(|(event, last)| (event.seq, *last)) else { return };
    if newest != last {
        read.retain(|(_, of)| *of != last);
    }
}
