//! A store that is read whole, or made of another one's records: the copy ports, on one connection to a file that nobody
//! else has open.
//!
//! A file with an unfinished copy has another application id than a store, so that no build takes it for one: opening it
//! is refused (`open`), and an older build takes it for the file of another program. What is in it is in `mark`; `read`
//! makes records of rows and `write` rows of records.

mod mark;
mod read;
mod write;

pub(crate) use mark::is_unfinished;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rusqlite::Connection;
use wf_core::ports::copy::{
    Begun, CopyError, CopySourcePort, CopyTargetPort, Record, Side, StoreFacts,
};
use wf_core::ports::{Cursor, OpenError, Page, ReadError};

use crate::config::LocalConfig;
use crate::connection::{self, close};
use crate::fault::{Cause, open_error, read_error};
use crate::open::version_of;
use crate::place::{self, InUse};
use crate::schema::{self, MIGRATIONS};
use crate::threads::blocking;

/// A store that nobody else uses, for `wf_core::engine::copy`. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct LocalCopy {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: LocalConfig,
    conn: Mutex<Option<Connection>>,
    /// Held for as long as the file must stay as it is.
    _alone: InUse,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let conn = self.conn.get_mut().unwrap_or_else(PoisonError::into_inner);
        conn.take().into_iter().for_each(close);
    }
}

impl LocalCopy {
    /// Opens a store to read all of it. It must be there, of this build's schema, and in use by nobody.
    ///
    /// # Errors
    /// [`OpenError`]; its message says what to do.
    pub async fn source(config: LocalConfig) -> Result<Self, OpenError> {
        blocking(move || open_source(&place::absolute(&config)?)).await
    }

    /// Opens a file to make a store of it. It may be absent, hold a store without anything in it, or an unfinished copy.
    ///
    /// # Errors
    /// [`OpenError`]; its message says what to do.
    pub async fn target(config: LocalConfig) -> Result<Self, OpenError> {
        blocking(move || open_target(&place::absolute(&config)?)).await
    }

    /// Where the file is.
    #[must_use]
    pub fn config(&self) -> &LocalConfig {
        &self.inner.config
    }

    fn with(config: &LocalConfig, conn: Connection, alone: InUse) -> Self {
        let conn = Mutex::new(Some(conn));
        Self { inner: Arc::new(Inner { config: config.clone(), conn, _alone: alone }) }
    }

    /// Runs `work` on the connection, on a thread that may block.
    async fn on<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, ReadError> {
        let inner = Arc::clone(&self.inner);
        let done = blocking(move || {
            let mut conn = inner.conn.lock().unwrap_or_else(PoisonError::into_inner);
            match conn.as_mut() {
                Some(conn) => work(conn),
                None => Err(Cause::Unfit("the file was closed".to_owned())),
            }
        });
        done.await.map_err(read_error)
    }

    async fn on_target<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, CopyError> {
        self.on(work).await.map_err(|error| CopyError::reading(Side::Target, error))
    }
}

fn refused(message: String) -> OpenError {
    OpenError::Refused { message }
}

fn open_source(config: &LocalConfig) -> Result<LocalCopy, OpenError> {
    if place::check(config)?.is_none_or(|found| found.len() == 0) {
        return Err(refused(format!("there is no database at {}", config.path.display())));
    }
    let alone = InUse::exclusive(config)?;
    let failed = |e| open_error(&config.path, e);
    let conn = connection::looking(config).map_err(failed)?;
    let marks = schema::marks(&conn).map_err(failed)?;
    let version = version_of(config, marks, MIGRATIONS)?;
    if version < schema::known() {
        let path = config.path.display();
        return Err(refused(format!("{path} has schema version {version}: migrate it first")));
    }
    Ok(LocalCopy::with(config, conn, alone))
}

fn open_target(config: &LocalConfig) -> Result<LocalCopy, OpenError> {
    let failed = |e| open_error(&config.path, e);
    if place::check(config)?.is_none() {
        place::create_empty(&config.path)?;
    }
    let alone = InUse::exclusive(config)?;
    let mut conn = connection::open_writing(config).map_err(failed)?;
    let marks = schema::marks(&conn).map_err(failed)?;
    if is_unfinished(marks) {
        if u64::try_from(marks.version).ok() != Some(schema::known()) {
            return Err(refused(format!(
                "the copy in {} was begun by another build: delete the file and copy again",
                config.path.display()
            )));
        }
    } else if version_of(config, marks, MIGRATIONS)? < schema::known() {
        // Whoever was stopped while it made the tables left some of them.
        if !marks.is_blank() && mark::has_work(&conn).map_err(failed)? {
            let path = config.path.display();
            return Err(refused(format!("{path} is a store of an older schema: migrate it first")));
        }
        schema::apply(&mut conn, MIGRATIONS).map_err(failed)?;
        place::sync_directory(&config.path).map_err(|e| failed(e.into()))?;
    }
    // Rows come in any order; `mark::finish` looks whether each has the row that it belongs to.
    conn.execute_batch("PRAGMA foreign_keys = OFF").map_err(|e| failed(e.into()))?;
    Ok(LocalCopy::with(config, conn, alone))
}

#[async_trait]
impl CopySourcePort for LocalCopy {
    async fn facts(&self) -> Result<StoreFacts, ReadError> {
        self.on(|conn| mark::facts(conn)).await
    }

    async fn export(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<Record>, ReadError> {
        let after = after.cloned();
        self.on(move |conn| read::page(conn, after.as_ref(), limit)).await
    }
}

#[async_trait]
impl CopyTargetPort for LocalCopy {
    async fn begin(&self, source: &StoreFacts) -> Result<Begun, CopyError> {
        let source = source.clone();
        let path = self.config().path.display().to_string();
        let begun = self.on_target(move |conn| mark::begin(conn, &source)).await?;
        begun.map_err(|why| CopyError::Refused { message: format!("{path} {why}") })
    }

    async fn import(&self, records: &[Record], next: Option<&Cursor>) -> Result<(), CopyError> {
        let (records, next) = (records.to_vec(), next.cloned());
        self.on_target(move |conn| {
            let tx = connection::immediate(conn)?;
            write::records(&tx, &records)?;
            mark::remember(&tx, next.as_ref(), records.len())?;
            Ok(tx.commit()?)
        })
        .await
    }

    async fn finish(&self, _source: &StoreFacts) -> Result<(), CopyError> {
        let fault = self.on_target(mark::finish).await?;
        match fault {
            None => Ok(()),
            Some(what) => Err(CopyError::Corrupt { side: Side::Target, what }),
        }
    }
}
