//! The pure half of the core tested from outside: the grid of states and commands, and the laws of decide and evolve.
//!
//! The engine over the ports is tested in wf-testkit, which has a store, a clock and faults to test it with.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    clippy::wildcard_enum_match_arm,
    reason = "tests: what cannot be fails the test, and values read better than references to them"
)]

mod access;
mod any_event;
mod deadlines;
mod drive;
mod evidence;
mod grid;
mod laws;
mod limits;
mod people;
mod plain_policy;
mod reconcile;
mod rules;
mod versions;
