//! The store in a DynamoDB table, in builds that have the feature `aws`; `without_aws` is its double in all others.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{Notify, watch};
pub(crate) use wf_backend_aws::Trouble;
pub(crate) use wf_backend_aws::examine::{Answer, Examination, Guard, Permission, Verdict};
use wf_backend_aws::execution::machine;
pub(crate) use wf_backend_aws::execution::machine::{Deployed, Made as Machine};
pub(crate) use wf_backend_aws::execution::{End, Looked, Outcome, Report, Taken, action, rule};
use wf_backend_aws::execution::{Reconciler, ReconcilerError};
use wf_backend_aws::{AwsConfig, AwsCopy, AwsStore, examine, table};
use wf_core::engine::Engine;
use wf_core::ports::{
    ClockPort, CopySourcePort, CopyTargetPort, OpenError, ReadError, StorageBackendPort,
};

use crate::ambient::SystemClock;
use crate::config::backend::AwsTable;
use crate::exit::{Failure, chain};

/// A store that is open.
#[derive(Debug, Clone)]
pub(crate) struct TableStore(AwsStore);

impl TableStore {
    /// The store behind its port.
    pub(super) fn port(&self) -> Arc<dyn StorageBackendPort> {
        Arc::new(self.0.clone())
    }

    /// Items that belong to nothing, and copies that differ from what they copy.
    pub(super) async fn strays(&self) -> Result<Vec<String>, ReadError> {
        self.0.strays().await
    }

    /// Why this process may not write to the table, if it may not.
    pub(super) async fn refusal(&self) -> Option<String> {
        self.0.may_write().await.err().map(|error| chain(&error))
    }

    /// Tells the metrics registry what was sent and consumed so far.
    pub(super) fn tell_usage(&self) {
        let usage = self.0.usage();
        for (operation, requests) in &usage.requests {
            let labels = [("operation", *operation)];
            metrics::counter!("checkpoint_dynamodb_requests_total", &labels).absolute(*requests);
        }
        metrics::gauge!("checkpoint_dynamodb_read_units").set(usage.read_units);
        metrics::gauge!("checkpoint_dynamodb_write_units").set(usage.write_units);
    }
}

/// Keeps one execution for each open workflow of a table.
#[derive(Debug)]
pub(crate) struct TableReconciler(Reconciler);

impl TableStore {
    /// A reconciler for the state machine of the configuration, which must name one. `asks` wakes it.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn reconciler(
        &self,
        engine: Arc<Engine>,
        asks: Arc<Notify>,
    ) -> Result<TableReconciler, Failure> {
        let connected = Reconciler::connect(&self.0, engine, Arc::new(SystemClock), asks).await;
        match connected {
            Ok(Some(reconciler)) => Ok(TableReconciler(reconciler)),
            Ok(None) => Err(Failure::usage("backend.aws.state_machine_arn is not set")),
            Err(ReconcilerError::Store(error)) => Err(error.into()),
            Err(error @ (ReconcilerError::Machine(_) | ReconcilerError::Randomness(_))) => {
                Err(Failure::failed(error.to_string()))
            }
        }
    }
}

impl TableReconciler {
    /// Works until `stop` is true.
    pub(crate) async fn run(&self, stop: watch::Receiver<bool>) {
        self.0.run(stop).await;
    }

    /// Looks once at everything that is to be looked at; in a dry run it only reads.
    ///
    /// # Errors
    /// When the table does not answer.
    pub(crate) async fn once(&self, dry_run: bool) -> Result<Report, Failure> {
        Ok(self.0.once(dry_run).await?)
    }
}

/// How a copy reaches the table: it takes long, and nobody waits for a single answer.
fn patient(table: &AwsTable) -> AwsConfig {
    let mut settings = settings(table);
    settings.attempt_timeout_ms = 20_000;
    settings.patience_ms = 120_000;
    settings.attempts_max = 200;
    settings
}

/// The store in this table, to read all of it.
///
/// # Errors
/// As the store says, with the matching exit code.
pub(super) async fn copy_source(table: &AwsTable) -> Result<Box<dyn CopySourcePort>, Failure> {
    Ok(Box::new(AwsCopy::source(patient(table)).await.map_err(cannot_open)?))
}

/// This table, to make a store in it.
///
/// # Errors
/// As the store says, with the matching exit code.
pub(super) async fn copy_target(table: &AwsTable) -> Result<Box<dyn CopyTargetPort>, Failure> {
    Ok(Box::new(AwsCopy::target(patient(table)).await.map_err(cannot_open)?))
}

