//! Opening a store: look at the place, look at the file, migrate, start the writer and the readers.
//!
//! A file that is not ours is refused before anything in it is changed. The whole file is not checked: `quick_check`
//! reads every page, which takes minutes on a large store. What is checked is the header (SQLite does that), our marks,
//! the schema version and the identity; a damaged page is found when it is read, and then the store refuses.

use std::path::PathBuf;

use wf_core::ports::OpenError;

use crate::config::LocalConfig;
use crate::connection::{self, check_version, close};
use crate::fault::open_error;
use crate::kept::keep;
use crate::place::{self, Footprint, InUse};
use crate::schema::{self, APPLICATION_ID, MIGRATIONS, Marks, Migration};
use crate::shared::Shared;
use crate::store::LocalStore;
use crate::threads::blocking;

/// An opened store, and what opening it did.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: LocalStore,
    /// The file did not exist before.
    pub created: bool,
    /// The schema version before, when the file was migrated.
    pub migrated_from: Option<u64>,
    /// The copy of the file as it was before it was migrated.
    pub kept: Option<PathBuf>,
}

/// What a migration did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrateReport {
    /// The schema version before; 0 for a new file.
    pub from: u64,
    /// The schema version now.
    pub to: u64,
    /// The copy of the file as it was before, when there was something to keep.
    pub backup: Option<PathBuf>,
}

/// Creates or migrates the file, without leaving it open.
///
/// # Errors
/// [`OpenError`]; a migration that is needed is refused while a server has the file.
pub async fn migrate(config: LocalConfig) -> Result<MigrateReport, OpenError> {
    blocking(move || {
        let config = place::absolute(&config)?;
        let (_, _, report) = prepare(&config, MIGRATIONS)?;
        Ok(report)
    })
    .await
}

/// Opens, creating and migrating as needed.
pub(crate) async fn open(config: LocalConfig) -> Result<Opened, OpenError> {
    let opened = blocking(move || {
        let config = place::absolute(&config)?;
        let (in_use, created, report) = prepare(&config, MIGRATIONS)?;
        let migrated_from = (report.from != report.to && !created).then_some(report.from);
        let kept = report.backup;
        Ok(Opened { store: start(config, in_use)?, created, migrated_from, kept })
    })
    .await?;
    opened.store.first_look().await?;
    Ok(opened)
}

/// Opens a file that is there and has the schema of this build.
pub(crate) async fn open_existing(config: LocalConfig) -> Result<LocalStore, OpenError> {
    let store = blocking(move || start_existing(&place::absolute(&config)?)).await?;
    store.first_look().await?;
    Ok(store)
}

fn start_existing(config: &LocalConfig) -> Result<LocalStore, OpenError> {
    if place::check(config)?.is_none_or(|found| found.len() == 0) {
        return Err(OpenError::Refused {
            message: format!(
                "there is no database at {}: start a server there first, or give the path of one",
                config.path.display()
            ),
        });
    }
    let in_use = InUse::shared(config)?;
    let version = version_of(config, look(config)?, MIGRATIONS)?;
    if version < schema::known() {
        return Err(OpenError::Refused {
            message: format!(
                "{} has schema version {version}, this build needs {}: migrate it first",
                config.path.display(),
                schema::known()
            ),
        });
    }
    start(config.clone(), in_use)
}

/// Makes sure that the file is there and has the newest of `migrations`. Answers the lock that says that it is in use,
/// and whether the file is new.
pub(crate) fn prepare(
    config: &LocalConfig,
    migrations: &[Migration],
) -> Result<(InUse, bool, MigrateReport), OpenError> {
    let newest = schema::newest(migrations);
    let created = match place::check(config)? {
        Some(found) => found.len() == 0,
        None => place::create_empty(&config.path)?,
    };
    let in_use = InUse::shared(config)?;
    let from = version_of(config, look(config)?, migrations)?;
    let mut report = MigrateReport { from, to: newest, backup: None };
    if from == newest {
        return Ok((in_use, created, report));
    }
    if from == 0 {
        upgrade(config, migrations)?;
        return Ok((in_use, created, report));
    }
    // Nobody else may use the file while its schema changes.
    drop(in_use);
    let alone = InUse::exclusive(config)?;
    report.from = version_of(config, look(config)?, migrations)?;
    if report.from < newest {
        report.backup = Some(keep(config, report.from)?);
        upgrade(config, migrations)?;
    }
    drop(alone);
    Ok((InUse::shared(config)?, false, report))
}

/// The marks of the file. Changes nothing in it.
fn look(config: &LocalConfig) -> Result<Marks, OpenError> {
    if let Err(found) = check_version() {
        return Err(OpenError::Refused {
            message: format!(
                "this build carries SQLite {found}, which can lose commits; 3.51.3 or newer is needed: build it anew \
                 with the bundled SQLite"
            ),
        });
    }
    let marks = connection::looking(config).and_then(|conn| {
        let marks = schema::marks(&conn);
        close(conn);
        marks
    });
    marks.map_err(|e| open_error(&config.path, e))
}

/// The schema version, 0 for an empty file. Refuses files of others and of newer builds.
pub(crate) fn version_of(
    config: &LocalConfig,
    marks: Marks,
    migrations: &[Migration],
) -> Result<u64, OpenError> {
    if marks.is_blank() {
        return Ok(0);
    }
    if crate::copy::is_unfinished(marks) {
        return Err(OpenError::Refused {
            message: format!(
                "{} holds an unfinished copy of a store: run the same `wf-cli copy` again, or delete the file",
                config.path.display()
            ),
        });
    }
    if marks.application_id != APPLICATION_ID {
        return Err(OpenError::Refused {
            message: format!(
                "{} is a SQLite database of another program (application id {:#x}): give the path of a Checkpoint \
                 database, or of a file that does not exist yet",
                config.path.display(),
                marks.application_id
            ),
        });
    }
    let known = schema::newest(migrations);
    match u64::try_from(marks.version) {
        Ok(found) if found > known => Err(OpenError::NewerSchema { found, known }),
        Ok(found) => Ok(found),
        Err(_) => Err(OpenError::Corrupt { what: format!("schema version {}", marks.version) }),
    }
}

/// Applies what is missing, then makes the names of the files durable.
fn upgrade(config: &LocalConfig, migrations: &[Migration]) -> Result<(), OpenError> {
    let failed = |e| open_error(&config.path, e);
    let mut conn = connection::open_writing(config).map_err(failed)?;
    let applied = schema::apply(&mut conn, migrations);
    close(conn);
    applied.map_err(failed)?;
    place::sync_directory(&config.path).map_err(|e| failed(e.into()))
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Starts readers, writer and checkpointer on a file that is ready.
fn start(config: LocalConfig, in_use: InUse) -> Result<LocalStore, OpenError> {
    let path = config.path.clone();
    let started = connection::anchor(&config).and_then(|anchor| {
        let files = [config.path.clone(), config.wal_path(), config.shm_path()];
        LocalStore::start(Shared::new(config, Footprint::of(files), in_use), anchor)
    });
    started.map_err(|e| open_error(&path, e))
}
