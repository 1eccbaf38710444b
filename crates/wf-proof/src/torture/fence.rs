//! A server stands still (SIGSTOP, as under a suspended machine or a debugger) at a place where it holds something: decided
//! calls, leases, the write lock. Another one on the same file takes over, the callers hang up and send their calls there,
//! then the first goes on, or dies. Nothing may happen twice, nothing may be lost, and what the first one still says about
//! work that is not its own any more must not count.
//!
//! While the write lock is held by a process that stands still, nobody can write to a SQLite file: the other one, which is
//! there already, refuses, and goes on when the lock is free. Everywhere else it comes then, a lease later by the clock, and
//! must take over within [`TAKEN_OVER_WITHIN`].
//!
//! Files: `word` (a settlement that comes too late, with the negative control: a store that believes it).

mod word;

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rusqlite::types::Value;
use rustix::process::Signal;

use super::crew::{Crew, PAUSE, is_stopped};
use super::{Bench, Report, Setting, Size};
use crate::fault::Fault;
use crate::harness::line::Http;
use crate::harness::workload::{Plan, Workload};

/// The bench.
pub(super) const FENCE: Bench = Bench {
    name: "fence",
    what: "a server stands still while it holds calls, leases or the lock; another takes over; the first goes on",
    run,
    control,
};

/// Scenes at the same time; they wait most of the time.
const LANES: usize = 3;
/// Callers of a scene, and how long they wait before they hang up and call at the other server.
const CALLERS: u32 = 6;
const HANG_UP_AFTER: Duration = Duration::from_secs(4);
/// How long a server may take until it comes by the place.
const STOPS_WITHIN: Duration = Duration::from_secs(20);
/// How far the clock goes on while the first one stands still: longer than a lease (30 s).
const STILL_MS: i64 = 70_000;
/// How soon the other one must have everything that the first one held.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(30);
/// How long it is watched that nobody commits beside somebody who holds the lock: longer than a commit waits (2 s).
const WATCHED: Duration = Duration::from_millis(2_500);
/// How long everything that is due may take in the end.
const DONE_WITHIN: Duration = Duration::from_secs(20);
/// Calls that the other server must get done meanwhile.
const CALLS_MIN: u64 = 10;

/// A failpoint, and whether the write lock is held there.
#[derive(Debug, Clone, Copy)]
struct Place {
    name: &'static str,
    locked: bool,
    /// Hits that pass before.
    passes: (u32, u32),
}

/// One that every batch comes by, those of a start too.
const fn batch(name: &'static str, locked: bool) -> Place {
    Place { name, locked, passes: (20, 50) }
}

/// One that is come by more seldom.
const fn seldom(name: &'static str, locked: bool, most: u32) -> Place {
    Place { name, locked, passes: (0, most) }
}

/// Those of a short run come first.
const PLACES: &[Place] = &[
    batch("begin.before", false),
    batch("commit.before", true),
    batch("commit.after", false),
    seldom("outbox.send_after", false, 4),
    seldom("deadline.claimed", false, 2),
    seldom("outbox.mark", true, 3),
    batch("begin.after", true),
    batch("write", true),
    seldom("outbox.claim", true, 3),
    seldom("outbox.send", false, 4),
    seldom("deadline.claim", true, 2),
    seldom("deadline.fire", true, 3),
    seldom("deadline.fired", false, 3),
];
const SHORT: usize = 6;
/// Rounds through all places of a soak that names no count of scenes.
const SOAK_ROUNDS: usize = 10;

/// What becomes of the one that stood still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    GoesOn,
    Dies,
}

/// One scene.
#[derive(Debug, Clone, Copy)]
struct Scene {
    number: usize,
    place: Place,
    then: Then,
}

fn scenes(setting: &Setting) -> Vec<Scene> {
    let all = match setting.size {
        Size::Short => SHORT,
        Size::Soak => setting
            .count
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(PLACES.len() * SOAK_ROUNDS),
    };
    let round = PLACES.len();
    let scene = |number: usize| {
        let place = *PLACES.get(number % round)?;
        // In a short run the last one dies; in a soak every third.
        let dies = if setting.size == Size::Short { number + 1 == all } else { number % 3 == 2 };
        Some(Scene { number, place, then: if dies { Then::Dies } else { Then::GoesOn } })
    };
    let wanted = |scene: &Scene| setting.case.as_ref().is_none_or(|c| c == scene.place.name);
    (0..all.max(if setting.case.is_some() { round } else { 0 }))
        .filter_map(scene)
        .filter(wanted)
        .collect()
}

