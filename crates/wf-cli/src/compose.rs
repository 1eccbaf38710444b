//! The composition root: the only file that names a concrete backend.
//!
//! Commands ask it for a store behind its port, or for an engine over that store.

use std::path::Path;
use std::sync::Arc;

use wf_backend_local::{
    BackupError, LocalConfig, LocalStore, MigrateReport, RestoreError, RestoreReport,
};
use wf_core::engine::verify::{VerifyReport, verify};
use wf_core::engine::{Engine, EngineError, EngineParts, Policies, Settings};
use wf_core::ports::{
    DefinitionError, NotificationPort, OpenError, OrchestratorPort, ReadError, StorageBackendPort,
};
use wf_procedure::Compiler;

use crate::ambient::{OsIds, SystemClock};
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::orchestrator::LocalOrchestrator;
use crate::procedures::Loaded;
use crate::sink::Router;

/// An open store, and what only an operator asks of it.
#[derive(Debug, Clone)]
pub(crate) struct Backend {
    local: LocalStore,
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
        Arc::new(self.local.clone())
    }

    /// Where it is; absolute.
    pub(crate) fn path(&self) -> &Path {
        &self.local.config().path
    }

    /// Whether commits can be taken now, as far as the store knows itself.
    pub(crate) fn is_healthy(&self) -> bool {
        self.local.is_healthy()
    }

    /// Writes a consistent copy to `file`, which must not exist; its size in bytes.
    ///
    /// # Errors
    /// As the store says.
    pub(crate) async fn backup(&self, file: &Path) -> Result<u64, Failure> {
        let made = self.local.backup(file).await.map_err(cannot_copy)?;
        Ok(made.bytes)
    }

    /// Rows that belong to nothing, and columns that differ from states, one line each; see the backend.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn strays(&self) -> Result<Vec<String>, ReadError> {
        self.local.strays().await
    }

    /// Finishes what was accepted and closes the files.
    pub(crate) async fn close(self) {
        self.local.close().await;
    }
}

fn local(config: &Config) -> LocalConfig {
    LocalConfig::new(&config.database)
}

/// Opens the store, making it when it is not there.
///
/// # Errors
/// As the store says, with the matching exit code.
pub(crate) async fn open(config: &Config) -> Result<Found, Failure> {
    let opened = LocalStore::open(local(config)).await.map_err(cannot_open)?;
    Ok(Found {
        backend: Backend { local: opened.store },
        created: opened.created,
        migrated_from: opened.migrated_from,
    })
}

/// Opens a store that must be there already.
///
/// # Errors
/// As the store says, with the matching exit code.
pub(crate) async fn open_existing(config: &Config) -> Result<Backend, Failure> {
    let local = LocalStore::open_existing(local(config)).await.map_err(cannot_open)?;
    Ok(Backend { local })
}

/// What is wrong with a store that does not open.
pub(crate) fn cannot_open(error: OpenError) -> Failure {
    match error {
        OpenError::NewerSchema { .. } | OpenError::Refused { .. } => {
            Failure::failed(error.to_string())
        }
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
    let router = Router::open(&config.routes, config.server.public_url.as_deref())?;
    let engine = engine(config, backend, loaded, orchestrator.clone(), router).await?;
    Ok(Serving { engine: Arc::new(engine), orchestrator })
}

/// An engine for an operator's command: it starts nothing, and reads definitions from the store.
///
/// # Errors
/// When the store does not answer.
pub(crate) async fn operator_engine(config: &Config, backend: &Backend) -> Result<Engine, Failure> {
    let nothing = Loaded::nothing();
    engine(config, backend, &nothing, LocalOrchestrator::default(), Router::default()).await
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
            visibility: config.auth.visibility,
            public_url: config.server.public_url.clone(),
        },
    })
    .await
    .map_err(|error| cannot_serve(error, loaded))
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

fn cannot_copy(error: BackupError) -> Failure {
    match error {
        BackupError::Exists { .. } => Failure::failed(error.to_string()),
        BackupError::Target { .. } => Failure::failed("the backup was not written").because(error),
        BackupError::Copy(_) => Failure::unavailable("the backup was not written").because(error),
    }
}

/// Brings the store to the schema of this build, making it when it is not there.
///
/// # Errors
/// As the store says.
pub(crate) async fn migrate(config: &Config) -> Result<MigrateReport, Failure> {
    wf_backend_local::migrate(local(config)).await.map_err(cannot_open)
}

/// Puts a backup in the place of the database; what was there stays beside it.
///
/// # Errors
/// As the store says; a server that has the database is one reason.
pub(crate) async fn restore(from: &Path, config: &Config) -> Result<RestoreReport, Failure> {
    wf_backend_local::restore(from, &local(config)).await.map_err(|error| match error {
        RestoreError::NotABackup { .. } => Failure::failed(error.to_string()),
        RestoreError::Damaged { .. } => Failure::new(Exit::Damage, error.to_string()),
        RestoreError::Place(error) => cannot_open(error),
        RestoreError::Copy(_) | RestoreError::Move { .. } => {
            Failure::failed("nothing was restored, the database is as it was").because(error)
        }
    })
}

/// Gives a recovered database a new store id and new fences; the new id.
///
/// # Errors
/// As the store says; a server that has the database is one reason.
pub(crate) async fn restamp(config: &Config) -> Result<String, Failure> {
    wf_backend_local::restamp(local(config)).await.map_err(cannot_open)
}

/// What an examination found.
#[derive(Debug)]
pub(crate) struct Examined {
    /// Size of the database file, in bytes.
    pub(crate) bytes: u64,
    /// Size of the write-ahead log, in bytes.
    pub(crate) wal_bytes: u64,
    /// What was read and recomputed, if it was.
    pub(crate) report: Option<VerifyReport>,
}

/// Opens a database that is there, as commands do, reads all of it unless `quick`, and changes nothing.
///
/// # Errors
/// When it does not open or cannot be read.
pub(crate) async fn examine(
    config: &Config,
    quick: bool,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Examined, Failure> {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    let backend = open_existing(config).await?;
    let local = backend.local.config();
    let (bytes, wal_bytes) = (size(&local.path), size(&local.wal_path()));
    let report =
        if quick { None } else { Some(verify(backend.store().as_ref(), None, progress).await) };
    backend.close().await;
    Ok(Examined { bytes, wal_bytes, report: report.transpose()? })
}
