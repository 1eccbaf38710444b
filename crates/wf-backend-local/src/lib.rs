//! The storage backend in one SQLite file: every acknowledged commit is on the disk.
//!
//! ```text
//! LocalStore ── reads ──▶ queries (pool, one statement each)
//!     │
//!     └──── writes ──▶ queue ──▶ writer (one task, one connection, group commit) ──▶ the file ◀── checkpoint
//! ```
//!
//! Modules in reading order: `config`, `open` (with `place`, `schema`, `connection`), [`LocalStore`] in `store`,
//! `codec` (row ↔ domain), `queries` and `writer` (all SQL), `fault` (the only mapping of SQLite's errors),
//! `checkpoint`, `backup`, `restore`, `strays`.

mod backup;
mod checkpoint;
mod codec;
mod config;
mod connection;
mod failpoint;
mod fault;
mod open;
mod place;
mod queries;
mod restore;
mod schema;
mod shared;
mod store;
mod strays;
#[cfg(test)]
mod tests;
mod writer;

pub use backup::{BackupError, BackupReport};
pub use config::LocalConfig;
pub use fault::Trouble;
pub use open::{MigrateReport, Opened, migrate};
pub use restore::{FENCES_RAISED_BY, RestoreError, RestoreReport, restamp, restore};
pub use store::LocalStore;
