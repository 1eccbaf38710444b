//! The composition root: the only place that names a concrete backend.
//!
//! Commands ask it for a store behind its port, or for an engine over that store. `local` has what only a file can do,
//! `aws` the store in a DynamoDB table, `without_aws` and `without_local` the doubles in builds that lack one.

#[cfg(not(any(feature = "local", feature = "aws")))]
compile_error!("a server needs a store: ask for the feature `local`, `aws` or both");

#[cfg(feature = "aws")]
pub(crate) mod aws;
pub(crate) mod copying;
#[cfg(feature = "local")]
pub(crate) mod local;
#[cfg(not(feature = "aws"))]
pub(crate) mod without_aws;
#[cfg(not(feature = "local"))]
pub(crate) mod without_local;

#[cfg(not(feature = "aws"))]
pub(crate) use without_aws as aws;
#[cfg(not(feature = "local"))]
pub(crate) use without_local as local;

use std::path::PathBuf;
use std::sync::Arc;

use wf_core::engine::{Engine, EngineError, EngineParts, Policies, Settings};
use wf_core::limits::RECENT_WORKFLOWS_MAX;
use wf_core::ports::{
    DefinitionError, NotificationPort, OpenError, OrchestratorPort, ReadError, StorageBackendPort,
};
use wf_procedure::Compiler;

use crate::ambient::{OsIds, SystemClock};
use crate::config::Config;
use crate::config::backend::{BackendConfig, StateMachine};
use crate::exit::{Exit, Failure};
use crate::orchestrator::LocalOrchestrator;
use crate::procedures::Loaded;
use crate::signing_keys;
use crate::sink::{Router, Webhook};

/// An open store, and what only an operator asks of it.
#[derive(Debug, Clone)]
pub(crate) enum Backend {
    /// In a file.
    Local(local::LocalStore),
    /// In a DynamoDB table.
    Aws(aws::TableStore),
}

/// How a store was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// The store.
    pub(crate) backend: Backend,
    /// It was not there before.
    pub(crate) created: bool,
    /// The schema version that it was migrated from, if it was.
    pub(crate) migrated_from: Option<u64>,
    /// The copy of the file as it was before it was migrated.
    pub(crate) kept: Option<PathBuf>,
}

impl Backend {
    /// The store behind its port.
    pub(crate) fn store(&self) -> Arc<dyn StorageBackendPort> {
        match self {
            Self::Local(store) => local::port(store),
            Self::Aws(table) => table.port(),
        }
    }

    /// Why commits cannot be taken now, if they cannot.
    pub(crate) async fn refusal(&self) -> Option<String> {
        match self {
            Self::Local(store) => store.refusal(),
            Self::Aws(table) => table.refusal().await,
        }
    }

    /// Puts what the store counts itself into the metrics registry; a file does so as it happens.
    pub(crate) fn tell_usage(&self) {
        match self {
            Self::Local(_) => {}
            Self::Aws(table) => table.tell_usage(),
        }
    }

    /// How many workflows an engine over it remembers. A transaction of a table that is refused is paid for, and takes
    /// longer than a read.
    const fn recent_workflows(&self) -> usize {
        match self {
            Self::Local(_) => RECENT_WORKFLOWS_MAX,
            Self::Aws(_) => 0,
        }
    }

    /// Rows that belong to nothing, and columns that differ from states, one line each; see the backend.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn strays(&self) -> Result<Vec<String>, ReadError> {
        match self {
            Self::Local(store) => store.strays().await,
            Self::Aws(table) => table.strays().await,
        }
    }

    /// Overwrites what an erasure left in the files of the store; with `compact` by writing all of it anew. True when
    /// nothing is left in the log, none for a store that has no files here.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) async fn forget(&self, compact: bool) -> Result<Option<bool>, ReadError> {
        match self {
            Self::Local(store) => store.forget(compact).await.map(Some),
            Self::Aws(_) => Ok(None),
        }
    }

    /// Finishes what was accepted and closes the files. Nothing of a table is open: its calls are over when they return.
    pub(crate) async fn close(self) {
        match self {
            Self::Local(store) => store.close().await,
            Self::Aws(_) => {}
        }
    }
}

/// Opens the store, making it when it is not there; a table must be there.
///
/// # Errors
/// As the store says, with the matching exit code.
pub(crate) async fn open(config: &Config) -> Result<Found, Failure> {
    match &config.backend {
        BackendConfig::Local { path } => local::open(path).await,
        BackendConfig::Aws(table) => {
            let (store, created) = aws::open(table).await?;
            Ok(Found { backend: Backend::Aws(store), created, migrated_from: None, kept: None })
        }
    }
}

/// Opens a store that must be there already.
///
/// # Errors
/// As the store says, with the matching exit code.
pub(crate) async fn open_existing(config: &Config) -> Result<Backend, Failure> {
    match &config.backend {
        BackendConfig::Local { path } => local::open_existing(path).await.map(Backend::Local),
        BackendConfig::Aws(table) => aws::open_existing(table).await.map(Backend::Aws),
    }
}

