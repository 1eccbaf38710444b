//! The real binary from outside: arguments, configuration, the life of a server, the commands beside it.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod abuse;
mod binary;
#[cfg(feature = "otlp")]
mod collector;
mod commands;
mod copying;
mod data_life;
#[cfg(feature = "aws")]
mod doctor_aws;
#[cfg(feature = "aws")]
mod emulator;
mod evidence;
mod help;
mod life;
mod limits;
mod metrics;
mod pump;
mod refusals;
mod rehearsal;
mod restore;
#[cfg(feature = "aws")]
mod serve_aws;
mod server;
mod settings;
mod time;
#[cfg(feature = "otlp")]
mod tracing;
mod upgrade;
