//! `DomainPolicyPort`: what one procedure definition says. Pure and synchronous.
//!
//! The core knows no procedure, unit, role or reason; it asks the policy of the definition that the workflow pinned.

mod judgement;
mod plan;
mod start;

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::models::{AssetId, Digest, Locale, ProcedureId, Reading, StepId, Text, Workflow};

pub use judgement::{
    Accepted, BlockCause, BlockRule, BlockSource, DecisionOption, Effect, Judgement, Offered,
    Refusal, ResultOption,
};
pub use plan::{Plan, PlannedStep, SkipRule, StepDescription, UnitWords};
pub use start::{NeededAsset, NeededInput, Needs, PlannedAsset, StartPlan, StartRefusal};

/// A definition as written, and what it is known by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The procedure.
    pub id: ProcedureId,
    /// Its version.
    pub version: u32,
    /// SHA-256 of the RFC 8785 form of `document`.
    pub digest: Digest,
    /// The document as written, as JSON, without defaults added.
    pub document: Value,
    /// What people call it.
    pub title: Text,
}

/// Something to choose, with the words for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What a call sends.
    pub id: String,
    /// How it is called.
    pub say: Text,
}

/// What one procedure definition says. One value serves every workflow that pinned the definition.
///
/// Laws: every method is a function of its arguments and the definition (same input, same answer, for ever); no
/// method panics; `plan` lists every step of the definition once, in its order.
pub trait DomainPolicyPort: Debug + Send + Sync {
    /// The definition.
    fn definition(&self) -> &Definition;
    /// What must be given to start.
    fn needs(&self) -> Needs;
    /// What a start with these assets (role → id as said) and inputs would be.
    ///
    /// # Errors
    /// [`StartRefusal`] names the first thing that is missing or wrong.
    fn plan_start(
        &self,
        assets: &BTreeMap<String, String>,
        inputs: &Map<String, Value>,
    ) -> Result<StartPlan, StartRefusal>;
    /// The canonical id of an asset as said, for looking it up; `None` when it is none of this procedure's.
    fn canonical_asset(&self, raw: &str) -> Option<AssetId>;
    /// All steps as they stand.
    fn plan(&self, workflow: &Workflow) -> Plan;
    /// What a step asks as it stands; `None` for an unknown step.
    fn describe(&self, workflow: &Workflow, step: &StepId) -> Option<StepDescription>;
    /// What to do with a value for a known step. Order and openness are not its business.
    fn judge(&self, workflow: &Workflow, offered: &Offered<'_>) -> Judgement;
    /// Whether two readings of a step mean the same: `30 mm` and `3 cm` do.
    fn same_value(&self, step: &StepId, one: &Reading, other: &Reading) -> bool;
    /// Steps whose condition, bounds or judgement used the value of `step`, in the definition's order; at most
    /// [`DEPENDANTS_MAX`](crate::limits::DEPENDANTS_MAX).
    fn dependants(&self, step: &StepId) -> Vec<StepId>;
    /// Reasons for skips and corrections, in their spoken order.
    fn reasons(&self) -> Vec<Choice>;
    /// How a block is escalated and decided.
    fn block_rule(&self, source: BlockSource<'_>) -> BlockRule;
    /// Ways to finish; `abandoned` is always there and available.
    fn results(&self, workflow: &Workflow) -> Vec<ResultOption>;
    /// True when events of this kind are told to whoever subscribed.
    fn notifies(&self, event_kind: &str) -> bool;
    /// When a silent holder may be relieved, in milliseconds; never when `None`.
    fn stale_after_ms(&self) -> Option<i64>;
    /// The IANA time zone that times are spoken in, when the definition names one.
    fn timezone(&self) -> Option<&str>;
    /// A reading in words, for speech.
    fn spoken(&self, step: &StepId, reading: &Reading, locale: &Locale) -> String;
}

/// Builds policies from stored definition documents, so that a workflow runs by the definition it pinned although the
/// file is gone.
pub trait PolicyCompilerPort: Debug + Send + Sync {
    /// The policy of a document that was accepted once; `None` when this build cannot read it.
    fn compile(&self, definition: &Definition) -> Option<std::sync::Arc<dyn DomainPolicyPort>>;
}
