//! Authoritative state of multi-step procedures.
//!
//! Functional core, imperative shell:
//!
//! ```text
//! HTTP/MCP → engine (awaits ports only) → judge ledger → decide (pure) → one atomic commit → reply
//!                                                        ↑ policy (pure)       └→ later: outbox dispatch, orchestrator
//! ```
//!
//! Modules in reading order: [`models`] (passive data), [`errors`], [`state_machine`] (decide, evolve), [`policy`] and
//! [`ports`], [`locks`], [`evidence`] (a document that can be verified), [`reconcile`] (R1 to R8), [`access`] (who may do what), [`redaction`], [`view`] (the result object and the words), [`limits`], [`engine`].
//!
//! Nothing here reads a clock, the environment, files, sockets or randomness: time and ids come through
//! [`ports::ambient`], and only the engine touches those.

pub mod access;
pub mod engine;
pub mod errors;
pub mod evidence;
pub mod limits;
pub mod locks;
pub mod models;
pub mod policy;
pub mod ports;
pub mod reconcile;
pub mod redaction;
mod search;
pub mod state_machine;
pub mod view;

pub use wf_idempotency as idempotency;

/// The code of the README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
