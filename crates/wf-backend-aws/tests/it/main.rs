//! The backend against an emulator of DynamoDB, and against requests that fail.
//!
//! Everything here needs the emulator: its endpoint is in `WF_AWS_ENDPOINT`. `cargo xtask aws` installs it, starts it and
//! runs these tests; without it they show as ignored.

mod cast;
mod contract;
mod fixture;
mod random;
mod wire;
