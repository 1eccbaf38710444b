//! Test kit.
pub mod build;
pub mod contract;
