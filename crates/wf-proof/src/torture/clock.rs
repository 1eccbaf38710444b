//! Clocks that jump, by minutes and by hours, forward and backward, under servers at work, and over kills and starts.
//!
//! Whatever the clock says: the history of a workflow never goes back, no id is given out twice, no deadline passes twice
//! and none is forgotten, no lease lasts for hours, no message waits for a time that only a wrong clock knew, and no key of
//! open work is forgotten. What is due by the clock is a question of the clock: deadlines that were set an hour ahead pass an
//! hour later. Confirmations last five minutes, so callers are asked again.
//!
//! Files: `future` (leases and messages from an hour that never was, with the negative control: a store that believes such
//! leases).

mod future;

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::crew::{Crew, PAUSE};
use super::{Bench, Report, Setting, Size};
use crate::fault::Fault;
use crate::harness::line::Http;
use crate::harness::workload::{Plan, Workload};

/// The bench.
pub(super) const CLOCK: Bench = Bench {
    name: "clock",
    what: "clocks jump by hours, forward and backward: locks, deadlines, leases, keys, the order of histories",
    run,
    control,
};

/// Servers on the file, and callers.
const SERVERS: usize = 2;
const CALLERS: u32 = 6;
/// Jumps of a short run, and of a soak that names no count.
const SHORT: u64 = 14;
const SOAK: u64 = 1_000;
/// Jumps on one file.
const PER_FILE: u64 = 40;
/// Furthest from the true time.
const FAR_MS: i64 = 30 * HOUR_MS;
const HOUR_MS: i64 = 3_600_000;
/// Longer than a lease.
const LEASES_MS: i64 = 70_000;
/// Longer than keys are remembered (30 days).
const FORGOTTEN_MS: i64 = 40 * 24 * HOUR_MS;
/// How long what is due may take in the end.
const DONE_WITHIN: Duration = Duration::from_secs(20);
/// Calls that must go through between two jumps, on average.
const CALLS_MIN: u64 = 5;

fn run(setting: &Setting) -> Result<Report, Fault> {
    let all = match setting.size {
        Size::Short => SHORT,
        Size::Soak => setting.count.unwrap_or(SOAK),
    };
    let mut report = Report::default();
    let (mut number, mut jumps, mut calls) = (0, 0, 0);
    while jumps < all && report.found.is_empty() {
        let now = PER_FILE.min(all - jumps);
        let (found, acknowledged) = one_file(setting, number, now)?;
        report.found.extend(found);
        (number, jumps, calls) = (number + 1, jumps + now, calls + acknowledged);
    }
    report.found.extend(future::after(setting, future::Leases::Judged)?);
    report.done.push(format!(
        "{jumps} jumps of up to {} hours under {SERVERS} servers and {calls} acknowledged calls; one back from an hour \
         that never was",
        2 * FAR_MS / HOUR_MS
    ));
    Ok(report)
}

fn control(setting: &Setting) -> Result<Report, Fault> {
    let found = future::after(setting, future::Leases::Believed)?;
    let first = found.first().map_or("NOTHING", String::as_str);
    let done = vec![format!("leases of a wrong clock are believed: {first}")];
    Ok(Report { done, found, skipped: Vec::new() })
}

/// A jump: where the clock is afterwards, in milliseconds from the true time.
fn jump(number: u64, at: i64, random: &mut StdRng) -> i64 {
    let hours = |random: &mut StdRng| random.random_range(HOUR_MS..FAR_MS);
    match number % 4 {
        // Forward by hours, back to before the true time, back to it, and by minutes or seconds.
        0 => hours(random),
        1 => -hours(random),
        2 => 0,
        _ => (at + random.random_range(-600_000..600_000)).clamp(-FAR_MS, FAR_MS),
    }
}

