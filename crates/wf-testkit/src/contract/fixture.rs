//! What a backend brings to the contract: a way to make stores.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use wf_core::ports::Source;
use wf_core::ports::{OpenError, StorageBackendPort};

/// Makes stores for the clauses. Each clause gets a fixture of its own.
///
/// A fixture has one *current store*, made by [`open`](Self::open). A handle is what another process would have:
/// handles share nothing but the store itself.
#[async_trait]
pub trait ContractFixture: Debug + Send + Sync {
    /// Makes a new, empty store the current one and opens it.
    async fn open(&self) -> Result<Arc<dyn StorageBackendPort>, OpenError>;

    /// Opens another, independent handle on the current store. Earlier handles stay usable.
    async fn reopen(&self) -> Result<Arc<dyn StorageBackendPort>, OpenError>;

    /// Makes commits on the current store fail in a way that can befall it (somebody else holds its lock, answers are
    /// lost, requests are throttled), until it is called with `false`. Commits meanwhile must come back, with success
    /// or an error, within a few seconds; reads need not work.
    async fn disturb(&self, on: bool) -> Result<(), Source>;

    /// Makes the schema version of the current store one that no build knows yet.
    async fn make_schema_newer(&self) -> Result<(), Source>;
}

const _: fn(&dyn ContractFixture) = |_| {};
