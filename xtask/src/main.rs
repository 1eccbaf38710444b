//! `cargo xtask`: the checks of this repository, each runnable alone, and `ci`, which is all of them.
//!
//! Imports no workspace crate on purpose: it must work when the product does not compile.
//! Reading order: [`tree`], [`rust`] and [`metadata`] are the inputs; [`layering`], [`tidy`] and [`deny`] the
//! checks over them; [`selftest`] the faults that prove each check can fail; [`torture`] runs the benches that try to break the product; [`compare`] puts it beside its peers;
//! [`alerts`] asks promtool; [`dist`] packs a release, [`package`] the crates, [`semver`] compares them with the last release; [`aws`] starts the emulator that the tests of the AWS backend need;
//! [`ci`] the order of everything.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool reports on its standard streams"
)]

mod alerts;
mod aws;
mod background;
mod bench;
mod ci;
mod compare;
mod deny;
mod deploy;
mod dist;
mod fault;
mod layering;
mod metadata;
mod package;
mod process;
mod python;
mod rehearse;
mod report;
mod rust;
mod selftest;
mod semver;
mod tidy;
mod tools;
mod torture;
mod tree;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::fault::Fault;
use crate::report::Report;

/// Checks of this repository. Each runs alone; `ci` runs all of them in order.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Who may import whom: the edge table over the crate graph, and vendor crates per crate
    Layering,
    /// cargo-deny over deny.toml (bans, licences, sources) and deny-core.toml (allow-list of the core)
    Deny,
    /// Shape of sources, manifests and documents
    Tidy {
        /// Print the name and the rule of every check, run nothing
        #[arg(long)]
        list: bool,
        /// Run only this check (repeatable)
        #[arg(long = "only", value_name = "CHECK")]
        only: Vec<String>,
    },
    /// One fault for every check; each must turn its check red
    Selftest {
        /// Only the mutants that need no other program (skips cargo-deny and clippy)
        #[arg(long)]
        fast: bool,
    },
    /// Tries to break the built server: kills, power cuts, failing system calls and disks
    Torture(torture::Options),
    /// The figures of the release build beside their floors, into docs/benchmarks.*
    Bench(bench::Options),
    /// One retry-and-crash script against the server and its peers, into docs/comparison.* with `--out docs`
    Compare(compare::Options),
    /// The release archive with manual pages, completions and a checksum, into target/dist
    Dist(dist::Options),
    /// The crates as the registry would get them, and programs that are built from the packages
    Package(package::Options),
    /// What changed in the public interfaces of the libraries since the last release, with cargo-semver-checks
    Semver(semver::Options),
    /// What an operator installs: linters, the built server against it, a release archive unpacked and started
    Deploy(deploy::Options),
    /// From `git clone`, and from a release archive, to a served procedure: how long each command takes
    Rehearse(rehearse::Options),
    /// Tests of the AWS backend against an emulator of DynamoDB, which is installed and started for them
    Aws(aws::Options),
    /// promtool over the alert rules, their tests and the expressions of the dashboard
    Alerts,
    /// Everything that CI runs, in order, stopping at the first failure
    Ci(ci::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            eprintln!("error: {}", fault.chain());
            ExitCode::FAILURE
        }
    }
}

/// Runs one task. `Ok(false)` means that the task ran and found violations.
fn run(task: Task) -> Result<bool, Fault> {
    let root = tree::repository_root()?;
    match task {
        Task::Layering => Ok(layering::task(&root)?.print()),
        Task::Deny => deny::task(&root),
        Task::Tidy { list, only } => {
            if list {
                tidy::list();
                return Ok(true);
            }
            Ok(tidy::task(&root, &only)?.print())
        }
        Task::Selftest { fast } => selftest::task(&root, fast),
        Task::Torture(options) => torture::task(&root, &options),
        Task::Bench(options) => bench::task(&root, &options),
        Task::Compare(options) => compare::task(&root, &options),
        Task::Dist(options) => dist::task(&root, &options),
        Task::Package(options) => package::task(&root, &options),
        Task::Semver(options) => semver::task(&root, &options),
        Task::Deploy(options) => deploy::task(&root, &options),
        Task::Rehearse(options) => rehearse::task(&root, &options),
        Task::Aws(options) => aws::task(&root, &options),
        Task::Alerts => alerts::task(&root),
        Task::Ci(options) => ci::task(&root, &options),
    }
}

/// What every check reads: the files of the repository and its resolved crate graph.
#[derive(Debug, Clone)]
struct Workspace {
    tree: tree::Tree,
    metadata: metadata::Metadata,
}

impl Workspace {
    /// Reads both inputs from the repository at `root`.
    fn read(root: &std::path::Path) -> Result<Self, Fault> {
        Ok(Self { tree: tree::Tree::read(root)?, metadata: metadata::Metadata::read(root)? })
    }
}

/// A named rule and the function that looks for violations of it.
#[derive(Debug, Clone, Copy)]
struct Check {
    /// Short stable name, printed with each violation.
    name: &'static str,
    /// The rule in one sentence.
    rule: &'static str,
    /// Finds every violation in the given input.
    run: fn(&Workspace) -> Vec<report::Violation>,
}

impl Check {
    /// Runs this check into a report.
    fn into_report(self, workspace: &Workspace, report: &mut Report) {
        report.add(self.name, self.rule, (self.run)(workspace));
    }
}
