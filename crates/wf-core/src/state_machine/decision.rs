//! What a command leads to: events and what goes with them, an answer that records nothing, or a lawful no.

use serde_json::{Map, Value};

use crate::errors::ErrorCode;
use crate::locks::LockChange;
use crate::models::{Actor, AssetId, Person, StepId, Text, Timestamp, WorkflowId};
use crate::view::{Fault, Saying};

use super::beside::SensitiveValue;
use super::event::EventBody;

/// The result of [`decide`](super::decide::decide).
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Commit this.
    Commit(Decision),
    /// Answer this; nothing is written.
    Unrecorded(Unrecorded),
}

/// What to commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What the answer calls it.
    pub outcome: Outcome,
    /// What happened, in order; never empty.
    pub drafts: Vec<Draft>,
    /// What happens to the asset locks.
    pub locks: Vec<LockChange>,
    /// Warnings to show.
    pub warnings: Vec<Text>,
}

/// An event before it has its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// What happened.
    pub body: EventBody,
    /// Who caused it, where that is not the caller.
    pub actor: Option<Actor>,
    /// Sensitive values beside it.
    pub sensitive: Vec<SensitiveValue>,
}

impl Draft {
    /// A draft caused by the caller, with nothing sensitive.
    #[must_use]
    pub const fn new(body: EventBody) -> Self {
        Self { body, actor: None, sensitive: Vec::new() }
    }
}

/// `outcome` of a result (mcp.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// One workflow, as it stands.
    View,
    /// Several things to choose from or know about.
    List,
    /// Nothing there.
    None,
    /// Several match; a question.
    Disambiguation,
    /// Something is missing to start; a question.
    NeedsInput,
    /// A read-back to confirm.
    NeedsConfirmation,
    /// Lawfully not recorded.
    NotRecorded,
    /// What recording a value would say.
    Verdict,
    /// Started.
    Started,
    /// The caller's own open workflow of the same start.
    Joined,
    /// Recorded.
    Recorded,
    /// Recorded, outside what is accepted, not blocking.
    OutOfRange,
    /// Corrected.
    Corrected,
    /// Skipped.
    Skipped,
    /// Noted without a block.
    Noted,
    /// Blocked.
    Blocked,
    /// Ownership changed or is offered.
    Transferred,
    /// Completed.
    Finished,
    /// A block is over.
    Resolved,
    /// Not done; see `error`.
    Error,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 20] = [
        Self::View,
        Self::List,
        Self::None,
        Self::Disambiguation,
        Self::NeedsInput,
        Self::NeedsConfirmation,
        Self::NotRecorded,
        Self::Verdict,
        Self::Started,
        Self::Joined,
        Self::Recorded,
        Self::OutOfRange,
        Self::Corrected,
        Self::Skipped,
        Self::Noted,
        Self::Blocked,
        Self::Transferred,
        Self::Finished,
        Self::Resolved,
        Self::Error,
    ];

    /// Reads the word of a stored result.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|o| o.as_str() == word)
    }

    /// The word in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::List => "list",
            Self::None => "none",
            Self::Disambiguation => "disambiguation",
            Self::NeedsInput => "needs_input",
            Self::NeedsConfirmation => "needs_confirmation",
            Self::NotRecorded => "not_recorded",
            Self::Verdict => "verdict",
            Self::Started => "started",
            Self::Joined => "joined",
            Self::Recorded => "recorded",
            Self::OutOfRange => "out_of_range",
            Self::Corrected => "corrected",
            Self::Skipped => "skipped",
            Self::Noted => "noted",
            Self::Blocked => "blocked",
            Self::Transferred => "transferred",
            Self::Finished => "finished",
            Self::Resolved => "resolved",
            Self::Error => "error",
        }
    }
}

/// An answer that records nothing and is no error.
#[derive(Debug, Clone, PartialEq)]
pub enum Unrecorded {
    /// Read this back; send the same call with the token when it is right.
    NeedsConfirmation(Confirmation),
    /// The caller declined.
    NotRecorded {
        /// What to say.
        saying: Saying,
        /// The step, when one was asked about.
        step_id: Option<StepId>,
    },
    /// Something is missing to start.
    NeedsInput {
        /// The question.
        saying: Saying,
    },
    /// Several people are called so; a question.
    WhichPerson {
        /// Those who match, seen last first.
        people: Vec<Person>,
    },
    /// Nothing to do: an acknowledgement that came late.
    Unchanged,
    /// The assets are held by this workflow; the engine looks whether it is the caller's own twin.
    HeldBy {
        /// The holder.
        workflow_id: WorkflowId,
        /// The first asset of the start that is held.
        asset_id: AssetId,
        /// The asset in the words of the policy.
        asset: Text,
    },
}

/// A read-back to confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    /// What comes back with the same call.
    pub token: String,
    /// What to read back.
    pub read_back: Saying,
    /// Until when the token counts.
    pub expires_at: Timestamp,
}

/// A lawful no. Becomes `error` of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejection {
    /// Which rule.
    pub code: ErrorCode,
    /// For the developer: what was wrong and what would be right.
    pub message: String,
    /// What to say to the person.
    pub saying: Saying,
    /// Facts for programs; see docs/errors.
    pub details: Map<String, Value>,
    /// When the same call may succeed, in milliseconds.
    pub after_ms: Option<i64>,
}

impl Rejection {
    /// A rejection without details.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>, saying: impl Into<Saying>) -> Self {
        Self {
            code,
            message: message.into(),
            saying: saying.into(),
            details: Map::new(),
            after_ms: None,
        }
    }

    /// Adds a detail.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }
}

impl Rejection {
    /// A malformed argument: `details` name the field and the rule.
    #[must_use]
    pub fn invalid(field: &str, rule: &str) -> Self {
        Self::new(
            ErrorCode::ValidationError,
            format!("{field}: {rule}"),
            Fault::InvalidArgument { field: field.to_owned() },
        )
        .with("field", field)
        .with("rule", rule)
    }

    /// There is no such workflow for the caller: unknown, or another tenant's, which are the same answer.
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(
            ErrorCode::WorkflowNotFound,
            "there is no workflow with this id; find_work lists yours",
            Fault::WorkflowNotFound,
        )
    }

    /// The definition that a workflow pinned is not known here.
    #[must_use]
    pub fn definition_unknown() -> Self {
        Self::new(
            ErrorCode::ProcedureNotFound,
            "the definition that this workflow runs is not known to this server",
            Fault::DefinitionUnknown,
        )
    }

    /// The outcome is unknown, or nothing was applied: the same call again is right.
    #[must_use]
    pub fn unavailable(message: &str, after_ms: Option<i64>) -> Self {
        Self { after_ms, ..Self::new(ErrorCode::BackendUnavailable, message, Fault::Unavailable) }
    }
}

impl From<crate::policy::Refusal> for Rejection {
    fn from(refusal: crate::policy::Refusal) -> Self {
        Self {
            code: refusal.code,
            message: refusal.message,
            saying: Saying::Policy(refusal.say),
            details: refusal.details,
            after_ms: refusal.after_ms,
        }
    }
}
