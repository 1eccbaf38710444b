//! The kit tested with itself: the model keeps the law, each clause is red on a store that breaks it, and the doubles
//! do what they say.

#![expect(clippy::unwrap_used, reason = "tests")]

mod build;
mod clauses;
mod contract;
mod doubles;
mod fault;
mod mutants;
mod random;
