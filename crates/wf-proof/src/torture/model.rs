//! Model-based test over HTTP: random cases of calls, repeats, hand-overs, crashes, restarts, a second server, a moving
//! clock and an operator's commands against real server processes, each answer held against a model that was written by
//! hand from the design (domain.md, idempotency.md, mcp.md) and shares no code with the product.
//!
//! Reading order: `call` (what is asked), `rules` (the procedure `bench-round.yaml` by hand), `world` (the state),
//! `step`, `predict`, `command`, `ownership` and `event` (what must be answered, and what then is), `generate` (which cases), `play` and `compare` (the servers),
//! `smaller` (what is left of a case that fails), `flaw` (the negative control), `tally` (what was reached).
//!
//! A case that fails is made smaller until nothing can be taken away, and printed as JSON: one line for
//! `regressions.jsonl`, which every run plays first.

mod call;
mod command;
mod compare;
mod event;
mod flaw;
mod generate;
mod ownership;
mod play;
mod predict;
mod rules;
mod smaller;
mod step;
mod tally;
mod world;
mod write;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proptest_state_machine::ReferenceStateMachine as _;
use serde::Deserialize;

use super::{Bench, Report, Setting, Size};
use crate::fault::Fault;
use call::Op;
use flaw::Flaw;
use generate::Model;
use play::{End, Player};
use smaller::smaller;
use tally::Tally;
use world::World;

/// Longest case, in operations.
const OPERATIONS_MAX: usize = 60;
/// Cases of a short run, of a soak that names no count, and of a negative control until it finds something.
const CASES: (u64, u64, u64) = (100, 4_000, 60);
/// Longest time for making a failing case smaller.
const SHRINK: Duration = Duration::from_secs(120);
/// The same for a negative control, which only has to show that it works.
const CONTROL_SHRINK: Duration = Duration::from_secs(2);
/// Cases that are played at once: a case waits for its disk most of the time.
const LANES: usize = 2;

const REGRESSIONS: &str = include_str!("model/regressions.jsonl");

/// The bench.
pub(super) const MODEL: Bench = Bench {
    name: "model",
    what: "random cases over HTTP: every answer and state as a model of the design says",
    run,
    control,
};

/// One line of `regressions.jsonl`.
#[derive(Debug, Deserialize)]
struct Regression {
    name: String,
    ops: Vec<Op>,
}

fn run(setting: &Setting) -> Result<Report, Fault> {
    let cases = match setting.size {
        Size::Short => CASES.0,
        Size::Soak => setting.count.unwrap_or(CASES.1),
    };
    let mut report = Report::default();
    let mut tally = Tally::default();
    let mut kept = 0_u64;
    for line in REGRESSIONS.lines().filter(|line| !line.trim().is_empty()) {
        let regression: Regression = serde_json::from_str(line)
            .map_err(|error| Fault::Run(format!("regressions.jsonl: {error}: {line}")))?;
        match play(setting, &regression.ops, &mut tally, None) {
            Ok(()) => {}
            Err((_, End::Fault(fault))) => return Err(fault),
            Err((_, End::Wrong(what))) => report.found.push(format!("{}: {what}", regression.name)),
        }
        kept += 1;
    }
    let played = many(setting, cases, None, SHRINK)?;
    tally.add(&played.tally);
    report.found.extend(played.found);
    for missed in tally.missed() {
        report.found.push(format!("never reached in this run: {missed}"));
    }
    report.done.push(format!(
        "{} cases of 1 to {OPERATIONS_MAX} operations, {kept} kept ones",
        played.cases
    ));
    report.done.push(format!("reached: {}", tally.told()));
    Ok(report)
}

/// Finds each of the flaws, or nothing.
fn control(setting: &Setting) -> Result<Report, Fault> {
    let mut report = Report::default();
    for flaw in Flaw::ALL {
        let played = many(setting, CASES.2, Some(flaw), CONTROL_SHRINK)?;
        let Some(found) = played.found.into_iter().next() else {
            report.done.push(format!("{flaw:?} was not found in {} cases", played.cases));
            report.found.clear();
            return Ok(report);
        };
        report.found.push(format!("{flaw:?}: {found}"));
    }
    Ok(report)
}

/// What some cases came to.
#[derive(Default)]
struct Played {
    cases: u64,
    found: Vec<String>,
    tally: Tally,
}

/// Cases one after the other in each lane, until one fails or there are no more.
fn many(
    setting: &Setting,
    cases: u64,
    flaw: Option<Flaw>,
    shrink: Duration,
) -> Result<Played, Fault> {
    let next = AtomicU64::new(0);
    let all = Mutex::new((Played::default(), None));
    let lane = || loop {
        let case = next.fetch_add(1, Ordering::Relaxed);
        if case >= cases {
            return;
        }
        let mut tally = Tally::default();
        let done = one(setting, case, flaw, shrink, &mut tally);
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.0.cases += 1;
        all.0.tally.add(&tally);
        match done {
            Ok(None) => {}
            Ok(Some(found)) => {
                all.0.found.push(found);
                next.store(cases, Ordering::Relaxed);
            }
            Err(fault) => {
                all.1 = Some(fault);
                next.store(cases, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(lane);
        }
    });
    let (played, fault) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    match fault {
        Some(fault) => Err(fault),
        None => Ok(played),
    }
}

/// One case, made smaller when it fails.
fn one(
    setting: &Setting,
    case: u64,
    flaw: Option<Flaw>,
    shrink: Duration,
    tally: &mut Tally,
) -> Result<Option<String>, Fault> {
    let mut seed = [0_u8; 32];
    seed[..8].copy_from_slice(&setting.seed.to_le_bytes());
    seed[8..16].copy_from_slice(&case.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let tree = Model::sequential_strategy(1..=OPERATIONS_MAX)
        .new_tree(&mut runner)
        .map_err(|why| Fault::Run(format!("no case could be made: {why}")))?;
    let fails = |ops: &[Op], tally: &mut Tally| match play(setting, ops, tally, flaw) {
        Ok(()) => Ok(None),
        Err((at, End::Wrong(what))) => Ok(Some((ops.iter().take(at).cloned().collect(), what))),
        Err((_, End::Fault(fault))) => Err(fault),
    };
    let (_, ops, _) = tree.current();
    let Some(case_left) = fails(&ops, tally)? else { return Ok(None) };
    let end = Instant::now() + shrink;
    let fails_again = |ops: &[Op]| fails(ops, &mut Tally::default());
    let (ops, what) = smaller(case_left, end, fails_again)?;
    let ops = serde_json::to_string(&ops).unwrap_or_default();
    Ok(Some(format!(
        "seed {} case {case}: {what}\n  the smallest case: {{\"name\":\"…\",\"ops\":{ops}}}",
        setting.seed
    )))
}

/// Plays a case: each operation in the model, then against the servers. An error comes with how many operations it took.
fn play(
    setting: &Setting,
    ops: &[Op],
    tally: &mut Tally,
    flaw: Option<Flaw>,
) -> Result<(), (usize, End)> {
    let mut world = World::default();
    let mut player = Player::begin(&setting.server, &setting.folder, tally, flaw)
        .map_err(|fault| (0, End::Fault(fault)))?;
    for (at, op) in ops.iter().enumerate() {
        world = Model::apply(world, op);
        player.play(op, &world).map_err(|end| (at + 1, end))?;
    }
    player.end(&world).map_err(|end| (ops.len(), end))
}
