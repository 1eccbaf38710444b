//! The only mapping of the SDK's errors to the errors of the port.
//!
//! | what came back | applied? | what `link` does | told as |
//! |---|---|---|---|
//! | throttled (also 429, a quota) | no | sends the same again, later | `Unavailable` |
//! | conflict with another transaction | no | the same | `Unavailable` |
//! | 5xx, no answer in time, connection lost, unreadable answer | perhaps | the same, with the same token | `Ambiguous` |
//! | transaction in progress | perhaps | the same | `Ambiguous` |
//! | token used for other parameters | perhaps | the same under another token: the ledger keeps it from happening twice | `Ambiguous` |
//! | a condition failed | no | tells which, with the item that was met | `Conflict` |
//! | refused: no table, no permission, not valid | no | nothing | `Unavailable` |
//!
//! "Perhaps" stays true for all later attempts of the call. Reads apply nothing, so whatever happens to them is
//! `Unavailable`. An item that cannot be read is `Corrupt`.

use std::error::Error;
use std::sync::Arc;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use thiserror::Error;
use wf_core::ports::{CommitError, DefinitionError, OpenError, ReadError, SettleError, Source};

/// Why the store did not do what was asked; the source of the port's errors.
#[derive(Debug, Clone, Error)]
pub enum Trouble {
    /// The table, the account or a partition has no more capacity for now.
    #[error("DynamoDB throttles requests to the table")]
    Throttled(#[source] Cause),
    /// Somebody else writes the same items.
    #[error("other transactions keep writing the same items")]
    Contended(#[source] Cause),
    /// No answer, or one that says nothing.
    #[error("DynamoDB did not answer")]
    Silent(#[source] Cause),
    /// The table does not exist or is not ready.
    #[error(
        "the table does not exist or is not active yet: run `wf-cli aws init`, or check its name and region"
    )]
    NoTable(#[source] Cause),
    /// No credentials, or not the right ones.
    #[error("the credentials are missing, wrong or lack a permission")]
    Denied(#[source] Cause),
    /// DynamoDB does not take the request; a bug of ours.
    #[error("DynamoDB refused the request")]
    Refused(#[source] Cause),
    /// A newer build raised the schema while this one had the store open.
    #[error(
        "a newer build brought the table to schema version {found}, this one knows up to {known} and writes no more: replace this server by the newer build"
    )]
    Newer {
        /// The version found.
        found: u64,
        /// The newest this build knows.
        known: u64,
    },
    /// The table is not the store any more that was opened.
    #[error(
        "the table was restored, copied or emptied while this server had it open: start the server again"
    )]
    Replaced,
    /// What was asked contradicts itself; a bug of the caller.
    #[error("the request is not well formed: {0}")]
    Malformed(&'static str),
    /// It would take more actions, bytes or keys than one transaction has.
    #[error("too much for one transaction: {0}")]
    TooMuch(&'static str),
    /// A cursor that this store did not make.
    #[error("not a cursor of this store")]
    BadCursor,
}

/// What the SDK said.
#[derive(Debug, Clone, Error)]
#[error("{what}")]
pub struct Cause {
    what: String,
    #[source]
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Cause {
    /// A cause that no error of the SDK stands behind.
    pub(crate) fn said(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None }
    }
}

/// What an error of the SDK means for whoever sent the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Not applied; the same request may pass later.
    Throttled,
    /// Not applied; the same request may pass later.
    Contended,
    /// May have been applied, or may still be.
    Unknown,
    /// The token was used for another request; may have been applied.
    TokenTaken,
    /// Not applied; a condition failed.
    Condition,
    /// Not applied; the reasons tell why.
    Cancelled,
    NoTable,
    Denied,
    /// Not applied, and it never will be.
    Refused,
}

/// Codes of every AWS service for missing or wrong credentials and permissions (API reference, Common Errors).
pub(crate) fn denies(code: &str) -> bool {
    matches!(
        code,
        "AccessDeniedException"
            | "AccessDenied"
            | "UnrecognizedClientException"
            | "InvalidSignatureException"
            | "SignatureDoesNotMatch"
            | "ExpiredToken"
            | "ExpiredTokenException"
            | "InvalidClientTokenId"
            | "IncompleteSignature"
            | "MissingAuthenticationTokenException"
            | "NotAuthorized"
            | "OptInRequired"
    )
}

impl Kind {
    /// Of an error code of DynamoDB (API reference, Common Errors and the operations' own).
    fn of_code(code: &str) -> Option<Self> {
        Some(match code {
            "ThrottlingException"
            | "Throttling"
            | "ProvisionedThroughputExceededException"
            | "RequestLimitExceeded"
            | "LimitExceededException" => Self::Throttled,
            "TransactionConflictException" | "ReplicatedWriteConflictException" => Self::Contended,
            "TransactionInProgressException"
            | "InternalServerError"
            | "InternalFailure"
            | "ServiceUnavailable"
            | "RequestTimeout" => Self::Unknown,
            "IdempotentParameterMismatchException" => Self::TokenTaken,
            "ConditionalCheckFailedException" => Self::Condition,
            "TransactionCanceledException" => Self::Cancelled,
            "ResourceNotFoundException" | "TableNotFoundException" => Self::NoTable,
            code if denies(code) => Self::Denied,
            _ => return None,
        })
    }

