//! `cargo xtask aws`: emulators of DynamoDB and Step Functions from PyPI with the tests that need them: those of the backend, those of the binary, and suites of tests/outside with servers whose state is in tables.
//!
//! Each emulator ([`emulator`]) is installed into a virtual environment under the target directory, listens on 127.0.0.1 on a
//! free port for as long as the tests run, and is stopped by its process id. Tests find the one that everything runs on in
//! `WF_AWS_ENDPOINT`, and the one whose tasks time out in `WF_MOTO_ENDPOINT`; without them they are ignored.

mod emulator;

use std::path::Path;

use clap::Args;

use crate::ci::{binary, build};
use crate::fault::Fault;
use crate::process::{Run, available};
use emulator::{Emulator, MINISTACK, MOTO};

/// Tests that need the emulators: all of the backend's that are ignored without them, and the binary's of this name.
const TESTS: &str = "package(wf-backend-aws) + (package(wf-cli) & test(aws))";
/// The same for cargo alone, which has no such expressions.
const TESTS_OF_CARGO: [&[&str]; 2] =
    [&["-p", "wf-backend-aws", "--all-features"], &["-p", "wf-cli", "--all-features", "aws"]];
/// Suites of tests/outside that are run on it too: whole jobs by official clients, repeats, kills, people, and a table that
/// fails. The long ones first, since they run side by side.
const SUITES: [&str; 9] = [
    "orchestrated",
    "bad_machine",
    "bad_table",
    "main_job",
    "idempotency",
    "python_client",
    "ts_client",
    "agent",
    "people",
];

/// What to run.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// Run this instead of the tests, with the endpoints in WF_AWS_ENDPOINT and WF_MOTO_ENDPOINT
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Starts the emulators, runs the tests and stops them; with a command, runs that on them instead.
/// True if they passed.
pub(crate) fn task(root: &Path, options: &Options) -> Result<bool, Fault> {
    let emulators = [Emulator::start(root, &MINISTACK)?, Emulator::start(root, &MOTO)?];
    let on_it = |run: Run| {
        let run = emulators.iter().fold(run, |run, one| run.env(one.variable, &one.url));
        println!("{}", run.shown());
        run.succeeds()
    };
    if let Some((program, arguments)) = options.command.split_first() {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        return on_it(Run::new(root, program, &arguments));
    }
    for run in tests(root, available(root, "cargo-nextest", &["nextest", "--version"])) {
        if !on_it(run)? {
            return Ok(false);
        }
    }
    Ok(build(root)? && on_it(outside(root))? && on_it(documented(root))?)
}

/// The commands of docs/operations.md that need a table.
fn documented(root: &Path) -> Run {
    let program = binary(root, "wf-cli");
    Run::new(root, "bash", &["tests/tour/run.sh", &program.to_string_lossy()])
}

/// Runs suites of tests/outside on an emulator of DynamoDB and Step Functions, with these variables. True if they passed.
pub(crate) fn suites(
    root: &Path,
    suites: &[&str],
    variables: &[(&str, String)],
) -> Result<bool, Fault> {
    let emulator = Emulator::start(root, &MINISTACK)?;
    let program = binary(root, "wf-cli");
    let program = program.to_string_lossy();
    let arguments = [&["tests/outside/run.sh", &*program][..], suites].concat();
    let run = Run::new(root, "bash", &arguments).env(emulator.variable, &emulator.url);
    let run = variables.iter().fold(run, |run, (name, value)| run.env(name, value));
    println!("{}", run.shown());
    run.succeeds()
}

/// The suites from outside.
fn outside(root: &Path) -> Run {
    let program = binary(root, "wf-cli");
    let program = program.to_string_lossy();
    Run::new(root, "bash", &[&["tests/outside/run.sh", &*program], &SUITES[..]].concat())
}

/// The tests that are ignored without it. With nextest as one run over what the stage `tests` has built: a package chosen
/// alone has dependencies with fewer features, and would compile half of the graph a second time.
fn tests(root: &Path, nextest: bool) -> Vec<Run> {
    if nextest {
        let chosen = ["nextest", "run", "--workspace", "--all-features", "--profile", "ci"];
        let ignored = ["--run-ignored", "only", "-E", TESTS];
        return vec![Run::cargo(root, &[&chosen[..], &ignored].concat())];
    }
    let of_cargo = |chosen: &[&str]| {
        let ignored = ["--", "--ignored"];
        Run::cargo(root, &[&["test", "--no-fail-fast"], chosen, &ignored].concat())
    };
    TESTS_OF_CARGO.into_iter().map(of_cargo).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Options, SUITES, outside, tests};

    #[test]
    fn the_ignored_tests_are_run() {
        for (nextest, runs) in [(true, 1), (false, 2)] {
            let all = tests(Path::new("."), nextest);
            assert_eq!(all.len(), runs);
            for run in &all {
                assert!(run.shown().contains("ignored"), "{}", run.shown());
            }
            for package in ["wf-backend-aws", "wf-cli"] {
                assert!(all.iter().any(|run| run.shown().contains(package)), "{package}");
            }
        }
        assert!(Options::default().command.is_empty());
    }

    #[test]
    fn every_suite_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for suite in SUITES {
            let file = ["py", "mjs"].map(|kind| root.join(format!("tests/outside/{suite}.{kind}")));
            assert!(file.iter().any(|file| file.exists()), "{suite}");
        }
        assert!(outside(&root).shown().ends_with("agent people"));
    }
}
