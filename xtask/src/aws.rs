//! `cargo xtask aws`: cfn-lint over the template, and emulators of DynamoDB and Step Functions from PyPI with the tests that
//! need them: those of the backend, those of the binary, and suites of tests/outside with servers whose state is in tables.
//!
//! Each emulator ([`emulator`]) is installed into a virtual environment under the target directory, listens on 127.0.0.1 on a
//! free port for as long as the tests run, and is stopped by its process id. Tests find the one that everything runs on in
//! `WF_AWS_ENDPOINT`, and the one whose tasks time out in `WF_MOTO_ENDPOINT`; without them they are ignored.

mod emulator;
mod python;
mod template;

use std::path::Path;

use clap::Args;

use crate::ci::{binary, build};
use crate::fault::Fault;
use crate::process::{Run, available};
use emulator::{Emulator, MINISTACK, MOTO};

/// Tests that need the emulators: all of the backend's, and the binary's of this name.
const TESTS: [&[&str]; 2] =
    [&["-p", "wf-backend-aws", "--all-features"], &["-p", "wf-cli", "--all-features", "aws"]];
/// Suites of tests/outside that are run on it too: whole jobs by official clients, repeats, kills, people, and a table that
/// fails.
const SUITES: [&str; 8] = [
    "main_job",
    "idempotency",
    "bad_table",
    "orchestrated",
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

/// Lints the template, starts the emulators, runs the tests and stops them; with a command, runs that on them instead.
/// True if they passed.
pub(crate) fn task(root: &Path, options: &Options) -> Result<bool, Fault> {
    if options.command.is_empty() && !template::lint(root)? {
        return Ok(false);
    }
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
    for chosen in TESTS {
        if !on_it(tests(root, chosen))? {
            return Ok(false);
        }
    }
    Ok(build(root)? && on_it(outside(root))?)
}

/// The suites from outside.
fn outside(root: &Path) -> Run {
    let program = binary(root, "wf-cli");
    let program = program.to_string_lossy();
    Run::new(root, "bash", &[&["tests/outside/run.sh", &*program], &SUITES[..]].concat())
}

/// The tests that are ignored without it, with the others that are chosen.
fn tests(root: &Path, chosen: &[&str]) -> Run {
    let nextest = available(root, "cargo-nextest", &["nextest", "--version"]);
    let (head, tail): (&[&str], &[&str]) = if nextest {
        (&["nextest", "run", "--profile", "ci"], &["--run-ignored", "all"])
    } else {
        (&["test", "--no-fail-fast"], &["--", "--include-ignored"])
    };
    Run::cargo(root, &[head, chosen, tail].concat())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Options, SUITES, TESTS, outside, tests};

    #[test]
    fn the_ignored_tests_are_run_too() {
        for (chosen, package) in TESTS.iter().zip(["wf-backend-aws", "wf-cli"]) {
            let shown = tests(Path::new("."), chosen).shown().to_owned();
            assert!(shown.contains(&format!("-p {package} --all-features")), "{shown}");
            assert!(shown.contains("ignored"), "{shown}");
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
