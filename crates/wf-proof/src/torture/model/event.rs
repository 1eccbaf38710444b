//! What each event changes in a workflow: one more revision, at the time of the clock that never goes back.

use super::rules::Reading;
use super::world::{Block, Phase, Status, Step, Touch, Work, World};

/// So many closed blocks are remembered.
const CLOSED_MAX: usize = 8;

impl World {
    /// One more event of a workflow.
    pub(super) fn event(&mut self, work: usize, change: impl FnOnce(&mut Work, u64)) {
        if let Some(w) = self.works.get_mut(work) {
            w.revision += 1;
            w.at = w.at.max(self.clock);
            change(w, w.revision);
        }
    }

    pub(super) fn record(
        &mut self,
        work: usize,
        step: &'static str,
        reading: &Reading,
        touch: &Touch,
    ) {
        let before = self.works.get(work).and_then(|w| w.steps.get(step)).cloned();
        self.event(work, |w, revision| {
            let attempt = w.attempt(step) + 1;
            let touch = Touch { revision, ..touch.clone() };
            let reading = Some(reading.clone());
            w.steps.insert(step, Step { status: Status::Recorded, reading, attempt, touch });
            w.recorded = Some(step);
        });
        let Some(before) = before.filter(|before| before.attempt > 0 && step == "length") else {
            return;
        };
        let changed = before.reading.is_none_or(|old| !old.means(reading));
        let depth = self.works.get(work).and_then(|w| w.steps.get("depth"));
        if changed && depth.is_some_and(|depth| depth.status == Status::Recorded) {
            self.event(work, |w, revision| {
                if let Some(depth) = w.steps.get_mut("depth") {
                    depth.status = Status::Recheck;
                    depth.touch = Touch { revision, ..touch.clone() };
                }
            });
        }
    }

    pub(super) fn blocked_by(
        &mut self,
        work: usize,
        step: &'static str,
        reading: &Reading,
        touch: &Touch,
    ) {
        if let Some(code) = reading.blocks {
            self.open_block(work, code, Some(step), false, touch);
        }
    }

    pub(super) fn open_block(
        &mut self,
        work: usize,
        code: &'static str,
        step: Option<&'static str>,
        reported: bool,
        touch: &Touch,
    ) {
        self.event(work, |w, revision| {
            let touch = Touch { revision, ..touch.clone() };
            w.blocks.push(Block { nth: w.opened, code, step, reported, touch });
            w.opened += 1;
            w.phase = Phase::Blocked;
        });
    }

    pub(super) fn close(&mut self, work: usize, nth: usize, touch: &Touch) {
        self.event(work, |w, revision| {
            w.blocks.retain(|b| b.nth != nth);
            w.closed.push((nth, Touch { revision, ..touch.clone() }));
            let surplus = w.closed.len().saturating_sub(CLOSED_MAX);
            w.closed.drain(..surplus);
            if w.blocks.is_empty() {
                w.phase = Phase::Running;
            }
        });
    }

    pub(super) fn complete(&mut self, work: usize, result: &str, touch: &Touch) {
        self.event(work, |w, revision| {
            w.phase = Phase::Completed;
            w.result = Some(result.to_owned());
            w.ended = Some(Touch { revision, ..touch.clone() });
            w.blocks.clear();
        });
        self.release_all(work);
    }
}
