//! Time limits of a workflow: those that its procedure sets, and those within which somebody who was told must respond.
//!
//! The policy says them ([`StartPlan::deadlines`](crate::policy::StartPlan), [`BlockCause`](crate::policy::BlockCause),
//! [`BlockRule`](crate::policy::BlockRule)); the events that set them carry them; `evolve` keeps the open ones.

use serde::{Deserialize, Serialize};

use super::{BlockId, Timestamp};

/// A time limit on the whole workflow, counted from its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartDeadline {
    /// Its name in the definition, for example `overdue`.
    pub id: String,
    /// How long after the start it is due, in milliseconds; at least 1.
    pub after_ms: i64,
    /// Who is told when it passes; a name that the configuration routes.
    pub notify: String,
}

/// One of those who are told of a block, one after another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipient {
    /// Who; a name that the configuration routes.
    pub to: String,
    /// How long they have to acknowledge or to decide before the next one is told, in milliseconds, at least 1; as long as
    /// they like when absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub respond_within_ms: Option<i64>,
}

impl Recipient {
    /// Somebody after whom nobody is told, whether they respond or not.
    #[must_use]
    pub fn last(to: impl Into<String>) -> Self {
        Self { to: to.into(), respond_within_ms: None }
    }
}

/// A deadline that is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenDeadline {
    /// When it is due.
    pub fire_at: Timestamp,
    /// What it is about.
    #[serde(flatten)]
    pub about: DeadlineAbout,
}

/// What a deadline is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case", deny_unknown_fields)]
pub enum DeadlineAbout {
    /// The whole workflow.
    Workflow {
        /// Its name in the definition.
        name: String,
        /// Who is told.
        notify: String,
    },
    /// Somebody was told of a block and has not responded yet.
    Response {
        /// The block.
        block_id: BlockId,
        /// Who is told next, in order.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        then: Vec<Recipient>,
    },
}

impl DeadlineAbout {
    /// It is for the response to this block.
    #[must_use]
    pub fn is_response_to(&self, block: &BlockId) -> bool {
        match self {
            Self::Workflow { .. } => false,
            Self::Response { block_id, .. } => block_id == block,
        }
    }
}
