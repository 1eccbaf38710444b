//! What a clause answers when a store breaks it, and the two macros that find it.

use std::error::Error;
use std::fmt;
use std::panic::Location;

use wf_core::ports::Source;
use wf_core::ports::{CommitError, DefinitionError, OpenError, ReadError, SettleError};

/// A store broke the law: what was seen, and where in the clause.
#[derive(thiserror::Error)]
#[error("{what} ({at})")]
pub struct Violation {
    what: String,
    at: &'static Location<'static>,
}

impl fmt::Debug for Violation {
    // A test that returns an error prints its `Debug` form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Violation {
    /// A violation seen by the caller of this function.
    #[must_use]
    #[track_caller]
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), at: Location::caller() }
    }

    #[track_caller]
    fn unexpected(error: &dyn Error) -> Self {
        let mut what = format!("unexpected error: {error}");
        let mut source = error.source();
        while let Some(cause) = source {
            what.push_str(": ");
            what.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::new(what)
    }
}

macro_rules! unexpected {
    ($($error:ty),*) => {$(
        impl From<$error> for Violation {
            #[track_caller]
            fn from(error: $error) -> Self {
                Self::unexpected(&error)
            }
        }
    )*};
}

unexpected!(ReadError, SettleError, DefinitionError, OpenError);

impl From<CommitError> for Violation {
    #[track_caller]
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict(conflict) => Self::new(format!("unexpected {conflict:?}")),
            CommitError::Unavailable { .. }
            | CommitError::Ambiguous { .. }
            | CommitError::Corrupt { .. }
            | CommitError::TooLarge { .. } => Self::unexpected(&error),
        }
    }
}

impl From<Source> for Violation {
    #[track_caller]
    fn from(error: Source) -> Self {
        Self::unexpected(&*error)
    }
}

/// Returns a [`Violation`] from the clause unless the condition holds.
macro_rules! check {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::contract::Violation::new(format!($($what)+)));
        }
    };
}

/// Returns a [`Violation`] from the clause unless what was seen is what should be.
macro_rules! check_eq {
    ($seen:expr, $expected:expr, $($what:tt)+) => {
        // A match keeps temporaries of both expressions alive, as `assert_eq!` does.
        match (&$seen, &$expected) {
            (seen, expected) => {
                if seen != expected {
                    let what = format!($($what)+);
                    return Err($crate::contract::Violation::new(format!(
                        "{what}\n    seen: {seen:?}\nexpected: {expected:?}"
                    )));
                }
            }
        }
    };
}

pub(crate) use {check, check_eq};
