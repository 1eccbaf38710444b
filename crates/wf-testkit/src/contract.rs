//! The law of `StorageBackendPort` as tests: one `pub async fn` per clause over a [`ContractFixture`].
//!
//! A clause is named after its law: `s02_stale_revision_conflicts` proves a part of S2; `port_…` proves what the
//! method's own documentation says. A clause returns [`Violation`] instead of panicking, so that it can also be run
//! against a store that is broken on purpose (module `mutants`). [`storage_contract!`](crate::storage_contract) binds
//! every clause as a test of a backend.
//!
//! # How the law is read
//!
//! Where the port's text leaves room, the clauses, the reference model and so every backend read it like this:
//!
//! - A commit is looked at in this order: sizes (S12), ledger, locks in the order of the commit, revision. The first
//!   condition that fails is reported. A commit never names an asset twice.
//! - `replaces` names a row that is gone (swept meanwhile): no row exists, so the new one is inserted.
//! - `acquired_at` of a holder is `next.updated_at`, its owner is `next.owner`.
//! - `Acquire` fails also where the workflow itself holds the asset: it is not free.
//! - A new outbox row is pending, with no attempts, due at the time of its message. A retry and giving up count as a
//!   failed attempt, a delivery does not. A revived row is due at the time it was revived, with no attempts.
//! - Only pending rows have a place in a stream; dead ones are passed over. A settlement changes pending rows only.
//! - A lease is live until its expiry has come. A settlement is judged by its token alone: until somebody else claimed,
//!   a late holder may still settle; after that, or after the lease was settled, it is `LeaseLost`.
//! - "Longest blocked" goes by the oldest open block.
//! - Too large is measured in bytes of JSON: the state over `STATE_BYTES_MAX`, an event or a message over
//!   `EVENT_BYTES_MAX`, a ledger result over `STATE_BYTES_MAX`.

mod cast;
mod fixture;
mod look;
mod macros;
mod violation;

mod s01;

pub use fixture::ContractFixture;
pub use violation::Violation;

pub(crate) use violation::{check, check_eq};

use std::future::Future;
use std::pin::Pin;

/// What a clause answers.
pub type Verdict = Result<(), Violation>;

/// A clause at work.
pub type Running<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// A clause that can be run by its name.
#[derive(Debug, Clone, Copy)]
pub struct Clause {
    /// Its name.
    pub name: &'static str,
    /// Runs it.
    pub run: for<'a> fn(&'a dyn ContractFixture) -> Running<'a>,
}

macro_rules! clauses {
    ($($module:ident: $($name:ident)+;)+) => {
        $(pub use $module::{$($name),+};)+

        /// The name of every clause.
        pub const CLAUSES: &[&str] = &[$($(stringify!($name)),+),+];

        /// Every clause, in the order of [`CLAUSES`].
        pub const ALL: &[Clause] = &[$($(Clause {
            name: stringify!($name),
            run: |fixture| Box::pin($name(fixture)),
        }),+),+];
    };
}

clauses! {
    s01:
        s01_commit_writes_every_part
        s01_next_commit_adds_to_the_first
        s01_refused_commit_writes_no_part;
}

/// Runs one clause against the fixture that `fixture` makes, on a runtime of its own with two threads.
///
/// # Errors
/// [`Violation`] when the store breaks the law, when there is no clause `name`, or when there is no runtime.
pub fn run<F, M>(name: &str, fixture: M) -> Verdict
where
    F: ContractFixture,
    M: AsyncFnOnce() -> F,
{
    let clause = ALL
        .iter()
        .find(|clause| clause.name == name)
        .ok_or_else(|| Violation::new(format!("there is no clause {name}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Violation::new(format!("no runtime: {error}")))?;
    runtime.block_on(async move {
        let fixture = fixture().await;
        (clause.run)(&fixture).await
    })
}
