//! The shape of sources, manifests and documents: rules that no compiler lint covers.
//!
//! Each check is a function from the workspace (files and crate graph) to violations. The modules group them by
//! what they look at; [`CHECKS`] is the list. Every check has at least one mutant in [`crate::selftest`].

pub(crate) mod alerts;
mod allowance;
mod decisions;
mod documents;
mod error_pages;
mod faults;
mod features;
pub(crate) mod manifests;
pub(crate) mod neutral;
mod ports;
pub(crate) mod publishing;
mod seeing;
mod shape;
mod sizes;
mod sqlite;
pub(crate) mod words;

use std::path::Path;

use crate::fault::Fault;
use crate::report::Report;
use crate::{Check, Workspace};

/// Every check, cheap and general ones first.
pub(crate) const CHECKS: [Check; 27] = [
    Check {
        name: "sources-lex",
        rule: "every Rust file can be read as tokens",
        run: shape::sources_lex,
    },
    Check {
        name: "headers",
        rule: "every Rust file starts with `//!` saying its purpose and neighbours",
        run: shape::headers,
    },
    Check {
        name: "file-length",
        rule: "at most 400 lines of product code in a file, 500 lines with its unit tests",
        run: sizes::file_length,
    },
    Check {
        name: "function-length",
        rule: "at most 70 lines in a function",
        run: sizes::function_length,
    },
    Check {
        name: "no-placeholders",
        rule: "no todo!, unimplemented! or dbg!",
        run: shape::no_placeholders,
    },
    Check {
        name: "no-allow",
        rule: "lints are expected with a reason (`#[expect]`), never allowed (`#[allow]`)",
        run: shape::no_allow,
    },
    Check { name: "ignore-reason", rule: "an ignored test says why", run: shape::ignore_reason },
    Check {
        name: "no-drawers",
        rule: "no module named util, common or helpers",
        run: shape::no_drawers,
    },
    Check {
        name: "one-test-binary",
        rule: "integration tests of a crate are one binary, tests/it/main.rs",
        run: shape::one_test_binary,
    },
    Check {
        name: "sync-decisions",
        rule: "nothing is async in the decision modules of wf-core",
        run: decisions::sync_decisions,
    },
    Check {
        name: "decide-shape",
        rule: "decide and evolve match one enum at a time, without wildcard, `matches!` or `if let` over our enums",
        run: decisions::decide_shape,
    },
    Check {
        name: "port-defaults",
        rule: "a port has no default methods",
        run: ports::port_defaults,
    },
    Check {
        name: "manifests",
        rule: "every member inherits the workspace lints (one, which needs unsafe, repeats them) and has a description and \
               a README",
        run: manifests::members,
    },
    Check {
        name: "publishable",
        rule: "a crate that is published has what a package needs and an example that is tested; any other member says \
               `publish = false`",
        run: publishing::publishable,
    },
    Check {
        name: "pure-clippy",
        rule: "wf-core and wf-idempotency ban clock, environment, files, sockets and processes in a clippy.toml",
        run: manifests::pure_clippy,
    },
    Check {
        name: "write-transactions",
        rule: "wf-backend-local opens transactions at one place, with the write lock from their beginning",
        run: sqlite::write_transactions,
    },
    Check {
        name: "bounded-reads",
        rule: "wf-backend-local goes through rows at one place, which reads a bounded result into memory",
        run: sqlite::bounded_reads,
    },
    Check {
        name: "one-fault-map",
        rule: "fault.rs is the only file of wf-mcp-http that maps core errors to statuses and JSON-RPC codes",
        run: faults::one_fault_map,
    },
    Check {
        name: "serde-json-features",
        rule: "nobody turns on arbitrary_precision or raw_value of serde_json",
        run: features::serde_json,
    },
    Check {
        name: "workplace-words",
        rule: "no path or word of a developer's machine is in a tracked file",
        run: words::workplace_words,
    },
    Check {
        name: "error-pages",
        rule: "every error code has a page in docs/errors, every page a code, and the index lists them",
        run: error_pages::one_to_one,
    },
    Check {
        name: "metrics-table",
        rule: "docs/observability.md has a row for every metric that is told, and for no other",
        run: seeing::metrics_table,
    },
    Check {
        name: "log-table",
        rule: "docs/logs.md has a row for every warning and error that is logged, and for no other",
        run: seeing::log_table,
    },
    Check {
        name: "metrics-known",
        rule: "alerts and dashboard name metrics that exist; an alert has severity, words, runbook and tests",
        run: alerts::known_metrics,
    },
    Check {
        name: "domain-neutral",
        rule: "no id, unit, role, reason or code of a shipped procedure is in the core, the transport or a backend",
        run: neutral::domain_neutral,
    },
    Check {
        name: "invariants",
        rule: "every invariant of ARCHITECTURE.md names an enforcer that exists",
        run: documents::invariants,
    },
    Check {
        name: "ci-entry",
        rule: "README.md names `cargo xtask ci` and .ci/run calls it",
        run: documents::ci_entry,
    },
];

/// Prints the name and the rule of every check.
pub(crate) fn list() {
    for check in CHECKS {
        println!("{:<20} {}", check.name, check.rule);
    }
}

/// Runs all checks, or only those named, over the repository at `root`.
pub(crate) fn task(root: &Path, only: &[String]) -> Result<Report, Fault> {
    if let Some(unknown) = only.iter().find(|name| CHECKS.iter().all(|check| check.name != **name))
    {
        return Err(Fault::parse(unknown, &"no check of this name; see `cargo xtask tidy --list`"));
    }
    let workspace = Workspace::read(root)?;
    let mut report = Report::default();
    for check in CHECKS {
        if only.is_empty() || only.iter().any(|name| name == check.name) {
            check.into_report(&workspace, &mut report);
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests;
