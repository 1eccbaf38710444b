//! The result object and the words. Transports only wrap what is built here.

pub mod saying;
pub mod words;

pub use saying::{Ask, Done, Fault, Rule, Saying, Stand};
pub use words::Words;
