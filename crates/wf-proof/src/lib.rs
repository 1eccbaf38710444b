//! Drives the built server from outside: to break it ([`torture`]) and to measure it ([`mod@bench`]). And its engine from
//! inside, where time and chance are made up (`simulate`, behind the feature of its name).
//!
//! Reading order: [`fault`] (why a run itself could not go on), [`harness`] (a server process, callers, what they saw),
//! then the programs. What is right is not decided here: that is `wf_testkit::audit`.

pub mod bench;
pub mod fault;
pub mod harness;
#[cfg(feature = "simulate")]
pub mod simulate;
pub mod torture;
