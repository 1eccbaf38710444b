//! Stores in temporary directories, and what can befall them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rusqlite::Connection;
use tempfile::TempDir;
use wf_backend_local::{LocalConfig, LocalStore};
use wf_core::ports::{OpenError, Source, StorageBackendPort};
use wf_testkit::contract::ContractFixture;

/// A configuration that does not let a test wait long.
pub(crate) fn config(path: impl Into<PathBuf>) -> LocalConfig {
    let mut config = LocalConfig::new(path);
    config.busy_timeout_ms = 300;
    config.checkpoint_every_ms = 50;
    config
}

/// A connection of somebody else to the file.
pub(crate) fn foreign(path: impl Into<PathBuf>) -> Connection {
    Connection::open(path.into()).expect("a foreign connection")
}

/// Runs SQL on a connection of somebody else.
pub(crate) fn meddle(path: impl Into<PathBuf>, sql: &str) -> rusqlite::Result<()> {
    foreign(path).execute_batch(sql)
}

/// Makes stores for the contract. A store's directory lives until the next one is made, or the last clone is dropped.
#[derive(Debug, Default, Clone)]
pub(crate) struct LocalFixture {
    current: Arc<Mutex<Option<TempDir>>>,
    /// Holds the write lock of the current store.
    disturber: Arc<Mutex<Option<Connection>>>,
}

impl LocalFixture {
    fn path(&self) -> PathBuf {
        let current = self.current.lock().unwrap();
        current.as_ref().expect("a store was opened").path().join("store.db")
    }
}

#[async_trait]
impl ContractFixture for LocalFixture {
    async fn open(&self) -> Result<Arc<dyn StorageBackendPort>, OpenError> {
        let dir = TempDir::new().expect("a temporary directory");
        *self.current.lock().unwrap() = Some(dir);
        let opened = LocalStore::open(config(self.path())).await?;
        assert!(opened.created);
        Ok(Arc::new(opened.store))
    }

    async fn reopen(&self) -> Result<Arc<dyn StorageBackendPort>, OpenError> {
        let opened = LocalStore::open(config(self.path())).await?;
        assert!(!opened.created);
        Ok(Arc::new(opened.store))
    }

    async fn disturb(&self, on: bool) -> Result<(), Source> {
        let disturber = if on {
            let conn = foreign(self.path());
            conn.execute_batch("BEGIN IMMEDIATE")?;
            Some(conn)
        } else {
            None
        };
        let before = std::mem::replace(&mut *self.disturber.lock().unwrap(), disturber);
        if let Some(conn) = before {
            conn.execute_batch("ROLLBACK")?;
        }
        Ok(())
    }

    async fn make_schema_newer(&self) -> Result<(), Source> {
        Ok(meddle(self.path(), "PRAGMA user_version = 1000")?)
    }
}
