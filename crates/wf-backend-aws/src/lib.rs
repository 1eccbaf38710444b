//! The storage backend in one DynamoDB table: every acknowledged commit is one transaction.
//!
//! ```text
//! AwsStore ── load ────▶ read::load ─────────▶ one GetItem or TransactGetItems ──┐
//!     │                                                                          ▼
//!     ├────── commit ──▶ commit (known, build) ▶ one TransactWriteItems ──▶ link ──▶ the table
//!     └────── lists, outbox, deadlines, sweep ─────────────────────────────────┘
//! ```
//!
//! Modules in reading order: `config`, `client`, `table`, `open`, [`AwsStore`] in `store`, `keys` (where each item is),
//! `item`, `action` and `codec` (item ↔ domain), `known` (what makes a commit need no read), `commit`, `read`, `outbox`,
//! `deadlines`, `leases`, `definitions`, `sweep`, [`execution`] (which execution is bound to which workflow), `link` (the wire: counting, time-outs, repeats), `guard` (whether it is still the store that was opened), `fault` (the only
//! mapping of the SDK's errors). Beside them `restore` (a table that went back in time), `permissions` (what requests need to be allowed), `template` (the table as
//! CloudFormation) and `examine` (for doctor). docs/dynamodb.md shows an example of each item.

mod action;
mod backlog;
mod client;
mod codec;
mod commit;
mod config;
mod copy;
mod deadlines;
mod definitions;
mod erase;
pub mod examine;
pub mod execution;
mod fault;
mod guard;
mod item;
mod keys;
mod known;
mod leases;
mod link;
mod open;
mod outbox;
mod permissions;
mod place;
mod purge;
mod read;
mod restore;
mod store;
mod strays;
mod sweep;
pub mod table;
mod template;

pub use config::AwsConfig;
pub use copy::AwsCopy;
pub use execution::definition::definition;
pub use fault::{Cause, Trouble};
pub use link::Usage;
pub use open::Opened;
pub use restore::{FENCES_RAISED_BY, Restamped, restamp};
pub use store::AwsStore;
pub use template::template;

/// The code of the README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
