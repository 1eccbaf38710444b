//! Guarded tools behind a real `rmcp` server, over lines; the ledger is a file, as it will be.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod crash;
mod errors;
mod retry;
mod world;
