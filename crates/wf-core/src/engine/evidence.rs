//! Collects the evidence of one workflow from a store. What a document of it is: `evidence`.

use thiserror::Error;

use crate::access;
use crate::errors::ErrorCode;
use crate::evidence::{Evidence, FORMAT, Pinned};
use crate::limits::{EVIDENCE_BYTES_MAX, EVIDENCE_EVENTS_MAX};
use crate::models::{Principal, Timestamp, Workflow, WorkflowId};
use crate::ports::{ReadError, StorageBackendPort};
use crate::state_machine::{Event, Rejection};
use crate::view::{Fault, Rule};

use super::{Engine, unreadable};

/// Evidence that cannot be collected.
#[derive(Debug, Error)]
pub enum EvidenceError {
    /// The store did not answer, or lost a part of the history.
    #[error("the store cannot be read")]
    Store(#[source] ReadError),
    /// More than one document may hold.
    #[error(
        "the evidence has more than {EVIDENCE_BYTES_MAX} bytes or {EVIDENCE_EVENTS_MAX} events"
    )]
    TooLarge,
}

/// Events asked of the store at once.
const PAGE: u32 = 200;

/// The evidence of `workflow` as it was read: later events belong to later commits. `store_id` names the store.
///
/// # Errors
/// [`EvidenceError`].
pub async fn collect(
    store: &dyn StorageBackendPort,
    workflow: Workflow,
    store_id: &str,
    made_at: Timestamp,
) -> Result<Evidence, EvidenceError> {
    if workflow.revision > EVIDENCE_EVENTS_MAX {
        return Err(EvidenceError::TooLarge);
    }
    let missing = |what: String| EvidenceError::Store(ReadError::Corrupt { what });
    let pinned =
        store.definition(&workflow.procedure.digest).await.map_err(EvidenceError::Store)?;
    let pinned = pinned.ok_or_else(|| {
        missing(format!("the definition {} is missing", workflow.procedure.digest))
    })?;
    let mut size = written(&workflow) + written(&pinned.document);
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let left = workflow.revision.saturating_sub(after);
        if left == 0 {
            break;
        }
        let limit = u32::try_from(left.min(u64::from(PAGE))).unwrap_or(PAGE);
        let page = store.events(&workflow.tenant, &workflow.id, after, limit).await;
        let page = page.map_err(EvidenceError::Store)?;
        if page.is_empty() {
            return Err(missing(format!("events of {} after {after} are missing", workflow.id)));
        }
        size += page.iter().map(written).sum::<usize>();
        if size > EVIDENCE_BYTES_MAX {
            return Err(EvidenceError::TooLarge);
        }
        events.extend(page);
    }
    Ok(Evidence {
        format: FORMAT.to_owned(),
        made_at,
        store_id: store_id.to_owned(),
        workflow,
        definition: Pinned::from(pinned),
        events,
    })
}

/// About how many bytes a part takes in a document.
fn written(part: &impl serde::Serialize) -> usize {
    serde_json::to_vec(part).map_or(0, |bytes| bytes.len())
}

impl Engine {
    /// The document of evidence of a workflow that the caller sees. Of one with sensitive values it is for supervisors only.
    ///
    /// # Errors
    /// `WORKFLOW_NOT_FOUND`, `NOT_ALLOWED`, `LIMIT_EXCEEDED`, `BACKEND_UNAVAILABLE`.
    pub async fn evidence(
        &self,
        principal: &Principal,
        id: &WorkflowId,
    ) -> Result<String, Rejection> {
        access::may_read(principal)?;
        let workflow = self.seen(principal, id).await?.ok_or_else(Rejection::not_found)?;
        let now = self.parts.clock.now();
        let collected = collect(self.parts.store.as_ref(), workflow, &self.identity.id, now).await;
        let evidence = collected.map_err(|error| match error {
            EvidenceError::Store(error) => unreadable(&error),
            EvidenceError::TooLarge => {
                let text =
                    "the evidence is too large for one answer; read the history page by page";
                Rejection::new(ErrorCode::LimitExceeded, text, Fault::LimitExceeded)
            }
        })?;
        if evidence.is_sensitive() && !principal.scopes.supervise {
            let text = "evidence with sensitive values needs the scope workflow:supervise";
            return Err(Rejection::new(ErrorCode::NotAllowed, text, Rule::SupervisorNeeded)
                .with("scope", "workflow:supervise"));
        }
        evidence.to_text().map_err(|error| {
            Rejection::new(ErrorCode::Internal, error.to_string(), Fault::Internal)
        })
    }
}