fn run(setting: &Setting) -> Result<Report, Fault> {
    let scenes = scenes(setting);
    let next = AtomicUsize::new(0);
    let report = Mutex::new(Report::default());
    let taken_over = AtomicUsize::new(0);
    let lane = || -> Result<(), Fault> {
        while let Some(scene) = scenes.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (one, took_over) = one(setting, *scene)?;
            taken_over.fetch_add(usize::from(took_over), Ordering::Relaxed);
            let mut all = report.lock().unwrap_or_else(PoisonError::into_inner);
            all.done.extend(one.done);
            all.found.extend(one.found);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        let broke = |_| Err(Fault::Run("a lane panicked".to_owned()));
        lanes.into_iter().try_for_each(|lane| lane.join().unwrap_or_else(broke))
    })?;
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.found.extend(word::late(setting, word::Store::Fenced)?);
    let taken_over = taken_over.into_inner();
    if taken_over == 0 && scenes.iter().any(|scene| !scene.place.locked) {
        report.found.push("the write lock was always held by chance: it shows nothing".to_owned());
    }
    report.done.push(format!(
        "{} servers stood still, of {taken_over} all was taken over; and one that came too late to say that a message was refused",
        scenes.len()
    ));
    Ok(report)
}

fn control(setting: &Setting) -> Result<Report, Fault> {
    let found = word::late(setting, word::Store::Believes)?;
    // Only what such a store does counts.
    let found: Vec<String> = found.into_iter().filter(|what| what.contains(word::TAKEN)).collect();
    let first = found.first().map_or("NOTHING", String::as_str);
    let done = vec![format!("a store that believes whoever had the lease once: {first}")];
    Ok(Report { done, found, skipped: Vec::new() })
}

/// From the first call to the audit; and whether the other one could take over all that the first one held.
fn one(setting: &Setting, scene: Scene) -> Result<(Report, bool), Fault> {
    let Scene { number, place, then } = scene;
    let seed = setting.seed.wrapping_add(u64::try_from(number).unwrap_or(0));
    let mut random = StdRng::seed_from_u64(seed);
    let mut crew = Crew::new(setting, &format!("fence-{number}"), 2)?;
    crew.set_clock(0)?;
    let passes = random.random_range(place.passes.0..place.passes.1);
    if !crew.start(0, &format!("{}={passes}*off->1*return(stop)", place.name))? {
        let found = named(&place, crew.close()?);
        return Ok((Report { found, ..Report::default() }, false));
    }
    let gates = [crew.gate(0), crew.gate(1)];
    let plan = Plan { walks_away: 0.25, ..Plan::new(CALLERS, seed) };
    let workload = Workload::over(&plan, &crew.recorder, |caller, token| {
        let gate = gates[usize::from(caller % 2 == 1)].clone();
        Box::new(Http::new(gate, token).impatient(HANG_UP_AFTER))
    })?;
    if place.locked && !crew.start(1, "")? {
        let found = named(&place, crew.close()?);
        return Ok((Report { found, ..Report::default() }, false));
    }
    crew.turn(0, 0)?;
    crew.turn(1, usize::from(place.locked))?;
    let mut done = format!("{}, {passes} hits before", place.name);
    let by_chance = stands(&mut crew, &place, &workload, &mut done)?;
    goes(&mut crew, then, by_chance, &mut done)?;
    after(&mut crew, &workload);
    crew.finish(workload)?;
    crew.set_clock(STILL_MS)?;
    crew.all_is_done(STILL_MS, DONE_WITHIN)?;
    let took_over = !place.locked && !by_chance;
    if took_over {
        told_once(&mut crew);
    }
    crew.stop()?;
    crew.audit()?;
    let found = named(&place, crew.close()?);
    Ok((Report { done: vec![done], found, skipped: Vec::new() }, took_over))
}

