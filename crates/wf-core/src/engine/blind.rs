//! Calls that recorded a sensitive value: their fingerprints are under the salt that stands beside the event, so that
//! nothing of the value is left when both are erased. Whether a call repeats one is found out with that salt.

use wf_idempotency::Fingerprint;

use crate::limits::EVENTS_MAX;
use crate::models::{Cause, TenantId, WorkflowId};
use crate::ports::LedgerRow;
use crate::state_machine::{Event, Rejection};

use super::{Engine, unreadable};

/// What the fingerprints of a commit are under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Salt {
    /// Nothing: it recorded no sensitive value.
    Nothing,
    /// The salt beside its event.
    Beside(String),
    /// A salt that was erased: nobody can tell any more what the call was.
    Erased,
}

impl Salt {
    fn of(event: &Event) -> Option<Self> {
        let first = event.sensitive.first()?;
        Some(match &first.erased {
            None => Self::Beside(first.salt.clone()),
            Some(_) => Self::Erased,
        })
    }

    /// `fingerprint` as such a commit holds it.
    pub(super) fn over(&self, fingerprint: &Fingerprint) -> Option<Fingerprint> {
        match self {
            Self::Nothing => Some(*fingerprint),
            Self::Beside(salt) => Some(fingerprint.blinded(salt)),
            Self::Erased => None,
        }
    }

    /// The text of the salt, if there is one.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Beside(salt) => Some(salt),
            Self::Nothing | Self::Erased => None,
        }
    }
}

impl Engine {
    /// What the fingerprints of the row's commit are under.
    pub(super) async fn salt_of(&self, row: &LedgerRow) -> Result<Salt, Rejection> {
        let most = u32::try_from(EVENTS_MAX).unwrap_or(u32::MAX);
        let after = row.seq.saturating_sub(u64::from(most));
        let events = self.some(&row.key.tenant, &row.workflow_id, after, most).await?;
        let of_it = |event: &&Event| {
            event.seq <= row.seq && event.actor == row.key.actor && event.cause.key == row.key.key
        };
        Ok(events.iter().filter(of_it).find_map(Salt::of).unwrap_or(Salt::Nothing))
    }

    /// `cause` as the start of the workflow would hold it.
    pub(super) async fn as_started(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
        cause: &Cause,
    ) -> Result<Option<Fingerprint>, Rejection> {
        let first = self.some(tenant, workflow, 0, 1).await?;
        let salt = first.first().and_then(Salt::of).unwrap_or(Salt::Nothing);
        Ok(salt.over(&cause.natural))
    }

    async fn some(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, Rejection> {
        let events = self.parts.store.events(tenant, workflow, after, limit).await;
        events.map_err(|error| unreadable(&error))
    }
}
