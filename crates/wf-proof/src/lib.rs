//! Drives the built server from outside: to break it ([`torture`]) and to measure it ([`mod@bench`]).
//!
//! Reading order: [`fault`] (why a run itself could not go on), [`harness`] (a server process, callers, what they saw),
//! then the two programs. What is right is not decided here: that is `wf_testkit::audit`.

pub mod bench;
pub mod fault;
pub mod harness;
pub mod torture;
