//! The whole state of the model: what must be true of the server after the operations so far. Obvious and slow.
//!
//! [`World::apply`] is the step; `predict` says what each call must be answered, `write` what it changes.

use std::collections::BTreeMap;

use super::call::{Arg, Call, Key, Payload};
use super::rules::{REQUIRED, Reading, STEPS};

/// The bench's own time: milliseconds by which the clock was moved. Real time within a case counts as none.
pub(super) type Moved = i64;

/// Of unit and probe: whether the work itself has it, where anybody does.
pub(super) type Hold = [Option<bool>; 2];

/// Everything.
#[derive(Debug, Clone, Default)]
pub(super) struct World {
    pub(super) clock: Moved,
    /// A second server is up.
    pub(super) second: bool,
    pub(super) works: Vec<Work>,
    /// Who holds each asset that was ever held.
    pub(super) holders: BTreeMap<String, Option<usize>>,
    pub(super) ledger: BTreeMap<Key, Row>,
    pub(super) tokens: Vec<Minted>,
    /// Calls that were answered with a read-back, and its token.
    pub(super) asked: Vec<(usize, usize)>,
    /// Every call so far. Its place is its number.
    pub(super) calls: Vec<Call>,
    /// What the calls of the last operation must be answered.
    pub(super) last: Vec<Predicted>,
    /// Whether the last operation frees an asset from the command line.
    pub(super) released: Option<bool>,
}

/// What a key stands for, and the call that was answered first.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) payload: Payload,
    pub(super) answer: usize,
}

/// What a confirm token is proof of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) workflow: usize,
    pub(super) target: &'static str,
    pub(super) attempt: u32,
    pub(super) value: String,
    pub(super) unit: &'static str,
}

/// A confirm token that was given out.
#[derive(Debug, Clone)]
pub(super) struct Minted {
    pub(super) bound: Bound,
    pub(super) at: Moved,
}

/// What a call must be answered.
#[derive(Debug, Clone)]
pub(super) struct Predicted {
    /// Its place in `calls`.
    pub(super) number: usize,
    pub(super) answer: Answer,
    /// The workflow that the answer must show, and how it must stand then.
    pub(super) shows: Option<Shown>,
    /// `candidates_total`.
    pub(super) total: Option<usize>,
    /// The server is killed so many microseconds after it was sent.
    pub(super) crash: Option<u32>,
}

/// The class of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// `ok`, this outcome, no duplicate.
    Fresh(&'static str),
    /// This error code.
    Refused(&'static str),
    /// The answer of an earlier call, byte for byte but for `duplicate`.
    Again(usize),
}

/// How a workflow stands, as every view of it tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) workflow: usize,
    pub(super) state: &'static str,
    pub(super) result: Option<String>,
    pub(super) revision: u64,
    /// The step that is asked next.
    pub(super) step: Option<&'static str>,
    /// Which attempt at it that would be.
    pub(super) attempt: Option<u32>,
    /// Codes of the open blocks, oldest first.
    pub(super) blocks: Vec<&'static str>,
    /// How many required steps are settled.
    pub(super) settled: usize,
    /// The step and value recorded last.
    pub(super) recorded: Option<&'static str>,
}

/// The states of the design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    Blocked,
    Completed,
}

/// One execution of the procedure.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) phase: Phase,
    pub(super) result: Option<String>,
    pub(super) revision: u64,
    /// When its newest event happened.
    pub(super) at: Moved,
    pub(super) unit: String,
    pub(super) probe: String,
    pub(super) inputs: serde_json::Value,
    pub(super) steps: BTreeMap<&'static str, Step>,
    /// Open, oldest first.
    pub(super) blocks: Vec<Block>,
    /// How many were ever opened.
    pub(super) opened: usize,
    /// The last eight that were closed.
    pub(super) closed: Vec<(usize, Touch)>,
    pub(super) noted: Option<Touch>,
    pub(super) ended: Option<Touch>,
    /// It is on offer.
    pub(super) offer: Option<Offer>,
    /// Who caused the newest event on whose work it is; none when an operator did.
    pub(super) handed: Option<Touch>,
    pub(super) recorded: Option<&'static str>,
}

/// Who caused the newest event on something: what the call says without its free texts, and its number.
#[derive(Debug, Clone)]
pub(super) struct Touch {
    pub(super) natural: Payload,
    pub(super) payload: Payload,
    pub(super) answer: usize,
    /// The revision that its event made.
    pub(super) revision: u64,
}

