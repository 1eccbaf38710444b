//! The whole server from outside, over real sockets.

#![expect(clippy::expect_used, clippy::panic, reason = "tests")]
#![expect(clippy::needless_pass_by_value, reason = "JSON literals are handed over")]

mod access;
mod ack;
mod asking;
mod browsers;
mod calls;
mod client;
mod framing;
mod guest;
mod hostile;
mod http;
mod lifecycle;
mod operator;
mod pages;
mod prompts;
mod published;
mod rate;
mod readers;
mod records;
mod resources;
mod schemas;
mod security;
mod slow;
mod subscriptions;
mod tenants;
mod tls;
mod tokens;
mod versions;
mod wire;
mod world;
