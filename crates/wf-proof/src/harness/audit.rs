//! Holds what the callers of a run saw against the database that it left, through `wf_testkit::audit`.
//!
//! Works on a copy, so that the evidence stays as it is and a server may be started on it again.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use wf_backend_local::{LocalConfig, LocalStore};
use wf_core::ports::{OpenError, ReadError};
use wf_procedure::Compiler;
use wf_testkit::audit::history::Attempt;
use wf_testkit::audit::{Audit, Invariant, Violation};

use crate::fault::Fault;

/// How long one read of an audit may take, in milliseconds.
const READ_TIMEOUT_MS: u64 = 120_000;

/// What is wrong with a database that nobody writes to: the server is dead, or nothing is asked of it. Each line names
/// the invariant, the place and what is wrong.
///
/// `attempts` are all attempts of all callers since the database was made; the ones that were in flight are `Unknown`.
/// The database, its `-wal` and the `-journal` of a database that is just being made are copied, not the `-shm`, as after a
/// crash of the machine. A database that is not there counts as an empty one. For a server that is at work: [`audit_live`].
///
/// # Errors
/// When the copy cannot be made or looked at for reasons that are not the database's.
pub fn audit(database: &Path, attempts: &[Attempt]) -> Result<Vec<String>, Fault> {
    Ok(lines(&examine(database, attempts)?))
}

/// The same of a database that a server has open and may write to: copies it through SQLite, as it is at one instant.
///
/// `attempts` must hold every attempt that was sent before this is called; one that was over by then must be in the
/// copy. What is sent while the copy is made would look like a commit that nobody asked for: pause the callers.
///
/// # Errors
/// When the copy cannot be made or looked at.
pub fn audit_live(database: &Path, attempts: &[Attempt]) -> Result<Vec<String>, Fault> {
    let folder = temporary()?;
    let copy = folder.path().join("checkpoint.db");
    on_runtime(async {
        let live = LocalStore::open_existing(patient(database)).await;
        let live =
            live.map_err(|error| Fault::Run(format!("the live database: {}", chain(&error))))?;
        let made = live.backup(&copy).await;
        live.close().await;
        made.map(|_| ()).map_err(|error| Fault::Run(format!("the backup: {}", chain(&error))))
    })??;
    Ok(lines(&look(&copy, attempts)?))
}

/// Like [`audit`], with what was looked at.
///
/// # Errors
/// As [`audit`].
pub fn examine(database: &Path, attempts: &[Attempt]) -> Result<Audit, Fault> {
    let folder = temporary()?;
    let copy = folder.path().join("checkpoint.db");
    for suffix in ["", "-wal", "-journal"] {
        let (from, to) = (beside(database, suffix), beside(&copy, suffix));
        match fs::copy(&from, &to) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Fault::io(format!("copying {}", from.display()))(error)),
        }
    }
    look(&copy, attempts)
}

/// With the patience of somebody who looks at everything, on a machine that does much else.
fn patient(database: &Path) -> LocalConfig {
    let mut config = LocalConfig::new(database);
    config.read_timeout_ms = READ_TIMEOUT_MS;
    config
}

fn look(copy: &Path, attempts: &[Attempt]) -> Result<Audit, Fault> {
    let config = patient(copy);
    on_runtime(async {
        let store = match LocalStore::open(config).await {
            Ok(opened) => opened.store,
            // Nothing but the file itself can be the cause here: the folder is our own.
            Err(
                error @ (OpenError::Corrupt { .. }
                | OpenError::Refused { .. }
                | OpenError::NewerSchema { .. }),
            ) => return Ok(damaged(chain(&error))),
            Err(error) => return Err(Fault::Run(format!("the copy: {}", chain(&error)))),
        };
        let found = found(&store, attempts).await;
        store.close().await;
        match found {
            Ok(audit) => Ok(audit),
            Err(ReadError::Corrupt { what }) => Ok(damaged(what)),
            Err(error) => Err(Fault::Run(format!("the copy: {}", chain(&error)))),
        }
    })?
}

async fn found(store: &LocalStore, attempts: &[Attempt]) -> Result<Audit, ReadError> {
    let faults = store.integrity_check().await?;
    let strays = store.strays().await?;
    let mut audit = wf_testkit::audit::audit(store, attempts, Some(&Compiler)).await?;
    audit.violations.extend(faults.into_iter().map(unreadable));
    // Rows without their counterparts are commits of which a part is there.
    let stray = |line| Violation::new(Invariant::I5, "database", line);
    audit.violations.extend(strays.into_iter().map(stray));
    Ok(audit)
}

fn damaged(what: String) -> Audit {
    Audit { violations: vec![unreadable(what)], ..Audit::default() }
}

fn unreadable(what: String) -> Violation {
    Violation::new(Invariant::Readable, "database", what)
}

fn lines(audit: &Audit) -> Vec<String> {
    audit.violations.iter().map(ToString::to_string).collect()
}

fn temporary() -> Result<TempDir, Fault> {
    tempfile::Builder::new().prefix("wf-audit-").tempdir().map_err(Fault::io("a temporary folder"))
}

/// On a thread and a runtime of its own, so that it may be called from anywhere.
fn on_runtime<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, Fault> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map(|runtime| runtime.block_on(work)).map_err(Fault::io("a runtime"))
    };
    let ended = std::thread::scope(|scope| scope.spawn(run).join());
    ended.map_err(|_| Fault::Run("the audit panicked".to_owned()))?
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a power cut may leave of a database that is being made: its first page is not there yet, and the journal says
    /// that before it there was none (<https://www.sqlite.org/fileformat2.html#the_rollback_journal>).
    #[test]
    fn a_database_whose_making_was_cut_off_is_rolled_back_to_none() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("checkpoint.db");
        fs::write(&database, [0; 4096]).unwrap();
        assert_eq!(audit(&database, &[]).unwrap().len(), 1, "without the journal it is damaged");
        let mut header = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
        header.extend([0, 0, 0, 0, 0x89, 0xb6, 0x9a, 0xf4, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0x10, 0]);
        header.resize(512, 0);
        fs::write(folder.path().join("checkpoint.db-journal"), header).unwrap();
        assert_eq!(audit(&database, &[]).unwrap(), Vec::<String>::new());
    }
}
