//! Lock rows, and what a change of one asks of it.

use wf_core::locks::{LockChange, LockHolder, LockRow};
use wf_core::models::{AssetId, Workflow, WorkflowId};

use super::indexed;
use crate::action::Expression;
use crate::fault::Fail;
use crate::item::{Attributes, Item, Value, json};
use crate::keys::{self, by_id};

/// The item of an asset that `next` holds.
pub(crate) fn held(
    next: &Workflow,
    asset: &AssetId,
    fence: u64,
    floor: u64,
) -> Result<Attributes, Fail> {
    let holder = LockHolder {
        workflow_id: next.id.clone(),
        owner: next.owner.clone(),
        acquired_at: next.updated_at,
    };
    let (tenant, asset_id) = (next.tenant.clone(), asset.clone());
    write(&LockRow { tenant, asset_id, fence, holder: Some(holder) }, floor)
}

/// The item of a row, and what a restore left in it.
pub(crate) fn write(row: &LockRow, floor: u64) -> Result<Attributes, Fail> {
    let mut attributes = Attributes::from([
        ("tenant", Value::s(row.tenant.as_str())),
        ("asset", Value::s(row.asset_id.as_str())),
        ("fence", Value::n(row.fence)),
    ]);
    let place = format!("{}#{}", row.tenant, row.asset_id);
    indexed(&mut attributes, keys::BY_ID, by_id::LOCKS.to_owned(), place);
    if floor > 0 {
        attributes.insert("floor", Value::n(floor));
    }
    if let Some(holder) = &row.holder {
        attributes.extend([
            ("holder", Value::s(holder.workflow_id.as_str())),
            ("held_by", Value::S(json(&holder.owner, "a holder")?)),
            ("held_since", Value::n(holder.acquired_at.as_ms())),
        ]);
    }
    Ok(attributes)
}

/// A row as it was written.
pub(crate) fn read(item: &Item) -> Result<LockRow, Fail> {
    let holder = match item.opt_text("holder")? {
        None => None,
        Some(_) => Some(LockHolder {
            workflow_id: item.parsed("holder")?,
            owner: item.json("held_by")?,
            acquired_at: wf_core::models::Timestamp::from_ms(item.number("held_since")?),
        }),
    };
    Ok(LockRow {
        tenant: item.parsed("tenant")?,
        asset_id: item.parsed("asset")?,
        fence: item.number("fence")?,
        holder,
    })
}

/// What a restore left in a row.
pub(crate) fn floor(item: &Item) -> Result<u64, Fail> {
    Ok(item.opt_number("floor")?.unwrap_or(0))
}

/// The condition of a change, by `workflow`, as an expression. An asset without a row is free with the fence `base`.
pub(crate) fn condition(change: &LockChange, workflow: &WorkflowId, base: u64) -> Expression {
    let me = || (":me", Value::s(workflow.as_str()));
    match change {
        LockChange::Acquire { fence, .. } => {
            after("attribute_not_exists(holder)", (*fence, base), Vec::new())
        }
        LockChange::Take { fence, .. } => {
            after("(attribute_not_exists(holder) OR holder = :me)", (*fence, base), vec![me()])
        }
        LockChange::Assert { fence, .. } | LockChange::Release { fence, .. } => {
            Expression::new("holder = :me AND fence = :fence", [me(), (":fence", Value::n(fence))])
        }
    }
}

/// The row has the fence before `fence`, or there is none and `fence` is the first after `base`.
fn after(
    whose: &str,
    (fence, base): (u64, u64),
    mut values: Vec<(&'static str, Value)>,
) -> Expression {
    // No fence comes before 0, and no row has -1.
    let before = fence.checked_sub(1).map_or_else(|| Value::n(-1), Value::n);
    values.push((":before", before));
    let text = format!("{whose} AND fence = :before");
    let first = base.checked_add(1) == Some(fence);
    let text = if first { format!("attribute_not_exists(PK) OR ({text})") } else { text };
    Expression { text, values: values.into_iter().collect() }
}

/// The condition of a change holds for a row that was read.
pub(crate) fn holds(
    change: &LockChange,
    row: Option<&LockRow>,
    workflow: &WorkflowId,
    base: u64,
) -> bool {
    let holder = row.and_then(|row| row.holder.as_ref()).map(|holder| &holder.workflow_id);
    let fence_now = row.map_or(base, |row| row.fence);
    match change {
        LockChange::Acquire { fence, .. } => {
            holder.is_none() && fence_now.checked_add(1) == Some(*fence)
        }
        LockChange::Take { fence, .. } => {
            holder.is_none_or(|holder| holder == workflow)
                && fence_now.checked_add(1) == Some(*fence)
        }
        LockChange::Assert { fence, .. } => holder == Some(workflow) && fence_now == *fence,
        LockChange::Release { .. } => true,
    }
}
