//! The contract's fixture for broken stores.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use wf_core::ports::Source;
use wf_core::ports::{OpenError, StorageBackendPort};

use super::{MutantStore, Mutation};
use crate::contract::ContractFixture;
use crate::model::ModelStore;

/// Makes stores with a mutation; with none it makes stores that keep the law.
#[derive(Debug)]
pub struct MutantFixture {
    mutation: Option<Mutation>,
    current: Mutex<Option<MutantStore>>,
}

/// A fixture was asked about a store before it made one.
#[derive(Debug, thiserror::Error)]
#[error("no store was opened yet")]
struct NothingOpen;

impl MutantFixture {
    /// A fixture of stores with this mutation.
    #[must_use]
    pub fn new(mutation: Option<Mutation>) -> Self {
        Self { mutation, current: Mutex::new(None) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<MutantStore>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Result<MutantStore, NothingOpen> {
        self.lock().clone().ok_or(NothingOpen)
    }
}

#[async_trait]
impl ContractFixture for MutantFixture {
    async fn open(&self) -> Result<Arc<dyn StorageBackendPort>, OpenError> {
        let store = MutantStore::new(self.mutation);
        *self.lock() = Some(store.clone());
        Ok(Arc::new(store))
    }

    async fn reopen(&self) -> Result<Arc<dyn StorageBackendPort>, OpenError> {
        let store =
            self.current().map_err(|error| OpenError::Unavailable { source: Box::new(error) })?;
        if self.mutation != Some(Mutation::SchemaUnchecked) {
            store.model().reopen()?;
        }
        Ok(Arc::new(store))
    }

    async fn disturb(&self, on: bool) -> Result<(), Source> {
        self.current()?.disturb(on).await;
        Ok(())
    }

    async fn make_schema_newer(&self) -> Result<(), Source> {
        self.current()?.model().set_schema(ModelStore::SCHEMA + 1);
        Ok(())
    }
}
