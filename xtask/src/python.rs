//! Programs from PyPI, pinned, each in a virtual environment of its own under the target directory.

use std::path::{Path, PathBuf};

use crate::ci::target;
use crate::fault::Fault;
use crate::process::Run;

/// A program and what it needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    /// Its name in the environment.
    pub(crate) name: &'static str,
    /// The folder of its environment.
    pub(crate) folder: &'static str,
    /// The file that pins it and all that it imports.
    pub(crate) pins: &'static str,
}

impl Program {
    /// The path of the program; it is installed when it is not there with these pins.
    pub(crate) fn install(self, root: &Path) -> Result<PathBuf, Fault> {
        let environment = target(root).join(self.folder);
        let python = environment.join("bin/python");
        let program = environment.join("bin").join(self.name);
        let (pins, stamp) = (root.join(self.pins), environment.join("installed.txt"));
        let wanted = std::fs::read(&pins).map_err(|source| Fault::file(&pins, source))?;
        if program.exists() && std::fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(program);
        }
        let shown = environment.to_string_lossy();
        let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let pip = [&quiet[..], &["--no-deps", "-r", self.pins]].concat();
        let made = Run::new(root, "python3", &["-m", "venv", "--clear", &shown]).succeeds()?
            && Run::new(root, &python.to_string_lossy(), &pip).succeeds()?;
        if !made {
            return Err(Fault::parse(self.pins, &format!("{} cannot be installed", self.name)));
        }
        std::fs::write(&stamp, wanted).map_err(|source| Fault::file(&stamp, source))?;
        Ok(program)
    }
}
