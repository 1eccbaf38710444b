//! The MCP server of Checkpoint: Streamable HTTP, JSON answers, no sessions.
//!
//! ```text
//! socket → accept → guard → stack of layers → routes → front (strict reading) → rmcp → handler → wf_core::engine
//! ```
//!
//! Modules in reading order: [`config`], [`builder`] and [`server`] (what `wf-cli` calls), [`guest`] and `joined` (handlers
//! of other making, and one server of theirs and ours), `accept` and `guard` (connections),
//! `stack` (the order of the layers) and `layers` (each of them), `routes`, [`entrance`] and `access` (what a path tells
//! and whom it lets in), `ack` (the page of a link in an escalation), `pages` (the seam for a console), `wire` (bytes to typed calls and back),
//! [`stdio`] (one client over lines, without HTTP), `handler` (rmcp's view of us), `tools` (the tool table and schemas), `resources`, `prompts` and `subscriptions` (what is
//! read, picked and listened to), `fault` (the only map from errors to HTTP and JSON-RPC), `telemetry`, [`traces`].
//!
//! This crate names no backend and no procedure. It reads no environment and no files.

mod accept;
mod access;
mod ack;
mod asking;
pub mod auth;
mod body;
pub mod builder;
mod clients;
pub mod config;
pub mod entrance;
mod exchange;
mod failpoint;
mod fault;
mod front;
mod guard;
pub mod guest;
mod handler;
mod joined;
mod layers;
mod pages;
mod probes;
mod prompts;
mod resources;
mod routes;
pub mod server;
mod stack;
pub mod stdio;
mod subscriptions;
mod telemetry;
pub mod tls;
mod tools;
pub mod traces;
mod wire;

pub use auth::{Authenticator, Caller, Refusal, ServiceCaller};
pub use builder::Builder;
pub use config::{HttpConfig, RateLimit, RateLimitError};
pub use entrance::{Challenge, Mirror, Protection, ServiceLists};
pub use guest::{Guest, caller};
pub use pages::Pages;
pub use probes::Probes;
pub use server::{Drained, ServeError, Server};
pub use tls::{Tls, TlsError};
pub use tools::{Needs, SUPPORTED_VERSIONS, instructions, result_schema, tool_list};
pub use traces::{TraceParent, Traces};

/// The code of the README, compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