/// What is wrong with a store that does not open; `damaged` is what to do about damage.
fn cannot_open(error: OpenError, damaged: &str) -> Failure {
    match error {
        OpenError::NewerSchema { .. } | OpenError::Refused { .. } => {
            Failure::failed(error.to_string())
        }
        OpenError::Unavailable { source } => {
            Failure::unavailable("the store cannot be opened").because(source)
        }
        OpenError::Corrupt { .. } => Failure::new(Exit::Damage, error.to_string()).help(damaged),
    }
}

/// The parts of a process that serves.
#[derive(Debug)]
pub(crate) struct Serving {
    /// The engine.
    pub(crate) engine: Arc<Engine>,
    /// The orchestrator, which knows of commits.
    pub(crate) orchestrator: LocalOrchestrator,
    /// Keeps executions for open workflows, where there is a state machine and this server is to.
    pub(crate) reconciler: Option<aws::TableReconciler>,
    /// Where messages go whose secret may be read again.
    pub(crate) webhooks: Vec<Webhook>,
}

/// The engine of a server, with the definitions stored.
///
/// # Errors
/// When a definition changed under its version, or the store does not answer.
pub(crate) async fn serving(
    config: &Config,
    backend: &Backend,
    loaded: &Loaded,
) -> Result<Serving, Failure> {
    let orchestrator = orchestrator(config);
    let router = Router::open(&config.routes, config.server.public_url.as_deref())?;
    let webhooks = router.webhooks(&config.routes);
    let engine = Arc::new(engine(config, backend, loaded, orchestrator.clone(), router).await?);
    let reconciler = match (backend, machine(config)) {
        (Backend::Aws(table), Some(machine)) if machine.reconciler => {
            Some(table.reconciler(Arc::clone(&engine), orchestrator.asks()).await?)
        }
        (Backend::Aws(_) | Backend::Local(_), _) => None,
    };
    Ok(Serving { engine, orchestrator, reconciler, webhooks })
}

/// The reconciler of an operator's command.
///
/// # Errors
/// When there is no state machine, or the store does not answer.
#[cfg(feature = "aws")]
pub(crate) async fn operator_reconciler(
    backend: &Backend,
    engine: Arc<Engine>,
) -> Result<aws::TableReconciler, Failure> {
    match backend {
        Backend::Local(_) => Err(Failure::usage("a file has no state machine")),
        Backend::Aws(table) => table.reconciler(engine, Arc::default()).await,
    }
}

/// The state machine whose executions give workflows a life in time, if one does.
pub(crate) fn machine(config: &Config) -> Option<&StateMachine> {
    match &config.backend {
        BackendConfig::Local { .. } => None,
        BackendConfig::Aws(table) => table.machine.as_ref(),
    }
}

fn orchestrator(config: &Config) -> LocalOrchestrator {
    LocalOrchestrator::new(machine(config).is_some())
}

/// An engine for an operator's command: it starts nothing, and reads definitions from the store.
///
/// # Errors
/// When the store does not answer.
pub(crate) async fn operator_engine(config: &Config, backend: &Backend) -> Result<Engine, Failure> {
    let nothing = Loaded::nothing();
    engine(config, backend, &nothing, orchestrator(config), Router::default()).await
}

async fn engine(
    config: &Config,
    backend: &Backend,
    loaded: &Loaded,
    orchestrator: LocalOrchestrator,
    router: Router,
) -> Result<Engine, Failure> {
    let policies = Policies::new(loaded.policies(), Some(Arc::new(Compiler)))
        .map_err(|error| Failure::failed("the procedures exclude each other").because(error))?;
    let orchestrator: Arc<dyn OrchestratorPort> = Arc::new(orchestrator);
    let notifications: Arc<dyn NotificationPort> = Arc::new(router);
    let retention_ms = i64::try_from(config.retention.as_millis()).unwrap_or(i64::MAX);
    let engine = Engine::open(EngineParts {
        store: backend.store(),
        policies,
        clock: Arc::new(SystemClock),
        ids: Arc::new(OsIds),
        orchestrator,
        notifications,
        settings: Settings {
            locale: config.server.locale.clone(),
            timezone: config.server.timezone.clone(),
            retention_ms,
            visibility: config.auth.visibility,
            public_url: config.server.public_url.clone(),
            recent_workflows: backend.recent_workflows(),
        },
    })
    .await
    .map_err(|error| cannot_serve(error, loaded))?;
    if let Some(path) = &config.server.secret_file {
        signing_keys::apply(path, &engine)?;
    }
    Ok(engine)
}

/// What is wrong with an engine that does not open, or does not take new definitions.
pub(crate) fn cannot_serve(error: EngineError, loaded: &Loaded) -> Failure {
    let (procedure, digest, source) = match error {
        EngineError::Store(error) => return error.into(),
        EngineError::Policies(error) => {
            return Failure::failed("the procedures cannot be served together").because(error);
        }
        EngineError::Definition { procedure, version, digest, source } => {
            (format!("{procedure} version {version}"), digest, source)
        }
    };
    match source {
        DefinitionError::Changed { existing } => Failure::failed(format!(
            "{procedure} changed: the store knows it with digest {existing}, now ({}) its digest is {digest}",
            loaded.origin
        ))
        .help("give the changed procedure a new version; running workflows keep the old one"),
        DefinitionError::Unavailable { source } => {
            Failure::unavailable(format!("the store did not take the definition of {procedure}"))
                .because(source)
        }
    }
}
