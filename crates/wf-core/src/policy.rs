//! `DomainPolicyPort`: what one procedure definition says. Pure and synchronous.
//!
//! The core knows no procedure, unit, role or reason; it asks the policy of the definition that the workflow pinned.

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::errors::ErrorCode;
use crate::models::{
    AssetId, AssetRole, DecisionId, Digest, HeldAsset, Locale, ProcedureId, Reading, ReasonCode,
    ResultId, Severity, StepId, Text, Timestamp, Workflow,
};

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

/// What must be given to start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// Assets, in order.
    pub assets: Vec<NeededAsset>,
    /// Inputs, in order.
    pub inputs: Vec<NeededInput>,
}

/// An asset to name at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededAsset {
    /// The part it plays.
    pub role: AssetRole,
    /// How the part is called.
    pub say: Text,
    /// An id that would be accepted.
    pub example: Option<String>,
}

/// An input to give at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededInput {
    /// Its name.
    pub name: String,
    /// Its JSON type, for example `string`.
    pub kind: String,
    /// A start without it is refused.
    pub required: bool,
    /// How it is called.
    pub say: Text,
}

/// What a start would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartPlan {
    /// How the workflow will be called.
    pub label: Text,
    /// Role, canonical id and the words for it, in the definition's order. No id twice.
    pub assets: Vec<PlannedAsset>,
    /// Inputs that may be shown.
    pub inputs: Map<String, Value>,
    /// Inputs that may not.
    pub sensitive_inputs: Map<String, Value>,
}

/// An asset that a start would acquire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedAsset {
    /// The part it plays.
    pub role: AssetRole,
    /// Its canonical id.
    pub id: AssetId,
    /// How it is called.
    pub say: Text,
}

impl PlannedAsset {
    /// The asset once acquired.
    #[must_use]
    pub fn held(&self, fence: u64) -> HeldAsset {
        HeldAsset { role: self.role.clone(), id: self.id.clone(), say: self.say.clone(), fence }
    }
}

/// Why a start cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartRefusal {
    /// Something is missing: ask for it.
    Missing {
        /// The asset role, when an asset is missing.
        asset: Option<NeededAsset>,
        /// The input, when an input is missing.
        input: Option<NeededInput>,
    },
    /// Something is wrong.
    Invalid {
        /// `assets.<role>` or `inputs.<name>`.
        field: String,
        /// What would be right, for the developer.
        rule: String,
        /// What to say to the person.
        say: Text,
    },
}

/// A whole procedure as it stands for one workflow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// All steps, in the definition's order.
    pub steps: Vec<PlannedStep>,
}

/// One step as it stands for one workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// The step.
    pub id: StepId,
    /// It is to be done in this workflow (its condition holds).
    pub applies: bool,
    /// Its condition cannot be evaluated: the code to block with.
    pub broken: Option<ReasonCode>,
    /// The workflow cannot pass without it.
    pub required: bool,
    /// Nothing more is to be done for it.
    pub settled: bool,
    /// It may be submitted now.
    pub open: bool,
}

impl PlannedStep {
    /// It may be submitted or skipped now. So may a step whose condition cannot be evaluated: submitting it blocks, so
    /// that somebody decides, where nobody could go on otherwise.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open || (self.broken.is_some() && !self.settled)
    }
}

impl Plan {
    /// The step that is asked next.
    #[must_use]
    pub fn next(&self) -> Option<&PlannedStep> {
        self.steps.iter().find(|s| s.is_open())
    }

    /// Steps that may be submitted now.
    pub fn open(&self) -> impl Iterator<Item = &PlannedStep> {
        self.steps.iter().filter(|s| s.is_open())
    }

    /// Required steps that are not settled.
    pub fn unsettled(&self) -> impl Iterator<Item = &PlannedStep> {
        self.steps.iter().filter(|s| s.applies && s.required && !s.settled)
    }

    /// Required steps that apply: how many are settled, and how many there are.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        let required = || self.steps.iter().filter(|s| s.applies && s.required);
        (required().filter(|s| s.settled).count(), required().count())
    }

    /// The step, if there is one with this id.
    #[must_use]
    pub fn step(&self, id: &StepId) -> Option<&PlannedStep> {
        self.steps.iter().find(|s| &s.id == id)
    }
}

