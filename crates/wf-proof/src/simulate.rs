//! The program `wf-simulate`: engines, dispatchers and schedulers on one thread over a faulty store in memory, with all
//! randomness from a seed and time that passes by itself, so that a run that found something can be run again.
//!
//! Files: `sea` (randomness, weather, trace), `wire` and `sink` (what fails), `still` (standstills), `replica` (a server),
//! `line` (how callers reach it), `world` (one simulation). The callers are those of the other benches
//! ([`crate::harness::workload`]), and `wf_testkit::audit` judges.
//!
//! Not in it: HTTP and MCP (the bench `model`), files (`powercut`, `disk`), and executions outside the process, whose
//! reconciler has a model of its own in wf-core and crash points in wf-backend-aws.

mod line;
mod replica;
mod sea;
mod sink;
mod still;
mod wire;
mod world;

use std::collections::BTreeMap;
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
    /// Play this one alone and print what happens
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["seeds", "first"])]
    trace: Option<u64>,
}

/// Stores that are broken on purpose. Each must be found within [`CONTROL_SEEDS`].
const BROKEN: [Mutation; 6] = [
    Mutation::LedgerForgotten,
    Mutation::RevisionIgnored,
    Mutation::LocksUnchecked,
    Mutation::EventsOverwritten,
    Mutation::OutboxForgotten,
    Mutation::DeadlinesForgotten,
];
/// Seeds that a broken store has before it counts as not found.
const CONTROL_SEEDS: u64 = 60;
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
    let tally = many(arguments.first, arguments.seeds)?;
    say(&format!(
        "simulate: {} seeds from {}, {} of them twice: {} calls, {} commits, {} messages, {} kills, {} faults",
        tally.seeds,
        arguments.first,
        tally.twice,
        tally.calls,
        tally.commits,
        tally.messages,
        tally.kills,
        tally.faults,
    ));
    for (seed, found) in tally.found.iter().take(FOUND_MAX) {
        say(&format!("simulate: FOUND: seed {seed}: {found} (wf-simulate --trace {seed})"));
    }
    let mut caught = true;
    for mutation in BROKEN {
        let found = control(mutation)?;
        caught &= found.is_some();
        let what =
            found.map_or("NOT FOUND".to_owned(), |(seed, what)| format!("seed {seed}: {what}"));
        say(&format!("simulate: control: {mutation:?}: {what}"));
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
    for line in &seen.trace {
        say(line);
    }
    for found in &seen.found {
        say(&format!("FOUND: {found}"));
    }
    Ok(seen.found.is_empty())
}

/// The first seed that shows what is wrong with a store.
fn control(mutation: Mutation) -> Result<Option<(u64, String)>, Fault> {
    for seed in 1..=CONTROL_SEEDS {
        if let Some(found) = world::run(seed, Some(mutation))?.found.into_iter().next() {
            return Ok(Some((seed, found)));
        }
    }
    Ok(None)
}

/// Plays them on all processors.
fn many(first: u64, seeds: u64) -> Result<Tally, Fault> {
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
    let lanes = std::thread::available_parallelism().map_or(1, usize::from);
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
        let one = play(11);
        assert!(one.len() > 100, "{} lines", one.len());
        assert_eq!(one, play(11));
        assert_ne!(one, play(12));
    }
}
