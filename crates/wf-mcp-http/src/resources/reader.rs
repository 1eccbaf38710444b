//! Who reads, by when they must have an answer, and in which language.

use http::request::Parts;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use std::sync::{Arc, LazyLock};

use tokio::time::{Instant, timeout_at};
use wf_core::engine::CallMeta;
use wf_core::errors::ErrorCode;
use wf_core::models::{Locale, Principal};
use wf_core::state_machine::Rejection;
use wf_core::view::Fault;

use crate::access::Visitor;
use crate::auth::Caller;
use crate::exchange::{Deadlines, RequestSpan};
use crate::fault::unasked;
use crate::handler::is_modern;
use crate::tools::Needs;
use crate::wire::meta;

static ENGLISH: LazyLock<Locale> = LazyLock::new(Locale::default);

/// Who reads, and how they want to be answered.
#[derive(Debug)]
pub(crate) struct Reader {
    visitor: Visitor,
    answer_by: Instant,
    pub(crate) meta: CallMeta,
    /// The request is of MCP 2026-07-28 or later.
    pub(crate) modern: bool,
}

impl Reader {
    /// Takes it out of the request; the layers put all of it there.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Result<Self, ErrorData> {
        let lost = || ErrorData::internal_error("the request lost its parts", None);
        let parts = &context.extensions.get::<Parts>().ok_or_else(lost)?.extensions;
        let visitor = parts.get::<Visitor>().cloned().ok_or_else(lost)?;
        let answer_by = parts.get::<Deadlines>().ok_or_else(lost)?.answer_by;
        let (meta, verdict) = meta::read(Some(&context.meta));
        verdict.map_err(|rejection| unasked(&rejection))?;
        if let (Some(RequestSpan(span)), Caller::User(principal)) =
            (parts.get::<RequestSpan>(), &visitor.caller)
        {
            span.record("tenant", principal.tenant.as_str());
        }
        Ok(Self { visitor, answer_by, meta, modern: is_modern(context) })
    }

    /// The language to answer in.
    pub(crate) fn locale(&self) -> &Locale {
        self.meta.locale.as_ref().unwrap_or(&ENGLISH)
    }

    /// The person behind the request; a service may only list.
    pub(crate) fn person(&self) -> Result<&Arc<Principal>, ErrorData> {
        match &self.visitor.caller {
            Caller::User(principal) => Ok(principal),
            Caller::Service(_) => {
                Err(ErrorData::invalid_params("a service may list, not read", None))
            }
        }
    }

    /// Who may see what there is: nobody without the right to read, and of a service no person.
    #[expect(
        clippy::option_option,
        reason = "not allowed, allowed for a service, allowed for a person"
    )]
    pub(crate) fn may_list(&self) -> Option<Option<&Arc<Principal>>> {
        match &self.visitor.caller {
            Caller::Service(_) => Some(None),
            Caller::User(principal) => Needs::Read.met(principal.scopes).then_some(Some(principal)),
        }
    }

    /// Waits for an answer of the core for as long as the caller does.
    pub(crate) async fn answered<T>(
        &self,
        work: impl Future<Output = Result<T, Rejection>>,
    ) -> Result<T, Rejection> {
        timeout_at(self.answer_by, work)
            .await
            .unwrap_or_else(|_| Err(Rejection::unavailable("no answer in time: ask again", None)))
    }

    /// The same for what has no address.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, Rejection>>,
    ) -> Result<T, ErrorData> {
        self.answered(work).await.map_err(|rejection| unasked(&rejection))
    }
}

/// Something that cannot be.
pub(crate) fn bug(what: &str) -> Rejection {
    tracing::error!(what, "a resource cannot be written");
    Rejection::new(ErrorCode::Internal, "an internal error", Fault::Internal)
}
