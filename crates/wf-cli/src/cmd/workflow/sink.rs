//! Where an export goes: the standard output, or a file that is there whole or not at all and never replaces another.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use wf_core::ports::IdPort as _;

use crate::ambient::OsIds;
use crate::exit::Failure;
use crate::output::Output;

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// An export on its way.
#[derive(Debug)]
pub(super) enum Sink {
    /// To the standard output.
    Standard { output: Output, waiting: Vec<u8> },
    /// To a file with a name of its own until it is whole.
    File { file: BufWriter<File>, partial: PathBuf, to: PathBuf, done: bool },
}

impl Sink {
    /// Opens it.
    pub(super) fn open(to: Option<&Path>, output: Output) -> Result<Self, Failure> {
        let Some(to) = to else {
            return Ok(Self::Standard { output, waiting: Vec::with_capacity(BUFFER_BYTES) });
        };
        if std::fs::symlink_metadata(to).is_ok() {
            return Err(exists(to));
        }
        let mut name = to.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", OsIds.random_hex()));
        let partial = to.with_file_name(name);
        let file = private(&partial).map_err(|error| unwritten(to, error))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Self::File { file, partial, to: to.to_owned(), done: false })
    }

    /// Writes some more.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Standard { output, waiting } => {
                waiting.extend_from_slice(bytes);
                if waiting.len() >= BUFFER_BYTES {
                    output.raw(&std::mem::take(waiting))?;
                }
                Ok(())
            }
            Self::File { file, to, .. } => {
                file.write_all(bytes).map_err(|error| unwritten(to, error))
            }
        }
    }

    /// Writes what waits. Answers the file, which has its name now.
    pub(super) fn finish(mut self) -> Result<Option<PathBuf>, Failure> {
        match &mut self {
            Self::Standard { output, waiting } => {
                output.raw(waiting)?;
                Ok(None)
            }
            Self::File { file, partial, to, done } => {
                let told = |error: std::io::Error| unwritten(to, error);
                file.flush().and_then(|()| file.get_ref().sync_all()).map_err(told)?;
                // A link, unlike a rename, never replaces what somebody else put there meanwhile.
                std::fs::hard_link(&*partial, &*to).map_err(|error| {
                    if error.kind() == std::io::ErrorKind::AlreadyExists {
                        exists(to)
                    } else {
                        told(error)
                    }
                })?;
                let _ = std::fs::remove_file(&*partial);
                *done = true;
                Ok(Some(to.clone()))
            }
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Self::File { partial, done: false, .. } = self {
            // It may be gone already, and there is nobody to tell.
            let _ = std::fs::remove_file(partial);
        }
    }
}

/// A new file for its owner's eyes only: an export holds what the store holds.
fn private(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

fn exists(to: &Path) -> Failure {
    Failure::failed(format!("{} exists already, and stays as it is", to.display()))
        .help("give the export another name, or remove the file first")
}

fn unwritten(to: &Path, error: std::io::Error) -> Failure {
    Failure::failed(format!("{} cannot be written", to.display())).because(error)
}
