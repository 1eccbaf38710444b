//! The console over an engine and a store in memory, by its requests and answers.

mod acting;
mod reading;
mod signing_in;
mod world;
