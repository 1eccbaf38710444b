//! One server of two: ours, made of an engine, and a guest's. Either may be absent, never both.
//!
//! Lists are ours, then the guest's. Everything else goes to whom it belongs: a tool or a prompt by its name, a resource
//! by its scheme. What is ours cannot be taken over by a guest. `serve` is rmcp's view of both, `call` one call of a guest's
//! tool, `united` what the two can do together.

#![expect(deprecated, reason = "clients of earlier revisions still subscribe and set levels")]

use std::sync::Arc;

use http::Extensions;
use http::request::Parts;
use rmcp::model::{PaginatedRequestParams, SubscriptionFilter};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use wf_core::engine::Engine;

use crate::access::Visitor;
use crate::auth::Caller;
use crate::fault::RpcFault;
use crate::guest::{Guest, Hosted};
use crate::handler::Handler;
use crate::prompts;
use crate::resources::listing;
use crate::tools::{self, Needs};
use crate::wire::envelope;

mod call;
mod serve;
mod united;

type Context = RequestContext<RoleServer>;

/// What begins every address of a resource of ours.
const OWN_SCHEME: &str = "workflow:";

/// What is served. Cheap to clone: rmcp makes one for each request.
#[derive(Debug, Clone)]
pub(crate) struct Joined {
    own: Option<Handler>,
    guest: Option<Guest>,
}

impl Joined {
    pub(crate) fn new(engine: Option<Arc<Engine>>, guest: Option<Guest>) -> Self {
        Self { own: engine.map(Handler::new), guest }
    }

    /// Begins to listen to what is ours, before anything is answered.
    pub(crate) fn begin_listening(
        &self,
        extensions: &mut Extensions,
        request: &envelope::Request,
    ) -> Result<(), RpcFault> {
        self.own.as_ref().map_or(Ok(()), |own| own.begin_listening(extensions, request))
    }

    /// Lets go everybody who listens for changes of ours.
    pub(crate) fn stop_listening(&self) {
        if let Some(own) = &self.own {
            own.stop_listening();
        }
    }

    /// The first tool of ours that the guest has too.
    pub(crate) fn taken(&self) -> Option<&'static str> {
        let guest = self.own.as_ref().and(self.guest.as_ref())?;
        tools::TOOLS.iter().map(|spec| spec.name).find(|name| guest.needs_of(name).is_some())
    }

    /// What a call of this tool needs; `None` if there is no such tool.
    pub(crate) fn needs_of(&self, tool: &str) -> Option<Needs> {
        match self.own_tool(tool) {
            Some(spec) => Some(spec.needs),
            None => self.guest.as_ref()?.needs_of(tool),
        }
    }

    /// A tool of ours.
    pub(crate) fn own_tool(&self, tool: &str) -> Option<&'static tools::Spec> {
        tools::spec(tool).filter(|_| self.own.is_some())
    }

    /// The tools that everybody may know of, in one line.
    pub(crate) fn known(&self) -> String {
        match (&self.own, &self.guest) {
            (Some(_), None) => tools::names(),
            (Some(_), Some(_)) => format!("{} and others, see tools/list", tools::names()),
            (None, _) => "in tools/list".to_owned(),
        }
    }

    /// Whom a thing that is no tool belongs to: with a right to it, for the guest's.
    fn of(&self, is_own: bool, context: &Context) -> Result<Side<'_>, ErrorData> {
        match (&self.own, &self.guest) {
            (Some(own), None) => Ok(Side::Own(own)),
            (Some(own), Some(_)) if is_own => Ok(Side::Own(own)),
            (_, Some(guest)) => {
                may_read(context)?;
                Ok(Side::Guest(guest.hosted()))
            }
            (None, None) => Err(ErrorData::internal_error("nothing is served", None)),
        }
    }

    /// Whose page a cursor asks for: the guest's first comes with the last of ours.
    fn asked(
        &self,
        request: Option<&PaginatedRequestParams>,
    ) -> (Option<&Handler>, Option<&Guest>) {
        let cursor = request.and_then(|params| params.cursor.as_deref());
        let is_own = cursor.is_none_or(|cursor| cursor.starts_with(listing::CURSOR));
        let own = self.own.as_ref().filter(|_| is_own || self.guest.is_none());
        (own, self.guest.as_ref())
    }
}

/// Who answers.
enum Side<'a> {
    Own(&'a Handler),
    Guest(&'a dyn Hosted),
}

/// A guest's resources, prompts and completions are for those who may read.
fn may_read(context: &Context) -> Result<(), ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let Some(visitor) = parts.and_then(|parts| parts.extensions.get::<Visitor>()) else {
        return Err(ErrorData::internal_error("the request lost its parts", None));
    };
    match &visitor.caller {
        // `front` has let it ask, so it asks for a list.
        Caller::Service(_) => Ok(()),
        Caller::User(principal) => Needs::Read
            .of(principal)
            .map_err(|rejection| ErrorData::invalid_params(rejection.message, None)),
    }
}

impl Joined {
    fn is_own_prompt(&self, name: &str) -> bool {
        self.own.is_some() && prompts::is_own(name)
    }
}

fn is_own_resource(uri: &str) -> bool {
    uri.starts_with(OWN_SCHEME)
}

/// One subscription is about ours or about the guest's, never about both.
fn is_own_subscription(requested: &SubscriptionFilter) -> bool {
    let resources = requested.resource_subscriptions.as_ref();
    resources.is_some_and(|uris| uris.iter().any(|uri| is_own_resource(uri)))
}
