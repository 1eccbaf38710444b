//! What was recorded for a step: as given, and as understood.

use serde::{Deserialize, Serialize};

/// A recorded value. Values are text: the core knows no numbers and no units, the policy does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// The value as the caller gave it, digits and all; empty when withheld.
    pub given: String,
    /// The unit that was meant, as its symbol.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub given_unit: Option<String>,
    /// The value as the policy understood it, for display in `unit`; empty when withheld.
    pub value: String,
    /// The unit of `value`, as its symbol.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<String>,
    /// The unrounded value in `unit` in a form that only the policy reads; absent when `value` is exact.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exact: Option<String>,
    /// The value is sensitive: it stands beside the event, never in state, results or logs.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub withheld: bool,
}

impl Reading {
    /// The same reading without its value.
    #[must_use]
    pub fn withhold(&self) -> Self {
        Self { given_unit: self.given_unit.clone(), withheld: true, ..Self::default() }
    }
}
