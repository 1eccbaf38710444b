//! Runs the built binary with a clean environment.

use std::path::Path;
use std::process::{Command, Output};

/// What one run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The output as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts the exit code.
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The binary in `folder`, without variables that would configure it.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf-cli"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WF_") {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).stdin(std::process::Stdio::null());
    command
}

/// Runs the binary in `folder` to its end.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Ran {
    command(folder).args(arguments).output().expect("the binary runs").into()
}
