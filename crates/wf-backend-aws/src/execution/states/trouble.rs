//! The only mapping of the errors of Step Functions. An error that is an answer (the execution is there already, there is
//! none, the token is dead) is told as one in `states`; all others are trouble, and trouble means: nothing is known.
//!
//! | what came back | told as |
//! |---|---|
//! | throttled, a quota of the account, our own allowance | `Throttled` |
//! | 5xx, no answer in time, connection lost, unreadable answer, an error we do not know | `Silent` |
//! | an answer that contradicts another | `Contradictory` |
//! | no such state machine, or it is being deleted | `NoMachine` |
//! | credentials or permissions, or a key that may not be used | `Denied` |
//! | not valid | `Refused` |

use std::error::Error;

use aws_sdk_sfn::config::http::HttpResponse;
use aws_sdk_sfn::error::{ProvideErrorMetadata, SdkError};

use crate::fault::{Cause, cause, denies};

/// Why nothing is known.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Trouble {
    /// The account has no more calls for now, or we allow ourselves none.
    #[error("Step Functions throttles calls")]
    Throttled(#[source] Cause),
    /// No answer, or one that says nothing.
    #[error("Step Functions did not answer")]
    Silent(#[source] Cause),
    /// Two answers that cannot both be true, or one that cannot.
    #[error("what Step Functions answered contradicts itself")]
    Contradictory(#[source] Cause),
    /// The state machine was deleted, or never made.
    #[error("there is no such state machine: run `wf-cli aws init`, or check its ARN and region")]
    NoMachine(#[source] Cause),
    /// No credentials, or not the right ones.
    #[error("the credentials are missing, wrong or lack a permission")]
    Denied(#[source] Cause),
    /// A bug of ours.
    #[error("Step Functions refused the request")]
    Refused(#[source] Cause),
}

impl Trouble {
    /// Of an error that is no answer.
    pub(crate) fn of<E>(error: SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let unsent = matches!(error, SdkError::ConstructionFailure(_))
            || matches!(&error, SdkError::DispatchFailure(failure) if failure.is_user());
        let kind: fn(Cause) -> Self = if let SdkError::ServiceError(answer) = &error {
            let throttled = answer.raw().status().as_u16() == 429;
            of_code(answer.err().code().unwrap_or_default()).unwrap_or(if throttled {
                Self::Throttled
            } else {
                Self::Silent
            })
        } else if unsent {
            Self::Refused
        } else {
            Self::Silent
        };
        kind(cause(error))
    }

    /// Answers that cannot be true together.
    pub(crate) fn contradictory(what: &str) -> Self {
        Self::Contradictory(Cause::said(what))
    }

    /// We allow ourselves no look now.
    pub(crate) fn spent() -> Self {
        Self::Throttled(Cause::said("our own allowance of DescribeExecution is used up for now"))
    }

    /// In one word, for metrics.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Throttled(_) => "throttled",
            Self::Silent(_) => "silent",
            Self::Contradictory(_) => "contradictory",
            Self::NoMachine(_) => "no_machine",
            Self::Denied(_) => "denied",
            Self::Refused(_) => "refused",
        }
    }
}

/// Of an error code of Step Functions (API reference: Common Errors, and the operations' own).
fn of_code(code: &str) -> Option<fn(Cause) -> Trouble> {
    Some(match code {
        "ThrottlingException"
        | "Throttling"
        | "TooManyRequestsException"
        | "RequestLimitExceeded"
        | "ExecutionLimitExceeded"
        | "KmsThrottlingException" => Trouble::Throttled,
        "StateMachineDoesNotExist" | "StateMachineDeleting" | "ResourceNotFound" => {
            Trouble::NoMachine
        }
        code if denies(code) => Trouble::Denied,
        "KmsAccessDeniedException" | "KmsInvalidStateException" => Trouble::Denied,
        "ValidationException"
        | "ValidationError"
        | "InvalidArn"
        | "InvalidName"
        | "InvalidExecutionInput"
        | "InvalidOutput"
        | "InvalidToken"
        | "StateMachineTypeNotSupported" => Trouble::Refused,
        _ => return None,
    })
}
