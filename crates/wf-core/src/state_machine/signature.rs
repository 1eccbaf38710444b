//! What a signature is for: a digest of exactly what is known of the work when somebody signs it.
//!
//! The digest is the lowercase hexadecimal SHA-256 of the RFC 8785 form of
//! `{"v": 1, "workflow_id", "procedure", "assets", "inputs", "after": {"seq", "hash"}, "steps": {<step>: {"status",
//! "attempt", "reading", "out_of_range", "at", "by"}}}`. The hash of the last event is in it, and with it the whole
//! history, with the salted digests of sensitive values. Anybody can compute it again from the events up to `seq`;
//! `engine::verify` does.

use serde_json::{Map, Value, json};
use wf_idempotency::CanonicalError;

use crate::models::{Digest, Workflow};

use super::event::Signature;

/// The signature for everything that is known of `workflow`.
///
/// # Errors
/// When the state cannot be canonical, which is a bug: it was read from canonical events.
pub fn signature(workflow: &Workflow) -> Result<Signature, CanonicalError> {
    let steps: Map<String, Value> = workflow
        .steps
        .iter()
        .map(|(id, step)| {
            let signed = json!({
                "status": step.status,
                "attempt": step.attempt,
                "reading": step.reading,
                "out_of_range": step.out_of_range,
                "at": step.at,
                "by": step.by,
            });
            (id.to_string(), signed)
        })
        .collect();
    let document = json!({
        "v": 1,
        "workflow_id": workflow.id,
        "procedure": workflow.procedure,
        "assets": workflow.assets,
        "inputs": workflow.inputs,
        "after": {"seq": workflow.revision, "hash": workflow.last_hash},
        "steps": steps,
    });
    let digest = Digest::of(&wf_idempotency::canonical_bytes(&document)?);
    Ok(Signature { seq: workflow.revision, digest })
}
