//! The figures of the product beside their floors, measured in one run on one machine. [`run`] is the program.
//!
//! Measuring: [`load`] is the closed loop of callers that every server is measured with, its [`plan`], [`work`] the calls that it makes,
//! [`wire`] one connection, [`process`] what the system says about a server's process, [`samples`] times and what is said
//! of them. The floors: [`raw`] (the same rows in SQLite) and [`echo`] (bare HTTP); [`child`] starts the echo and the
//! Python peer, [`peers`] other engines, [`contenders`] measures each of them and the product the same way. Size: [`fill`]
//! makes large databases,
//! [`growth`] and [`start`] measure on them. Backlogs: messages of an [`outbox`], [`mod@deadlines`]. Abuse: [`slow`] peers
//! beside honest callers, and what time tells of [`foreign`] ids. Identity: what [`auth`] costs, with [`tokens`] made here. Operators: what [`seeing`] costs. Saying it: [`figures`] runs the rounds, [`verdicts`] compares with the targets,
//! [`machine`] describes where, [`plot`] and [`report`] write.

pub mod auth;
mod backlogs;
mod beside;
pub mod child;
pub mod contenders;
pub mod deadlines;
pub mod echo;
pub mod figures;
pub mod fill;
pub mod foreign;
pub mod growth;
pub mod load;
pub mod machine;
pub mod outbox;
pub mod peers;
pub mod plan;
pub mod plot;
pub mod process;
pub mod raw;
pub mod report;
pub mod run;
pub mod samples;
pub mod seeing;
pub mod slow;
pub mod start;
pub mod tokens;
pub mod verdicts;
pub mod wire;
pub mod work;
