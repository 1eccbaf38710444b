//! Well-formed values for tests: identifiers, people, times, definitions, and commits through [`CommitBuilder`].
//!
//! Everything here panics on text that does not parse: tests name constants. Neighbours: `contract` and `random` build
//! all their commits with it.

#![expect(
    clippy::expect_used,
    reason = "test values: a constant that does not parse is a bug of the test that names it"
)]

mod assemble;
mod commit;
mod history;
mod ownership;

pub use commit::CommitBuilder;
pub use history::{chain, genesis};

use serde_json::{Map, Value, json};
use wf_core::models::{
    Actor, AssetId, AssetRole, Digest, Person, ProcedureId, ProcedureRef, StepId, TenantId,
    Timestamp, WorkflowId,
};
use wf_core::policy::Definition;
use wf_core::state_machine::EventBody;
use wf_idempotency::{Fingerprint, IdempotencyKey, canonical_bytes};

/// 2026-01-01T00:00:00Z: where the time of tests begins, in milliseconds since the Unix epoch.
pub const EPOCH_MS: i64 = 1_767_225_600_000;

/// The instant `ms` milliseconds after [`EPOCH_MS`].
#[must_use]
pub const fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(EPOCH_MS.saturating_add(ms))
}

/// A tenant.
#[must_use]
pub fn tenant(text: &str) -> TenantId {
    TenantId::parse(text).expect("a tenant of a test")
}

/// A workflow id.
#[must_use]
pub fn workflow_id(text: &str) -> WorkflowId {
    WorkflowId::parse(text).expect("a workflow id of a test")
}

/// An asset id.
#[must_use]
pub fn asset(text: &str) -> AssetId {
    AssetId::parse(text).expect("an asset id of a test")
}

/// A step id.
#[must_use]
pub fn step(text: &str) -> StepId {
    StepId::parse(text).expect("a step id of a test")
}

/// The part that the asset number `index` of a test's workflow plays.
#[must_use]
pub fn role(index: usize) -> AssetRole {
    AssetRole::parse(&format!("role-{index}")).expect("a role of a test")
}

/// An idempotency key.
#[must_use]
pub fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::parse(text).expect("a key of a test")
}

/// A person known to the authorization server as `subject`.
#[must_use]
pub fn user(subject: &str) -> Actor {
    Actor::User(subject.to_owned())
}

/// The same person as state and history show them, with a name that is not ASCII.
#[must_use]
pub fn person(actor: &Actor) -> Person {
    Person { id: actor.clone(), name: Some(format!("{} Žluťoučká", actor.subject())) }
}

/// Fingerprint of calling `operation` with `{"about": about}`.
#[must_use]
pub fn fingerprint(operation: &str, about: &str) -> Fingerprint {
    let mut arguments = Map::new();
    arguments.insert("about".to_owned(), Value::from(about));
    Fingerprint::of(operation, &arguments, &[]).expect("text is always canonical")
}

/// The definition `id` in `version`, whose document says `says`; its digest is true.
#[must_use]
pub fn definition(id: &str, version: u32, says: &str) -> Definition {
    let document = json!({ "id": id, "version": version, "says": says, "steps": [] });
    let bytes = canonical_bytes(&document).expect("the document is canonical");
    Definition {
        id: ProcedureId::parse(id).expect("a procedure id of a test"),
        version,
        digest: Digest::of(&bytes),
        document,
        title: format!("Title of {id}").into(),
    }
}

/// What the workflows of tests run.
#[must_use]
pub fn procedure() -> ProcedureRef {
    let definition = definition("test.procedure", 1, "nothing");
    ProcedureRef { id: definition.id, version: definition.version, digest: definition.digest }
}

impl CommitBuilder {
    /// Of another procedure than [`procedure`]; only for a start.
    #[must_use]
    pub fn runs(mut self, of: &ProcedureRef) -> Self {
        self.next.procedure = of.clone();
        for (body, _) in &mut self.bodies {
            if let EventBody::WorkflowStarted { procedure, .. } = body {
                *procedure = of.clone();
            }
        }
        self
    }
}
