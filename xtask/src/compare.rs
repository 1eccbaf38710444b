//! One retry-and-crash script against the product and its peers (tests/comparison): builds the server, sees to the Python
//! that drives, and runs `compare.py`, which installs the peers itself. Not part of CI: what is lost and when is up to chance.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::ci;
use crate::fault::Fault;
use crate::process::{Run, available};
use crate::python::Program;

const SCRIPT: &str = "tests/comparison/compare.py";

/// The Python that drives: the official MCP client, as the Python peer of the figures has it.
const DRIVER: Program =
    Program { name: "python", folder: "comparison/driver", pins: "tests/bench/requirements.txt" };

/// What to compare, and how long.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// 500 readings a caller and 20 kills, an hour or more, instead of 50 and 4
    #[arg(long)]
    full: bool,
    /// Only peers whose name contains this (repeatable)
    #[arg(long = "only", value_name = "NAME")]
    only: Vec<String>,
    /// Everything random follows from it, but where a kill hits
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Callers at once; two share an asset
    #[arg(long, value_name = "NUMBER")]
    callers: Option<usize>,
    /// Readings of a caller, a multiple of ten
    #[arg(long, value_name = "NUMBER")]
    steps: Option<usize>,
    /// How often the server is killed in the middle
    #[arg(long, value_name = "NUMBER")]
    kills: Option<usize>,
    /// Run no peer: the product, and a server that spoils readings on purpose, as CI does
    #[arg(long)]
    check: bool,
    /// Build the server for release
    #[arg(long)]
    release: bool,
    /// Folder for comparison.json and the tables of comparison.md
    #[arg(long, value_name = "FOLDER", default_value = "target/comparison")]
    out: PathBuf,
}

impl Options {
    /// Arguments of the script, beside the server.
    fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let numbers = [
            ("--seed", self.seed.map(|seed| seed.to_string())),
            ("--callers", self.callers.map(|callers| callers.to_string())),
            ("--steps", self.steps.map(|steps| steps.to_string())),
            ("--kills", self.kills.map(|kills| kills.to_string())),
        ];
        for (flag, value) in numbers {
            arguments.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
        }
        for name in &self.only {
            arguments.extend(["--only".to_owned(), name.clone()]);
        }
        if self.full {
            arguments.push("--full".to_owned());
        }
        if self.check {
            // Its sizes are not those of a comparison: it writes none.
            arguments.push("--check".to_owned());
        } else {
            arguments.extend(["--out".to_owned(), self.out.to_string_lossy().into_owned()]);
        }
        arguments
    }
}

/// Builds and compares. True if the product lost, doubled and misplaced nothing, and the counts of what was planted are right.
pub(crate) fn task(root: &Path, options: &Options) -> Result<bool, Fault> {
    let mut build = vec!["build", "-p", "wf-cli", "--all-features"];
    let profile = if options.release {
        build.push("--release");
        "release"
    } else {
        "debug"
    };
    if !Run::cargo(root, &build).succeeds()? {
        return Ok(false);
    }
    run(root, profile, options)
}

fn run(root: &Path, profile: &str, options: &Options) -> Result<bool, Fault> {
    if !available(root, "python3", &["--version"]) {
        println!("python3 is not installed: nothing is compared");
        return Ok(false);
    }
    let python = DRIVER.install(root)?;
    let server = ci::binary_of(root, profile, "wf-cli");
    let server = server.to_string_lossy();
    let own = options.arguments();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let arguments = [&["-B", SCRIPT, "--server", &server], &own[..]].concat();
    let run = Run::new(root, &python.to_string_lossy(), &arguments);
    println!("{}", run.shown());
    run.succeeds()
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn a_check_writes_no_comparison() {
        let check = Options { check: true, out: "docs".into(), ..Options::default() };
        assert_eq!(check.arguments(), ["--check"]);
        let named = Options {
            full: true,
            only: vec!["dbos".to_owned()],
            seed: Some(7),
            out: "docs".into(),
            ..Options::default()
        };
        let wanted = ["--seed", "7", "--only", "dbos", "--full", "--out", "docs"];
        assert_eq!(named.arguments(), wanted);
    }
}
