//! Room in a state: a workflow never grows so large that it could not be ended any more.

use crate::errors::ErrorCode;
use crate::limits::{STATE_BYTES_MAX, STATE_RESERVE_BYTES};
use crate::models::{Phase, Workflow};
use crate::view::Fault;

use super::decision::Rejection;

/// Steps with which a state is small whatever they hold: 60 values of the largest size with the longest names are less
/// than 200,000 bytes, and all else that a state may hold is less than 120,000.
const STEPS_SMALL: usize = 60;

/// Whether the state of an open workflow leaves room for its end.
///
/// # Errors
/// `LIMIT_EXCEEDED` when it does not; then nothing may be committed but the end, which always fits.
pub fn room(next: &Workflow) -> Result<(), Rejection> {
    if next.steps.len() <= STEPS_SMALL || next.phase == Phase::Completed {
        return Ok(());
    }
    let bytes = serde_json::to_vec(next).map_or(usize::MAX, |state| state.len());
    if bytes + STATE_RESERVE_BYTES <= STATE_BYTES_MAX {
        return Ok(());
    }
    Err(Rejection::new(
        ErrorCode::LimitExceeded,
        "the values of this workflow are too large together; say less, or end it",
        Fault::LimitExceeded,
    )
    .with("limit", "state_bytes")
    .with("max", STATE_BYTES_MAX - STATE_RESERVE_BYTES))
}