/// What is known of a step that somebody did something with.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) status: Status,
    pub(super) reading: Option<Reading>,
    /// Values recorded so far.
    pub(super) attempt: u32,
    pub(super) touch: Touch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Recorded,
    Skipped,
    /// A decision asks for it again.
    Reopened,
    /// A value that it depends on was corrected.
    Recheck,
}

/// To whom work is offered. There is one person in a case, who owns all work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    ToAnybody,
    ToSomebody,
}

/// A block.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) nth: usize,
    pub(super) code: &'static str,
    pub(super) step: Option<&'static str>,
    /// Somebody reported it; else a value caused it.
    pub(super) reported: bool,
    pub(super) touch: Touch,
}

impl Step {
    pub(super) fn is_settled(&self) -> bool {
        match self.status {
            Status::Recorded | Status::Skipped => true,
            Status::Reopened | Status::Recheck => false,
        }
    }
}

impl Phase {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Blocked => "BLOCKED",
            Self::Completed => "COMPLETED",
        }
    }
}

impl Work {
    /// The steps come one after the other: the first that is not settled.
    pub(super) fn open_step(&self) -> Option<&'static str> {
        STEPS.into_iter().find(|step| !self.steps.get(step).is_some_and(Step::is_settled))
    }

    /// One of its assets has the number 2.
    pub(super) fn is_of_a_two(&self) -> bool {
        self.unit == "UNIT-2" || self.probe == "P2"
    }

    pub(super) fn reading(&self, step: &str) -> Option<&Reading> {
        self.steps.get(step)?.reading.as_ref()
    }

    /// The recorded length, on which the limits of the depth depend.
    pub(super) fn length(&self) -> Option<i64> {
        self.reading("length")?.number
    }

    pub(super) fn attempt(&self, step: &str) -> u32 {
        self.steps.get(step).map_or(0, |s| s.attempt)
    }

    /// The block that a value of the step caused.
    pub(super) fn caused(&self, step: &str) -> Option<&Block> {
        self.blocks.iter().find(|b| !b.reported && b.step == Some(step))
    }

    pub(super) fn shown(&self, workflow: usize) -> Shown {
        let step = match self.phase {
            Phase::Running => self.open_step(),
            Phase::Blocked | Phase::Completed => None,
        };
        let settled = |step: &&str| self.steps.get(*step).is_some_and(Step::is_settled);
        Shown {
            workflow,
            state: self.phase.name(),
            result: self.result.clone(),
            revision: self.revision,
            step,
            attempt: step.map(|step| self.attempt(step) + 1),
            blocks: self.blocks.iter().map(|b| b.code).collect(),
            settled: REQUIRED.iter().filter(|step| settled(step)).count(),
            recorded: self.recorded,
        }
    }
}

impl World {
    pub(super) fn open(&self) -> impl Iterator<Item = usize> + '_ {
        let open = |(_, work): &(usize, &Work)| work.phase != Phase::Completed;
        self.works.iter().enumerate().filter(open).map(|(number, _)| number)
    }

    /// The workflow still holds both of its assets.
    pub(super) fn holds(&self, number: usize) -> bool {
        self.works.get(number).is_some_and(|work| {
            [&work.unit, &work.probe]
                .into_iter()
                .all(|asset| self.holders.get(asset).copied().flatten() == Some(number))
        })
    }

    /// Who has its assets: itself, another, or nobody.
    pub(super) fn hold_of(&self, number: usize) -> Hold {
        let Some(work) = self.works.get(number) else { return [None; 2] };
        [&work.unit, &work.probe].map(|asset| {
            let holder = self.holders.get(asset).copied().flatten();
            holder.map(|holder| holder == number)
        })
    }

    pub(super) fn release_all(&mut self, number: usize) {
        for holder in self.holders.values_mut() {
            if *holder == Some(number) {
                *holder = None;
            }
        }
    }

    /// The work that the call names.
    pub(super) fn work(&self, call: &Call) -> Option<(usize, &Work)> {
        let number = call.workflow()?;
        Some((number, self.works.get(number)?))
    }

    /// The open block that the call names.
    pub(super) fn block<'w>(&self, work: &'w Work, call: &Call) -> Option<&'w Block> {
        let Some(Arg::Block(_, nth)) = call.args.get("block_id") else { return None };
        work.blocks.iter().find(|b| b.nth == *nth)
    }
}