/// When a step may be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipRule {
    /// Never.
    Never,
    /// With a reason of the policy's list.
    Reason,
    /// With a reason, by a supervisor.
    Supervisor,
    /// Without a reason: the step is optional.
    Free,
}

impl SkipRule {
    /// The word in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Reason => "reason",
            Self::Supervisor => "supervisor",
            Self::Free => "free",
        }
    }
}

/// A unit with the words for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitWords {
    /// As written.
    pub symbol: String,
    /// As spoken for one.
    pub one: Text,
    /// As spoken for several.
    pub many: Text,
}

/// What a step asks, as it stands for one workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDescription {
    /// The step.
    pub id: StepId,
    /// 1 for the first step of the definition.
    pub position: usize,
    /// How many steps the definition has.
    pub of: usize,
    /// The question.
    pub prompt: Text,
    /// The kind's name in results.
    pub kind: String,
    /// The unit values are meant in.
    pub unit: Option<UnitWords>,
    /// How many decimals a value may have.
    pub decimals: Option<u32>,
    /// Accepted from here, in `unit`, as a decimal.
    pub min: Option<String>,
    /// Accepted up to here.
    pub max: Option<String>,
    /// What may be chosen.
    pub choices: Vec<Choice>,
    /// How long to wait, in seconds.
    pub wait_seconds: Option<u64>,
    /// When the wait is over.
    pub due_at: Option<Timestamp>,
    /// When it may be skipped.
    pub skip: SkipRule,
    /// The workflow cannot pass without it.
    pub required: bool,
    /// Its values are never shown.
    pub sensitive: bool,
    /// Only somebody with this role may do it.
    pub role: Option<String>,
}

/// A value to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered<'a> {
    /// The step.
    pub step_id: &'a StepId,
    /// The value as the caller said it; empty when absent.
    pub value: &'a str,
    /// The unit as the caller said it.
    pub unit: Option<&'a str>,
    /// Now.
    pub at: Timestamp,
}

/// What the policy says to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// Record it.
    Accept(Accepted),
    /// Record it and block.
    Block(Accepted, BlockCause),
    /// Lawfully not recorded: the caller said no.
    Decline,
    /// Not recorded; ask again.
    Reject(Refusal),
}

/// A value to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// As given and as understood.
    pub reading: Reading,
    /// Outside what is accepted.
    pub out_of_range: bool,
    /// Warnings to show and keep.
    pub warnings: Vec<Text>,
    /// What must be read back and confirmed before it is recorded.
    pub read_back: Option<Text>,
    /// The value and its unit in words, for speech.
    pub spoken: Text,
}

/// Why a value blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockCause {
    /// Why.
    pub code: ReasonCode,
    /// How bad.
    pub severity: Severity,
    /// Who is told.
    pub escalate_to: Option<String>,
}

/// Why a value is not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// `VALIDATION_ERROR`, `IMPLAUSIBLE_VALUE`, `UNIT_MISMATCH` or `TOO_EARLY`.
    pub code: ErrorCode,
    /// For the developer: what was wrong and what would be right.
    pub message: String,
    /// What to say to the person.
    pub say: Text,
    /// Facts for programs.
    pub details: Map<String, Value>,
    /// When the same call may succeed, in milliseconds.
    pub after_ms: Option<i64>,
}

/// What a block is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSource<'a> {
    /// The step, when there is one.
    pub step_id: Option<&'a StepId>,
    /// A report made it, rather than a value.
    pub reported: bool,
}

/// How a block is escalated and decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRule {
    /// The code of a reported problem.
    pub code: ReasonCode,
    /// What is asked of the decider.
    pub question: Text,
    /// What may be decided.
    pub decisions: Vec<DecisionOption>,
    /// Who is told.
    pub escalate_to: Option<String>,
    /// How bad, unless the report says.
    pub severity: Severity,
}

/// One way to resolve a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionOption {
    /// What a call sends.
    pub id: DecisionId,
    /// How it is called.
    pub say: Text,
    /// What it leads to.
    pub effect: Effect,
}

/// What a decision leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Go on with the value as it is.
    Continue,
    /// The step opens again.
    Redo,
    /// The workflow is abandoned.
    Abort,
}

/// A way to finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultOption {
    /// What a call sends.
    pub id: ResultId,
    /// How it is called.
    pub say: Text,
    /// Its condition holds now.
    pub available: bool,
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
