//! The closed list of error codes and whether calling again helps. Each code has a page in docs/errors.

use serde::{Deserialize, Serialize};

/// Whether calling again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// Send the very same call again.
    SameCall,
    /// Something in the call must change.
    ChangedCall,
    /// Not by calling again.
    No,
}

impl Retry {
    /// The word in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SameCall => "same_call",
            Self::ChangedCall => "changed_call",
            Self::No => "no",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal => $retry:ident,)*) => {
        /// Why a call was not done (domain.md, Error codes).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code in results and the name of its page.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Whether calling again can help.
            #[must_use]
            pub const fn retry(self) -> Retry {
                match self { $(Self::$variant => Retry::$retry,)* }
            }
        }
    };
}

codes! {
    /// Malformed or missing argument, unknown step, block, role or reason.
    ValidationError = "VALIDATION_ERROR" => ChangedCall,
    /// The key was already used with another payload.
    IdempotencyConflict = "IDEMPOTENCY_CONFLICT" => ChangedCall,
    /// Outcome unknown or not applied; nothing acknowledged is lost.
    BackendUnavailable = "BACKEND_UNAVAILABLE" => SameCall,
    /// `expected_revision` was given and is stale.
    VersionConflict = "VERSION_CONFLICT" => ChangedCall,
    /// Unknown, or another tenant's.
    WorkflowNotFound = "WORKFLOW_NOT_FOUND" => No,
    /// No such procedure, or its definition is not known here.
    ProcedureNotFound = "PROCEDURE_NOT_FOUND" => ChangedCall,
    /// Another workflow holds the asset.
    AssetLocked = "ASSET_LOCKED" => No,
    /// This workflow no longer holds its asset.
    LockLost = "LOCK_LOST" => No,
    /// The command does not apply in this state.
    InvalidTransition = "INVALID_TRANSITION" => No,
    /// The step is not open now.
    StepNotOpen = "STEP_NOT_OPEN" => ChangedCall,
    /// The step has a value; correct it instead.
    StepAlreadyRecorded = "STEP_ALREADY_RECORDED" => ChangedCall,
    /// Outside what the instrument can show: not recorded.
    ImplausibleValue = "IMPLAUSIBLE_VALUE" => ChangedCall,
    /// Unknown or not convertible unit.
    UnitMismatch = "UNIT_MISMATCH" => ChangedCall,
    /// The dwell time is not over.
    TooEarly = "TOO_EARLY" => SameCall,
    /// A reason must be given.
    ReasonRequired = "REASON_REQUIRED" => ChangedCall,
    /// Scope, role or ownership missing.
    NotAllowed = "NOT_ALLOWED" => No,
    /// The decision is none of the block's.
    DecisionNotAllowed = "DECISION_NOT_ALLOWED" => ChangedCall,
    /// A bound of the limits was exceeded.
    LimitExceeded = "LIMIT_EXCEEDED" => ChangedCall,
    /// A bug; logged with an id that is also in the reply.
    Internal = "INTERNAL" => SameCall,
}
