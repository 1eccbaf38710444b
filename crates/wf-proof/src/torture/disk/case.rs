//! What a row of the table says: a fault, where it happens, and what must be while it lasts and after.

use std::pin::Pin;

use super::ground::Ground;
use super::scene::Scene;
use super::trouble::Trouble;
use crate::fault::Fault;
use crate::harness::disk::rules::{Action, Call, File, Rule};

/// What becomes of calls that write, while the fault lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writes {
    /// Every one is refused with `BACKEND_UNAVAILABLE`, to be sent again.
    Stop,
    /// Some are refused so, and what is done is really done.
    Some,
}

/// What becomes of calls that read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// They are answered.
    GoOn,
    /// They are refused with `BACKEND_UNAVAILABLE`.
    Stop,
}

/// What `/readyz` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ready {
    /// 503.
    No,
    /// One or the other.
    Either,
}

/// While a fault lasts. Afterwards all cases expect the same: writes within five seconds without a restart (where the
/// fault itself needs one: after it), every open call settled by repeating it, nothing for the audit to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expect {
    pub(super) writes: Writes,
    pub(super) reads: Reads,
    pub(super) ready: Ready,
    /// Refusals say when to try again.
    pub(super) after_ms: bool,
}

/// A case that is no fault to be put in and taken away.
pub(super) type Own = for<'a> fn(&'a mut Scene, &'a Draw) -> Running<'a>;

/// The run of an [`Own`].
pub(super) type Running<'a> = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>>;

/// What a case gets beside its scene.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    /// Everything random follows from it.
    pub(super) seed: u64,
    /// Run for long.
    pub(super) soak: bool,
}

/// System calls that are made to fail.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    /// Which calls, and of which file.
    pub(super) call: Call,
    pub(super) file: File,
    /// What happens to them.
    pub(super) actions: &'static [Action],
    /// The how manieth call at most; about as many are made within twenty calls of callers.
    pub(super) reach: u32,
    /// How many points are run when not all are.
    pub(super) points: usize,
    /// What else fails, so that there are such calls.
    pub(super) with: Option<Rule>,
}

/// How a case is run.
#[derive(Clone, Copy)]
pub(super) enum How {
    /// By `phases`.
    Fault(Trouble, Expect),
    /// System calls of these kinds fail, one point after another.
    Calls(Group),
    /// By itself.
    Own(Own),
}

/// A row of the table.
#[derive(Clone, Copy)]
pub(super) struct Case {
    /// Its name in reports and of its folder.
    pub(super) name: &'static str,
    /// What its folder lies on.
    pub(super) ground: Ground,
    /// More of the server's environment.
    pub(super) env: &'static [(&'static str, &'static str)],
    pub(super) how: How,
    /// Why only a soak runs it, if so.
    pub(super) only_soak: Option<&'static str>,
}
