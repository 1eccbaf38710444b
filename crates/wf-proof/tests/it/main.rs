//! Tests of the harness and of the benches themselves.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

mod audit;
