//! The MCP server of Checkpoint: Streamable HTTP, JSON answers, no sessions.
//!
//! ```text
//! socket → accept → guard → stack of layers → routes → front (strict reading) → rmcp → handler → wf_core::engine
//! ```
//!
//! Modules in reading order: [`config`] and [`server`] (what `wf-cli` calls), `accept` and `guard` (connections),
//! `stack` (the order of the layers) and `layers` (each of them), `routes`, [`entrance`] and `access` (what a path tells
//! and whom it lets in), `ack` (the page of a link in an escalation), `wire` (bytes to typed calls and back),
//! `handler` (rmcp's view of us), `tools` (the tool table and schemas), `fault` (the only map from errors to HTTP and
//! JSON-RPC), `telemetry`.
//!
//! This crate names no backend and no procedure. It reads no environment and no files.

mod accept;
mod access;
mod ack;
pub mod auth;
mod body;
mod clients;
pub mod config;
pub mod entrance;
mod exchange;
mod failpoint;
mod fault;
mod front;
mod guard;
mod handler;
mod layers;
mod probes;
mod routes;
pub mod server;
mod stack;
mod telemetry;
pub mod tls;
mod tools;
mod wire;

pub use auth::{Authenticator, Caller, Refusal, ServiceCaller};
pub use config::{HttpConfig, RateLimit, RateLimitError};
pub use entrance::{Challenge, Mirror, Protection, ServiceLists};
pub use probes::Probes;
pub use server::{Drained, ServeError, Server};
pub use tls::{Tls, TlsError};
pub use tools::{SUPPORTED_VERSIONS, instructions, result_schema, tool_list};

/// The code of the README, compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
