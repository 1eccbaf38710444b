//! The SQLite backend from outside: the contract, and the traps that are known.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

mod contract;
mod fixture;
