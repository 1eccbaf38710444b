//! The composition root: the only file that names a concrete backend.
//!
//! Commands ask it for a store behind its port, or for an engine over that store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wf_backend_local::{LocalConfig, LocalStore};
use wf_core::engine::{Engine, EngineError, EngineParts, Policies, Settings};
use wf_core::ports::{DefinitionError, NotificationPort, OpenError, OrchestratorPort, StorageBackendPort};
use wf_procedure::Compiler;

use crate::ambient::{OsIds, SystemClock};
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::orchestrator::LocalOrchestrator;
use crate::procedures::Loaded;
use crate::sink::LogSink;

/// An open store, and what only an operator asks of it.
#[derive(Debug, Clone)]
pub(crate) struct Backend {
    local: Arc<LocalStore>,
    path: PathBuf,
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
}

impl Backend {
    /// The store behind its port.
    pub(crate) fn store(&self) -> Arc<dyn StorageBackendPort> {
        Arc::<LocalStore>::clone(&self.local)
    }

    /// Where it is; absolute.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether commits can be taken now, as far as the store knows itself.
    pub(crate) fn is_healthy(&self) -> bool {
        self.local.is_healthy()
    }

    /// Size of the write-ahead log, in bytes.
    pub(crate) fn wal_bytes(&self) -> u64 {
        self.local.wal_bytes()
    }

    /// Finishes what was accepted and closes the files.
    pub(crate) async fn close(&self) {
        self.local.close().await;
    }
}

fn local(config: &Config) -> Result<LocalConfig, Failure> {
    let path = std::path::absolute(&config.database).map_err(|error| {
        Failure::usage(format!("{} is no path", config.database.display())).because(error)
    })?;
    Ok(LocalConfig::new(path))
}

/// Opens the store, making it when it is not there.
///
/// # Errors
/// As the store says, with the matching exit code.
pub(crate) async fn open(config: &Config) -> Result<Found, Failure> {
    let local = local(config)?;
    let path = local.path.clone();
    let opened = LocalStore::open(local).await.map_err(cannot_open)?;
    Ok(Found {
        backend: Backend {
            local: Arc::new(opened.store),
            path,
        },
        created: opened.created,
        migrated_from: opened.migrated_from,
    })
}

/// Opens a store that must be there already.
///
/// # Errors
/// As the store says, with the matching exit code.
pub(crate) async fn open_existing(config: &Config) -> Result<Backend, Failure> {
    let local = local(config)?;
    let path = local.path.clone();
    let store = LocalStore::open_existing(local).await.map_err(cannot_open)?;
    Ok(Backend {
        local: Arc::new(store),
        path,
    })
}

/// What is wrong with a store that does not open.
pub(crate) fn cannot_open(error: OpenError) -> Failure {
    match error {
        OpenError::NewerSchema { .. } | OpenError::Refused { .. } => Failure::failed(error.to_string()),
        OpenError::Unavailable { source } => {
            Failure::unavailable("the store cannot be opened").because(source)
        }
        OpenError::Corrupt { .. } => Failure::new(Exit::Damage, error.to_string())
            .help("keep a copy of the file, and restore a backup with `wf-cli restore FILE`"),
    }
}

/// The parts of a process that serves.
#[derive(Debug)]
pub(crate) struct Serving {
    /// The engine.
    pub(crate) engine: Arc<Engine>,
    /// The orchestrator, which knows of commits.
    pub(crate) orchestrator: LocalOrchestrator,
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
    let orchestrator = LocalOrchestrator::default();
    let engine = engine(config, backend, loaded, orchestrator.clone()).await?;
    Ok(Serving {
        engine: Arc::new(engine),
        orchestrator,
    })
}

/// An engine for an operator's command: it starts nothing, and reads definitions from the store.
///
/// # Errors
/// When the store does not answer.
pub(crate) async fn operator_engine(
    config: &Config,
    backend: &Backend,
) -> Result<Engine, Failure> {
    let nothing = Loaded {
        procedures: Vec::new(),
        origin: String::new(),
    };
    engine(config, backend, &nothing, LocalOrchestrator::default()).await
}

async fn engine(
    config: &Config,
    backend: &Backend,
    loaded: &Loaded,
    orchestrator: LocalOrchestrator,
) -> Result<Engine, Failure> {
    let policies = Policies::new(loaded.policies(), Some(Arc::new(Compiler)))
        .map_err(|error| Failure::failed("the procedures exclude each other").because(error))?;
    let orchestrator: Arc<dyn OrchestratorPort> = Arc::new(orchestrator);
    let notifications: Arc<dyn NotificationPort> = Arc::new(LogSink);
    let retention_ms = i64::try_from(config.retention.as_millis()).unwrap_or(i64::MAX);
    Engine::open(EngineParts {
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
        },
    })
    .await
    .map_err(|error| cannot_serve(error, loaded))
}

/// What is wrong with an engine that does not open, or does not take new definitions.
pub(crate) fn cannot_serve(error: EngineError, loaded: &Loaded) -> Failure {
    let (procedure, version, source) = match error {
        EngineError::Store(error) => return error.into(),
        EngineError::Policies(error) => {
            return Failure::failed("the procedures exclude each other").because(error);
        }
        EngineError::Definition {
            procedure,
            version,
            source,
        } => (procedure, version, source),
    };
    match source {
        DefinitionError::Changed { existing } => {
            let offered = loaded
                .procedures
                .iter()
                .map(|procedure| wf_core::policy::DomainPolicyPort::definition(procedure.as_ref()))
                .find(|definition| definition.id.as_str() == procedure && definition.version == version)
                .map_or_else(String::new, |definition| definition.digest.to_string());
            Failure::failed(format!(
                "{procedure} version {version} changed: the store knows digest {existing}, {} has digest {offered}",
                loaded.origin
            ))
            .help("give the changed procedure a new version; running workflows keep the old one")
        }
        DefinitionError::Unavailable { source } => Failure::unavailable(format!(
            "the store did not take the definition of {procedure} version {version}"
        ))
        .because(source),
    }
}

/// Brings the schema of an existing store to the version of this build.
///
/// # Errors
/// As the store says.
pub(crate) async fn migrate(config: &Config) -> Result<(PathBuf, wf_backend_local::Migrated), Failure> {
    let local = local(config)?;
    let path = local.path.clone();
    let migrated = wf_backend_local::migrate(local).await.map_err(cannot_open)?;
    Ok((path, migrated))
}
