//! The contract's fixture for the model: each handle behind a [`FaultStore`], so that it can be disturbed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use wf_core::ports::Source;
use wf_core::ports::{OpenError, StorageBackendPort};

use super::ModelStore;
use crate::contract::ContractFixture;
use crate::fault::{Call, Fault, FaultStore};

/// Makes model stores.
#[derive(Debug, Default)]
pub struct ModelFixture {
    current: Mutex<Option<(ModelStore, FaultStore)>>,
}

/// A fixture was asked about a store before it made one.
#[derive(Debug, thiserror::Error)]
#[error("no store was opened yet")]
struct NothingOpen;

impl ModelFixture {
    fn lock(&self) -> MutexGuard<'_, Option<(ModelStore, FaultStore)>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Result<(ModelStore, FaultStore), NothingOpen> {
        self.lock().clone().ok_or(NothingOpen)
    }
}

#[async_trait]
impl ContractFixture for ModelFixture {
    async fn open(&self) -> Result<Arc<dyn StorageBackendPort>, OpenError> {
        let model = ModelStore::new();
        let handle = FaultStore::new(Arc::new(model.clone()));
        *self.lock() = Some((model, handle.clone()));
        Ok(Arc::new(handle))
    }

    async fn reopen(&self) -> Result<Arc<dyn StorageBackendPort>, OpenError> {
        let (model, handle) =
            self.current().map_err(|error| OpenError::Unavailable { source: Box::new(error) })?;
        Ok(Arc::new(handle.beside(Arc::new(model.reopen()?))))
    }

    async fn disturb(&self, on: bool) -> Result<(), Source> {
        let (_, handle) = self.current()?;
        disturb(&handle, on).await;
        Ok(())
    }

    async fn make_schema_newer(&self) -> Result<(), Source> {
        let (model, _) = self.current()?;
        model.set_schema(ModelStore::SCHEMA + 1);
        Ok(())
    }
}

/// Lets commits fail in every way that there is, or ends that.
pub(crate) async fn disturb(store: &FaultStore, on: bool) {
    if on {
        let all = [Fault::After, Fault::Before, Fault::Instead, Fault::Later];
        store.script(Call::Commit, all.map(Some).into_iter().chain([None]));
        store.fail_always(Call::Commit, Some(Fault::Before));
    } else {
        store.heal();
        // Only commits that were answered with `Ambiguous` are among these.
        store.land().await;
    }
}
