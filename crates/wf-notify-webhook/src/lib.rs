//! The webhook sink: each message of the outbox becomes one signed `POST`.
//!
//! Headers are those of [Standard Webhooks](https://www.standardwebhooks.com) (id, timestamp, signature) and the
//! attributes of CloudEvents 1.0; redirects are not followed; what a receiver answers is bounded in time and size.
//!
//! Reading order: `target` (which URLs), `address` (which addresses behind them), `connect` (the only place that
//! opens a connection, to an address that it has vetted), `secret` (keys and their rotation), `request` (headers and
//! body), `answer` (what a status means), `pressure` (a receiver that hangs stops nobody else), `trust` (whose certificates
//! count), `sink`.

mod address;
mod answer;
mod connect;
mod pressure;
mod request;
mod secret;
mod sink;
mod target;
#[cfg(test)]
mod tests;
mod trust;

pub use address::AddressRefused;
pub use connect::ConnectError;
pub use secret::SecretError;
pub use sink::{OpenError, SendError, WebhookConfig, WebhookSink};
pub use target::TargetError;
pub use trust::TrustError;

/// The code of the README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
