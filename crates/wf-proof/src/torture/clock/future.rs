//! An hour that never was: servers with a clock that is ahead by hours take the leases of messages and deadlines, and die;
//! then the clock is put right. Their leases end hours later by what they wrote down, and must not count.

use std::time::{Duration, Instant};

use rusqlite::types::Value;

use super::super::Setting;
use super::super::crew::{Crew, PAUSE, now_ms};
use super::HOUR_MS;
use crate::fault::Fault;
use crate::harness::line::Http;
use crate::harness::workload::{Plan, Workload};

/// What the store thinks of leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leases {
    /// As it is: one that no right clock can have given is none.
    Judged,
    /// A lease lasts until it says that it is over.
    Believed,
}

/// How far the clock is ahead.
const AHEAD_MS: i64 = 5 * HOUR_MS;
const CALLERS: u32 = 4;
/// Calls that are made before, while nothing is delivered and no deadline passes, and how long they may take.
const CALLS: u64 = 80;
const CALLS_WITHIN: Duration = Duration::from_secs(20);
/// How soon a server dies by what it does.
const DIES_WITHIN: Duration = Duration::from_secs(10);
/// How soon everything must be done once the clock is right.
const DONE_WITHIN: Duration = Duration::from_secs(12);

/// No message is claimed, no deadline is.
const IDLE: &str = "outbox.claim=return;deadline.claim=return";
/// Each dies with what it claimed.
const DEATHS: [&str; 2] = [
    "outbox.send=return(abort);deadline.claim=return",
    "deadline.claimed=return(abort);outbox.claim=return",
];
const LEASED: &str = "SELECT count(*) FROM (SELECT lease_until FROM streams UNION ALL SELECT lease_until FROM deadlines) \
     WHERE lease_until > ?1";

/// Plays it; what was found.
pub(super) fn after(setting: &Setting, leases: Leases) -> Result<Vec<String>, Fault> {
    let mut crew = Crew::new(setting, &format!("clock-future-{leases:?}"), 1)?;
    crew.set_clock(0)?;
    let lie = if leases == Leases::Believed { ";lease.trusted=return" } else { "" };
    if !crew.start(0, IDLE)? {
        return crew.close();
    }
    let plan = Plan { walks_away: 0.5, ..Plan::new(CALLERS, setting.seed) };
    let gate = crew.gate(0);
    let workload =
        Workload::over(&plan, &crew.recorder, |_, token| Box::new(Http::new(gate.clone(), token)))?;
    crew.turn(0, 0)?;
    calls(&mut crew, &workload);
    crew.finish(workload)?;
    crew.kill(0)?;
    crew.set_clock(AHEAD_MS)?;
    for death in DEATHS {
        // One that claims and dies before it serves is what is wanted too.
        let served = crew.start(0, &format!("{death}{lie}"))?;
        if served && !crew.ends(0, DIES_WITHIN)? {
            crew.found.push(format!("no server died by {death}: the scene shows nothing"));
        }
        crew.found.retain(|what| served || !what.starts_with("server 0: "));
        crew.kill(0)?;
    }
    let far = [Value::from(now_ms() + AHEAD_MS / 2)];
    if crew.count(LEASED, &far)? == 0 {
        crew.found
            .push("nothing is under a lease of that hour: the scene shows nothing".to_owned());
    }
    crew.set_clock(0)?;
    if crew.start(0, lie.trim_start_matches(';'))? {
        crew.all_is_done(0, DONE_WITHIN)?;
        crew.stop()?;
    }
    crew.audit()?;
    crew.close()
}

fn calls(crew: &mut Crew, workload: &Workload) {
    let end = Instant::now() + CALLS_WITHIN;
    while workload.acknowledged() < CALLS {
        if Instant::now() > end {
            crew.found.push("the server gets nothing done".to_owned());
            break;
        }
        std::thread::sleep(PAUSE);
    }
}
