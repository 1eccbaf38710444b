//! The operator console of Checkpoint: pages of HTML over [`wf_core::engine::Engine`], without script.
//!
//! ```text
//! request → request (what is asked) → console (who asks, is it them) → engine → pages (HTML) → answer (headers)
//! ```
//!
//! Modules in reading order: [`door`] (who a token is, a port), [`console`] (the way of a request), `request` (paths, forms,
//! cookies, whose page sent it), `sessions`, `throttle` and `notices` (what is kept, bounded, in memory), `act` (decide,
//! release), `pages` (one file each), `times`, `answer` (headers).
//!
//! This crate opens no socket, names no backend and no procedure, and reads no environment and no files.

mod act;
mod answer;
pub mod console;
pub mod door;
mod notices;
mod pages;
mod request;
mod sessions;
mod throttle;
mod times;

pub use console::{Console, ConsoleParts};
pub use door::{Door, Turned};

/// The code of the README, compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
