//! The figures of the product beside their floors, measured in one run on one machine. [`run`] is the program.
//!
//! [`load`] is the closed loop of callers that everything is measured with, [`work`] the calls that it makes, [`wire`] one
//! connection, [`process`] what the system says about a server's process, [`samples`] times and what is said of them.

pub mod load;
pub mod process;
pub mod run;
pub mod samples;
pub mod wire;
pub mod work;
