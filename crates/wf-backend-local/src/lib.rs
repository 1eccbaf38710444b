//! The storage backend in one SQLite file: every acknowledged commit is on the disk.
//!
//! ```text
//! LocalStore ── reads ──▶ queue ──▶ readers (some threads, one statement at a time) ──▶ the file ◀── checkpoint
//!     │                                                                                   ▲
//!     └──── writes ──▶ queue ──▶ writer (one thread, one connection, group commit) ───────┘
//! ```
//!
//! Modules in reading order: `config`, `open` (with `place`, `schema`, `connection`), [`LocalStore`] in `store`,
//! `codec` (row ↔ domain), `queries` and `writer` (all SQL), `readers` and `threads` (where it runs), `fault` (the only
//! mapping of SQLite's errors), `checkpoint`, `backup`, `restore`, `copy`, `strays`.

mod backup;
mod checkpoint;
mod codec;
mod config;
mod connection;
mod copy;
mod failpoint;
mod fault;
mod kept;
mod open;
mod place;
mod queries;
mod readers;
mod restore;
mod schema;
mod shared;
mod store;
mod strays;
#[cfg(test)]
mod tests;
mod threads;
mod writer;

pub use backup::{BackupError, BackupReport};
pub use config::LocalConfig;
pub use copy::LocalCopy;
pub use fault::{Cause, Trouble};
pub use open::{MigrateReport, Opened, migrate};
pub use restore::{FENCES_RAISED_BY, RestoreError, RestoreReport, restamp, restore};
pub use store::LocalStore;

/// The code of the README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
