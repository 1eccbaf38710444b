//! Why a task could not run at all, as opposed to a violation that it found.

use std::path::PathBuf;

/// The task itself failed: something could not be read, started or understood.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A file could not be read or written.
    File { path: PathBuf, source: std::io::Error },
    /// A program could not be started.
    Start { command: String, source: std::io::Error },
    /// A program that must succeed did not.
    Failed { command: String, output: String },
    /// A text is not what it should be.
    Parse { what: String, reason: String },
}

impl Fault {
    /// The whole chain in one line, or with the output of the failed program below it.
    pub(crate) fn chain(&self) -> String {
        match self {
            Self::File { path, source } => format!("{}: {source}", path.display()),
            Self::Start { command, source } => format!("cannot start `{command}`: {source}"),
            Self::Failed { command, output } => format!("`{command}` failed\n{output}"),
            Self::Parse { what, reason } => format!("{what}: {reason}"),
        }
    }

    /// A fault of reading or writing `path`.
    pub(crate) fn file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::File { path: path.into(), source }
    }

    /// A text that cannot be understood.
    pub(crate) fn parse(what: impl Into<String>, reason: &impl ToString) -> Self {
        Self::Parse { what: what.into(), reason: reason.to_string() }
    }
}