/// The first one comes to stand still, and the other does what can be done. Answers whether that is nothing because another
/// thread of the first is in the middle of a commit, or of a checkpoint.
fn stands(
    crew: &mut Crew,
    place: &Place,
    workload: &Workload,
    done: &mut String,
) -> Result<bool, Fault> {
    if !stands_still(crew)? {
        crew.found.push("no server stood still: the scene shows nothing".to_owned());
    } else if crew.is_locked()? == place.locked {
        let calls = meanwhile(crew, place, workload)?;
        done.push_str(&format!(": {calls} calls at the other one meanwhile"));
    } else if place.locked {
        crew.found.push("the write lock is not held there: the scene shows nothing".to_owned());
    } else {
        done.push_str(": it held the write lock by chance");
        return Ok(true);
    }
    Ok(false)
}

/// The first one goes on, or dies; the other is there at the latest now.
fn goes(crew: &mut Crew, then: Then, by_chance: bool, done: &mut String) -> Result<(), Fault> {
    match then {
        Then::GoesOn => {
            crew.server(0)?.signal(Signal::CONT)?;
            crew.turn(0, 0)?;
            done.push_str(", then it went on");
        }
        Then::Dies => {
            crew.kill(0)?;
            done.push_str(", then it died");
        }
    }
    if by_chance && crew.start(1, "")? {
        crew.turn(1, 1)?;
    }
    if then == Then::Dies {
        crew.turn(0, 1)?;
    }
    Ok(())
}

fn named(place: &Place, found: Vec<String>) -> Vec<String> {
    found.into_iter().map(|what| format!("{}: {what}", place.name)).collect()
}

fn stands_still(crew: &Crew) -> Result<bool, Fault> {
    let id = crew.server(0)?.id();
    Ok(comes(STOPS_WITHIN, || is_stopped(id)))
}

/// Whether it comes to be so in this time.
fn comes(within: Duration, is_so: impl Fn() -> bool) -> bool {
    let end = Instant::now() + within;
    while !is_so() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}

const COMMITS: &str = "SELECT count(*) FROM ledger";
const HELD: &str = "SELECT json_group_array(DISTINCT token) FROM (SELECT lease_token AS token FROM streams UNION ALL \
     SELECT lease_token FROM deadlines) WHERE token IS NOT NULL";
const STILL_HELD: &str = "SELECT count(*) FROM (SELECT lease_token AS token FROM streams UNION ALL \
     SELECT lease_token FROM deadlines) WHERE token IN (SELECT value FROM json_each(?1))";

/// The clock goes on and the other one takes over, or must not. Answers the calls that were done there.
fn meanwhile(crew: &mut Crew, place: &Place, workload: &Workload) -> Result<u64, Fault> {
    let before = workload.acknowledged();
    if place.locked {
        crew.turn(0, 1)?;
        let commits = crew.count(COMMITS, &[])?;
        // That nothing is written for so long is the experiment.
        std::thread::sleep(WATCHED);
        let now = crew.count(COMMITS, &[])?;
        if now != commits {
            crew.found.push(format!("{} commits beside the one that has the lock", now - commits));
        }
        return Ok(workload.acknowledged().saturating_sub(before));
    }
    let held = crew.text(HELD)?;
    crew.set_clock(STILL_MS)?;
    if !crew.start(1, "")? {
        return Ok(0);
    }
    crew.turn(0, 1)?;
    crew.turn(1, 1)?;
    let mine = "leases of the one that stands still are not taken over";
    crew.becomes_zero(mine, STILL_HELD, &[Value::from(held)], TAKEN_OVER_WITHIN)?;
    if !comes(TAKEN_OVER_WITHIN, || workload.acknowledged() >= before + CALLS_MIN) {
        crew.found.push("the other server gets nothing done".to_owned());
    }
    Ok(workload.acknowledged().saturating_sub(before))
}

/// Both, or the one that is left, get something done again.
fn after(crew: &mut Crew, workload: &Workload) {
    let wanted = workload.acknowledged() + 2 * CALLS_MIN;
    if !comes(TAKEN_OVER_WITHIN, || workload.acknowledged() >= wanted) {
        crew.found.push("nothing gets done afterwards".to_owned());
    }
}

/// Each server tells of each message once at most: nothing is refused here, and its own leases do not end. Where the lock
/// was held, what was delivered could not be written down, and comes again.
fn told_once(crew: &mut Crew) {
    for number in 0..2 {
        let log = crew.log(number);
        let mut ids: Vec<&str> = log.lines().filter_map(word::message_of).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        if ids.len() < all {
            let twice = all - ids.len();
            crew.found.push(format!("server {number} delivered {twice} messages twice"));
        }
    }
}
