//! The reference model behind a gate, so that a test decides when a commit happens.

use std::sync::{Arc, Mutex, PoisonError};

use wf_core::ports::{ListQuery, StorageBackendPort};
use wf_testkit::fault::{Call, Fault, FaultStore, Gate};
use wf_testkit::model::ModelStore;

#[derive(Debug)]
pub(crate) struct Shelf {
    model: Arc<ModelStore>,
    faults: FaultStore,
    gate: Mutex<Gate>,
}

impl Default for Shelf {
    fn default() -> Self {
        let model = Arc::new(ModelStore::new());
        let faults = FaultStore::new(Arc::clone(&model) as Arc<dyn StorageBackendPort>);
        Self { model, faults, gate: Mutex::default() }
    }
}

impl Shelf {
    /// What the engine writes to.
    pub(crate) fn port(&self) -> Arc<dyn StorageBackendPort> {
        Arc::new(self.faults.clone())
    }

    fn gate(&self) -> Gate {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Commits wait from now on.
    pub(crate) fn hold(&self) {
        let gate = Gate::new();
        *self.gate.lock().unwrap_or_else(PoisonError::into_inner) = gate.clone();
        self.faults.fail_always(Call::Commit, Some(Fault::Hold(gate)));
    }

    /// So many commits have come and wait.
    pub(crate) async fn waiting(&self, count: usize) {
        super::within(self.gate().arrived(count)).await;
    }

    /// Waiting commits go on, and later ones do not wait.
    pub(crate) fn release(&self) {
        self.faults.heal();
        self.gate().open();
    }

    /// How many events there are, of all workflows.
    pub(crate) async fn events(&self) -> u64 {
        let query = ListQuery { limit: 1_000, ..ListQuery::default() };
        let page = self.model.list(&query).await.expect("the model answers");
        page.items.iter().map(|workflow| workflow.revision).sum()
    }
}
