//! Where the database file lies: the file system, permissions, the lock file, and whether the file is still the same.
//!
//! The database file itself is never opened here: closing any descriptor of a file drops all POSIX locks that the
//! process holds on it, SQLite's included (<https://sqlite.org/howtocorrupt.html> section 2.2). `stat` and `access` do
//! not open it.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Access, FlockOperation};
use rustix::process::{Flock, FlockType};
use wf_core::ports::OpenError;

use crate::config::LocalConfig;

fn refused(message: String) -> OpenError {
    OpenError::Refused { message }
}

/// The kind of a network or user-space file system by the `f_type` of statfs(2); `None` for others.
pub(crate) fn network_file_system(f_type: u32) -> Option<&'static str> {
    Some(match f_type {
        0x0000_6969 => "NFS",
        0xff53_4d42 => "CIFS",
        0xfe53_4d42 => "SMB2",
        0x0000_517b => "SMB",
        0x0102_1997 => "9p",
        0x6573_5546 => "FUSE",
        0x0000_564c => "NCP",
        0x5346_414f => "AFS",
        0x6b41_4653 => "kAFS",
        0x7375_7245 => "Coda",
        0x00c3_6400 => "Ceph",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x786f_4256 => "a VirtualBox shared folder",
        _ => return None,
    })
}

/// The directory of the file, which may be given by its name alone.
pub(crate) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The configuration with an absolute path, so that a change of the working directory means nothing, and so that no
/// name can be taken for a SQLite URI.
pub(crate) fn absolute(config: &LocalConfig) -> Result<LocalConfig, OpenError> {
    let path = std::path::absolute(&config.path)
        .map_err(|e| refused(format!("{:?} is not a path: {e}", config.path)))?;
    if path.file_name().is_none() || path.to_str().is_none_or(|p| p.contains('\0')) {
        return Err(refused(format!(
            "{} cannot be the name of a database: give the path of a file, in UTF-8",
            path.display()
        )));
    }
    Ok(LocalConfig { path, ..config.clone() })
}

/// Whether a file is there. Refuses places where SQLite cannot be trusted or cannot write.
pub(crate) fn check(config: &LocalConfig) -> Result<Option<Metadata>, OpenError> {
    let path = config.path.display();
    let dir = directory(&config.path);
    match std::fs::metadata(dir) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            return Err(refused(format!(
                "{} is not a directory: give the database another path",
                dir.display()
            )));
        }
        Err(e) => {
            return Err(refused(format!(
                "the directory {} cannot be used ({e}): create it or give the database another path",
                dir.display()
            )));
        }
    }
    check_file_system(dir, config.allow_network_fs)?;
    let found = match std::fs::metadata(&config.path) {
        Ok(found) if found.is_dir() => {
            return Err(refused(format!("{path} is a directory: give the path of a file")));
        }
        Ok(found) if !found.is_file() => {
            return Err(refused(format!(
                "{path} is not a regular file: give the database another path"
            )));
        }
        Ok(found) => Some(found),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(refused(format!("{path} cannot be looked at: {e}"))),
    };
    rustix::fs::access(dir, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|e| not_writable(dir, &e.into()))?;
    if found.is_some() {
        rustix::fs::access(&config.path, Access::READ_OK | Access::WRITE_OK)
            .map_err(|e| not_writable(&config.path, &e.into()))?;
    }
    Ok(found)
}

fn check_file_system(dir: &Path, allow_network: bool) -> Result<(), OpenError> {
    let Ok(stat) = rustix::fs::statfs(dir) else {
        return Ok(());
    };
    // The word is signed on some machines; only its low 32 bits carry the number.
    let f_type = u32::try_from(i128::from(stat.f_type) & 0xffff_ffff).unwrap_or(0);
    match network_file_system(f_type) {
        Some(kind) if !allow_network => Err(refused(format!(
            "{} is on {kind}: SQLite needs a local disk, because locks and shared memory cannot be relied on over a \
             network; move the database, or allow it explicitly and take the risk",
            dir.display()
        ))),
        _ => Ok(()),
    }
}

fn not_writable(path: &Path, error: &io::Error) -> OpenError {
    refused(format!(
        "{} cannot be written ({error}): make it writable for the user that runs this, or give the database another \
         path; SQLite also needs to create files beside the database",
        path.display()
    ))
}

/// Creates the file, empty and readable by its owner only, because it will hold keys; false when somebody else was
/// first. Only for a file that is not there: see the head of this module.
pub(crate) fn create_new(path: &Path) -> io::Result<bool> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(e),
    }
}

