//! Holds what callers saw against what a store holds.
//!
//! Reading order: [`history`] (what a bench writes down while it runs).

pub mod history;
