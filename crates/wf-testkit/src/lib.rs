//! What every storage backend must prove, and the doubles that tests of the other crates need.
pub mod build;
pub mod clock;
pub mod contract;
pub mod fault;
pub mod ids;
pub mod model;
pub mod mutants;
pub mod notification;
pub mod orchestrator;
pub mod random;
