//! Receivers of messages that lie: one that draws a lie for each delivery, one that refuses for good, one that hangs, one
//! whose certificate is not its own; and an honest one beside them.
//!
//! Every message comes at least once, under one id and with one body, signed, after its commit, in the order of its stream,
//! until its receiver says 2xx or refuses it for good; what was refused is dead and what is behind it goes on. Nobody waits
//! for somebody else's receiver: not the honest one, and no caller. A receiver has no more than a few deliveries at once.
//!
//! Files: `lies` (what a receiver does, and what that means), `hook` (a receiver, and what it wrote down), `outbox` (what the
//! store says of messages), `judge` (the one against the other), `session` (server, receivers and callers), `control` (what
//! must be found).

mod control;
mod hook;
mod judge;
mod lies;
mod outbox;
mod session;

use std::time::Duration;

use super::{Bench, Report, Setting, Size};
use crate::fault::Fault;

use lies::Manner;
use session::{Session, Told};

/// The bench.
pub(super) const SINKS: Bench = Bench {
    name: "sinks",
    what: "receivers of messages that forget, fail, hang, drip, flood, redirect, answer twice or are somebody else",
    run,
    control: control::run,
};

/// How long receivers lie.
const LIES: Duration = Duration::from_secs(5);
/// Rounds of a soak without `--count`.
const SOAK: u64 = 30;

/// Who is told, and how each of them behaves.
const TOLD: [Told; 5] = [
    Told { recipient: "subscribers", manner: Manner::Lies },
    Told { recipient: "lead-a", manner: Manner::Refuses },
    Told { recipient: "lead-b", manner: Manner::Hangs },
    Told { recipient: "lead-c", manner: Manner::Impostor },
    Told { recipient: "lead-d", manner: Manner::Honest },
];

fn run(setting: &Setting) -> Result<Report, Fault> {
    let rounds = match setting.size {
        Size::Short => 1,
        Size::Soak => setting.count.unwrap_or(SOAK),
    };
    let mut report = Report::default();
    for round in 0..rounds {
        let seed = setting.seed.wrapping_add(round);
        let mut session = Session::open(setting, "sinks", seed, &TOLD)?;
        session.lie(LIES)?;
        session.heal()?;
        session.close(&mut report)?;
        if !report.found.is_empty() {
            break;
        }
    }
    Ok(report)
}
