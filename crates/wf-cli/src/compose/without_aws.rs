//! The double of `aws` in builds without the feature: no table can be opened, so no value of its store can be made.
//!
//! The configuration refuses such a table before (`config::backend`); this is what keeps `compose` whole.

use std::convert::Infallible;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{Notify, watch};
use wf_core::engine::Engine;
use wf_core::ports::{CopySourcePort, CopyTargetPort, ReadError, StorageBackendPort};

use crate::config::backend::{AwsTable, HOW_TO_GET_AWS};
use crate::exit::Failure;

/// A store that cannot be.
#[derive(Debug, Clone)]
pub(crate) struct TableStore(Infallible);

impl TableStore {
    /// The store behind its port.
    pub(super) fn port(&self) -> Arc<dyn StorageBackendPort> {
        match self.0 {}
    }

    /// Items that belong to nothing, and copies that differ from what they copy.
    pub(super) async fn strays(&self) -> Result<Vec<String>, ReadError> {
        match self.0 {}
    }

    /// Why this process may not write to the table.
    pub(super) async fn refusal(&self) -> Option<String> {
        match self.0 {}
    }

    /// Tells the metrics registry what was sent and consumed so far.
    pub(super) fn tell_usage(&self) {
        match self.0 {}
    }
}

/// A reconciler that cannot be.
#[derive(Debug)]
pub(crate) struct TableReconciler(Infallible);

impl TableStore {
    /// A reconciler for the state machine of the configuration.
    ///
    /// # Errors
    /// None: there is no such store.
    pub(crate) async fn reconciler(
        &self,
        _engine: Arc<Engine>,
        _asks: Arc<Notify>,
    ) -> Result<TableReconciler, Failure> {
        match self.0 {}
    }
}

impl TableReconciler {
    /// Works until `stop` is true.
    pub(crate) async fn run(&self, _stop: watch::Receiver<bool>) {
        match self.0 {}
    }
}

/// Refuses.
///
/// # Errors
/// Always.
pub(super) async fn copy_source(table: &AwsTable) -> Result<Box<dyn CopySourcePort>, Failure> {
    Err(lacking(table))
}

/// Refuses.
///
/// # Errors
/// Always.
pub(super) async fn copy_target(table: &AwsTable) -> Result<Box<dyn CopyTargetPort>, Failure> {
    Err(lacking(table))
}

fn lacking(table: &AwsTable) -> Failure {
    Failure::usage(format!("this build has no backend for the {table}")).help(HOW_TO_GET_AWS)
}

/// Refuses.
///
/// # Errors
/// Always.
pub(super) async fn open(table: &AwsTable) -> Result<(TableStore, bool), Failure> {
    Err(lacking(table))
}

/// Refuses.
///
/// # Errors
/// Always.
pub(super) async fn open_existing(table: &AwsTable) -> Result<TableStore, Failure> {
    Err(lacking(table))
}

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) async fn restamp(
    table: &AwsTable,
    _progress: &mut (dyn FnMut(u64) + Send),
) -> Result<String, Failure> {
    Err(lacking(table))
}

/// What making a table did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    /// The table was not there.
    pub(crate) table: bool,
    /// Collection of expired items was off.
    pub(crate) ttl: bool,
    /// What was done about the state machine, if one is configured.
    pub(crate) machine: Option<Machine>,
}

/// What making a state machine did.
#[derive(Debug, Clone, Copy)]
#[expect(dead_code, reason = "builds without the backend make none")]
pub(crate) enum Machine {
    /// Nothing: it is there, as this build defines it.
    Nothing,
    /// It was not there.
    Created,
    /// It had another definition.
    Updated,
}

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) async fn make_machine(
    table: &AwsTable,
    _role: Option<&str>,
) -> Result<Option<Machine>, Failure> {
    Err(lacking(table))
}

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) async fn make_table(
    table: &AwsTable,
    _progress: &mut (dyn FnMut(&str) + Send),
) -> Result<Made, Failure> {
    Err(lacking(table))
}

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) fn template(_table: &str) -> Result<Value, Failure> {
    Err(Failure::usage("this build knows no tables of DynamoDB").help(HOW_TO_GET_AWS))
}
