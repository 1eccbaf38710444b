//! How a command ends: exit codes, and failures that say what happened, why, and what to do.
//!
//! Codes are fixed: 0 ok, 1 failed, 2 usage, 3 unavailable (try again), 4 damage found.

use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::Value;
use wf_core::errors::ErrorCode;
use wf_core::ports::{ReadError, SettleError};

/// The exit code of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Ok,
    /// Not done.
    Failed,
    /// Asked wrongly: arguments or configuration.
    Usage,
    /// Nothing is wrong with the question; ask again later.
    Unavailable,
    /// The store holds what it must not.
    Damage,
}

impl Exit {
    /// The number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unavailable => 3,
            Self::Damage => 4,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// A boxed cause.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
    details: Vec<String>,
    help: Option<String>,
    cause: Option<Cause>,
}

impl Failure {
    /// A failure with this exit code.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), details: Vec::new(), help: None, cause: None }
    }

    /// The engine refused a call, with this result; `otherwise` is said when the result has no message.
    pub(crate) fn refused(code: ErrorCode, result: &Value, otherwise: &str) -> Self {
        let exit =
            if code == ErrorCode::BackendUnavailable { Exit::Unavailable } else { Exit::Failed };
        let message = result.pointer("/error/message").and_then(Value::as_str);
        let message = one_line(message.unwrap_or(otherwise));
        Self::new(exit, format!("{}: {message}", code.as_str()))
    }

    /// Exit code 1.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Exit code 3.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Exit::Unavailable, message)
    }

    /// An end that says nothing more: the command printed it, or nobody reads on.
    pub(crate) fn quiet(exit: Exit) -> Self {
        Self::new(exit, "")
    }

    /// Adds lines about single things that are wrong.
    pub(crate) fn details(mut self, details: Vec<String>) -> Self {
        self.details = details;
        self
    }

    /// Adds what to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the cause; its own causes are printed too.
    pub(crate) fn because(mut self, cause: impl Into<Cause>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// What to print on stderr; empty for a quiet end.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if self.message.is_empty() {
            return text;
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "error: {}", one_line(&self.message));
        for detail in &self.details {
            let _ = writeln!(text, "  {}", one_line(detail));
        }
        let mut cause: Option<&dyn Error> = self.cause.as_ref().map(|c| {
            let cause: &dyn Error = c.as_ref();
            cause
        });
        while let Some(error) = cause {
            let _ = writeln!(text, "  because: {}", one_line(&error.to_string()));
            cause = error.source();
        }
        if let Some(help) = &self.help {
            let _ = writeln!(text, "  to do: {}", one_line(help));
        }
        text
    }
}

/// An error and its causes on one line, for a log. A cause that only says again what was said is left out.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let says = error.to_string();
        if !text.ends_with(&says) {
            text.push_str(": ");
            text.push_str(&says);
        }
        cause = error.source();
    }
    one_line(&text)
}

/// Text of outside on one line and without control characters, so that it cannot forge another line.
pub(crate) fn one_line(text: &str) -> String {
    text.trim_end()
        .replace(['\n', '\r'], "; ")
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unavailable { source } => {
                Self::unavailable("the store did not answer").because(source)
            }
            ReadError::Corrupt { what } => {
                Self::new(Exit::Damage, format!("the store is damaged: {what}"))
                    .help("run `wf-cli doctor`, keep a copy of the file, and restore a backup")
            }
            // No command takes one from outside.
            ReadError::BadCursor => Self::failed("a list did not know its own place"),
        }
    }
}

impl From<SettleError> for Failure {
    fn from(error: SettleError) -> Self {
        match error {
            SettleError::LeaseLost => Self::unavailable("somebody else works on it now"),
            SettleError::Unavailable { source } => {
                Self::unavailable("the store did not take the change").because(source)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_prints_its_chain_one_line_each() {
        let inner = std::io::Error::other("disk\nfull");
        let text = Failure::failed("no backup was written")
            .details(vec!["a.db: \u{1b}[31mred".to_owned()])
            .because(inner)
            .help("free some space")
            .text();
        assert_eq!(
            text,
            "error: no backup was written\n  a.db: \u{fffd}[31mred\n  because: disk; full\n  to do: free some space\n"
        );
    }

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Said(&'static str, #[source] Option<Box<Said>>);

    #[test]
    fn a_chain_says_nothing_twice() {
        let inner = Said("no such table", None);
        let middle = Said("refused: no such table", Some(Box::new(inner)));
        assert_eq!(
            chain(&Said("cannot look", Some(Box::new(middle)))),
            "cannot look: refused: no such table"
        );
    }

    #[test]
    fn a_quiet_end_prints_nothing() {
        assert_eq!(Failure::quiet(Exit::Damage).text(), "");
    }
}