/// How the backend is told to reach the table.
pub(crate) fn settings(table: &AwsTable) -> AwsConfig {
    let mut settings = AwsConfig::new(&table.name);
    settings.region.clone_from(&table.region);
    settings.endpoint_url.clone_from(&table.endpoint_url);
    if let Some(machine) = &table.machine {
        settings.state_machine_arn = Some(machine.arn.clone());
        settings.states_endpoint_url.clone_from(&machine.endpoint_url);
    }
    // It costs nothing, and /metrics tells it.
    settings.measure = true;
    settings
}

/// Opens the store in this table, making its identity when the table is empty; whether it was.
///
/// # Errors
/// As the store says, with the matching exit code.
pub(super) async fn open(table: &AwsTable) -> Result<(TableStore, bool), Failure> {
    let opened = AwsStore::open(settings(table)).await.map_err(cannot_open)?;
    Ok((TableStore(opened.store), opened.created))
}

/// Opens a store that must be there already.
///
/// # Errors
/// As the store says, with the matching exit code.
pub(super) async fn open_existing(table: &AwsTable) -> Result<TableStore, Failure> {
    AwsStore::open_existing(settings(table)).await.map(TableStore).map_err(cannot_open)
}

fn cannot_open(error: OpenError) -> Failure {
    let silent = matches!(error, OpenError::Unavailable { .. });
    let failure = super::cannot_open(
        error,
        "restore the table from before the damage: docs/operations.md says how",
    );
    // Most often it is what somebody new has not set yet.
    if silent { failure.help(HOW_TO_REACH) } else { failure }
}

/// What to look at where DynamoDB does not answer.
const HOW_TO_REACH: &str = "look whether this process has credentials and a region of AWS and reaches DynamoDB there: `wf-cli doctor` says more, docs/dynamodb.md what is needed";

/// Gives a recovered table a new store id and new fences; the new id. `progress` is told how many items were looked at.
///
/// # Errors
/// As the store says.
pub(crate) async fn restamp(
    table: &AwsTable,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<String, Failure> {
    let done = wf_backend_aws::restamp(settings(table), progress).await.map_err(cannot_open)?;
    Ok(done.store_id)
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

/// Makes the table where there is none, waits until it can be used, and switches the collection of expired items on.
/// `progress` is told what is waited for.
///
/// # Errors
/// When a table of this name has another shape, is not active in time, or may not be made.
pub(crate) async fn make_table(
    table: &AwsTable,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<Made, Failure> {
    let made = table::create(&settings(table), progress).await.map_err(cannot_open)?;
    Ok(Made { table: made.table, ttl: made.ttl, machine: None })
}

/// Makes the state machine where there is none, and gives it the definition of this build where it has another; none when
/// none is configured. `role` is what its executions are.
///
/// # Errors
/// When it cannot be used, or making it needs a role.
pub(crate) async fn make_machine(
    table: &AwsTable,
    role: Option<&str>,
) -> Result<Option<Machine>, Failure> {
    machine::create(&settings(table), role).await.map_err(cannot_open)
}

/// How the state machine of the configuration is; none when none is configured.
pub(crate) async fn deployed(table: &AwsTable) -> Option<Deployed> {
    machine::deployed(&settings(table)).await
}

/// A table of this name, and who may use it, as a CloudFormation template.
///
/// # Errors
/// None; in builds without the backend it refuses.
#[expect(clippy::unnecessary_wraps, reason = "its double in builds without the backend refuses")]
pub(crate) fn template(table: &str) -> Result<Value, Failure> {
    Ok(wf_backend_aws::template(table))
}

/// Looks at a table and changes nothing: for doctor.
///
/// # Errors
/// When it does not answer.
pub(crate) async fn examine(
    table: &AwsTable,
    clock: &dyn ClockPort,
) -> Result<Examination, Trouble> {
    examine::examine(&settings(table), clock).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_credentials_yet_is_told_where_to_look() {
        let silent = cannot_open(OpenError::Unavailable { source: "no credentials".into() });
        let said = silent.text();
        assert!(said.contains("no credentials") && said.contains("wf-cli doctor"), "{said}");
        let damaged = cannot_open(OpenError::Corrupt { what: "the table".to_owned() }).text();
        assert!(damaged.contains("restore the table"), "{damaged}");
    }
}
