//! The head of a workflow: its state, what it holds, its deadlines, and the index items that follow from its state.
//!
//! A commit says what comes after it and not what was before, so the index items to remove and the deadlines to move are
//! known from the head that the decision was made on. [`Known`] is that part of a head, kept by `known`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use wf_core::locks::{LockHolder, LockRow};
use wf_core::models::{Actor, AssetId, Person, Phase, TenantId, Timestamp, Workflow};

use super::indexed;
use crate::fault::Fail;
use crate::item::{Attributes, Item, Value, json};
use crate::keys::{self, Key, by_id, by_state};

/// How a workflow holds an asset: a copy of the lock row, which nobody but the holder's own commits can change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) fence: u64,
    pub(crate) owner: Person,
    pub(crate) at: Timestamp,
    /// The fence that the row gets when it is freed, unless its own is higher: left by a restore.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) floor: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What is known of a workflow at one revision besides its state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Known {
    pub(crate) revision: u64,
    /// Who owns it, while it is open.
    pub(crate) open_of: Option<Actor>,
    /// Its items in the indexes.
    pub(crate) index: BTreeSet<Key>,
    /// What it holds.
    pub(crate) held: BTreeMap<AssetId, Held>,
    /// Its deadlines and when they are due.
    pub(crate) due: BTreeMap<String, i64>,
    /// Assets of its state that it does not hold.
    pub(crate) loose: Vec<AssetId>,
}

impl Known {
    pub(crate) fn of(
        workflow: &Workflow,
        held: BTreeMap<AssetId, Held>,
        due: BTreeMap<String, i64>,
    ) -> Self {
        let own = workflow.assets.iter().map(|asset| &asset.id);
        let loose = own.filter(|id| !held.contains_key(*id)).cloned().collect();
        Self {
            revision: workflow.revision,
            open_of: workflow.phase.is_open().then(|| workflow.owner.id.clone()),
            index: index(workflow).into_keys().collect(),
            held,
            due,
            loose,
        }
    }

    /// When the next of its deadlines is due.
    pub(crate) fn next_due(&self) -> Option<i64> {
        self.due.values().min().copied()
    }

    /// The lock row of an asset that the workflow holds.
    pub(crate) fn lock(&self, workflow: &Workflow, asset: &AssetId) -> Option<LockRow> {
        let held = self.held.get(asset)?;
        Some(LockRow {
            tenant: workflow.tenant.clone(),
            asset_id: asset.clone(),
            fence: held.fence,
            holder: Some(LockHolder {
                workflow_id: workflow.id.clone(),
                owner: held.owner.clone(),
                acquired_at: held.at,
            }),
        })
    }
}

/// The item of a head.
pub(crate) fn write(workflow: &Workflow, state: String, known: &Known) -> Result<Attributes, Fail> {
    let mut attributes = Attributes::from([
        ("rev", Value::n(workflow.revision)),
        ("body", Value::S(state)),
        ("held", Value::S(json(&known.held, "held assets")?)),
        ("due", Value::S(json(&known.due, "deadlines")?)),
    ]);
    let phase = by_state::phase(&workflow.tenant, workflow.phase);
    indexed(&mut attributes, keys::BY_STATE, phase, workflow.id.to_string());
    Ok(attributes)
}

/// A workflow and what is known of it.
pub(crate) fn read(item: &Item) -> Result<(Workflow, Known), Fail> {
    let workflow: Workflow = item.json("body")?;
    let revision: u64 = item.number("rev")?;
    if workflow.revision != revision {
        return Err(Fail::unreadable("a head", "its state has another revision"));
    }
    let known = Known::of(&workflow, item.json("held")?, item.json("due")?);
    Ok((workflow, known))
}

/// The state alone.
pub(crate) fn read_state(item: &Item) -> Result<Workflow, Fail> {
    item.json("body")
}

/// When a workflow that is over ended.
pub(crate) fn completed_at(workflow: &Workflow) -> i64 {
    workflow.completed_at.unwrap_or(workflow.updated_at).as_ms()
}

/// The item that makes the sweep look at a workflow that is over.
pub(crate) fn to_sweep(workflow: &Workflow) -> (Key, Attributes) {
    let (tenant, id) = (&workflow.tenant, &workflow.id);
    let sk = format!("{}#{tenant}#{id}", keys::time(completed_at(workflow)));
    (Key::new(keys::SWEEP.to_owned(), sk), named(workflow))
}

fn named(workflow: &Workflow) -> Attributes {
    Attributes::from([
        ("tenant", Value::s(workflow.tenant.as_str())),
        ("workflow", Value::s(workflow.id.as_str())),
    ])
}

/// The items by which a workflow in this state is found, each with what it holds.
pub(crate) fn index(workflow: &Workflow) -> BTreeMap<Key, Attributes> {
    let (tenant, id) = (&workflow.tenant, &workflow.id);
    let mut items = BTreeMap::new();
    let mut listed = named(workflow);
    indexed(&mut listed, keys::BY_ID, by_id::WORKFLOWS.to_owned(), format!("{id}#{tenant}"));
    items.insert(Key::new(keys::all_of(tenant), id.as_str()), listed);

    let mut add = |pk: String, sk: String| items.insert(Key::new(pk, sk), named(workflow));
    let owner = keys::who(tenant, &workflow.owner.id);
    if !workflow.phase.is_open() {
        let sk = format!("{}{}#{id}", keys::DONE, keys::time(completed_at(workflow)));
        add(owner, sk.clone());
        for asset in &workflow.assets {
            add(keys::asset(tenant, &asset.id), sk.clone());
        }
        return items;
    }
    add(owner, format!("{}{id}", keys::OPEN));
    if let Some(offer) = &workflow.offer {
        let to = offer.to.as_ref();
        let pk = to.map_or_else(|| keys::anybody(tenant), |to| keys::who(tenant, &to.id));
        add(pk, format!("{}{}#{id}", keys::OFFER, keys::time(offer.at.as_ms())));
    }
    if workflow.phase == Phase::Blocked {
        let since = workflow.blocks.iter().map(|block| block.at).min();
        let since = since.unwrap_or(workflow.updated_at).as_ms();
        add(keys::blocked(tenant), format!("{}#{id}", keys::time(since)));
    }
    items
}

/// Which workflow an index item is about.
pub(crate) fn named_by(item: &Item) -> Result<(TenantId, Key), Fail> {
    let tenant: TenantId = item.parsed("tenant")?;
    let head = keys::head(&tenant, &item.parsed("workflow")?);
    Ok((tenant, head))
}
