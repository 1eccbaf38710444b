//! Bounds of free texts, so that every record fits every backend whoever calls: a transport, the command line, a program
//! that holds the engine itself.

use crate::limits::{FREE_TEXT_CHARS_MAX, VALUE_CHARS_MAX};
use crate::state_machine::command::SubmittedValue;
use crate::state_machine::{Rejection, Transfer};

use super::call::Request;

/// Refuses a text that is too long, and an empty one where somebody's words are needed.
pub(super) fn bounds(request: &Request) -> Result<(), Rejection> {
    match request {
        Request::Start { assets, .. } => {
            assets.iter().try_for_each(|(role, id)| within(role, id, VALUE_CHARS_MAX))
        }
        Request::SubmitStep { value, .. } | Request::CorrectStep { value, .. } => submitted(value),
        Request::SkipStep { note, .. } | Request::Finish { note, .. } => noted(note.as_deref()),
        Request::ReportProblem { summary, .. } => words("summary", summary),
        Request::ResolveBlock { comment, .. } => words("comment", comment),
        Request::ReleaseLock { reason, .. } => words("reason", reason),
        Request::Transfer { transfer: Transfer::Offer { to: Some(to) }, .. } => {
            within("to", to, VALUE_CHARS_MAX)
        }
        Request::Transfer { .. }
        | Request::AcknowledgeBlock { .. }
        | Request::AcknowledgeOrchestration { .. } => Ok(()),
        Request::DeadlineReached { deadline_id, .. } => {
            within("deadline_id", deadline_id, VALUE_CHARS_MAX)
        }
    }
}

fn submitted(value: &SubmittedValue) -> Result<(), Rejection> {
    within("value", value.value.as_deref().unwrap_or_default(), VALUE_CHARS_MAX)?;
    within("unit", value.unit.as_deref().unwrap_or_default(), VALUE_CHARS_MAX)?;
    noted(value.note.as_deref())
}

fn noted(note: Option<&str>) -> Result<(), Rejection> {
    within("note", note.unwrap_or_default(), FREE_TEXT_CHARS_MAX)
}

fn words(field: &str, text: &str) -> Result<(), Rejection> {
    if text.trim().is_empty() {
        return Err(Rejection::invalid(field, "must say something"));
    }
    within(field, text, FREE_TEXT_CHARS_MAX)
}

fn within(field: &str, text: &str, max: usize) -> Result<(), Rejection> {
    // A text has at most as many characters as bytes.
    if text.len() <= max || text.chars().count() <= max {
        return Ok(());
    }
    Err(Rejection::invalid(field, &format!("must have at most {max} characters")).with("max", max))
}
