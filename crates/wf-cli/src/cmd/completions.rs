//! `wf-cli completions` and `wf-cli man`: what shells and `man` read.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::Failure;
use crate::output::Output;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wf-cli completions bash > ~/.local/share/bash-completion/completions/wf-cli
  wf-cli completions zsh > ~/.zfunc/_wf-cli")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Print the manual page
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wf-cli man | man -l -
  wf-cli man --dir /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write this page and one for each command into a folder instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs `completions`.
pub(crate) fn completions(
    args: &CompletionsArgs,
    mut command: Command,
    output: Output,
) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "wf-cli", &mut script);
    if args.shell == Shell::Bash {
        // clap_complete 4.6 takes the hyphen of the name for the end of a word in one of two places that must agree.
        let text = String::from_utf8_lossy(&script).replace("wf__subcmd__cli", "wf__cli");
        return output.raw(text.as_bytes());
    }
    output.raw(&script)
}

/// Runs `man`.
pub(crate) fn man(args: &ManArgs, command: Command, output: Output) -> Result<(), Failure> {
    if let Some(dir) = &args.dir {
        return clap_mangen::generate_to(command, dir).map_err(|error| {
            Failure::failed(format!("no manual was written to {}", dir.display())).because(error)
        });
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::failed("the manual page cannot be written").because(error))?;
    output.raw(&page)
}
