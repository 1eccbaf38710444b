//! Passive data of the domain: identifiers, people, workflows, readings.
//!
//! Nothing here decides. `state_machine` changes these values, `ports` carries them, `view` shows them.

pub mod deadline;
pub mod id;
pub mod person;
pub mod reading;
pub mod text;
pub mod time;
pub mod workflow;

pub use deadline::{DeadlineAbout, OpenDeadline, Recipient, StartDeadline};
pub use id::{
    AssetId, AssetRole, BlockId, DecisionId, Digest, IdError, ProcedureId, ReasonCode, ResultId,
    StepId, TenantId, WorkflowId,
};
pub use person::{Actor, ActorError, Person, Principal, Scopes};
pub use reading::Reading;
pub use text::{Locale, Text};
pub use time::{Timestamp, TimestampError};
pub use workflow::{
    Block, Cause, ClosedBlock, HeldAsset, Offer, Phase, ProcedureRef, Severity, StepRecord,
    StepStatus, Touch, Wait, Workflow,
};
