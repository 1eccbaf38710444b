//! The engine: the only place that knows the order load → judge → decide → commit → answer.

pub mod acknowledge;
pub mod asking;
mod attempt;
mod blind;
mod bounds;
pub mod call;
pub mod changes;
mod check;
mod commit;
pub mod copy;
pub mod dispatch;
pub mod erase;
pub mod evidence;
mod execute;
mod find;
mod known;
mod ledger;
mod orchestrate;
pub mod oversight;
pub mod pass;
pub mod policies;
pub mod purge;
mod reading;
mod recent;
mod resume;
pub mod schedule;
mod sight;
mod signing;
mod status;
mod twin;
pub mod verify;

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::access::Visibility;
use crate::errors::ErrorCode;
use crate::limits::{CANDIDATES_SHOWN_MAX, RECENT_WORKFLOWS_MAX};
use crate::models::{Digest, Locale};
use crate::policy::DomainPolicyPort;
use crate::ports::{
    ClockPort, DefinitionError, IdPort, NotificationPort, OrchestratorPort, ReadError,
    StorageBackendPort, StoreIdentity,
};
use crate::state_machine::Rejection;
use crate::view::shape::{self, Candidate};
use crate::view::{Fault, Frame, Words};

pub use acknowledge::{AckNotice, AckRefusal, AckStand};
pub use asking::{Answered, Asking, Choice, Consent, Question, StateRefusal};
pub use call::{
    Call, CallMeta, CheckValue, Detail, FindScope, FindWork, GetStatus, Reply, Request,
};
pub use changes::Watcher;
pub use dispatch::{Dispatched, LeasedStream, Undelivered};
pub use oversight::{BlockQuestion, Portrait, WatchQuery, Watched};
pub use policies::{Policies, PoliciesError};
pub use reading::is_meant;
pub use schedule::{DueDeadlines, Fired};

/// What an engine is made of.
#[derive(Debug, Clone)]
pub struct EngineParts {
    /// Where state lives.
    pub store: Arc<dyn StorageBackendPort>,
    /// What may be started, and how pinned definitions are read.
    pub policies: Policies,
    /// Wall clock and waiting.
    pub clock: Arc<dyn ClockPort>,
    /// Ids and randomness.
    pub ids: Arc<dyn IdPort>,
    /// Life in time.
    pub orchestrator: Arc<dyn OrchestratorPort>,
    /// Where messages go.
    pub notifications: Arc<dyn NotificationPort>,
    /// Defaults of the server.
    pub settings: Settings,
}

/// Defaults of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Language when a request names none.
    pub locale: Locale,
    /// IANA time zone that times are spoken in when the procedure names none.
    pub timezone: String,
    /// How long a ledger row outlives its completed workflow, in milliseconds.
    pub retention_ms: i64,
    /// Which workflows of their tenant callers see (`auth.visibility`).
    pub visibility: Visibility,
    /// Where this server is reached, without a slash at the end: what the links in messages begin with. No links without.
    pub public_url: Option<String>,
    /// Workflows that the engine remembers as it committed them, at most [`RECENT_WORKFLOWS_MAX`]: the next call on one is
    /// decided without a read, which the commit's conditions then hold against the store. 0 where a commit that is refused
    /// costs more than a read.
    pub recent_workflows: usize,
}

/// Executes calls over the ports. Shared by all calls of a server.
#[derive(Debug)]
pub struct Engine {
    parts: EngineParts,
    identity: StoreIdentity,
    signing: signing::Signing,
    known: known::Known,
    recent: recent::Recent,
    spent: asking::Spent,
    watchers: changes::Watchers,
}

