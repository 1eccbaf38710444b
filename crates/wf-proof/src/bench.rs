//! The figures of the product beside their floors, measured in one run on one machine. [`run`] is the program.
//!
//! [`load`] is the closed loop of callers that every server is measured with, [`work`] the calls that it makes, [`wire`]
//! one connection, [`process`] what the system says about a server's process, [`samples`] times and what is said of them.
//! The floors: [`raw`] (the same rows in SQLite), [`echo`] (bare HTTP); [`child`] starts the echo and the Python peer,
//! and [`contenders`] measures each of them and the product the same way. [`fill`] makes large databases.

pub mod child;
pub mod contenders;
pub mod echo;
pub mod fill;
pub mod load;
pub mod process;
pub mod raw;
pub mod run;
pub mod samples;
pub mod wire;
pub mod work;