/// The same, for the database.
pub(crate) fn create_empty(path: &Path) -> Result<bool, OpenError> {
    create_new(path).map_err(|e| not_writable(path, &e))
}

/// Makes names in the directory of `path` durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory(path))?.sync_all()
}

/// Who uses the database file. Held until dropped; the file itself stays.
///
/// A `flock` keeps restore and migration apart from users. A POSIX read lock on the same file stands beside it because,
/// unlike a `flock`, it can be asked for without being taken: `fcntl(2)`, `F_GETLK`.
#[derive(Debug)]
pub(crate) struct InUse(File);

impl InUse {
    /// As one of several users.
    pub(crate) fn shared(config: &LocalConfig) -> Result<Self, OpenError> {
        let busy = "is being restored or migrated: wait until that is done";
        let in_use = Self::take(config, FlockOperation::NonBlockingLockShared, busy)?;
        // Without it others only take this process for absent, and look again sooner than they think is needed.
        let _ = rustix::fs::fcntl_lock(&in_use.0, FlockOperation::NonBlockingLockShared);
        Ok(in_use)
    }

    /// As the only user.
    pub(crate) fn exclusive(config: &LocalConfig) -> Result<Self, OpenError> {
        let busy = "is in use by a server or another command: stop it first";
        Self::take(config, FlockOperation::NonBlockingLockExclusive, busy)
    }

    /// Another process uses the file too, or that cannot be told. Handles of this process do not count.
    pub(crate) fn by_others(&self) -> bool {
        let whole = Flock::from(FlockType::WriteLock);
        rustix::process::fcntl_getlk(&self.0, &whole).map_or(true, |held| held.is_some())
    }

    fn take(config: &LocalConfig, how: FlockOperation, busy: &str) -> Result<Self, OpenError> {
        let path = config.lock_path();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|e| not_writable(&path, &e))?;
        match rustix::fs::flock(&file, how) {
            Ok(()) => Ok(Self(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                Err(refused(format!("{} {busy}", config.path.display())))
            }
            Err(e) => Err(refused(format!("{} cannot be locked: {e}", path.display()))),
        }
    }
}

/// Which file a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file at `path`; `None` when there is none, or when it cannot be looked at.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|m| Self { device: m.dev(), inode: m.ino() })
    }
}

/// How long a look at the files holds good for reads, which otherwise would look at them more often than at rows.
const LATELY: Duration = Duration::from_millis(20);

/// The files of an open database, to notice when one is replaced or deleted underneath.
#[derive(Debug)]
pub(crate) struct Footprint {
    files: Vec<(PathBuf, Option<FileId>)>,
    /// The last look: when, and whether all was as before.
    last: Mutex<Option<(Instant, bool)>>,
}

impl Footprint {
    /// The files as they are now.
    pub(crate) fn of(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let files = paths
            .into_iter()
            .map(|path| {
                let id = FileId::of(&path);
                (path, id)
            })
            .collect();
        Self { files, last: Mutex::new(None) }
    }

    fn last(&self) -> MutexGuard<'_, Option<(Instant, bool)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True when every name still stands for the same file.
    pub(crate) fn is_unchanged(&self) -> bool {
        let begun = Instant::now();
        let unchanged = self.files.iter().all(|(path, id)| id.is_some() && FileId::of(path) == *id);
        *self.last() = Some((begun, unchanged));
        unchanged
    }

    /// The same, as it was when anybody last looked, if that is not long ago.
    pub(crate) fn was_unchanged_lately(&self) -> bool {
        let last = *self.last();
        match last {
            Some((when, unchanged)) if when.elapsed() < LATELY => unchanged,
            Some(_) | None => self.is_unchanged(),
        }
    }
}

/// The size of a file in bytes; 0 when there is none.
pub(crate) fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

#[cfg(test)]
mod tests {
    use super::network_file_system;

    #[test]
    fn network_file_systems_are_told_from_local_ones() {
        for (f_type, name) in [
            (0x6969, "NFS"),
            (0xff53_4d42, "CIFS"),
            (0xfe53_4d42, "SMB2"),
            (0x0102_1997, "9p"),
            (0x6573_5546, "FUSE"),
        ] {
            assert_eq!(network_file_system(f_type), Some(name));
        }
        // ext4, xfs, btrfs, tmpfs, overlayfs, zfs, apfs-like zero
        for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1, 0] {
            assert_eq!(network_file_system(local), None, "{local:x}");
        }
    }
}
