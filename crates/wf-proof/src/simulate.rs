//! The program `wf-simulate`: engines, dispatchers, schedulers and reconcilers on one thread over a faulty store in memory,
//! with all randomness from a seed and time that passes by itself, so that a run that found something can be run again.
//!
//! Files: `sea` (randomness, weather, trace), `wire` and `sink` (what fails), `still` (standstills), `replica` (a server),
//! `line` (how callers reach it), `world` (one simulation). Every fourth seed has an orchestrator outside its servers:
//! `outside` (its executions, and the rows that bind them), `life` (what an execution does), `rows` and `executions` (the
//! product's ports to both), `reconciler` (who passes), `verdict` (how all of it must end). The callers are those of the other
//! benches ([`crate::harness::workload`]), and `wf_testkit::audit` judges.
//!
//! Not in it: HTTP and MCP (the bench `model`), files (`powercut`, `disk`), and the calls of DynamoDB and Step Functions, which
//! wf-backend-aws tests on emulators and a strict double.

mod executions;
mod life;
mod line;
mod outside;
mod reconciler;
mod replica;
mod rows;
mod sea;
mod sink;
mod still;
mod verdict;
mod wire;
mod world;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Parser;
use indicatif::ProgressBar;
use wf_testkit::mutants::Mutation;

use crate::fault::Fault;
use world::Seen;

/// Plays seeds, each one simulation; prints what was found, with the seed that shows it again.
#[derive(Debug, Parser)]
#[command(name = "wf-simulate", version)]
pub struct Arguments {
    /// How many
    #[arg(long, value_name = "NUMBER", default_value_t = 2_000)]
    seeds: u64,
    /// The first; the others follow it
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    first: u64,
    /// How many are played at once; as many as there are processors unless told otherwise
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,
    /// Play this one alone and print what happens
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["seeds", "first", "jobs"])]
    trace: Option<u64>,
}

/// What can be broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// The store.
    Store(Mutation),
    /// A reconciler writes whatever the fence is, and whoever wrote after it.
    ReconcilerUnfenced,
    /// A name can be started again while it runs, or after.
    NamesReused,
}

/// Each must be found within [`CONTROL_SEEDS`].
const BROKEN: [Broken; 8] = [
    Broken::Store(Mutation::LedgerForgotten),
    Broken::Store(Mutation::RevisionIgnored),
    Broken::Store(Mutation::LocksUnchecked),
    Broken::Store(Mutation::EventsOverwritten),
    Broken::Store(Mutation::OutboxForgotten),
    Broken::Store(Mutation::DeadlinesForgotten),
    Broken::ReconcilerUnfenced,
    Broken::NamesReused,
];
/// Seeds that what is broken has before it counts as not found: as many as a run without `--seeds` plays.
const CONTROL_SEEDS: u64 = 2_000;
/// One seed of so many is played twice, and must be the same both times.
const TWICE: u64 = 50;
/// Findings that are printed.
const FOUND_MAX: usize = 10;

/// What all simulations came to.
#[derive(Debug, Default)]
struct Tally {
    seeds: u64,
    twice: u64,
    calls: u64,
    kills: u64,
    faults: u64,
    commits: u64,
    messages: u64,
    passes: u64,
    executions: u64,
    found: BTreeMap<u64, String>,
}

/// Runs what the arguments ask for. True if nothing was found, and everything that is broken on purpose was.
///
/// # Errors
/// When a simulation could not be run.
pub fn run(arguments: &Arguments) -> Result<bool, Fault> {
    if let Some(seed) = arguments.trace {
        return alone(seed);
    }
    let begun = Instant::now();
    let mut tally = many(arguments)?;
    tally.found.extend(elsewhere(arguments.first)?);
    say(&format!(
        "simulate: {} seeds from {}, {} of them twice: {} calls, {} commits, {} messages, {} kills, {} faults, \
         {} executions, {} passes",
        tally.seeds,
        arguments.first,
        tally.twice,
        tally.calls,
        tally.commits,
        tally.messages,
        tally.kills,
        tally.faults,
        tally.executions,
        tally.passes,
    ));
    for (seed, found) in tally.found.iter().take(FOUND_MAX) {
        say(&format!("simulate: FOUND: seed {seed}: {found} (wf-simulate --trace {seed})"));
    }
    let mut caught = true;
    for broken in BROKEN {
        let found = control(broken)?;
        caught &= found.is_some();
        let what =
            found.map_or("NOT FOUND".to_owned(), |(seed, what)| format!("seed {seed}: {what}"));
        say(&format!("simulate: control: {broken:?}: {what}"));
    }
    say(&format!(
        "simulate: {} in {:.1} s; negative control {}",
        if tally.found.is_empty() { "nothing found" } else { "FOUND SOMETHING" },
        begun.elapsed().as_secs_f64(),
        if caught { "found" } else { "NOT FOUND" },
    ));
    Ok(tally.found.is_empty() && caught)
}

