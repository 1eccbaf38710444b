//! The tests of `wf-idempotency` from outside, one module a subject. Data is in `tests/vectors`.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed unwrap is a failed test")]

mod collisions;
mod es6_numbers;
mod fingerprint;
mod generators;
mod hostile;
mod key;
mod ledger;
mod properties;
mod retry;
mod rfc8785;
mod strict;
