//! What every storage backend must prove, and the doubles that tests of the other crates need.
//!
//! Reading order: [`build`] (well-formed values and commits), [`contract`] (the law of the storage port as clauses),
//! [`model`] (the reference model, which keeps them all), [`fault`] (a store that fails on a script), [`mutants`]
//! (stores that are broken on purpose), [`random`] (random command lists, compared with the model); then the doubles of
//! the other ports and of a transport: [`calls`], [`clock`], [`ids`], [`notification`], [`orchestrator`]; and [`audit`], which holds what callers of a
//! running server saw against its store; [`step_functions`] stands for an orchestrator outside the process.
//!
//! A dev-dependency only. It names no database and no transport: fixtures live in the tests of their backend.
//!
//! # How to add a backend
//!
//! 1. In `tests/it/` implement [`ContractFixture`](contract::ContractFixture): open a new store, open another handle on
//!    it, disturb its commits, make its schema newer.
//! 2. Bind the clauses. Each becomes a `#[test]` of its own:
//!
//!    ```ignore
//!    wf_testkit::storage_contract!(MyFixture::default());
//!    ```
//!
//!    A backend that needs a service says so where the runner can see it; nothing passes that did not run:
//!
//!    ```ignore
//!    wf_testkit::storage_contract!(#[ignore = "needs WF_MY_ENDPOINT"] MyFixture::connect().await);
//!    ```
//! 3. Compare it with the model:
//!
//!    ```ignore
//!    #[test]
//!    fn agrees_with_the_model() -> Result<(), wf_testkit::contract::Violation> {
//!        wf_testkit::random::agrees_with_model(32, 80, async || MyFixture::default())
//!    }
//!    ```
//!
//! # How to add a clause
//!
//! 1. Write `pub async fn sNN_what_is_true(fixture: &dyn ContractFixture) -> Verdict` in `contract/sNN.rs`. It sees only
//!    the port, and returns a [`Violation`](contract::Violation) through `check!` and `check_eq!`.
//! 2. Name it in `clauses!` in `contract.rs` and in [`storage_contract!`]. `every_clause_is_bound` is red while only one
//!    of them has it, a test of this crate while neither has.
//! 3. Break a store for it: a [`Mutation`](mutants::Mutation), and a line in [`MUTATIONS`](mutants::MUTATIONS). Without
//!    one `every_clause_has_a_store_that_is_broken_for_it` is red.
//! 4. Where the port's text left room, say how it is read in the documentation of [`contract`].
//!
//! ```
//! use wf_testkit::contract;
//! use wf_testkit::model::ModelFixture;
//!
//! let verdict = contract::run("s02_stale_revision_conflicts", async || ModelFixture::default());
//! assert!(verdict.is_ok());
//! ```

pub mod audit;
pub mod build;
pub mod calls;
pub mod clock;
pub mod contract;
pub mod copying;
pub mod fault;
pub mod ids;
pub mod model;
pub mod mutants;
pub mod notification;
pub mod orchestrator;
pub mod random;
pub mod step_functions;

/// The code of the README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
