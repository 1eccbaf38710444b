//! What a caller may ask of MCP: the two tiers (a service may learn, a person may act) and the scopes of the tools.
//!
//! `front` asks once the message is read, before anything is done with it; `handler` lists by the same rules. Whether a
//! person may do *this* to *that* workflow is the core's decision.

use std::sync::Arc;

use wf_core::access;
use wf_core::models::{Principal, Scopes};
use wf_core::state_machine::Rejection;

use crate::auth::Caller;
use crate::entrance::{Entrance, ServiceLists};
use crate::fault::Denied;
use crate::tools::Needs;
use crate::wire::envelope::Request;

/// Who asks, and by which path; in the extensions of every request behind `layers::identity`.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) caller: Caller,
    pub(crate) entrance: Arc<Entrance>,
}

/// What a caller without a person behind it may ask, besides every notification.
const SERVICE_METHODS: &[&str] = &[
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
];

impl Visitor {
    /// Lets a request in, or says how it is refused. `needs` is what the tool needs that it calls.
    ///
    /// A service that acts gets a 401 on a headerless path, which makes such clients link an account; elsewhere a 403,
    /// since a 401 would make clients drop a token that is valid. A person without the scope gets a 403 where clients
    /// can ask for more scopes, and elsewhere the tool's own NOT_ALLOWED, which can be spoken.
    pub(crate) fn admit(&self, request: &Request, needs: Option<Needs>) -> Result<(), Denied> {
        match &self.caller {
            Caller::Service(_) if SERVICE_METHODS.contains(&request.method.as_str()) => Ok(()),
            Caller::Service(_) if self.entrance.challenges() => {
                Err(self.entrance.insufficient(Needs::Write.scopes()))
            }
            Caller::Service(_) => Err(self.entrance.unauthorized()),
            Caller::User(principal) => match needs {
                Some(needs) if self.entrance.challenges() && !needs.met(principal.scopes) => {
                    Err(self.entrance.insufficient(needs.scopes()))
                }
                Some(_) | None => Ok(()),
            },
        }
    }

    /// Whether the caller's list has a tool that needs this.
    pub(crate) fn lists(&self, needs: Needs) -> bool {
        match &self.caller {
            Caller::User(principal) => needs.met(principal.scopes),
            Caller::Service(_) => match self.entrance.service_lists {
                ServiceLists::All => true,
                ServiceLists::Technician => needs.met(TECHNICIAN),
            },
        }
    }
}

const TECHNICIAN: Scopes = Scopes { read: true, write: true, supervise: false };

impl Needs {
    /// The scopes that a client should ask for. Each includes what the lesser ones give, since a token with the answer
    /// replaces the one that did not reach.
    pub(crate) const fn scopes(self) -> &'static str {
        match self {
            Self::Read => "workflow:read",
            Self::Write => "workflow:read workflow:write",
            Self::Supervise => "workflow:read workflow:write workflow:supervise",
        }
    }

    /// The scopes that a call needs before anything else of it is looked at.
    ///
    /// # Errors
    /// NOT_ALLOWED, as the core says it.
    pub(crate) fn of(self, by: &Principal) -> Result<(), Rejection> {
        match self {
            Self::Read => access::may_read(by),
            Self::Write => access::may_write(by),
            Self::Supervise => access::may_supervise(by),
        }
    }

    /// Whether these scopes are enough.
    pub(crate) fn met(self, scopes: Scopes) -> bool {
        match self {
            Self::Read => scopes.may_read(),
            Self::Write => scopes.may_write(),
            Self::Supervise => scopes.supervise,
        }
    }
}
