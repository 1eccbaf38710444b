//! What every bench uses: [`server`] (a process of the built binary), [`client`] (one caller's connection), [`record`]
//! (what callers saw).

pub mod client;
pub mod record;
pub mod server;
