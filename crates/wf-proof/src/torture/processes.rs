//! Several servers on one SQLite file, callers spread over all of them, kills among them all the time.
//!
//! Whose server is killed calls at another at once, with the same key, and goes back when its own is there again. The
//! procedure has deadlines of seconds and the callers are several people who hand work over. After every few kills, and at
//! the end, the file is held against what the callers saw. The negative control is two servers that each have a file of their own
//! behind one name, as two machines with a local disk would.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::crew::{Crew, PAUSE};
use super::run::say;
use super::{Bench, Report, Setting, Size};
use crate::fault::Fault;
use crate::harness::line::Http;
use crate::harness::workload::{Plan, Someone, Workload};

/// The bench.
pub(super) const PROCESSES: Bench = Bench {
    name: "processes",
    what: "several servers on one file, callers spread over all, some killed all the time",
    run,
    control,
};

/// Servers on one file.
const SERVERS: usize = 3;
/// Callers of all of them together.
const CALLERS: u32 = 9;
/// Kills of a short run, and of a soak that names no count.
const SHORT: u64 = 18;
const SOAK: u64 = 500;
/// Kills on one file.
const PER_FILE: u64 = 60;
/// Kills between two audits.
const AUDIT_EVERY: u64 = 9;
/// By how much the clock of the last servers is ahead: leases of the killed ones are over then (30 s).
const AHEAD_MS: i64 = 40_000;
/// How long everything that is due may take in the end.
const DONE_WITHIN: Duration = Duration::from_secs(20);
/// Calls of the negative control, and how long they may take.
const CALLS: u64 = 60;
const CALLS_WITHIN: Duration = Duration::from_secs(20);

/// What a run did.
#[derive(Debug, Default)]
struct Tally {
    kills: u64,
    both: u64,
    audits: u64,
    calls: usize,
    acknowledged: u64,
}

fn run(setting: &Setting) -> Result<Report, Fault> {
    let all = match setting.size {
        Size::Short => SHORT,
        Size::Soak => setting.count.unwrap_or(SOAK),
    };
    let (mut report, mut tally, mut number) = (Report::default(), Tally::default(), 0);
    while tally.kills < all && report.found.is_empty() {
        let kills = PER_FILE.min(all - tally.kills);
        report.found.extend(one_file(setting, number, kills, &mut tally)?);
        number += 1;
        if setting.size == Size::Soak {
            say(&format!("processes: {} of {all} kills", tally.kills));
        }
    }
    let Tally { kills, both, audits, calls, acknowledged } = tally;
    report.done.push(format!(
        "{kills} kills among {SERVERS} servers on one file, {both} of them of all but one at once; {calls} attempts, \
         {acknowledged} acknowledged, {audits} audits"
    ));
    Ok(report)
}

fn workload(crew: &Crew, people: Vec<Someone>, seed: u64) -> Result<Workload, Fault> {
    let plan = Plan { people, walks_away: 0.25, ..Plan::new(CALLERS, seed) };
    let gates: Vec<_> = (0..SERVERS).map(|number| crew.gate(number)).collect();
    Workload::over(&plan, &crew.recorder, |caller, token| {
        let number = usize::try_from(caller).unwrap_or(0) % SERVERS;
        let gate = gates.get(number).cloned().unwrap_or_default();
        Box::new(Http::new(gate, token))
    })
}

/// Takes a fresh file through so many kills. What was found.
fn one_file(
    setting: &Setting,
    number: u64,
    kills: u64,
    tally: &mut Tally,
) -> Result<Vec<String>, Fault> {
    let seed = setting.seed.wrapping_add(number);
    let mut random = StdRng::seed_from_u64(seed);
    let mut crew = Crew::new(setting, &format!("processes-{number}"), SERVERS)?;
    let people = crew.with_people()?;
    crew.set_clock(0)?;
    for server in 0..SERVERS {
        if !crew.start(server, "")? {
            return crew.close();
        }
        crew.turn(server, server)?;
    }
    let workload = workload(&crew, people, seed)?;
    for kill in 0..kills {
        one_kill(&mut crew, &mut random, tally)?;
        if kill % AUDIT_EVERY == AUDIT_EVERY - 1 {
            crew.quiet()?;
            crew.audit_live()?;
            tally.audits += 1;
            back_to_their_own(&crew)?;
        }
        if !crew.found.is_empty() {
            break;
        }
    }
    let acknowledged = workload.acknowledged();
    if acknowledged < kills * 5 {
        crew.found.push(format!("only {acknowledged} calls went through {kills} kills"));
    }
    // What the killed ones had claimed is free then.
    crew.set_clock(AHEAD_MS)?;
    crew.finish(workload)?;
    crew.all_is_done(AHEAD_MS, DONE_WITHIN)?;
    crew.stop()?;
    crew.audit()?;
    tally.audits += 1;
    tally.acknowledged += acknowledged;
    tally.calls += crew.recorder.attempts().len();
    crew.close()
}

/// Kills one, or all but one, after a while; its callers go elsewhere; it comes back.
fn one_kill(crew: &mut Crew, random: &mut StdRng, tally: &mut Tally) -> Result<(), Fault> {
    let victim = random.random_range(0..SERVERS);
    let survivor = (victim + 1) % SERVERS;
    let both = random.random_bool(0.25);
    std::thread::sleep(Duration::from_millis(random.random_range(20..250)));
    let victims: Vec<usize> =
        (0..SERVERS).filter(|n| if both { *n != survivor } else { *n == victim }).collect();
    for victim in &victims {
        crew.kill(*victim)?;
        tally.kills += 1;
        crew.turn(*victim, survivor)?;
    }
    tally.both += u64::from(both);
    // Some starts race with the recovery of others.
    std::thread::sleep(Duration::from_millis(random.random_range(0..60)));
    for victim in &victims {
        if !crew.start(*victim, "")? {
            return Ok(());
        }
    }
    back_to_their_own(crew)
}

fn back_to_their_own(crew: &Crew) -> Result<(), Fault> {
    (0..SERVERS).try_for_each(|number| crew.turn(number, number))
}

/// One of the servers has a file of its own: what it acknowledged is not where it should be.
fn control(setting: &Setting) -> Result<Report, Fault> {
    let mut crew = Crew::new(setting, "processes-control", SERVERS)?;
    crew.set_clock(0)?;
    let apart = crew.database().with_file_name("apart.db").display().to_string();
    crew.rig(1, |launch| *launch = launch.clone().env("WF_BACKEND_LOCAL_PATH", apart));
    for server in 0..SERVERS {
        if !crew.start(server, "")? {
            return Err(Fault::Run("the servers of the negative control do not start".to_owned()));
        }
        crew.turn(server, server)?;
    }
    let workload = workload(&crew, Vec::new(), setting.seed)?;
    let end = Instant::now() + CALLS_WITHIN;
    while workload.acknowledged() < CALLS && Instant::now() < end {
        std::thread::sleep(PAUSE);
    }
    workload.finish()?;
    crew.stop()?;
    crew.audit()?;
    let found = std::mem::take(&mut crew.found);
    crew.close()?;
    let first = found.first().map_or("NOTHING", String::as_str);
    let done =
        vec![format!("a server with a file of its own: {} found, first: {first}", found.len())];
    Ok(Report { done, found, skipped: Vec::new() })
}
