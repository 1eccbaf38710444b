//! The backend against an emulator of DynamoDB, and against requests that fail.
//!
//! Everything here needs the emulator: its endpoint is in `WF_AWS_ENDPOINT`. `cargo xtask aws` installs it, starts it and
//! runs these tests; without it they show as ignored.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod bench;
mod bindings;
mod bound;
mod cast;
mod contract;
mod copies;
mod cost;
mod crashes;
mod damage;
mod differences;
mod due;
mod dynamo;
mod engine;
mod examine;
mod faults;
mod fixture;
mod guard;
mod law;
mod lost;
mod orchestrated;
mod outages;
mod overtaken;
mod pages;
mod passes;
#[expect(dead_code, reason = "the tests of the engine use the rest of it")]
#[path = "../../../wf-core/tests/it/plain_policy.rs"]
mod plain_policy;
mod random;
mod requests;
mod restore;
mod running;
mod shard;
mod site;
mod storm;
mod wire;
