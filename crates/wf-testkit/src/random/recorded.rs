//! The same lists every time, and the history that every store makes of them: what agrees with the model in each backend's
//! own tests agrees with the other backends too.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use wf_core::models::Digest;
use wf_core::ports::{ListQuery, StorageBackendPort};

use super::command::{Command, commands};
use super::run::run_against;
use crate::contract::look::walk;
use crate::contract::{ContractFixture, Violation};
use crate::model::ModelStore;

/// How many lists, and how long they are at most.
const LISTS: usize = 8;
const LENGTH: usize = 80;
/// Rows of a page.
const PAGE: u32 = 100;

/// SHA-256 over the history that the recorded lists make: the reference model's, and so that of every store. It changes
/// when a command, an event or the library that draws the lists does: take the new one from the model's own test, and see
/// that every backend has it.
pub const RECORDED_HISTORY: &str =
    "8bcfb18f9a2842256fba6ff85d6462b572093f01b3c380f8d0cec99baf97138e";

/// Runs the recorded lists, each against a fresh store of the fixture and the reference model, and holds what the stores
/// keep of them against [`RECORDED_HISTORY`].
///
/// # Errors
/// [`Violation`] when an answer is not that of the model, or the history is another.
pub async fn has_recorded_history(fixture: &dyn ContractFixture) -> Result<(), Violation> {
    let found = history(fixture, &lists()).await?;
    if found.as_str() == RECORDED_HISTORY {
        return Ok(());
    }
    Err(Violation::new(format!("the history is {found}, recorded is {RECORDED_HISTORY}")))
}

/// The recorded lists.
#[must_use]
pub fn lists() -> Vec<Vec<Command>> {
    let mut runner = TestRunner::deterministic();
    let strategy = commands(LENGTH);
    let drawn = (0..LISTS).filter_map(|_| strategy.new_tree(&mut runner).ok());
    drawn.map(|tree| tree.current()).collect()
}

/// What fresh stores of the fixture make of lists.
///
/// # Errors
/// [`Violation`] when an answer is not that of the model, or the store cannot be read.
pub async fn history(
    fixture: &dyn ContractFixture,
    lists: &[Vec<Command>],
) -> Result<Digest, Violation> {
    let mut told = String::new();
    for list in lists {
        let store = fixture.open().await?;
        let ran = run_against(&ModelStore::new(), &*store, list).await;
        ran.map_err(|disagreement| Violation::new(disagreement.to_string()))?;
        tell(&*store, &mut told).await?;
    }
    Ok(Digest::of(told.as_bytes()))
}

/// Every workflow of a store, as it is and as it came to be.
async fn tell(store: &dyn StorageBackendPort, told: &mut String) -> Result<(), Violation> {
    let mut all = walk(PAGE, |after| {
        let query = ListQuery { tenant: None, phase: None, after, limit: PAGE };
        Box::pin(async move { store.list(&query).await })
    })
    .await?;
    // The order of one id in several tenants is left open.
    all.sort_by(|a, b| (&a.tenant, &a.id).cmp(&(&b.tenant, &b.id)));
    for workflow in all {
        let events = store.events(&workflow.tenant, &workflow.id, 0, u32::MAX).await?;
        let text = serde_json::to_string(&(&workflow, &events));
        let text = text.map_err(|error| Violation::new(format!("a history: {error}")))?;
        told.push_str(&text);
        told.push('\n');
    }
    Ok(())
}
