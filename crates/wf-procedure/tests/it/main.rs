//! Tests from outside: files in, answers of the policy out.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    reason = "tests"
)]

mod builtin;
mod corrections;
mod definitions;
mod desk;
mod escalation;
mod expressions;
mod files;
mod fixture;
mod judging;
mod plans;
mod properties;
mod schema;
mod starts;
mod waits;
