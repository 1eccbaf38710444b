//! What a start needs and would be.

use serde_json::{Map, Value};

use crate::models::{AssetId, AssetRole, HeldAsset, StartDeadline, Text};

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
    /// A value that would be accepted.
    pub example: Option<Value>,
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
    /// Time limits that the start sets, in the definition's order; at most
    /// [`START_DEADLINES_MAX`](crate::limits::START_DEADLINES_MAX).
    pub deadlines: Vec<StartDeadline>,
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
