//! What every bench uses: [`server`] (a process of the built binary), [`client`] (one caller's connection), [`record`]
//! (what callers saw), [`workload`] (callers at work), [`mod@line`] (their way to it) through [`gate`] (whether it is there), [`audit`] (what
//! is wrong with the database that a run left), [`disk`] (what the server does to its files, logged and disturbed).

pub mod audit;
pub mod client;
pub mod disk;
pub mod gate;
pub mod line;
pub mod port;
pub mod record;
pub mod server;
pub mod workload;
