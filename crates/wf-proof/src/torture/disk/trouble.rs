//! The faults that are put in and taken away: what is done to the files, the disk or the process of a running server.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::foreign::Foreign;
use super::ground::Cut;
use super::scene::Scene;
use crate::fault::Fault;

/// One of the three files of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The database file.
    Database,
    /// The write-ahead log beside it.
    Log,
    /// The index of the log.
    Index,
}

impl Part {
    /// The name of the part of this database.
    pub(super) fn of(self, database: &Path) -> PathBuf {
        let suffix = match self {
            Self::Database => "",
            Self::Log => "-wal",
            Self::Index => "-shm",
        };
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// No block is free on the file system of the folder; then some are.
    Full,
    /// The medium under the file system is full, which nobody learns before the blocks are written back.
    MediumFull,
    /// New blocks cannot be written back for a while; then they can. The file system goes on.
    WriteBack,
    /// The file system refuses every write after an error of its medium.
    Aborted,
    /// Somebody else holds the write lock.
    Locked,
    /// A file was renamed; then it gets its name back.
    Renamed(Part),
    /// A copy was put in the place of a file; then the file is put back.
    Replaced(Part),
    /// A file was deleted for good.
    Deleted(Part),
    /// The process may not make files larger.
    FileLimit,
}

/// How a fault is taken away.
#[derive(Debug)]
pub(super) enum Put {
    /// By removing what fills the disk.
    Ballast(PathBuf),
    /// By the whole medium. Only when the file system is mounted again is seen what of it is there.
    Medium(Cut, Foreign),
    /// By letting go.
    Foreign(Foreign),
    /// By giving a file its name back. `copy` is what took the place, and what was in it.
    Aside { part: PathBuf, aside: PathBuf, copy: Option<Vec<u8>> },
    /// By the old limit.
    Limit(Option<u64>),
    /// By a boot.
    Reboot,
    /// By a start.
    Start,
}

impl Trouble {
    /// Puts it in.
    pub(super) fn put(self, scene: &Scene) -> Result<Put, Fault> {
        let database = scene.launch.database();
        Ok(match self {
            Self::Full => Put::Ballast(fill(&scene.place.folder)?),
            Self::MediumFull => {
                fill(scene.place.under())?;
                Put::Reboot
            }
            Self::WriteBack => {
                // So that the log grows beyond what it has.
                let reader = Foreign::open(&database)?;
                reader.read()?;
                Put::Medium(scene.place.cut()?, reader)
            }
            Self::Aborted => {
                scene.place.abort()?;
                Put::Reboot
            }
            Self::Locked => {
                let foreign = Foreign::open(&database)?;
                foreign.lock()?;
                Put::Foreign(foreign)
            }
            Self::Renamed(part) => aside(&part.of(&database), false)?,
            Self::Replaced(part) => aside(&part.of(&database), true)?,
            Self::Deleted(part) => {
                fs::remove_file(part.of(&database)).map_err(Fault::io("deleting a file"))?;
                Put::Start
            }
            Self::FileLimit => Put::Limit(limited(scene, Resource::Fsize, Some(4096))?),
        })
    }
}

impl Put {
    /// Takes it away, and looks whether what should have been left alone was.
    pub(super) fn take(self, scene: &mut Scene) -> Result<(), Fault> {
        match self {
            Self::Medium(cut, reader) => {
                cut.give_back()?;
                reader.leave()?;
            }
            Self::Ballast(ballast) => {
                fs::remove_file(ballast).map_err(Fault::io("freeing the disk"))?;
            }
            Self::Foreign(foreign) => foreign.leave()?,
            Self::Aside { part, aside, copy } => {
                let now = fs::read(&part).ok();
                if now != copy {
                    let name = part.display();
                    let what = if copy.is_some() { "was written to" } else { "was made anew" };
                    scene.wrong(format!("{name} {what} although it is not the file that is open"));
                }
                fs::rename(aside, part).map_err(Fault::io("putting a file back"))?;
            }
            Self::Limit(before) => {
                limited(scene, Resource::Fsize, before)?;
            }
            Self::Reboot => {
                scene.stop_somehow()?;
                let ballast = ballast(scene.place.under());
                if ballast.exists() {
                    fs::remove_file(ballast).map_err(Fault::io("freeing the medium"))?;
                }
                scene.place.reboot()?;
                scene.start()?;
            }
            Self::Start => {
                scene.stop_somehow()?;
                scene.start()?;
            }
        }
        Ok(())
    }
}

/// Sets a limit of the server's process; answers the one before.
pub(super) fn limited(
    scene: &Scene,
    of: Resource,
    current: Option<u64>,
) -> Result<Option<u64>, Fault> {
    let id = i32::try_from(scene.server()?.id()).ok().and_then(Pid::from_raw);
    // The server has the highest bound that this process has.
    let limit = Rlimit { current, maximum: getrlimit(of).maximum };
    let before = prlimit(id, of, limit);
    before.map(|l| l.current).map_err(|error| Fault::io("limiting the server")(error.into()))
}

fn aside(part: &Path, replace: bool) -> Result<Put, Fault> {
    let mut name = part.as_os_str().to_owned();
    name.push(".aside");
    let aside = PathBuf::from(name);
    fs::rename(part, &aside).map_err(Fault::io("putting a file aside"))?;
    let copy = if replace {
        let bytes = fs::read(&aside).map_err(Fault::io("copying a file"))?;
        fs::write(part, &bytes).map_err(Fault::io("copying a file"))?;
        Some(bytes)
    } else {
        None
    };
    Ok(Put::Aside { part: part.to_owned(), aside, copy })
}

fn ballast(folder: &Path) -> PathBuf {
    folder.join("ballast")
}

/// Fills a file system to its last block.
fn fill(folder: &Path) -> Result<PathBuf, Fault> {
    let path = ballast(folder);
    let open = OpenOptions::new().create(true).append(true).open(&path);
    let mut file = open.map_err(Fault::io("filling a disk"))?;
    for chunk in [1 << 20, 1 << 16, 1 << 12] {
        pour(&mut file, &vec![0xa5; chunk]).map_err(Fault::io("filling a disk"))?;
    }
    Ok(path)
}

fn pour(file: &mut File, chunk: &[u8]) -> io::Result<()> {
    loop {
        match file.write_all(chunk) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
