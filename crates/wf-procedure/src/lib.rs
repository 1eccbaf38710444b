//! Procedures written as YAML or JSON files: one [`DomainPolicyPort`](wf_core::policy::DomainPolicyPort) for all of them.
//!
//! ```
//! let source = r"
//! schema: checkpoint/procedure/v1
//! id: daily-round
//! version: 1
//! title: Daily round
//! steps:
//!   - { id: pressure, kind: number, prompt: What is the pressure?, unit: bar, range: { accept: [1.5, 6.0] } }
//! ";
//! let procedure = wf_procedure::parse(source, "daily-round.yaml").expect("a good procedure");
//! # use wf_core::policy::DomainPolicyPort;
//! assert_eq!(procedure.definition().id.as_str(), "daily-round");
//!
//! let problems = wf_procedure::parse(&source.replace("prompt", "promt"), "daily-round.yaml").unwrap_err();
//! assert!(problems[0].to_string().starts_with("daily-round.yaml:7:"));
//! ```
//!
//! From text to meaning, module by module: `tree` (text → places and values) · `format` (values → the file's types) ·
//! `compile` (types → rules; CEL in `expr`) · `rules` (what a procedure says) · `standing` (how the steps of a workflow
//! stand) · `judge` (what to do with a value; `decimal`, `units`, `range`, `duration`) · `start`, `speech`, `asset_id`, `words`.
//! [`Procedure`] puts them behind the port. `load` reads files; nothing else here touches the world.
//!
//! Two promises hold everywhere: no float takes part in a decision, and a definition's digest is that of the document as
//! written, so that a new release of this crate never changes what a workflow has pinned.

mod asset_id;
mod compile;
mod decimal;
mod duration;
mod expr;
mod format;
mod judge;
mod load;
mod problem;
mod procedure;
mod range;
mod rules;
mod schema;
mod speech;
mod standing;
mod start;
mod summary;
mod tree;
mod units;
mod words;

pub use load::{LoadError, LoadedDir, builtin, load_dir, load_file};
pub use problem::Problem;
pub use procedure::{Compiler, Procedure, parse};
pub use schema::json_schema;
pub use summary::{StepSummary, Summary};

/// The code of the README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
