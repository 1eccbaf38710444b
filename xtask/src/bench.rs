//! The figures of the product: builds release binaries, installs the peers (the Python one; DBOS and Restate for a whole
//! run), and runs `wf-bench` of crates/wf-proof. Timings are no tests: only the smoke run, which judges no time, is part of
//! CI, and that without the engines: they are half a gigabyte to install, and a minute to run.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::ci;
use crate::fault::Fault;
use crate::process::{Run, available};
use crate::python::Program;

/// The Python of the Python peer's environment.
const PEER: Program =
    Program { name: "python", folder: "bench/venv", pins: "tests/bench/requirements.txt" };
/// That of DBOS.
const DBOS: Program =
    Program { name: "python", folder: "bench/dbos", pins: "tests/bench/dbos_requirements.txt" };
/// The pins of Restate.
const RESTATE: &str = "tests/bench/package-lock.json";

/// How much to measure.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// Small databases and short rounds, written to target/bench/quick: to see how a change does
    #[arg(long)]
    quick: bool,
    /// Restate and DBOS also in a quick run; a whole one has them
    #[arg(long)]
    engines: bool,
    /// Only install what is measured beside the product
    #[arg(long, conflicts_with = "quick")]
    install: bool,
    /// How often everything is measured
    #[arg(long, value_name = "NUMBER")]
    rounds: Option<usize>,
    /// How long each thing is measured in a round
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Workflows of the large database; a million of them take about 10 GB and are kept in target/bench
    #[arg(long, value_name = "NUMBER")]
    workflows: Option<u64>,
    /// Folder for benchmarks.json, benchmarks.svg and the figures of benchmarks.md
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

impl Options {
    /// Arguments of `wf-bench figures`, beside the binaries.
    fn arguments(&self, bench: &Path) -> Vec<String> {
        let (rounds, seconds, workflows) =
            if self.quick { (2, 2.0, 20_000) } else { (5, 5.0, 1_000_000) };
        let out = match &self.out {
            Some(out) => out.clone(),
            None if self.quick => bench.join("quick"),
            None => PathBuf::from("docs"),
        };
        let mut arguments = vec!["figures".to_owned()];
        let mut flag = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
        flag("--rounds", self.rounds.unwrap_or(rounds).to_string());
        flag("--seconds", self.seconds.unwrap_or(seconds).to_string());
        flag("--workflows", self.workflows.unwrap_or(workflows).to_string());
        if self.quick {
            flag("--events", "1000".to_owned());
        }
        flag("--databases", bench.to_string_lossy().into_owned());
        flag("--out", out.to_string_lossy().into_owned());
        arguments
    }
}

/// Builds and measures. True if everything could be measured, whatever the figures are.
pub(crate) fn task(root: &Path, options: &Options) -> Result<bool, Fault> {
    let with_engines = options.engines || !options.quick;
    let peers = peers(root, with_engines)?;
    if options.install {
        return Ok(peers.len() == 6);
    }
    // Apart, so that the product is built as a user builds it and not with what the other one asks of shared crates.
    for package in ["wf-cli", "wf-proof"] {
        if !Run::cargo(root, &["build", "--release", "-p", package, "--bins"]).succeeds()? {
            return Ok(false);
        }
    }
    let bench = folder(root)?;
    measure(root, "release", [options.arguments(&bench), peers].concat())
}

/// A run of the smallest sizes with the binaries of the tests: shows that the figures, and what a backlog costs, can be
/// measured.
pub(crate) fn smoke(root: &Path) -> Result<bool, Fault> {
    const SIZES: [&str; 13] = [
        "figures",
        "--rounds",
        "1",
        "--seconds",
        "0.2",
        "--callers",
        "8",
        "--few",
        "40",
        "--workflows",
        "200",
        "--events",
        "40",
    ];
    if !ci::build(root)? {
        return Ok(false);
    }
    let smoke = folder(root)?.join("smoke");
    let mut arguments: Vec<String> = SIZES.map(str::to_owned).to_vec();
    for flag in ["--databases", "--out"] {
        arguments.extend([flag.to_owned(), smoke.to_string_lossy().into_owned()]);
    }
    // What an earlier run of another schema left.
    if smoke.exists() {
        std::fs::remove_dir_all(&smoke).map_err(|source| Fault::file(&smoke, source))?;
    }
    arguments.extend(peers(root, false)?);
    Ok(measure(root, "debug", arguments)?
        && backlog(root, &smoke, ["outbox", "--messages", "200"])?
        && backlog(root, &smoke, ["deadlines", "--deadlines", "1000"])?)
}

