//! The result object and the words. Transports only wrap what is built here.

pub mod saying;

pub use saying::Saying;
