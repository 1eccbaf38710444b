//! Makes the tools of any `rmcp` server safe to retry.
//!
//! A client that got no answer does not know whether the tool did what it was asked to. [`RetrySafe`] stands in front of a
//! [`ServerHandler`](rmcp::ServerHandler) and keeps a row for every call of the tools that it guards, in a SQLite file
//! ([`Ledger`]): the same call again gets the stored answer, another call under the same key is refused, and what a crash
//! left open is handled as the tool's author chose ([`Unfinished`]).
//!
//! Reading order: `policy` (what an author decides, and what a tool is told), `ledger` and `sql` (the rows), `call` (claim,
//! run, record), `guard` and `delegate` (the handler), `answers` (what callers are told). The judgement of a row
//! is `wf_idempotency`'s.
//!
//! # What can be promised
//!
//! The effect of a tool is somewhere else: in a mail server, in a printer. It cannot be in the transaction of the row that
//! says it happened, so between the two there is a moment in which a crash leaves the row open. No ledger can close that
//! gap; it can only refuse to hide it:
//!
//! - [`Unfinished::Refuse`], at most once: whoever asks again is told that the outcome is unknown. Nothing is repeated.
//! - [`Unfinished::Repeat`], at least once: the tool runs again, with the **same effect key** ([`Attempt::effect_key`]). If
//!   the far side takes that key and does a thing once for each, the whole is exactly once.
//!
//! # Example
//!
//! ```no_run
//! use rmcp::ServerHandler;
//! use wf_tool_ledger::{Ledger, LedgerConfig, LedgerError, RetrySafe, Unfinished};
//!
//! fn guard<H: ServerHandler>(server: H) -> Result<RetrySafe<H>, LedgerError> {
//!     let ledger = Ledger::open("calls.db", LedgerConfig::default())?;
//!     Ok(RetrySafe::new(server, ledger).tool("send_email", Unfinished::Repeat))
//! }
//! ```
//!
//! Inside the tool, `context.extensions.get::<Attempt>()` has the [`Attempt`].

mod answers;
mod call;
mod delegate;
mod guard;
mod ledger;
mod policy;
mod sql;

pub use answers::{META_DUPLICATE, META_RETRY};
pub use guard::{ARGUMENT, META_KEY, RetrySafe};
pub use ledger::{Ledger, LedgerConfig, LedgerError};
pub use policy::{Attempt, Unfinished};

/// The code of the README, compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
