//! The benches that try to break the product: builds what they need and runs `wf-torture` and `wf-simulate` of crates/wf-proof.

use std::path::Path;

use clap::Args;

use crate::ci;
use crate::fault::Fault;
use crate::process::Run;

/// The bench that is a program of its own: it has no server.
const SIMULATE: &str = "simulate";
/// Seeds of a soak that names no count.
const SOAK_SEEDS: u64 = 1_000_000;

/// What to run.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// As CI does: all benches in a few minutes (the default)
    #[arg(long, conflicts_with = "soak")]
    short: bool,
    /// Run for long
    #[arg(long)]
    soak: bool,
    /// In a soak: how many kills, crash images, cases or seeds of the simulation
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
        for bench in self.only.iter().filter(|bench| *bench != SIMULATE) {
            flag("--only", Some(bench.clone()));
        }
        arguments
    }

    /// Whether the simulation is asked for, and whether the other benches are.
    fn asked(&self) -> (bool, bool) {
        let simulated = self.only.iter().filter(|bench| *bench == SIMULATE).count();
        let all = self.only.is_empty();
        ((all || simulated > 0) && !self.list, all || simulated < self.only.len() || self.list)
    }

    /// What `wf-simulate` is run with.
    fn simulation(&self) -> Vec<String> {
        let seeds = if self.soak { Some(self.count.unwrap_or(SOAK_SEEDS)) } else { None };
        let named = [("--seeds", seeds), ("--first", self.seed)];
        let given = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.flat_map(|(name, value)| [name.to_owned(), value.to_string()]).collect()
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
    let (simulated, others) = options.asked();
    if options.audit.is_empty() && simulated && !simulate(root, options)? {
        return Ok(false);
    }
    if options.list {
        println!(
            "{SIMULATE:<12} engines over a store in memory, from seeds: weather, kills, standstills, clocks"
        );
    }
    if !others {
        return Ok(true);
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

/// Plays the seeds. True if nothing was found, and everything that is broken on purpose was.
fn simulate(root: &Path, options: &Options) -> Result<bool, Fault> {
    let arguments = options.simulation();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let run = Run::new(root, &ci::binary(root, "wf-simulate").to_string_lossy(), &arguments);
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
        assert_eq!(soak.asked(), (false, true));
        assert_eq!(soak.audit(), None);
        let audit = Options {
            audit: vec!["attempts.jsonl".to_owned(), "checkpoint.db".to_owned()],
            ..Options::default()
        };
        let expected = ["audit", "--history", "attempts.jsonl", "--store", "checkpoint.db"];
        assert_eq!(audit.audit(), Some(expected));
    }

    #[test]
    fn the_simulation_is_one_of_the_benches() {
        let only = |names: &[&str]| Options {
            only: names.iter().map(|name| (*name).to_owned()).collect(),
            seed: Some(7),
            ..Options::default()
        };
        assert_eq!(only(&[]).asked(), (true, true));
        assert_eq!(only(&["simulate"]).asked(), (true, false));
        assert_eq!(only(&["simulate", "kill"]).asked(), (true, true));
        assert_eq!(only(&["simulate"]).simulation(), ["--first", "7"]);
        assert_eq!(only(&["simulate", "kill"]).arguments(), ["--seed", "7", "--only", "kill"]);
        let soak = Options { soak: true, ..Options::default() };
        assert_eq!(soak.simulation(), ["--seeds", "1000000"]);
    }
}
