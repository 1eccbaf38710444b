//! When a workflow is looked at again: later and later the more often it was in vain, spread by chance.

use crate::models::Timestamp;
use crate::ports::BoundRows;

/// About when it is looked at again for the first time, in milliseconds: an execution registers within a moment.
const FIRST_MS: i64 = 1_000;
/// The longest wait, in milliseconds: what was down is noticed to be up within this.
const LONGEST_MS: i64 = 2 * 60 * 1_000;
/// The wait where no commit asked for the look, so that nobody waits for it, in milliseconds.
const UNASKED_MS: i64 = 30 * 1_000;

/// When to look again at a workflow of which nothing more can be done now. `fraction` is by chance, from 0 to 1.
pub(super) fn look_again(bound: &impl BoundRows, now: Timestamp, fraction: f64) -> Timestamp {
    let waits = match bound.attention().wanted_revision {
        Some(_) => backoff(bound.attention().looks, fraction),
        None => spread(UNASKED_MS, fraction),
    };
    let at = now.plus_ms(waits);
    // A successor is not started before its time: looking earlier is in vain.
    let binding = bound.binding();
    let starts = binding.started_at.is_none() && !binding.closed;
    if starts { at.max(binding.not_before) } else { at }
}

fn backoff(looks: u32, fraction: f64) -> i64 {
    spread(FIRST_MS.saturating_mul(1 << looks.min(20)).min(LONGEST_MS), fraction)
}

/// Between half and all of it.
fn spread(ms: i64, fraction: f64) -> i64 {
    let half = ms / 2;
    let Ok(whole) = i32::try_from(half) else { return ms };
    let part = std::time::Duration::from_millis(u64::from(whole.unsigned_abs()))
        .mul_f64(fraction.clamp(0.0, 1.0));
    half + i64::try_from(part.as_millis()).unwrap_or(half)
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_MS, backoff, spread};

    #[test]
    fn looks_come_later_and_later_up_to_a_bound_and_are_spread() {
        let waits: Vec<i64> = (0..12).map(|looks| backoff(looks, 1.0)).collect();
        assert!(waits.is_sorted(), "{waits:?}");
        assert_eq!((waits[0], waits[1], waits[11]), (1_000, 2_000, LONGEST_MS));
        assert_eq!(backoff(u32::MAX, 0.0), LONGEST_MS / 2);
        assert_eq!((spread(1_000, 0.0), spread(1_000, 0.5), spread(1_000, 1.0)), (500, 750, 1_000));
    }
}