/// Takes a fresh file through so many jumps. What was found, and the calls that went through.
fn one_file(setting: &Setting, number: u64, jumps: u64) -> Result<(Vec<String>, u64), Fault> {
    let seed = setting.seed.wrapping_add(number);
    let mut random = StdRng::seed_from_u64(seed);
    let mut crew = Crew::new(setting, &format!("clock-{number}"), SERVERS)?;
    let mut at = 0;
    crew.set_clock(at)?;
    for server in 0..SERVERS {
        if !crew.start(server, "")? {
            return Ok((crew.close()?, 0));
        }
        crew.turn(server, server)?;
    }
    let plan = Plan { walks_away: 0.25, ..Plan::new(CALLERS, seed) };
    let gates = [crew.gate(0), crew.gate(1)];
    let workload = Workload::over(&plan, &crew.recorder, |caller, token| {
        Box::new(Http::new(gates[usize::from(caller % 2 == 1)].clone(), token))
    })?;
    for number in 0..jumps {
        std::thread::sleep(Duration::from_millis(random.random_range(150..700)));
        at = jump(number, at, &mut random);
        crew.set_clock(at)?;
        if number % 5 == 4 {
            // A start at a time that is another than that of the end.
            let victim = random.random_range(0..SERVERS);
            crew.kill(victim)?;
            crew.turn(victim, (victim + 1) % SERVERS)?;
            if !crew.start(victim, "")? {
                return Ok((crew.close()?, workload.acknowledged()));
            }
            crew.turn(victim, victim)?;
        }
    }
    let acknowledged = workload.acknowledged();
    if acknowledged < jumps * CALLS_MIN {
        crew.found.push(format!("only {acknowledged} calls went through {jumps} jumps"));
    }
    // Everything that any of the clocks set is due then.
    let last = FAR_MS + LEASES_MS;
    crew.set_clock(last)?;
    crew.finish(workload)?;
    crew.all_is_done(last, DONE_WITHIN)?;
    crew.quiet()?;
    crew.audit_live()?;
    forgets_only_what_is_over(&mut crew)?;
    crew.stop()?;
    Ok((crew.close()?, acknowledged))
}

const OPEN: &str =
    "SELECT count(*) FROM ledger l JOIN workflows w ON w.wid = l.wid WHERE w.completed_at IS NULL";
const OVER: &str = "SELECT count(*) FROM ledger l JOIN workflows w ON w.wid = l.wid WHERE w.completed_at IS NOT NULL";

/// A clock that is weeks ahead lets keys of completed work be forgotten, which is what retention says, and none of open
/// work. After that the callers' history cannot be held against the ledger any more.
fn forgets_only_what_is_over(crew: &mut Crew) -> Result<(), Fault> {
    let open = crew.count(OPEN, &[])?;
    if open == 0 || crew.count(OVER, &[])? == 0 {
        crew.found.push("no work is open, or none is over: retention shows nothing".to_owned());
        return Ok(());
    }
    crew.set_clock(FORGOTTEN_MS)?;
    // A server sweeps when it starts.
    crew.kill(0)?;
    if !crew.start(0, "")? {
        return Ok(());
    }
    crew.becomes_zero("keys of completed work are remembered", OVER, &[], DONE_WITHIN)?;
    std::thread::sleep(PAUSE);
    let still = crew.count(OPEN, &[])?;
    // Deadlines of open work may have passed meanwhile, each with a row.
    if still < open {
        crew.found.push(format!("{} keys of open work are forgotten", open - still));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::{FAR_MS, HOUR_MS, jump};

    #[test]
    fn clocks_jump_to_both_sides_and_come_back() {
        let mut random = StdRng::seed_from_u64(3);
        let mut at = 0;
        let all: Vec<i64> = (0..8)
            .map(|number| {
                at = jump(number, at, &mut random);
                at
            })
            .collect();
        assert!(all.iter().all(|at| at.abs() <= FAR_MS), "{all:?}");
        assert!(all.iter().any(|at| *at >= HOUR_MS) && all.iter().any(|at| *at <= -HOUR_MS));
        assert_eq!((all[2], all[6]), (0, 0));
    }
}
