//! The SQLite backend from outside: the contract, random lists against the model, and the traps that are known.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

mod backup;
mod cast;
mod contract;
mod copies;
mod damage;
mod fixture;
mod places;
mod random;
mod restore;
mod speed;
mod strays;
mod traps;
