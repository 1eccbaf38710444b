//! Who may do what (domain.md): what a scope allows, which workflows a caller sees, and that what one does not see does
//! not exist for them. Pure; `engine` asks before it reads, `state_machine::decide` judges ownership and roles.
//!
//! - `workflow:read` sees every workflow of the tenant; under [`Visibility::Own`] only one's own and those offered to one;
//! - `workflow:write` changes what one owns; the exceptions are in `state_machine::decide`;
//! - `workflow:supervise` implies both, on every workflow of the tenant;
//! - nobody reaches another tenant, whatever the scopes.

use crate::errors::ErrorCode;
use crate::models::{Actor, Principal, Workflow};
use crate::state_machine::Rejection;
use crate::view::Rule;

/// Which workflows of the tenant a caller with `workflow:read` sees (`auth.visibility`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Visibility {
    /// All of them.
    #[default]
    Tenant,
    /// One's own, those offered to one (or to anybody), and with supervision all.
    Own,
}

impl Visibility {
    /// The caller sees every workflow of their tenant.
    #[must_use]
    pub fn is_whole(self, by: &Principal) -> bool {
        let all = match by.actor {
            // The command line and the product's own parts work for the operator of the store.
            Actor::Cli(_) | Actor::System(_) => true,
            Actor::User(_) => by.scopes.supervise,
        };
        all || match self {
            Self::Tenant => by.scopes.read,
            Self::Own => false,
        }
    }

    /// The caller may know that this workflow exists, and all that results show of it.
    ///
    /// One of another tenant never; one's own and one that is offered to one even without `workflow:read`, because
    /// whoever may change it must be told what it asks next.
    #[must_use]
    pub fn sees(self, by: &Principal, workflow: &Workflow) -> bool {
        by.tenant == workflow.tenant
            && (self.is_whole(by) || workflow.owner.id == by.actor || is_offered(workflow, by))
    }
}

/// The workflow waits for this caller, or for anybody, to take it.
fn is_offered(workflow: &Workflow, by: &Principal) -> bool {
    let offer = workflow.offer.as_ref().filter(|_| workflow.phase.is_open());
    offer.is_some_and(|offer| offer.to.as_ref().is_none_or(|to| to.id == by.actor))
}

/// The scope to see workflows.
///
/// # Errors
/// `NOT_ALLOWED` that names the scope.
pub fn may_read(by: &Principal) -> Result<(), Rejection> {
    if by.scopes.may_read() { Ok(()) } else { Err(missing("workflow:read", Rule::NotAllowed)) }
}

/// The scope to change workflows.
///
/// # Errors
/// `NOT_ALLOWED` that names the scope.
pub fn may_write(by: &Principal) -> Result<(), Rejection> {
    if by.scopes.may_write() { Ok(()) } else { Err(missing("workflow:write", Rule::NotAllowed)) }
}

/// The scope to decide over the work of others.
///
/// # Errors
/// `NOT_ALLOWED` that names the scope.
pub fn may_supervise(by: &Principal) -> Result<(), Rejection> {
    if by.scopes.supervise {
        Ok(())
    } else {
        Err(missing("workflow:supervise", Rule::SupervisorNeeded))
    }
}

/// Freeing an asset by hand is for the command line and for supervisors.
///
/// # Errors
/// `NOT_ALLOWED` that names the scope.
pub fn may_release(by: &Principal) -> Result<(), Rejection> {
    match by.actor {
        Actor::Cli(_) => Ok(()),
        Actor::User(_) | Actor::System(_) => may_supervise(by),
    }
}

/// Acknowledging a block is for the page that a link leads to (which checked the link), the command line and supervisors.
///
/// # Errors
/// `NOT_ALLOWED` that names the scope.
pub fn may_acknowledge(by: &Principal) -> Result<(), Rejection> {
    match by.actor {
        Actor::Cli(_) => Ok(()),
        Actor::System(_) if by.actor == Actor::acknowledgements() => Ok(()),
        Actor::User(_) | Actor::System(_) => may_supervise(by),
    }
}

/// Only the clock says that a deadline is due.
///
/// # Errors
/// `NOT_ALLOWED`.
pub fn is_clock(by: &Principal) -> Result<(), Rejection> {
    if by.actor == Actor::clock() {
        return Ok(());
    }
    Err(Rejection::new(ErrorCode::NotAllowed, "only the clock says this", Rule::NotAllowed))
}

/// Only the orchestrator says that an execution runs.
///
/// # Errors
/// `NOT_ALLOWED`.
pub fn is_orchestrator(by: &Principal) -> Result<(), Rejection> {
    if by.actor == Actor::orchestrator() {
        return Ok(());
    }
    Err(Rejection::new(ErrorCode::NotAllowed, "only the orchestrator says this", Rule::NotAllowed))
}

fn missing(scope: &str, saying: Rule) -> Rejection {
    Rejection::new(ErrorCode::NotAllowed, format!("the scope {scope} is needed"), saying)
        .with("scope", scope)
}
