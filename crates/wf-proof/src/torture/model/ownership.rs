//! Whose work it is, and what it holds: offers, what was taken away from it, and how it comes back.

use super::call::Call;
use super::command::{Done, reason};
use super::predict::{probe, unit};
use super::world::{Offer, Phase, Touch, World};

impl World {
    /// Of the one person there is: what somebody else would do with an offer is refused, and only what was taken away from
    /// the work can be taken over.
    pub(super) fn transfer(&mut self, number: usize, work: usize, call: &Call) -> Done {
        let w = self.at(work)?;
        if w.phase == Phase::Completed {
            return Err("INVALID_TRANSITION");
        }
        let touch = self.touch(number, call);
        let offer = match (call.text("action").unwrap_or_default(), w.offer) {
            ("offer", _) => match call.text("to") {
                None => Some(Offer::ToAnybody),
                Some("user:colleague") => Some(Offer::ToSomebody),
                Some(_) => return Err("VALIDATION_ERROR"),
            },
            ("withdraw", Some(_)) => None,
            ("accept" | "decline", Some(Offer::ToSomebody))
            | ("decline", Some(Offer::ToAnybody)) => return Err("NOT_ALLOWED"),
            ("take_over", _) if !self.holds(work) => {
                reason(call, true)?;
                let assets = [w.unit.clone(), w.probe.clone()];
                let others = |id: &String| self.holders.get(id).copied().flatten() != Some(work);
                let held = |id: &String| self.holders.get(id).copied().flatten().is_some();
                if assets.iter().any(|id| others(id) && held(id)) {
                    return Err("ASSET_LOCKED");
                }
                self.holders.extend(assets.map(|id| (id, Some(work))));
                None
            }
            _ => return Err("INVALID_TRANSITION"),
        };
        self.event(work, |w, revision| {
            w.offer = offer;
            w.handed = Some(Touch { revision, ..touch });
        });
        Ok("transferred")
    }

    /// Frees an asset from the command line; false where there is nothing to free.
    pub(super) fn release(&mut self, asset: &str) -> bool {
        let Some(id) = unit(asset).or_else(|| probe(asset)) else { return false };
        let Some(work) = self.holders.get(&id).copied().flatten() else { return false };
        self.holders.insert(id, None);
        self.event(work, |w, _| w.handed = None);
        true
    }
}
