//! The real binary from outside: arguments, configuration, the life of a server, the commands beside it.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod abuse;
mod binary;
mod commands;
mod copying;
#[cfg(feature = "aws")]
mod doctor_aws;
#[cfg(feature = "aws")]
mod emulator;
mod evidence;
mod help;
mod life;
mod limits;
mod pump;
mod refusals;
mod restore;
#[cfg(feature = "aws")]
mod serve_aws;
mod server;
mod settings;
mod time;
