//! Evidence: everything about one workflow in one JSON document that anybody can verify without the store.
//!
//! ```text
//! {"format": "checkpoint/evidence/v1", "made_at", "store_id", "workflow": {the state}, "definition": {"id", "version",
//!  "digest", "document"}, "events": [all of them], "digest"}
//! ```
//!
//! `digest` is the lowercase hexadecimal SHA-256 of the RFC 8785 form of the document without `digest`. The rest holds each
//! other: the events are chained by hash from the tenant and the workflow id on ([`chain`](crate::state_machine::chain)),
//! the first names the digest of the definition, and the state is the fold of all of them. What nothing else holds is
//! `made_at` and `store_id`. Whoever makes up a whole history can make up a document of it: that it is the one of a store
//! shows only in the hash of its last event, compared with a note of it from elsewhere.
//!
//! `engine::evidence` collects a document, `verify` here looks through one. Pure.

mod compare;
mod verify;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wf_idempotency::CanonicalError;

use crate::models::{Digest, ProcedureId, Timestamp, Workflow};
use crate::policy::Definition;
use crate::state_machine::{Event, EventBody};

pub use verify::{Damage, Part, verify};

/// The only format there is.
pub const FORMAT: &str = "checkpoint/evidence/v1";

/// The member that holds the digest of all others.
const DIGEST: &str = "digest";

/// A document of evidence, without its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// [`FORMAT`].
    pub format: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// The store that it was made from.
    pub store_id: String,
    /// The state that is claimed.
    pub workflow: Workflow,
    /// What the workflow runs.
    pub definition: Pinned,
    /// Every event, oldest first. Sensitive values stand beside their events, where they were not erased.
    pub events: Vec<Event>,
}

/// A definition as a workflow pinned it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pinned {
    /// The procedure.
    pub id: ProcedureId,
    /// Its version.
    pub version: u32,
    /// SHA-256 of the RFC 8785 form of `document`.
    pub digest: Digest,
    /// The document as written, as JSON.
    pub document: Value,
}

impl From<Definition> for Pinned {
    fn from(definition: Definition) -> Self {
        let Definition { id, version, digest, document, title: _ } = definition;
        Self { id, version, digest, document }
    }
}

impl Evidence {
    /// Some event is of a sensitive value. Then this document is for supervisors: besides the value itself, where it was not
    /// erased, the fingerprint of the call lets short values be found by trying.
    #[must_use]
    pub fn is_sensitive(&self) -> bool {
        self.events.iter().any(|event| {
            let recorded = event.body.recording().is_some_and(|r| r.sensitive_digest.is_some());
            let started = if let EventBody::WorkflowStarted { sensitive_inputs, .. } = &event.body {
                !sensitive_inputs.is_empty()
            } else {
                false
            };
            recorded || started || !event.sensitive.is_empty()
        })
    }

    /// The document: RFC 8785, with its digest.
    ///
    /// # Errors
    /// When it cannot be canonical, which is a bug: all of it was read from canonical events.
    pub fn to_text(&self) -> Result<String, CanonicalError> {
        let mut document = serde_json::to_value(self).unwrap_or_default();
        let digest = digest_of(&document)?;
        if let Some(members) = document.as_object_mut() {
            members.insert(DIGEST.to_owned(), Value::from(digest.as_str()));
        }
        wf_idempotency::canonical_string(&document)
    }
}

/// Digest of a document that has none.
fn digest_of(document: &Value) -> Result<Digest, CanonicalError> {
    Ok(Digest::of(&wf_idempotency::canonical_bytes(document)?))
}
