//! One consistent read of a workflow with its rows: what the rules are asked about.

use wf_core::models::{Phase, Timestamp, Workflow};
use wf_core::ports::Attention;
use wf_core::reconcile::{Binding, Head};

use super::binding::{Bound, new, read};
use crate::codec::head;
use crate::fault::{Cause, Fail, Trouble};
use crate::item::{Item, to_sdk};
use crate::keys;
use crate::link::Link;

/// How often a binding that is missing is made anew before it is read again in vain.
const LOOKS_MAX: u32 = 3;

/// Reads a workflow with its rows and writes nothing: an open one that has no binding is shown with the one that it would
/// get.
pub(super) async fn peek(
    link: &Link,
    attention: &Attention,
    now: Timestamp,
) -> Result<Bound, Fail> {
    let (tenant, id) = (&attention.tenant, &attention.workflow_id);
    let wanted = [keys::head(tenant, id), keys::binding(tenant, id), keys::attention(tenant, id)];
    let mut items = link.get_together(&wanted).await?.into_iter();
    let mut next = || items.next().flatten();
    let (state, mut item, row) = (next(), next(), next());
    let state = state.as_ref().map(head::read_state).transpose()?;
    if let (Some(state), None) = (&state, &item)
        && state.phase.is_open()
    {
        let (_, made) = new(state, state.fence.max(1), now);
        item = Some(Item::from(to_sdk(&made)));
    }
    together(attention, state.as_ref(), item.as_ref(), row.as_ref(), now)
}

/// Reads a workflow with its rows; makes the binding of an open one that has none.
pub(super) async fn bound(
    link: &Link,
    attention: &Attention,
    now: Timestamp,
) -> Result<Bound, Fail> {
    let (tenant, id) = (&attention.tenant, &attention.workflow_id);
    let wanted = [keys::head(tenant, id), keys::binding(tenant, id), keys::attention(tenant, id)];
    for _ in 0..LOOKS_MAX {
        let mut items = link.get_together(&wanted).await?.into_iter();
        let mut next = || items.next().flatten();
        let (state, item, row) = (next(), next(), next());
        let state = state.as_ref().map(head::read_state).transpose()?;
        match (&state, &item) {
            (Some(state), None) if state.phase.is_open() => {
                // Whoever acknowledged the start had this fence, and may run under another table.
                let (key, item) = new(state, state.fence.max(1), now);
                crate::definitions::put_new(link, key, item).await?;
            }
            _ => return together(attention, state.as_ref(), item.as_ref(), row.as_ref(), now),
        }
    }
    let cause = Cause::said("the binding of a workflow disappears whenever it is made");
    Err(Trouble::Contended(cause).into())
}

fn together(
    attention: &Attention,
    state: Option<&Workflow>,
    item: Option<&Item>,
    row: Option<&Item>,
    now: Timestamp,
) -> Result<Bound, Fail> {
    let wanted: Option<u64> = row.map(|row| row.number("wanted_revision")).transpose()?;
    let looks = row.map(|row| row.opt_number("looks")).transpose()?.flatten();
    let binding = match item {
        Some(item) => read(item)?,
        // It ended before there was a state machine, or it is not there.
        None => Binding { closed: true, ..Binding::new(now) },
    };
    // What no row asks for, the execution knows; except a successor, which was told nothing yet.
    let told_nothing = binding.told_revision == 0;
    let silently = state.filter(|_| told_nothing).map_or(0, |state| state.revision);
    let head = state.map(|state| Head {
        completed_at: (!state.phase.is_open())
            .then(|| Timestamp::from_ms(head::completed_at(state))),
        acknowledged: state.phase != Phase::Created,
        wanted_revision: wanted.unwrap_or(silently),
        next_deadline: state.deadlines.values().map(|deadline| deadline.fire_at).min(),
    });
    let text = |name| item.map(|item| item.opt_text(name)).transpose();
    Ok(Bound {
        attention: Attention {
            wanted_revision: wanted,
            looks: looks.unwrap_or(0),
            ..attention.clone()
        },
        head,
        phase: state.map(|state| state.phase),
        revision: state.map_or(0, |state| state.revision),
        binding,
        token: text("task_token")?.flatten().map(str::to_owned),
        due_revision: item.map(|item| item.opt_number("due_revision")).transpose()?.flatten(),
        stored: item.is_some(),
        wanted,
        look: text(keys::BY_STATE.sk)?.flatten().map(str::to_owned),
    })
}
