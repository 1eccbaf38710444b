//! Looks through a document of evidence: says that all of it holds, or what does not and where.

use serde::Deserialize as _;
use serde_json::Value;
use wf_idempotency::{StrictLimits, parse_strict};

use crate::limits::{EVIDENCE_DEPTH_MAX, EVIDENCE_FILE_BYTES_MAX};
use crate::state_machine::walk::Walk;

use super::compare::difference;
use super::{DIGEST, Evidence, FORMAT, digest_of};

/// The part of a document that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// It is not such a document, or says more than one.
    Document,
    /// It is not what its digest is of.
    Digest,
    /// The events and their chain.
    History,
    /// The state, which is not what the events lead to.
    State,
    /// The definition is not the one that the workflow runs.
    Definition,
}

impl Part {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Digest => "digest",
            Self::History => "history",
            Self::State => "state",
            Self::Definition => "definition",
        }
    }
}

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Where.
    pub part: Part,
    /// What is wrong.
    pub message: String,
}

/// What a document says, if all of it holds.
///
/// # Errors
/// Everything that does not hold, at least one; never more than a few for each event.
pub fn verify(text: &[u8]) -> Result<Evidence, Vec<Damage>> {
    let mut damage = Vec::new();
    let evidence = read(text, &mut damage).map_err(|last| vec![last])?;
    history(&evidence, &mut damage);
    definition(&evidence, &mut damage);
    if damage.is_empty() { Ok(evidence) } else { Err(damage) }
}

fn found(part: Part, message: impl Into<String>) -> Damage {
    Damage { part, message: message.into() }
}

/// Reads the document and checks its digest. What it says must be what is read: a member that is ignored could say anything.
fn read(text: &[u8], damage: &mut Vec<Damage>) -> Result<Evidence, Damage> {
    let limits = StrictLimits { max_bytes: EVIDENCE_FILE_BYTES_MAX, max_depth: EVIDENCE_DEPTH_MAX };
    let not = |why: String| found(Part::Document, why);
    let mut document = parse_strict(text, limits).map_err(|error| not(error.to_string()))?;
    match document.get("format").and_then(Value::as_str) {
        Some(FORMAT) => {}
        Some(_) | None => return Err(not(format!("it is no document of the format {FORMAT}"))),
    }
    let stated = document.as_object_mut().and_then(|members| members.remove(DIGEST));
    let stated = stated.as_ref().and_then(Value::as_str);
    let digest = digest_of(&document).map_err(|error| not(error.to_string()))?;
    match stated {
        Some(stated) if stated == digest.as_str() => {}
        Some(_) => damage.push(found(
            Part::Digest,
            format!("something was changed: the digest of the document is {digest}"),
        )),
        None => damage.push(found(Part::Digest, "there is no digest of the document")),
    }
    let evidence = Evidence::deserialize(&document).map_err(|error| not(error.to_string()))?;
    let again = serde_json::to_value(&evidence).map_err(|error| not(error.to_string()))?;
    if let Some(place) = difference(&document, &again) {
        let message = format!("{place} is not written as the format has it");
        damage.push(found(Part::Document, message));
    }
    Ok(evidence)
}

/// The chain, what stands beside it, and the state that it leads to.
fn history(evidence: &Evidence, damage: &mut Vec<Damage>) {
    let workflow = &evidence.workflow;
    let mut walk = Walk::new(&workflow.tenant, &workflow.id);
    for event in &evidence.events {
        walk.step(event);
        if event.workflow_id != workflow.id {
            walk.find("I4", format!("event {} is of another workflow", event.seq));
        }
    }
    if walk.seq != workflow.revision {
        let (seq, revision) = (walk.seq, workflow.revision);
        walk.find("I4", format!("the history ends with event {seq}, the state with {revision}"));
    }
    walk.end(workflow);
    damage.extend(walk.findings.into_iter().map(|(invariant, message)| {
        found(if invariant == "I13" { Part::State } else { Part::History }, message)
    }));
}

/// The definition is what its digest is of, and the one that the first event names.
fn definition(evidence: &Evidence, damage: &mut Vec<Damage>) {
    let (pinned, runs) = (&evidence.definition, &evidence.workflow.procedure);
    match digest_of(&pinned.document) {
        Ok(digest) if digest == pinned.digest => {}
        Ok(digest) => damage.push(found(
            Part::Definition,
            format!("it was changed: the digest of its document is {digest}"),
        )),
        Err(error) => damage.push(found(Part::Definition, error.to_string())),
    }
    if (&pinned.id, pinned.version, &pinned.digest) != (&runs.id, runs.version, &runs.digest) {
        let message = format!(
            "the workflow runs {} version {}, with the digest {}",
            runs.id, runs.version, runs.digest
        );
        damage.push(found(Part::Definition, message));
    }
}
