//! Running other programs: with their output shown, or captured.

use std::path::Path;
use std::process::{Command, Output};

use crate::fault::Fault;

/// A command line that can be printed for somebody to repeat it.
#[derive(Debug)]
pub(crate) struct Run {
    command: Command,
    shown: String,
}

impl Run {
    /// `program arguments…`, to run in `directory`.
    pub(crate) fn new(directory: &Path, program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(directory);
        let shown = std::iter::once(program)
            .chain(arguments.iter().copied())
            .map(quoted)
            .collect::<Vec<_>>()
            .join(" ");
        Self { command, shown }
    }

    /// The cargo that started this program, or the one on the path.
    pub(crate) fn cargo(directory: &Path, arguments: &[&str]) -> Self {
        let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut run = Self::new(directory, &program, arguments);
        run.shown = std::iter::once("cargo")
            .chain(arguments.iter().copied())
            .map(quoted)
            .collect::<Vec<_>>()
            .join(" ");
        run
    }

    /// With one more environment variable, also in what is shown.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self.shown = format!("{name}={} {}", quoted(value), self.shown);
        self
    }

    /// What somebody types to repeat this.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Runs with inherited output. True if the program succeeded.
    pub(crate) fn succeeds(mut self) -> Result<bool, Fault> {
        let status = self
            .command
            .status()
            .map_err(|source| Fault::Start { command: self.shown.clone(), source })?;
        Ok(status.success())
    }

    /// Runs with captured output, whatever the exit status.
    pub(crate) fn output(mut self) -> Result<Output, Fault> {
        self.command.output().map_err(|source| Fault::Start { command: self.shown, source })
    }

    /// Standard output of a program that must succeed.
    pub(crate) fn stdout(self) -> Result<String, Fault> {
        let shown = self.shown.clone();
        let output = self.output()?;
        if !output.status.success() {
            return Err(Fault::Failed { command: shown, output: both(&output) });
        }
        String::from_utf8(output.stdout).map_err(|error| Fault::parse(shown, &error))
    }
}

/// Both streams of a finished program as text, for a message.
pub(crate) fn both(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text
}

/// Is this program on the path and able to print its version?
pub(crate) fn available(directory: &Path, program: &str, arguments: &[&str]) -> bool {
    Run::new(directory, program, arguments).output().is_ok_and(|output| output.status.success())
}

fn quoted(word: &str) -> String {
    if word.is_empty() || word.contains([' ', '"', '\'', '*', '$', '(']) {
        format!("'{word}'")
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Run;

    #[test]
    fn the_shown_command_can_be_typed_again() {
        let run =
            Run::new(Path::new("."), "tool", &["--flag", "two words"]).env("NAME", "-D warnings");
        assert_eq!(run.shown(), "NAME='-D warnings' tool --flag 'two words'");
    }
}
