//! The program `wf-torture`: runs benches and their negative controls, says what each did and found.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, Parser, Subcommand};

use super::leftovers::{self, Alive};
use super::{BENCHES, Bench, Report, Setting, Size};
use crate::fault::Fault;
use crate::harness::{self, record};

/// Tries to break the server: kills, power cuts, failing system calls and disks.
#[derive(Debug, Parser)]
#[command(name = "wf-torture", version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The built server; needs the feature `failpoints`
    #[arg(long, value_name = "FILE", required_unless_present = "list")]
    server: Option<PathBuf>,
    /// The built library that logs and disturbs what the server does to its files
    #[arg(long, value_name = "FILE", required_unless_present = "list")]
    preload: Option<PathBuf>,
    /// Everything random follows from it; a run prints its own
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Run for long
    #[arg(long)]
    soak: bool,
    /// In a soak: how many kills, crash images or cases
    #[arg(long, value_name = "NUMBER", requires = "soak")]
    count: Option<u64>,
    /// Run only this bench, or one case of it as BENCH/CASE (repeatable)
    #[arg(long = "only", value_name = "BENCH")]
    only: Vec<String>,
    /// Print the benches, run nothing
    #[arg(long)]
    list: bool,
    /// Where folders of servers are made [default: a fresh temporary folder]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Audit(AuditArguments),
}

/// Hold a database against what its callers saw, and print every invariant that does not hold
#[derive(Debug, Args)]
struct AuditArguments {
    /// What the callers saw: one attempt a line, as a bench leaves it
    #[arg(long, value_name = "FILE")]
    history: PathBuf,
    /// The database; nobody may be writing to it. It is copied, not changed
    #[arg(long, value_name = "FILE")]
    store: PathBuf,
}

/// Runs what the arguments ask for. True if nothing was found and every negative control was.
///
/// # Errors
/// When a bench could not be run.
pub fn run(arguments: &Arguments) -> Result<bool, Fault> {
    if let Some(Command::Audit(arguments)) = &arguments.command {
        return audit(arguments);
    }
    if arguments.list {
        for bench in BENCHES {
            say(&format!("{:<12} {}", bench.name, bench.what));
        }
        return Ok(true);
    }
    let named = |only: &str, bench: &Bench| {
        only.strip_prefix(bench.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if let Some(unknown) = arguments.only.iter().find(|n| BENCHES.iter().all(|b| !named(n, b))) {
        return Err(Fault::Run(format!("no bench is called {unknown}; see --list")));
    }
    let mut temporary = None;
    let folder = if let Some(folder) = &arguments.folder {
        folder.clone()
    } else {
        let fresh = tempfile::Builder::new()
            .prefix(leftovers::PREFIX)
            .tempdir()
            .map_err(Fault::io("a temporary folder"))?;
        temporary.insert(fresh).path().to_owned()
    };
    let folder = absolute(&folder)?;
    leftovers::clear(&std::env::temp_dir());
    let _alive = Alive::begin(&folder)?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => getrandom::u64().map_err(|e| Fault::Run(format!("no randomness: {e}")))?,
    };
    say(&format!("seed {seed}"));
    let setting = Setting {
        server: absolute(given(arguments.server.as_deref())?)?,
        preload: absolute(given(arguments.preload.as_deref())?)?,
        folder,
        seed,
        size: if arguments.soak { Size::Soak } else { Size::Short },
        count: arguments.count,
        case: None,
    };
    let mut green = true;
    for bench in BENCHES {
        if arguments.only.is_empty() {
            green &= one(bench, &setting)?;
        }
        for only in arguments.only.iter().filter(|only| named(only, bench)) {
            let case = only.split_once('/').map(|(_, case)| case.to_owned());
            green &= one(bench, &Setting { case, ..setting.clone() })?;
        }
    }
    if !green && let Some(temporary) = temporary {
        say(&format!("what was found is in {}", temporary.keep().display()));
    }
    Ok(green)
}

/// The command line does not let these be absent.
fn given(path: Option<&Path>) -> Result<&Path, Fault> {
    path.ok_or_else(|| Fault::Run("--server and --preload are needed".to_owned()))
}

/// True if every invariant holds.
fn audit(arguments: &AuditArguments) -> Result<bool, Fault> {
    if !arguments.store.exists() {
        let help = "name the database file of a server".to_owned();
        return Err(Fault::Missing { what: arguments.store.clone(), help });
    }
    let attempts = record::read(&arguments.history)?;
    let audit = harness::audit::examine(&arguments.store, &attempts)?;
    for violation in &audit.violations {
        say(&violation.to_string());
    }
    for left_out in &audit.left_out {
        say(&format!("left out: {left_out}"));
    }
    let verdict = match audit.violations.len() {
        0 => "every invariant holds".to_owned(),
        found => format!("{found} violations"),
    };
    say(&format!("{verdict}: {audit}"));
    Ok(audit.violations.is_empty())
}

fn one(bench: &Bench, setting: &Setting) -> Result<bool, Fault> {
    let begun = Instant::now();
    let report = (bench.run)(setting)?;
    let control = (bench.control)(setting)?;
    print(bench.name, &report);
    for done in &control.done {
        say(&format!("{}: control: {done}", bench.name));
    }
    let caught = !control.found.is_empty();
    if !caught {
        say(&format!("{}: FOUND NOTHING in what is broken on purpose", bench.name));
    }
    say(&format!(
        "{}: {} in {:.1} s; negative control {}",
        bench.name,
        if report.found.is_empty() { "nothing found" } else { "FOUND SOMETHING" },
        begun.elapsed().as_secs_f64(),
        if caught { "found" } else { "NOT FOUND" },
    ));
    Ok(report.found.is_empty() && caught)
}

/// Servers run in folders of their own.
fn absolute(path: &Path) -> Result<PathBuf, Fault> {
    std::path::absolute(path).map_err(Fault::io("the working folder"))
}

fn print(name: &str, report: &Report) {
    for done in &report.done {
        say(&format!("{name}: {done}"));
    }
    for skipped in &report.skipped {
        say(&format!("{name}: left out: {skipped}"));
    }
    for found in &report.found {
        say(&format!("{name}: FOUND: {found}"));
    }
}

#[expect(clippy::print_stdout, reason = "a command line tool reports on its standard output")]
pub(super) fn say(line: &str) {
    println!("{line}");
}
