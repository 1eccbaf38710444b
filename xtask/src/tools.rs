//! Programs from crates.io that checks run: pinned, installed under `target/tools` when they are missing.

use std::path::{Path, PathBuf};

use crate::fault::Fault;
use crate::process::Run;

/// A program and the version of it that is installed and run.
#[derive(Debug)]
pub(crate) struct Tool {
    /// The crate, and the program in it.
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// Options of `cargo install` besides: how much a tool is optimised is worth minutes.
    pub(crate) options: &'static [&'static str],
}

impl Tool {
    /// Where it is, after installing it if it is not there or is another version. That takes minutes, once.
    pub(crate) fn installed(&self, root: &Path) -> Result<PathBuf, Fault> {
        let Self { name, version, options } = self;
        let tools = root.join("target").join("tools");
        let program = tools.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        let is_pinned = || {
            Run::new(root, &program.to_string_lossy(), &["--version"])
                .stdout()
                .is_ok_and(|said| said.split_whitespace().last() == Some(version))
        };
        if is_pinned() {
            return Ok(program);
        }
        println!("… installing {name} {version} into target/tools, once");
        let tools = tools.to_string_lossy();
        let mut arguments = vec!["install", "--locked", name, "--version", version];
        arguments.extend(["--root", &tools]);
        arguments.extend(*options);
        let run = Run::cargo(root, &arguments);
        let command = run.shown().to_owned();
        if run.succeeds()? && is_pinned() {
            Ok(program)
        } else {
            Err(Fault::Failed { command, output: format!("{name} could not be installed") })
        }
    }
}
