//! What every storage backend must prove, and the doubles that tests of the other crates need.
//!
//! [`build`] makes well-formed values and commits. [`contract`] is the law of the storage port as clauses; a backend
//! binds them with [`storage_contract!`]. [`model`] is the reference model that keeps them all, [`fault`] a store that
//! fails on a script.

pub mod build;
pub mod contract;
pub mod fault;
pub mod model;
