//! An asset as a lock: a start takes it, the end of the work gives it back, `ASSET_LOCKED` and a joined start see who
//! has it.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use wf_core::models::AssetId;
use wf_core::state_machine::Outcome as Word;

use super::super::books::place_of;
use super::super::call::{Call, Fate};
use super::super::found::Found;
use super::{History, Judge, Machine, Point, Span, Timed};

/// What a call did to a lock, or saw of it. The fences are for the cheap check: the machine does not look at them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access<'h> {
    Take { by: &'h str, fence: Option<u64> },
    Free { by: &'h str, fence: u64 },
    HeldBy { by: &'h str, fence: Option<u64> },
}

/// Held by one workflow at most.
struct Lock<'h>(PhantomData<&'h str>);

impl<'h> Machine for Lock<'h> {
    type State = Option<&'h str>;
    type Input = Access<'h>;

    fn start(&self) -> Self::State {
        None
    }

    fn step(&self, state: &Self::State, input: &Self::Input) -> Option<Self::State> {
        match *input {
            Access::Take { by, .. } => state.is_none().then_some(Some(by)),
            Access::Free { by, .. } => (*state == Some(by)).then_some(None),
            Access::HeldBy { by, .. } => (*state == Some(by)).then_some(*state),
        }
    }
}

/// What happened to each asset of each tenant.
type Accesses<'h> = BTreeMap<(&'h str, &'h str), Vec<Timed<Access<'h>>>>;

pub(super) fn check(history: &History<'_, '_, '_>, found: &mut Found, left_out: &mut Vec<String>) {
    let mut accesses = Accesses::new();
    let fences = changes(history, &mut accesses);
    for call in history.calls {
        looks(history, call, &fences, &mut accesses);
    }
    let mut judge = Judge { found, left_out: BTreeSet::new() };
    for ((_, asset), accesses) in &accesses {
        let points: Vec<Point> = accesses.iter().filter_map(point).collect();
        judge.order(asset, &points);
        judge.search(asset, &Lock(PhantomData), accesses);
    }
    left_out.extend(judge.left_out);
}

/// The fence under which a workflow holds an asset; none when it acquired it more than once.
type Fences<'h> = BTreeMap<(&'h str, &'h str, &'h str), Option<u64>>;

/// What commits did to locks.
fn changes<'h>(history: &'h History<'_, '_, '_>, accesses: &mut Accesses<'h>) -> Fences<'h> {
    let mut fences = Fences::new();
    for (place, work) in &history.books.works {
        let (tenant, by) = (place.0.as_str(), place.1.as_str());
        let mut held: BTreeMap<&AssetId, u64> = BTreeMap::new();
        for commit in &work.commits {
            let span = history.spans.get(&(place, commit.last)).copied().unwrap_or(Span::ANY);
            let mut add = |asset: &'h AssetId, input| {
                let of_asset = accesses.entry((tenant, asset.as_str())).or_default();
                of_asset.push(Timed { sent: span.sent, over: span.over, input });
            };
            for asset in &commit.freed {
                if let Some(fence) = held.remove(asset) {
                    add(asset, Access::Free { by, fence });
                }
            }
            for (asset, fence) in &commit.taken {
                if let Some(fence) = held.insert(asset, *fence) {
                    add(asset, Access::Free { by, fence });
                }
                add(asset, Access::Take { by, fence: Some(*fence) });
                let known = fences.entry((tenant, by, asset.as_str()));
                known.and_modify(|fence| *fence = None).or_insert(Some(*fence));
            }
            if commit.ends {
                for (asset, fence) in std::mem::take(&mut held) {
                    add(asset, Access::Free { by, fence });
                }
            }
        }
    }
    fences
}

/// What an answer tells of locks beyond the commits of the store.
fn looks<'h>(
    history: &'h History<'_, '_, '_>,
    call: &'h Call<'_>,
    fences: &Fences<'h>,
    accesses: &mut Accesses<'h>,
) {
    let (tenant, span) = (call.attempt.tenant.as_str(), Span::of(call));
    let Some(answer) = &call.answer else { return };
    let mut add = |asset: &'h str, input| {
        let of_asset = accesses.entry((tenant, asset)).or_default();
        of_asset.push(Timed { sent: span.sent, over: span.over, input });
    };
    let fence = |by: &'h str, asset: &'h str| fences.get(&(tenant, by, asset)).copied().flatten();
    if let Some((asset, by)) = &answer.held {
        add(asset, Access::HeldBy { by, fence: fence(by, asset) });
    }
    let Some(seen) = &answer.seen else { return };
    let joined = answer.outcome == Some(Word::Joined);
    // A start that was acknowledged took its assets, whatever the store says of it now.
    let started = answer.outcome == Some(Word::Started)
        && call.fate == Fate::Done
        && !place_of(tenant, &seen.workflow).is_some_and(|p| history.books.works.contains_key(&p));
    for asset in seen.assets.iter().filter(|_| joined || started) {
        let by = seen.workflow.as_str();
        add(
            asset,
            if joined {
                Access::HeldBy { by, fence: fence(by, asset) }
            } else {
                Access::Take { by, fence: None }
            },
        );
    }
}

/// An asset goes through two numbers with each fence: held, and free again.
fn point(access: &Timed<Access<'_>>) -> Option<Point> {
    let at = |fence: u64| fence.saturating_mul(2);
    let (low, high, what) = match access.input {
        Access::Take { by, fence } => {
            let held = at(fence?);
            (held.saturating_sub(1), held, format!("{by} taking it with fence {}", fence?))
        }
        Access::Free { by, fence } => {
            (at(fence), at(fence).saturating_add(1), format!("{by} giving back fence {fence}"))
        }
        Access::HeldBy { by, fence } => {
            let held = at(fence?);
            (held, held, format!("a look at {by} with fence {}", fence?))
        }
    };
    let (sent, over) = (access.sent, access.over);
    Some(Point { low, high, sent, over, what: format!("{what} (sent {sent})") })
}
