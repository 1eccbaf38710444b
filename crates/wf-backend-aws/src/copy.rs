//! A table that is read whole, or made of another store's records: the copy ports.
//!
//! A table with an unfinished copy has a mark where a store has its identity (`mark`), so that no build takes it for one.
//! `read` makes records of items by a parallel scan, and `write` items of records. DynamoDB cannot tell whether somebody
//! uses a table: all servers must be stopped, and the comparison at the end finds whoever was not.

mod mark;
mod read;
mod write;

use std::collections::BTreeMap;

use async_trait::async_trait;
use wf_core::ports::copy::{
    Begun, CopyError, CopySourcePort, CopyTargetPort, Record, Side, StoreFacts,
};
use wf_core::ports::{Cursor, OpenError, Page, ReadError};

pub(crate) use mark::is_unfinished;
pub(crate) use read::items;

use crate::config::AwsConfig;
use crate::fault::Fail;
use crate::link::Link;
use crate::{client, open, table};

/// A table as a whole, for `wf_core::engine::copy`. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct AwsCopy {
    link: Link,
}

impl AwsCopy {
    /// The store in a table, to read all of it. Nobody may write to it meanwhile.
    ///
    /// # Errors
    /// [`OpenError`]; its message says what to do.
    pub async fn source(config: AwsConfig) -> Result<Self, OpenError> {
        let link = Link::new(client::connect(&config).await, config);
        if open::identity(&link).await?.is_none() {
            let message = format!("there is no store in the table {}", link.config().table);
            return Err(OpenError::Refused { message });
        }
        Ok(Self { link })
    }

    /// A table to make a store in. It is there, and holds nothing, or an unfinished copy.
    ///
    /// # Errors
    /// [`OpenError`]; its message says what to do.
    pub async fn target(config: AwsConfig) -> Result<Self, OpenError> {
        let link = Link::new(client::connect(&config).await, config);
        if let Some(wrong) = table::shape_of(link.client(), &link.config().table).await?.first() {
            let table = &link.config().table;
            let message = format!("the table {table} is not ours: {wrong}");
            return Err(OpenError::Refused { message });
        }
        Ok(Self { link })
    }
}

fn failed(fail: Fail) -> CopyError {
    CopyError::reading(Side::Target, fail.into())
}

#[async_trait]
impl CopySourcePort for AwsCopy {
    async fn facts(&self) -> Result<StoreFacts, ReadError> {
        Ok(mark::facts(&self.link).await?)
    }

    async fn export(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<Record>, ReadError> {
        Ok(read::page(&self.link, after, limit).await?)
    }
}

#[async_trait]
impl CopyTargetPort for AwsCopy {
    async fn begin(&self, source: &StoreFacts) -> Result<Begun, CopyError> {
        let begun = mark::begin(&self.link, source).await.map_err(failed)?;
        let table = &self.link.config().table;
        begun.map_err(|why| CopyError::Refused { message: format!("the table {table} {why}") })
    }

    async fn import(&self, records: &[Record], next: Option<&Cursor>) -> Result<(), CopyError> {
        mark::check(&self.link).await.map_err(failed)?;
        let binds = self.link.config().state_machine_arn.is_some();
        let mut items = BTreeMap::new();
        for record in records {
            write::items(record, binds, &mut items).map_err(failed)?;
        }
        self.link.put_all(items).await.map_err(failed)?;
        mark::remember(&self.link, next, records.len()).await.map_err(failed)
    }

    async fn finish(&self, source: &StoreFacts) -> Result<(), CopyError> {
        mark::finish(&self.link, source).await.map_err(failed)
    }
}