/// An engine that cannot open.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store did not answer.
    #[error("the store cannot be read")]
    Store(#[source] ReadError),
    /// A definition was not stored.
    #[error("the definition of {procedure} version {version} (digest {digest}) cannot be stored")]
    Definition {
        /// The procedure.
        procedure: String,
        /// Its version.
        version: u32,
        /// The digest of the definition that was to be stored.
        digest: Digest,
        /// Why.
        #[source]
        source: DefinitionError,
    },
    /// Two policies exclude each other.
    #[error("the procedures cannot be served together")]
    Policies(#[source] PoliciesError),
}

impl Engine {
    /// Opens the engine: reads the store's identity and stores the definitions that may be started.
    ///
    /// # Errors
    /// [`EngineError`] when the store does not answer or a definition changed under its version.
    pub async fn open(parts: EngineParts) -> Result<Self, EngineError> {
        let identity = parts.store.identity().await.map_err(EngineError::Store)?;
        store_definitions(parts.store.as_ref(), &parts.policies.current()).await?;
        let recent = parts.settings.recent_workflows.min(RECENT_WORKFLOWS_MAX);
        Ok(Self {
            parts,
            signing: signing::Signing::new(&identity.secrets),
            identity,
            known: known::Known::default(),
            recent: recent::Recent::new(recent),
            spent: asking::Spent::default(),
            watchers: changes::Watchers::default(),
        })
    }

    /// The store, for the commands of an operator.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn StorageBackendPort> {
        &self.parts.store
    }

    /// Replaces what may be started, after storing the definitions. On an error the old set stays.
    ///
    /// # Errors
    /// [`EngineError`] as [`Engine::open`].
    pub async fn reload(
        &self,
        policies: Vec<Arc<dyn DomainPolicyPort>>,
    ) -> Result<(), EngineError> {
        store_definitions(self.parts.store.as_ref(), &policies).await?;
        self.parts.policies.replace(policies).map_err(EngineError::Policies)
    }

    /// The answer to a call that the transport could not read: a malformed argument.
    #[must_use]
    pub fn refuse(&self, rejection: &Rejection, meta: &CallMeta) -> Reply {
        self.frame(None, meta).refusal(rejection, Map::new())
    }

    /// The answer to a start that the transport could not read: with what a start needs.
    #[must_use]
    pub fn refuse_start(
        &self,
        rejection: &Rejection,
        procedure: Option<&str>,
        meta: &CallMeta,
    ) -> Reply {
        let frame = self.frame(None, meta);
        frame.refusal(rejection, self.startable_parts(procedure, &frame))
    }

    /// The answer to a call that failed for a reason of our own; `incident` is the id under which it is logged.
    #[must_use]
    pub fn internal(&self, incident: &str, meta: &CallMeta) -> Reply {
        let rejection = Rejection::new(ErrorCode::Internal, "an internal error", Fault::Internal)
            .with("incident", incident);
        self.refuse(&rejection, meta)
    }

    /// Language, clock and store of an answer.
    fn frame<'a>(
        &'a self,
        policy: Option<&'a dyn DomainPolicyPort>,
        meta: &'a CallMeta,
    ) -> Frame<'a> {
        let settings = &self.parts.settings;
        let locale = meta.locale.as_ref().unwrap_or(&settings.locale);
        let zone = policy.and_then(DomainPolicyPort::timezone).unwrap_or(&settings.timezone);
        let words = Words::new(locale, zone).at(self.parts.clock.now());
        Frame { words, store_id: &self.identity.id }
    }

    /// `candidates` of what may be started: the one procedure that is meant, or all.
    fn startable_parts(&self, procedure: Option<&str>, frame: &Frame<'_>) -> Map<String, Value> {
        let meant = procedure.and_then(|id| self.parts.policies.startable(id));
        let policies = meant.map_or_else(|| self.parts.policies.current(), |policy| vec![policy]);
        let all: Vec<Candidate<'_>> =
            policies.iter().map(|p| Candidate::Procedure(p.as_ref())).collect();
        candidate_parts(&all, frame)
    }
}

/// `candidates` and `candidates_total`.
fn candidate_parts(all: &[Candidate<'_>], frame: &Frame<'_>) -> Map<String, Value> {
    let shown = shape::candidates(all, CANDIDATES_SHOWN_MAX, &frame.words);
    Map::from_iter([
        ("candidates".to_owned(), shown),
        ("candidates_total".to_owned(), Value::from(all.len())),
    ])
}

/// Stores each definition before the first start that could use it.
async fn store_definitions(
    store: &dyn StorageBackendPort,
    policies: &[Arc<dyn DomainPolicyPort>],
) -> Result<(), EngineError> {
    for policy in policies {
        let definition = policy.definition();
        store.put_definition(definition).await.map_err(|source| EngineError::Definition {
            procedure: definition.id.to_string(),
            version: definition.version,
            digest: definition.digest.clone(),
            source,
        })?;
    }
    Ok(())
}

/// A list was asked to go on at a place that no page of it said.
fn bad_cursor() -> Rejection {
    Rejection::invalid("after", "must be what the page before said; begin at the first page")
}

/// What a read that failed means for the caller.
fn unreadable(error: &ReadError) -> Rejection {
    match error {
        ReadError::Unavailable { .. } => {
            Rejection::unavailable("the store did not answer; send the same call again", None)
        }
        ReadError::Corrupt { what } => Rejection::unavailable(
            &format!("the store is damaged ({what}); an operator must run `workflow verify`"),
            None,
        ),
        ReadError::BadCursor => bad_cursor(),
    }
}
