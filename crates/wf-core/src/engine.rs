//! The engine: the only place that knows the order load → judge → decide → commit → answer.

pub mod call;
pub mod policies;

use std::sync::Arc;

use crate::models::{Locale, Principal};
use crate::policy::DomainPolicyPort;
use crate::ports::{
    ClockPort, IdPort, NotificationPort, OrchestratorPort, ReadError, StorageBackendPort,
};
use crate::state_machine::Rejection;

pub use call::{
    Call, CallMeta, CheckValue, Detail, FindScope, FindWork, GetStatus, Reply, Request,
};
pub use policies::{Policies, PoliciesError};

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
}

/// Executes calls over the ports. Cheap to share; one per server.
#[derive(Debug)]
pub struct Engine {
    parts: EngineParts,
}

impl Engine {
    /// Opens the engine: reads the store's identity and stores the definitions that may be started.
    ///
    /// # Errors
    /// [`EngineError`] when the store does not answer or a definition changed under its version.
    pub async fn open(parts: EngineParts) -> Result<Self, EngineError> {
        parts.store.identity().await.map_err(EngineError::Store)?;
        Ok(Self { parts })
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
        let _ = policies;
        Ok(())
    }

    /// Executes a mutating call.
    pub async fn execute(&self, principal: &Principal, call: &Call) -> Reply {
        let _ = (principal, call);
        stub()
    }

    /// Answers `find_work`.
    pub async fn find_work(
        &self,
        principal: &Principal,
        query: &FindWork,
        meta: &CallMeta,
    ) -> Reply {
        let _ = (principal, query, meta);
        stub()
    }

    /// Answers `get_status`.
    pub async fn get_status(
        &self,
        principal: &Principal,
        query: &GetStatus,
        meta: &CallMeta,
    ) -> Reply {
        let _ = (principal, query, meta);
        stub()
    }

    /// Answers `check_value`.
    pub async fn check_value(
        &self,
        principal: &Principal,
        query: &CheckValue,
        meta: &CallMeta,
    ) -> Reply {
        let _ = (principal, query, meta);
        stub()
    }

    /// The answer to a call that the transport could not read: a malformed argument.
    #[must_use]
    pub fn refuse(&self, rejection: &Rejection, meta: &CallMeta) -> Reply {
        let _ = (rejection, meta);
        stub()
    }

    /// The answer to a call that failed for a reason of our own; `incident` is the id under which it is logged.
    #[must_use]
    pub fn internal(&self, incident: &str, meta: &CallMeta) -> Reply {
        let _ = (incident, meta);
        stub()
    }

    /// Delivers due messages of the outbox once; returns how many were settled.
    ///
    /// # Errors
    /// [`ReadError`] when the store does not answer.
    pub async fn dispatch_once(&self) -> Result<usize, ReadError> {
        Ok(0)
    }
}

fn stub() -> Reply {
    Reply {
        outcome: crate::state_machine::Outcome::Error,
        error: None,
        duplicate: false,
        speech: String::new(),
        body: serde_json::Value::Null,
    }
}

/// An engine that cannot open.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store did not answer.
    #[error("the store cannot be read")]
    Store(#[source] ReadError),
    /// A definition was not stored.
    #[error("the definition of {procedure} version {version} cannot be stored")]
    Definition {
        /// The procedure.
        procedure: String,
        /// Its version.
        version: u32,
        /// Why.
        #[source]
        source: crate::ports::DefinitionError,
    },
}
