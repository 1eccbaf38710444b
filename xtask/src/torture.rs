//! The benches that try to break the product: builds what they need and runs `wf-torture` of crates/wf-proof.

use std::path::Path;

use clap::Args;

use crate::ci;
use crate::fault::Fault;
use crate::process::Run;

/// What to run.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// As CI does: all benches in a few minutes (the default)
    #[arg(long, conflicts_with = "soak")]
    short: bool,
    /// Run for long
    #[arg(long)]
    soak: bool,
    /// In a soak: how many kills, crash images or cases
    #[arg(long, value_name = "NUMBER", requires = "soak")]
    count: Option<u64>,
    /// Everything random follows from it; a run prints its own
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Run only this bench (repeatable)
    #[arg(long = "only", value_name = "BENCH")]
    only: Vec<String>,
    /// Print the benches, run nothing
    #[arg(long)]
    list: bool,
    /// Run no bench: hold the database of a run that found something against what its callers saw
    #[arg(long, num_args = 2, value_names = ["HISTORY", "DATABASE"], exclusive = true)]
    audit: Vec<String>,
}

impl Options {
    /// The short run with this seed.
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self { seed: Some(seed), ..Self::default() }
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut flag = |name: &str, value: Option<String>| {
            arguments.push(name.to_owned());
            arguments.extend(value);
        };
        if self.soak {
            flag("--soak", None);
        }
        if self.list {
            flag("--list", None);
        }
        if let Some(count) = self.count {
            flag("--count", Some(count.to_string()));
        }
        if let Some(seed) = self.seed {
            flag("--seed", Some(seed.to_string()));
        }
        for bench in &self.only {
            flag("--only", Some(bench.clone()));
        }
        arguments
    }

    /// What `wf-torture` is run with to audit, if that is asked for.
    fn audit(&self) -> Option<[&str; 5]> {
        let [history, database] = self.audit.as_slice() else { return None };
        Some(["audit", "--history", history, "--store", database])
    }
}

/// Builds and runs. True if nothing was found, and everything that is broken on purpose was.
pub(crate) fn task(root: &Path, options: &Options) -> Result<bool, Fault> {
    if !ci::build(root)? {
        return Ok(false);
    }
    // Loaded into the server by the dynamic linker, so no binary's build brings it.
    let preload = Run::cargo(root, &["build", "-p", "wf-diskfault", "--all-features"]);
    if !preload.succeeds()? {
        return Ok(false);
    }
    let program = ci::binary(root, "wf-torture");
    if let Some(arguments) = options.audit() {
        return Run::new(root, &program.to_string_lossy(), &arguments).succeeds();
    }
    let server = ci::binary(root, "wf-cli");
    let library = ci::library(root, "wf_diskfault");
    let mut arguments: Vec<String> =
        ["--server", &server.to_string_lossy(), "--preload", &library.to_string_lossy()]
            .map(str::to_owned)
            .to_vec();
    arguments.extend(options.arguments());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let run = Run::new(root, &program.to_string_lossy(), &arguments);
    println!("{}", run.shown());
    run.succeeds()
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn a_short_run_is_the_default() {
        assert_eq!(Options::default().arguments(), Vec::<String>::new());
        let soak = Options {
            soak: true,
            count: Some(9),
            seed: Some(7),
            only: vec!["kill".to_owned()],
            ..Options::default()
        };
        let expected = ["--soak", "--count", "9", "--seed", "7", "--only", "kill"];
        assert_eq!(soak.arguments(), expected);
        assert_eq!(soak.audit(), None);
        let audit = Options {
            audit: vec!["attempts.jsonl".to_owned(), "checkpoint.db".to_owned()],
            ..Options::default()
        };
        let expected = ["audit", "--history", "attempts.jsonl", "--store", "checkpoint.db"];
        assert_eq!(audit.audit(), Some(expected));
    }
}
