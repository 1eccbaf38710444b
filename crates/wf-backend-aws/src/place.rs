//! What an item is, told from its key: the reverse of `keys`, for whoever reads the table whole.

use wf_core::models::{Actor, TenantId, WorkflowId};

use crate::fault::Fail;
use crate::keys::{DONE, Key, MESSAGE, OFFER, OPEN, SWEEP, decoded};

/// What an item is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Head {
        tenant: TenantId,
        workflow: WorkflowId,
    },
    Event {
        tenant: TenantId,
        workflow: WorkflowId,
    },
    /// Which execution is bound to the workflow.
    Binding {
        tenant: TenantId,
        workflow: WorkflowId,
    },
    /// What is left of a workflow that was purged.
    Tombstone {
        tenant: TenantId,
        workflow: WorkflowId,
    },
    Ledger {
        tenant: TenantId,
    },
    Lock,
    Count {
        tenant: TenantId,
        actor: Actor,
    },
    Person {
        tenant: TenantId,
    },
    Stream,
    Message,
    Definition,
    Version,
    Deadline,
    /// Says that the execution of a workflow is to be looked at.
    Attention,
    /// Says that a workflow's ledger rows have no expiry yet.
    Sweep,
    /// Leads to a workflow: what it is about stands in the item.
    Index,
    Identity,
    Lease,
}

/// What the item with this key is.
///
/// # Errors
/// An item that is none of ours.
pub(crate) fn of(key: &Key) -> Result<Place, Fail> {
    let stray =
        || Fail::unreadable("the table", format!("an item of nobody: {} {}", key.pk, key.sk));
    let parts: Vec<&str> = key.pk.split('#').collect();
    let sk = key.sk.as_str();
    let tenant = |text: &str| TenantId::parse(text).map_err(|_| stray());
    let workflow = |text: &str| WorkflowId::parse(text).map_err(|_| stray());
    Ok(match (parts.as_slice(), sk) {
        (["T", t, "WF", id], "HEAD") => Place::Head { tenant: tenant(t)?, workflow: workflow(id)? },
        (["T", t, "WF", id], _) if sk.starts_with("EVT#") => {
            Place::Event { tenant: tenant(t)?, workflow: workflow(id)? }
        }
        (["T", t, "WF", id], "GONE") => {
            Place::Tombstone { tenant: tenant(t)?, workflow: workflow(id)? }
        }
        (["T", t, "WF", id], "ORCH") => {
            Place::Binding { tenant: tenant(t)?, workflow: workflow(id)? }
        }
        (["T", t, "IDEM", _, _], "IDEM") => Place::Ledger { tenant: tenant(t)? },
        (["T", _, "ASSET", _], "LOCK") => Place::Lock,
        (["T", _, "ASSET", _], _) if sk.starts_with(DONE) => Place::Index,
        (["T", t, "WHO", actor], "COUNT") => {
            let actor = Actor::parse(&decoded(actor)).map_err(|_| stray())?;
            Place::Count { tenant: tenant(t)?, actor }
        }
        (["T", _, "WHO", _], _) if [OPEN, OFFER, DONE].iter().any(|p| sk.starts_with(p)) => {
            Place::Index
        }
        (["T", _, "BLOCKED" | "LIST"], _) => Place::Index,
        (["T", t, "PEOPLE"], _) => Place::Person { tenant: tenant(t)? },
        (["T", _, "OUT", _, _], "STREAM") => Place::Stream,
        (["T", _, "OUT", _, _], _) if sk.starts_with(MESSAGE) => Place::Message,
        (["DEF", _], "DEF") => Place::Definition,
        (["PROC"], _) => Place::Version,
        (["DUE", _], _) => Place::Deadline,
        (["ATTN", _], _) => Place::Attention,
        ([SWEEP], _) => Place::Sweep,
        (["STORE"], "SECRET") => Place::Identity,
        (["RECON", _], "LEASE") => Place::Lease,
        _ => return Err(stray()),
    })
}