fn alone(seed: u64) -> Result<bool, Fault> {
    let seen = world::run(seed, None)?;
    say(&story(&seen));
    Ok(seen.found.is_empty())
}

/// What happened, and what was found.
fn story(seen: &Seen) -> String {
    let found = seen.found.iter().map(|found| format!("FOUND: {found}"));
    seen.trace.iter().cloned().chain(found).collect::<Vec<_>>().join("\n")
}

/// A seed of each kind that is not the same when another process plays it.
fn elsewhere(first: u64) -> Result<Option<(u64, String)>, Fault> {
    let program = std::env::current_exe().map_err(Fault::io("the program itself"))?;
    for seed in [first, (first + 1).next_multiple_of(world::OUTSIDE)] {
        let other = Command::new(&program)
            .args(["--trace", &seed.to_string()])
            .output()
            .map_err(Fault::io("a simulation in another process"))?;
        if other.stdout.trim_ascii() != story(&world::run(seed, None)?).as_bytes() {
            return Ok(Some((seed, "it is not the same in another process".to_owned())));
        }
    }
    Ok(None)
}

/// The first seed that shows what is broken.
fn control(broken: Broken) -> Result<Option<(u64, String)>, Fault> {
    for seed in 1..=CONTROL_SEEDS {
        if let Some(found) = world::run(seed, Some(broken))?.found.into_iter().next() {
            return Ok(Some((seed, found)));
        }
    }
    Ok(None)
}

/// Plays them, some at once.
fn many(arguments: &Arguments) -> Result<Tally, Fault> {
    let (first, seeds) = (arguments.first, arguments.seeds);
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let all = Mutex::new((Tally::default(), None));
    let progress = ProgressBar::new(seeds);
    let lane = || {
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= seeds {
                return;
            }
            let played = one(first + number);
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            match played {
                Ok((seen, twice)) => all.0.add(first + number, seen, twice),
                Err(fault) => {
                    all.1.get_or_insert(fault);
                    stop.store(true, Ordering::Relaxed);
                }
            }
            if all.0.found.len() >= FOUND_MAX {
                stop.store(true, Ordering::Relaxed);
            }
            progress.inc(1);
        }
    };
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let lanes = arguments.jobs.map_or_else(processors, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(lane);
        }
    });
    progress.finish_and_clear();
    let (tally, fault) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    match fault {
        Some(fault) => Err(fault),
        None => Ok(tally),
    }
}

/// Plays one seed, and now and then the same again.
fn one(seed: u64) -> Result<(Seen, bool), Fault> {
    let mut seen = world::run(seed, None)?;
    let twice = seed.is_multiple_of(TWICE);
    if twice {
        let again = world::run(seed, None)?;
        let differs = seen.trace.iter().zip(&again.trace).find(|(one, other)| one != other);
        if let Some((one, other)) = differs {
            seen.found.push(format!("played twice, it is not the same: `{one}`, then `{other}`"));
        } else if seen.trace.len() != again.trace.len() {
            seen.found.push("played twice, it is not as long".to_owned());
        }
    }
    Ok((seen, twice))
}

impl Tally {
    fn add(&mut self, seed: u64, seen: Seen, twice: bool) {
        self.seeds += 1;
        self.twice += u64::from(twice);
        self.calls += seen.calls;
        self.kills += seen.kills;
        self.faults += seen.faults;
        self.commits += seen.commits;
        self.messages += seen.messages;
        self.passes += seen.passes;
        self.executions += seen.executions;
        if let Some(found) = seen.found.into_iter().next() {
            self.found.insert(seed, found);
        }
    }
}

#[expect(clippy::print_stdout, reason = "a command line tool reports on its standard output")]
fn say(line: &str) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::world;

    #[test]
    fn a_seed_is_the_same_twice_and_another_is_not() {
        let play = |seed| world::run(seed, None).map(|seen| seen.trace).unwrap_or_default();
        for seed in [11, 12] {
            let one = play(seed);
            assert!(one.len() > 50, "{} lines", one.len());
            assert_eq!(one, play(seed));
            assert_ne!(one, play(seed + 2));
        }
    }
}
