//! What the requests of the API hold. A member that is not named here is refused.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateMachine {
    pub(super) name: String,
    pub(super) definition: String,
    pub(super) role_arn: String,
    #[serde(default, rename = "type")]
    pub(super) kind: Option<String>,
    /// Kept, and not looked into.
    #[serde(flatten)]
    pub(super) other: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpdateMachine {
    pub(super) state_machine_arn: String,
    #[serde(default)]
    pub(super) definition: Option<String>,
    #[serde(default)]
    pub(super) role_arn: Option<String>,
    #[serde(flatten)]
    pub(super) other: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OfMachine {
    pub(super) state_machine_arn: String,
    #[serde(default, rename = "includedData")]
    _included: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Start {
    pub(super) state_machine_arn: String,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) input: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Stop {
    pub(super) execution_arn: String,
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) cause: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OfExecution {
    pub(super) execution_arn: String,
    #[serde(default, rename = "includedData")]
    _included: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Redrive {
    pub(super) execution_arn: String,
    #[serde(default)]
    pub(super) client_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct List {
    pub(super) state_machine_arn: String,
    #[serde(default)]
    pub(super) status_filter: Option<String>,
    #[serde(default)]
    pub(super) max_results: Option<usize>,
    #[serde(default)]
    pub(super) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Success {
    pub(super) task_token: String,
    pub(super) output: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Failed {
    pub(super) task_token: String,
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) cause: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Heartbeat {
    pub(super) task_token: String,
}
