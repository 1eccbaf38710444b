//! Erases sensitive values of one workflow, beside the chain of its events.
//!
//! No state, no event and no hash changes, so that it works on a completed workflow, beside a running server, and again
//! after it was interrupted. What is left beside each event says who erased the value, when and why. Values that are
//! recorded while it runs, or after, stay.

use crate::limits::FREE_TEXT_CHARS_MAX;
use crate::models::{StepId, Workflow};
use crate::ports::{Erasure, ReadError, SettleError, StorageBackendPort};
use crate::state_machine::{Erased, Event, SensitiveValue};

/// Which values to erase, and what is said of it.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// Whose; its revision says up to where.
    pub workflow: &'a Workflow,
    /// Only those of this step; all sensitive values and inputs when absent.
    pub step: Option<&'a StepId>,
    /// Who erases, when and why.
    pub erased: Erased,
    /// Only look.
    pub check_only: bool,
}

/// One event beside which values stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The event.
    pub seq: u64,
    /// The step, unless they are inputs.
    pub step: Option<StepId>,
    /// What they are: `value`, `inputs.<name>`.
    pub names: Vec<String>,
    /// The event has a free text, which is in the chain and stays.
    pub note: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EraseReport {
    /// Erased now; with `check_only`, what would be.
    pub erased: Vec<Place>,
    /// Erased before.
    pub already: Vec<Place>,
    /// Up to which event was looked.
    pub revision: u64,
}

/// Values that were not (all) erased; the same again goes on.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// The store did not answer.
    #[error("the store cannot be read")]
    Read(#[source] ReadError),
    /// The store did not take an erasure.
    #[error("the store did not take the erasure of event {seq}")]
    Write {
        /// The event.
        seq: u64,
        /// Why.
        #[source]
        source: SettleError,
    },
    /// Somebody else erased the value of this event meanwhile.
    #[error("event {seq} was changed by somebody else")]
    Changed {
        /// The event.
        seq: u64,
    },
    /// No reason, or one that is too long.
    #[error("a reason has 1 to {FREE_TEXT_CHARS_MAX} characters")]
    Reason,
}

/// Events asked of the store at once.
const PAGE: u32 = 200;

/// Erases, event by event: each is whole or not done.
///
/// # Errors
/// [`EraseError`]; what was erased before stays erased.
pub async fn erase(
    store: &dyn StorageBackendPort,
    wanted: &Wanted<'_>,
) -> Result<EraseReport, EraseError> {
    let Wanted { workflow, erased, .. } = wanted;
    let length = erased.reason.chars().count();
    if erased.reason.trim().is_empty() || length > FREE_TEXT_CHARS_MAX {
        return Err(EraseError::Reason);
    }
    let mut report = EraseReport { revision: workflow.revision, ..EraseReport::default() };
    let mut after = 0;
    while after < workflow.revision {
        let events = store.events(&workflow.tenant, &workflow.id, after, PAGE).await;
        let events = events.map_err(EraseError::Read)?;
        let Some(last) = events.last().map(|event| event.seq) else { break };
        after = last.max(after.saturating_add(1));
        for event in events.iter().filter(|event| event.seq <= workflow.revision) {
            if let Some(place) = meant(event, wanted.step) {
                one(store, wanted, event, place, &mut report).await?;
            }
        }
    }
    Ok(report)
}

async fn one(
    store: &dyn StorageBackendPort,
    wanted: &Wanted<'_>,
    event: &Event,
    place: Place,
    report: &mut EraseReport,
) -> Result<(), EraseError> {
    if event.sensitive.iter().all(|value| value.erased.is_some()) {
        report.already.push(place);
        return Ok(());
    }
    if !wanted.check_only {
        let left = |value: &SensitiveValue| match &value.erased {
            Some(_) => value.clone(),
            None => value.erase(wanted.erased.clone()),
        };
        let erasure = Erasure {
            tenant: wanted.workflow.tenant.clone(),
            workflow_id: wanted.workflow.id.clone(),
            seq: event.seq,
            was: event.sensitive.clone(),
            becomes: event.sensitive.iter().map(left).collect(),
        };
        let taken = store.erase(&erasure).await;
        if !taken.map_err(|source| EraseError::Write { seq: event.seq, source })? {
            return Err(EraseError::Changed { seq: event.seq });
        }
    }
    report.erased.push(place);
    Ok(())
}

/// Where sensitive values stand, if they are those that are meant.
fn meant(event: &Event, step: Option<&StepId>) -> Option<Place> {
    if event.sensitive.is_empty() {
        return None;
    }
    let recording = event.body.recording();
    let of = recording.map(|recording| &recording.step_id);
    if step.is_some() && step != of {
        return None;
    }
    Some(Place {
        seq: event.seq,
        step: of.cloned(),
        names: event.sensitive.iter().map(|value| value.name.clone()).collect(),
        note: recording.is_some_and(|recording| recording.note.is_some()),
    })
}

/// The erasure of an event's values, for readers of a history.
#[must_use]
pub fn erasure_of(event: &Event) -> Option<&Erased> {
    event.sensitive.iter().find_map(|value| value.erased.as_ref())
}
