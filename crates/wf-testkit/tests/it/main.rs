//! The kit tested with itself: the model keeps the law, and each clause is red on a store that breaks it.

mod contract;
mod mutants;
