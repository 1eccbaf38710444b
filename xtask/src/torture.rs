//! The benches that try to break the product: builds what they need and runs `wf-torture` and `wf-simulate` of crates/wf-proof,
//! and suites of tests/outside where an emulator of DynamoDB and Step Functions has to be there.

use std::path::Path;

use clap::Args;

use crate::aws;
use crate::ci;
use crate::fault::Fault;
use crate::process::Run;

/// The bench that is a program of its own: it has no server.
const SIMULATE: &str = "simulate";
/// Seeds of a soak that names no count.
const SOAK_SEEDS: u64 = 1_000_000;
/// Benches on the emulator: name, suite, and what it breaks. Their short run is one of `cargo xtask aws`.
const EMULATED: [(&str, &str, &str); 2] = [
    (
        "dynamodb",
        "bad_table",
        "a table that throttles, conflicts, is silent, loses answers and hears twice",
    ),
    ("executions", "bad_machine", "the same of Step Functions, and executions that somebody stops"),
];
/// How long the weather is bad in a soak on the emulator, in seconds.
const SOAK_SECONDS: u64 = 600;

/// What to run.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// As CI does: all benches in a few minutes (the default)
    #[arg(long, conflicts_with = "soak")]
    short: bool,
    /// Run for long
    #[arg(long)]
    soak: bool,
    /// In a soak: how many kills, crash images, cases, rounds, seconds on the emulator, or seeds of the simulation
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
        for bench in self.only.iter().filter(|bench| is_of_wf_torture(bench)) {
            flag("--only", Some(bench.clone()));
        }
        arguments
    }

    /// Whether the simulation is asked for, and whether the benches of `wf-torture` are.
    fn asked(&self) -> (bool, bool) {
        let simulated = self.only.iter().any(|bench| bench == SIMULATE);
        let (all, others) = (self.only.is_empty(), self.only.iter().any(|b| is_of_wf_torture(b)));
        ((all || simulated) && !self.list, all || others || self.list)
    }

    /// The suites that need the emulator: those asked for, and all of them in a soak of everything.
    fn emulated(&self) -> Vec<&'static str> {
        let all = self.soak && self.only.is_empty();
        let asked = |name: &str| all || self.only.iter().any(|bench| bench == name);
        let suites = EMULATED.iter().filter(|(name, ..)| asked(name) && !self.list);
        suites.map(|(_, suite, _)| *suite).collect()
    }

    /// What those are run with.
    fn weather(&self) -> Vec<(&'static str, String)> {
        let seconds = if self.soak { Some(self.count.unwrap_or(SOAK_SECONDS)) } else { None };
        let named = [("SEED", self.seed), ("SECONDS", seconds)];
        named.into_iter().filter_map(|(name, value)| Some((name, value?.to_string()))).collect()
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

/// Whether a bench, or the case of one (`disk/full`), is one of `wf-torture`.
fn is_of_wf_torture(bench: &str) -> bool {
    bench != SIMULATE && EMULATED.iter().all(|(name, ..)| *name != bench)
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
        for (name, _, what) in EMULATED {
            println!("{name:<12} {what}");
        }
    }
    let emulated = options.emulated();
    if options.audit.is_empty()
        && !emulated.is_empty()
        && !aws::suites(root, &emulated, &options.weather())?
    {
        return Ok(false);
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

    #[test]
    fn what_needs_the_emulator_is_run_when_asked_for_and_in_a_soak() {
        let only = |soak, names: &[&str]| Options {
            only: names.iter().map(|name| (*name).to_owned()).collect(),
            soak,
            seed: Some(7),
            ..Options::default()
        };
        assert!(only(false, &[]).emulated().is_empty(), "its short run is elsewhere");
        assert_eq!(only(true, &[]).emulated(), ["bad_table", "bad_machine"]);
        assert_eq!(only(false, &["executions"]).emulated(), ["bad_machine"]);
        assert_eq!(only(false, &["dynamodb"]).asked(), (false, false));
        assert_eq!(
            only(false, &["dynamodb", "kill"]).arguments(),
            ["--seed", "7", "--only", "kill"]
        );
        let variables = |soak| only(soak, &["dynamodb"]).weather();
        assert_eq!(variables(false), [("SEED", "7".to_owned())]);
        assert_eq!(variables(true), [("SEED", "7".to_owned()), ("SECONDS", "600".to_owned())]);
    }
}