/// A small backlog beside a short load, however long a step takes then.
fn backlog(root: &Path, folder: &Path, what: [&str; 3]) -> Result<bool, Fault> {
    let server = ci::binary_of(root, "debug", "wf-cli");
    let (server, folder) = (server.to_string_lossy(), folder.to_string_lossy());
    let load = ["--rounds", "1", "--seconds", "0.2", "--most", "1000"];
    let place = ["--server", &*server, "--databases", &*folder];
    let arguments = [&what[..], &load, &place].concat();
    let program = ci::binary_of(root, "debug", "wf-bench");
    let run = Run::new(root, &program.to_string_lossy(), &arguments);
    println!("{}", run.shown());
    run.succeeds()
}

fn folder(root: &Path) -> Result<PathBuf, Fault> {
    let folder = ci::target(root).join("bench");
    std::fs::create_dir_all(&folder).map_err(|source| Fault::file(&folder, source))?;
    Ok(folder)
}

fn measure(root: &Path, profile: &str, mut arguments: Vec<String>) -> Result<bool, Fault> {
    let mut flag = |name: &str, path: &Path| {
        arguments.extend([name.to_owned(), path.to_string_lossy().into()]);
    };
    flag("--server", &ci::binary_of(root, profile, "wf-cli"));
    if let Some(out) = arguments.iter().skip_while(|word| *word != "--out").nth(1) {
        std::fs::create_dir_all(root.join(out))
            .map_err(|source| Fault::file(root.join(out), source))?;
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let program = ci::binary_of(root, profile, "wf-bench");
    let run = Run::new(root, &program.to_string_lossy(), &arguments);
    println!("{}", run.shown());
    run.succeeds()
}

/// Installs what is measured beside the product; how `wf-bench` is told of it. What cannot be there is said, and left out.
fn peers(root: &Path, engines: bool) -> Result<Vec<String>, Fault> {
    let mut arguments = Vec::new();
    let mut found = |flag: &str, name: &str, path: Option<PathBuf>, needs: &str| match path {
        Some(path) => arguments.extend([flag.to_owned(), path.to_string_lossy().into_owned()]),
        None => println!("{needs} is not installed: without {name}"),
    };
    found("--python", "the Python peer", python(root, PEER)?, "python3");
    if engines {
        found("--dbos", "DBOS", python(root, DBOS)?, "python3");
        found("--restate", "Restate", restate(root)?, "npm");
    }
    Ok(arguments)
}

/// The Python of an environment. None without any Python.
fn python(root: &Path, program: Program) -> Result<Option<PathBuf>, Fault> {
    available(root, "python3", &["--version"]).then(|| program.install(root)).transpose()
}

/// The folder with the packages of Restate; installed when they are not there with these pins. None without npm.
fn restate(root: &Path) -> Result<Option<PathBuf>, Fault> {
    if !available(root, "npm", &["--version"]) {
        return Ok(None);
    }
    let packages = folder(root)?.join("restate");
    let (pins, stamp) = (root.join(RESTATE), packages.join("installed.txt"));
    let wanted = std::fs::read(&pins).map_err(|source| Fault::file(&pins, source))?;
    if std::fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(Some(packages));
    }
    std::fs::create_dir_all(&packages).map_err(|source| Fault::file(&packages, source))?;
    for file in ["tests/bench/package.json", RESTATE] {
        let (from, name) = (root.join(file), Path::new(file).file_name().unwrap_or_default());
        std::fs::copy(&from, packages.join(name)).map_err(|source| Fault::file(&from, source))?;
    }
    let npm = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
    if !Run::new(&packages, "npm", &npm).succeeds()? {
        return Err(Fault::parse(RESTATE, &"these packages cannot be installed"));
    }
    std::fs::write(&stamp, wanted).map_err(|source| Fault::file(&stamp, source))?;
    Ok(Some(packages))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Options;

    fn value<'a>(arguments: &'a [String], flag: &str) -> Option<&'a str> {
        arguments.iter().skip_while(|word| *word != flag).nth(1).map(String::as_str)
    }

    #[test]
    fn only_a_whole_run_writes_into_docs() {
        let whole = Options::default().arguments(Path::new("target/bench"));
        assert_eq!(value(&whole, "--out"), Some("docs"));
        assert_eq!(value(&whole, "--workflows"), Some("1000000"));
        let quick = Options { quick: true, ..Options::default() };
        let quick = quick.arguments(Path::new("target/bench"));
        assert_eq!(value(&quick, "--out"), Some("target/bench/quick"));
        let named =
            Options { quick: true, rounds: Some(9), out: Some("x".into()), ..Options::default() };
        let named = named.arguments(Path::new("target/bench"));
        assert_eq!((value(&named, "--out"), value(&named, "--rounds")), (Some("x"), Some("9")));
    }
}
