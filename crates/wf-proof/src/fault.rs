//! Why a run could not go on: a fault of the machine or of this crate, never a finding about the product.

use std::io;
use std::path::PathBuf;

/// What stopped a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A file, process or socket of the run itself failed.
    #[error("{what} did not work")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The server did not start, or ended by itself.
    #[error("{what}; it said:\n{log}")]
    Server {
        /// What it should have done.
        what: String,
        /// Its output.
        log: String,
    },
    /// Something that the run needs is not there.
    #[error("{what} is missing: {help}")]
    Missing {
        /// What.
        what: PathBuf,
        /// How to get it.
        help: String,
    },
    /// Something else that the run expects of itself.
    #[error("{0}")]
    Run(String),
}

impl Fault {
    /// Of an input or output error.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// The message and its causes in one line.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}