    /// Of any error.
    pub(crate) fn of<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Self {
        if let SdkError::ServiceError(answer) = error {
            let status = answer.raw().status().as_u16();
            let code = answer.err().code().and_then(Self::of_code);
            return code.unwrap_or(match status {
                429 => Self::Throttled,
                500.. => Self::Unknown,
                _ => Self::Refused,
            });
        }
        let unsent = matches!(error, SdkError::ConstructionFailure(_))
            || matches!(error, SdkError::DispatchFailure(failure) if failure.is_user());
        if unsent { Self::Refused } else { Self::Unknown }
    }

    /// Sending the same request again may help.
    pub(crate) fn may_pass(self) -> bool {
        match self {
            Self::Throttled | Self::Contended | Self::Unknown | Self::TokenTaken => true,
            Self::Condition | Self::Cancelled | Self::NoTable | Self::Denied | Self::Refused => {
                false
            }
        }
    }

    /// What was sent may have been applied, or may still be.
    pub(crate) fn may_be_applied(self) -> bool {
        match self {
            Self::Unknown | Self::TokenTaken => true,
            Self::Throttled
            | Self::Contended
            | Self::Condition
            | Self::Cancelled
            | Self::NoTable
            | Self::Denied
            | Self::Refused => false,
        }
    }

    pub(crate) fn trouble(self, cause: Cause) -> Trouble {
        match self {
            Self::Throttled => Trouble::Throttled(cause),
            Self::Contended | Self::Condition | Self::Cancelled => Trouble::Contended(cause),
            Self::Unknown | Self::TokenTaken => Trouble::Silent(cause),
            Self::NoTable => Trouble::NoTable(cause),
            Self::Denied => Trouble::Denied(cause),
            Self::Refused => Trouble::Refused(cause),
        }
    }
}

/// What the SDK said, as a cause.
pub(crate) fn cause<E>(error: SdkError<E, HttpResponse>) -> Cause
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    // An answer of DynamoDB is told here whole; anything else by what stands behind it, too.
    if let Some(code) = error.code() {
        return Cause::said(format!("{code}: {}", error.message().unwrap_or_default()));
    }
    let what = error.to_string();
    let source = error.into_source().ok().map(Arc::from);
    Cause { what, source }
}

/// Why something could not be read or done. Nothing was applied, or it does not matter whether it was.
#[derive(Debug, Clone)]
pub(crate) enum Fail {
    Trouble(Trouble),
    Unreadable(String),
}

impl From<Trouble> for Fail {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl Fail {
    pub(crate) fn unreadable(what: &str, why: impl std::fmt::Display) -> Self {
        Self::Unreadable(format!("{what}: {why}"))
    }

    fn into_source(self) -> Source {
        match self {
            Self::Trouble(trouble) => trouble.into(),
            Self::Unreadable(what) => what.into(),
        }
    }

    /// As the answer to a commit that was surely not applied.
    pub(crate) fn into_commit_error(self) -> CommitError {
        match self {
            Self::Trouble(trouble) => {
                let after_ms = trouble.may_pass().then_some(LATER_MS);
                CommitError::Unavailable { after_ms, source: trouble.into() }
            }
            Self::Unreadable(what) => CommitError::Corrupt { what },
        }
    }
}

/// When to try again after throttling that outlasted our patience: DynamoDB refills its buckets within seconds. And after
/// this process was told to write no more: by then another one may answer.
const LATER_MS: i64 = 2_000;

impl Trouble {
    /// The same call may succeed later although nobody does anything about it.
    fn may_pass(&self) -> bool {
        match self {
            Self::Throttled(_) | Self::Newer { .. } | Self::Replaced => true,
            Self::Contended(_)
            | Self::Silent(_)
            | Self::NoTable(_)
            | Self::Denied(_)
            | Self::Refused(_)
            | Self::Malformed(_)
            | Self::TooMuch(_)
            | Self::BadCursor => false,
        }
    }
}

impl From<Fail> for ReadError {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Trouble(Trouble::BadCursor) => Self::BadCursor,
            Fail::Trouble(trouble) => Self::Unavailable { source: trouble.into() },
            Fail::Unreadable(what) => Self::Corrupt { what },
        }
    }
}

impl From<Fail> for SettleError {
    fn from(fail: Fail) -> Self {
        Self::Unavailable { source: fail.into_source() }
    }
}

impl From<Fail> for DefinitionError {
    fn from(fail: Fail) -> Self {
        Self::Unavailable { source: fail.into_source() }
    }
}

impl From<Fail> for OpenError {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Trouble(Trouble::NoTable(cause)) => refused(Trouble::NoTable, cause),
            Fail::Trouble(Trouble::Denied(cause)) => refused(Trouble::Denied, cause),
            Fail::Trouble(trouble) => Self::Unavailable { source: trouble.into() },
            Fail::Unreadable(what) => Self::Corrupt { what },
        }
    }
}

/// Refused, with what DynamoDB said in the message: whoever opens a store reads one line.
fn refused(trouble: fn(Cause) -> Trouble, cause: Cause) -> OpenError {
    let why = cause.to_string();
    OpenError::Refused { message: format!("{} ({why})", trouble(cause)) }
}
