//! Holds what callers saw against what a store holds.
//!
//! Reading order: [`history`] (what a bench writes down while it runs), `violation` (what is found), `call` (an attempt,
//! read), `books` (a store, read whole); then the checks: `stored` (the store by itself, with `wf_core::engine::verify`),
//! `keys` (what callers did with their keys), `answers` (what single answers say), [`linear`] (one order of all calls).
//! [`deliveries`] holds what sinks received against the outbox.
//!
//! What only a backend can see (rows that belong to nothing) is a check of the backend.

mod answers;
mod books;
mod call;
pub mod deliveries;
mod found;
pub mod history;
mod keys;
pub mod linear;
mod stored;
mod violation;

pub use violation::{Invariant, Violation};

use std::fmt;

use wf_core::engine::verify::verify;
use wf_core::policy::PolicyCompilerPort;
use wf_core::ports::{ReadError, StorageBackendPort};

use books::Books;
use call::Call;
use found::Found;
use history::Attempt;

/// What an audit looked at and found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audit {
    /// Attempts of callers.
    pub attempts: u64,
    /// Keys that they sent to change something.
    pub keys: u64,
    /// Workflows in the store.
    pub workflows: u64,
    /// Commits in the store.
    pub commits: u64,
    /// Events in the store.
    pub events: u64,
    /// Messages in the outbox.
    pub messages: u64,
    /// What was not looked at, and why.
    pub left_out: Vec<String>,
    /// What must not be.
    pub violations: Vec<Violation>,
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempts, keys, workflows, commits, events, messages, .. } = self;
        write!(
            f,
            "{attempts} attempts with {keys} keys against {workflows} workflows, {commits} commits, {events} events, \
             {messages} messages"
        )
    }
}

/// Holds the attempts of all callers of a store against the store.
///
/// `attempts` are all attempts since the store was made, in any order. Callers may have stopped at any time; nobody may
/// write while this reads. The run must be shorter than the retention of ledger rows. With a `compiler` every message of
/// the outbox is compared with the one that its event must have; without one only those that somebody must act on.
///
/// # Errors
/// [`ReadError`] when the store does not answer.
pub async fn audit(
    store: &dyn StorageBackendPort,
    attempts: &[Attempt],
    compiler: Option<&dyn PolicyCompilerPort>,
) -> Result<Audit, ReadError> {
    let mut found = Found::default();
    let report = verify(store, None, &mut |_| {}).await?;
    for finding in report.findings {
        let named = Invariant::ALL.iter().find(|i| i.as_str() == finding.invariant);
        let invariant = named.copied().unwrap_or(Invariant::Readable);
        found.add(invariant, finding.workflow_id, finding.message);
    }
    let calls: Vec<Call<'_>> = attempts.iter().map(Call::of).collect();
    let keyed = keys::keyed(&calls);
    let asked = keyed.keys().cloned().collect();
    let books = Books::read(store, asked, compiler, &mut found).await?;
    stored::check(&books, &mut found);
    keys::check(&books, &calls, &keyed, &mut found);
    answers::check(&books, &calls, &mut found);
    let left_out = linear::check(&books, &calls, &keyed, &mut found);
    Ok(Audit {
        attempts: count(attempts.len()),
        keys: count(keyed.len()),
        workflows: count(books.works.len()),
        commits: count(books.commits().count()),
        events: books.events,
        messages: books.messages,
        left_out,
        violations: found.into_violations(),
    })
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
