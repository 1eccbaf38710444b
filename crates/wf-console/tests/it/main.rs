//! The console over an engine and a store in memory, by its requests and answers.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod acting;
mod reading;
mod signing_in;
mod world;
