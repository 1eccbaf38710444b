//! A store that fails on a script: before the call, after it, instead of it, later than it, or at a gate.
//!
//! [`FaultStore`] wraps any store. Clones share script and record, so that several handles fail by one script. Nothing
//! here sleeps and nothing is random: a call takes the next fault that its [`Call`] kind has been given, or none; or what
//! the [`Weather`] of a simulation has for it.

mod gate;
mod script;
mod store;

pub use gate::Gate;
pub use script::{Call, Fault, Record};
pub use store::{Beside, FaultStore, Weather};
