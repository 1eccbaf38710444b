//! Random command lists at the level of the storage port: a store and the reference model must give the same answers.
//!
//! [`commands`] is a proptest strategy over a few tenants, actors, workflows, assets and keys, so that commands get in
//! each other's way. [`run_against`] gives one list to both and compares every answer; [`agrees_with_model`] does it for
//! many lists and shrinks the first that disagrees; [`has_recorded_history`] does it for the same lists everywhere and holds
//! the histories of all backends against one digest.
//!
//! What the port leaves open is not compared: the order of lock rows in a load and of claimed streams, texts of errors,
//! when a row that is not pending would be due, and whether a lease that is over but was not claimed again may settle.

mod answer;
mod command;
mod commits;
mod look;
mod recorded;
mod run;

pub use command::{Base, Change, Command, Extras, Fence, Key, Locks, Outcome, commands};
pub use recorded::{RECORDED_HISTORY, has_recorded_history, history, lists};
pub use run::{Disagreement, run_against};

use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::contract::{ContractFixture, Violation};
use crate::model::ModelStore;

/// Runs `cases` random lists of up to `length` commands against fresh stores of fixtures and the reference model.
/// Seeds come from `PROPTEST_RNG_SEED` when it is set.
///
/// # Errors
/// [`Violation`] with the shortest list found that disagrees, and where it does.
pub fn agrees_with_model<F, M>(cases: u32, length: usize, fixture: M) -> Result<(), Violation>
where
    F: ContractFixture,
    M: AsyncFn() -> F,
{
    for_each_list(cases, length, async |list| {
        // The fixture may own what the store stands on, so it lives until the end.
        let fixture = fixture().await;
        let store = fixture.open().await?;
        let model = ModelStore::new();
        run_against(&model, &*store, &list).await.map_err(|d| Violation::new(d.to_string()))
    })
}

/// Gives `cases` random lists of up to `length` commands to `check`, one after the other. Seeds come from
/// `PROPTEST_RNG_SEED` when it is set.
///
/// # Errors
/// [`Violation`] with the shortest list found for which `check` has one.
pub fn for_each_list<C>(cases: u32, length: usize, check: C) -> Result<(), Violation>
where
    C: AsyncFn(Vec<Command>) -> Result<(), Violation>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Violation::new(format!("no runtime: {error}")))?;
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 500,
        ..Config::default()
    });
    let tried = runner.run(&commands(length), |list| {
        let answer = runtime.block_on(check(list));
        answer.map_err(|violation| TestCaseError::fail(violation.to_string()))
    });
    tried.map_err(|error| Violation::new(error.to_string()))
}
