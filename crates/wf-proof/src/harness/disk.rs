//! The preload library `wf-diskfault` around a server: loading it, disturbing calls, reading what it wrote down.
//!
//! [`rules`] are what can be disturbed, [`log`] is what happened, in the order of the effects. What the library models is
//! in its README.

pub mod log;
pub mod rules;

use std::path::{Path, PathBuf};

use crate::fault::Fault;
use crate::harness::server::Launch;
use log::Record;
use rules::Rule;

/// What stands between a server and its files.
#[derive(Debug, Clone)]
pub struct Tap {
    log: PathBuf,
    rules: PathBuf,
}

impl Tap {
    /// Puts the library at `preload` into what `launch` starts. Its log and its rules are in `own`, which should be
    /// another folder than the database's when that one is to become full or unreadable.
    ///
    /// The folder of the launch is spelt without links afterwards, as the library needs it. Every process that is
    /// started so appends to the same log.
    ///
    /// # Errors
    /// When the library, or a folder, is not there.
    pub fn new(preload: &Path, mut launch: Launch, own: &Path) -> Result<(Self, Launch), Fault> {
        let real = |path: &Path| {
            path.canonicalize().map_err(Fault::io(format!("looking for {}", path.display())))
        };
        if !preload.is_file() {
            return Err(Fault::Missing {
                what: preload.to_owned(),
                help: "build it with `cargo build -p wf-diskfault`".to_owned(),
            });
        }
        launch.folder = real(&launch.folder)?;
        let own = real(own)?;
        let tap = Self { log: own.join("disk.log"), rules: own.join("disk.rules") };
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let database = text(&launch.database());
        let launch = launch
            .env("LD_PRELOAD", text(&real(preload)?))
            .env("DISKFAULT_DATABASE", database)
            .env("DISKFAULT_LOG", text(&tap.log))
            .env("DISKFAULT_RULES", text(&tap.rules));
        Ok((tap, launch))
    }

    /// From the next call on these rules count, and no others; counting begins anew. Works while the server runs.
    ///
    /// # Errors
    /// When the rules cannot be written.
    pub fn disturb(&self, rules: &[Rule]) -> Result<(), Fault> {
        let text: String = rules.iter().map(|rule| format!("{rule}\n")).collect();
        let new = self.rules.with_extension("new");
        std::fs::write(&new, text)
            .and_then(|()| std::fs::rename(&new, &self.rules))
            .map_err(Fault::io("writing the rules"))
    }

    /// Nothing is disturbed any more.
    ///
    /// # Errors
    /// When the rules cannot be written.
    pub fn leave_alone(&self) -> Result<(), Fault> {
        self.disturb(&[])
    }

    /// Everything so far. While a server runs, a record that is not whole yet is left out.
    ///
    /// # Errors
    /// When the log cannot be read or is none.
    pub fn log(&self) -> Result<Vec<Record>, Fault> {
        match std::fs::read(&self.log) {
            Ok(bytes) => log::records(bytes.into()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Fault::io("reading the log of the disk")(error)),
        }
    }

    /// How often rules were done so far.
    ///
    /// # Errors
    /// When the log cannot be read or is none.
    pub fn disturbed(&self) -> Result<usize, Fault> {
        Ok(self.log()?.iter().filter(|record| record.by_rule).count())
    }
}
